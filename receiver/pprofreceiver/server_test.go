// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"google.golang.org/grpc/codes"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

func consumer(t testing.TB, consume xconsumer.ConsumeProfilesFunc) xconsumer.Profiles {
	t.Helper()
	next, err := xconsumer.NewProfiles(consume)
	require.NoError(t, err)
	return next
}

// gate is a consumer that blocks until it is opened.
type gate struct {
	xconsumer.Profiles
	entered chan struct{} // one for each payload that is blocked
	open    chan struct{}
}

func newGate(t *testing.T, next xconsumer.Profiles) *gate {
	t.Helper()
	g := &gate{entered: make(chan struct{}, 100), open: make(chan struct{})}
	g.Profiles = consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
		g.entered <- struct{}{}
		select {
		case <-g.open:
			return next.ConsumeProfiles(ctx, pd)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return g
}

// A slow consumer fills max_in_flight. Then requests are rejected with 429.
func TestInFlightLimit(t *testing.T) {
	t.Parallel()
	next := &sink{t: t}
	slow := newGate(t, next)
	b := startTestReceiver(t, serverYAML+"max_in_flight: 4MiB", slow)
	p := profiletest.CPUPprof("/bin/app", 1)
	p.Comments = []string{strings.Repeat("x", 300<<10)}
	body := profiletest.Gzip(t, profiletest.Pprof(t, p))

	first := make(chan answer)
	go func() { first <- b.push("", body) }()
	<-slow.entered
	assert.Greater(t, b.inFlight.InUse(), int64(300<<10))
	others := b.inFlight.Lease(0)
	defer others.Release()
	require.NoError(t, others.Take(others.MaxWork()-b.inFlight.InUse()-100<<10))

	got := b.push("", body)
	assert.Equal(t, http.StatusTooManyRequests, got.status)
	assert.Equal(t, "1", got.header.Get("Retry-After"))
	assert.Contains(t, got.body, "\"code\":8", "resource exhausted is "+codes.ResourceExhausted.String())

	close(slow.open)
	assert.Equal(t, 204, (<-first).status)
	assert.Equal(t, 204, b.push("", profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1))).status)
	assert.Equal(t, 4, next.SampleCount())
}

func TestShutdownFinishesRequests(t *testing.T) {
	next := &sink{t: t}
	slow := newGate(t, next)
	b := newTestReceiver(t, serverYAML, slow)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	answered := make(chan answer)
	body := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1))
	go func() { answered <- b.push("", body) }()
	<-slow.entered

	address := b.server.Addr().String()
	stopped := make(chan error)
	go func() { stopped <- b.Shutdown(context.Background()) }()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return true
		}
		_ = conn.Close() // by the server already, perhaps
		return false
	}, time.Minute, time.Millisecond, "it stops listening")

	close(slow.open)
	assert.Equal(t, 204, (<-answered).status)
	require.NoError(t, <-stopped)
	assert.Equal(t, 2, next.SampleCount())
}

func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	endpoint := taken.Addr().String()
	b := newTestReceiver(t, fmt.Sprintf("server: {endpoint: %s}\nself: {}\nremote: {endpoint: 'http://localhost/heap'}\n", endpoint), &sink{t: t})
	require.NoError(t, b.Shutdown(t.Context()), "before the start")
	require.ErrorContains(t, b.Start(t.Context(), componenttest.NewNopHost()), endpoint)
	require.NoError(t, b.Shutdown(t.Context()))
}

// doorman is an authenticator that rejects requests without the password.
type doorman struct {
	component.StartFunc
	component.ShutdownFunc
}

var _ extensionauth.Server = doorman{}

func (doorman) Authenticate(ctx context.Context, sources map[string][]string) (context.Context, error) {
	if len(sources["password"]) == 1 && sources["password"][0] == "sesame" {
		return ctx, nil
	}
	return ctx, errors.New("who are you?")
}

var doormanID = component.MustNewID("doorman")

// The receivers that receiver_creator starts, one for each target, share one limit.
func TestReceiversShareMaxInFlight(t *testing.T) {
	create := func(factory receiver.Factory, yaml string) *budget.Budget {
		cfg, err := loadConfig(yaml)
		require.NoError(t, err)
		r, err := factory.(xreceiver.Factory).CreateProfiles(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		return r.(*pprofReceiver).inFlight
	}
	factory := NewFactory()
	first := create(factory, "max_in_flight: 23MiB\nserver: {}")
	assert.Same(t, first, create(factory, "max_in_flight: 24MiB\nremote: {endpoint: 'http://localhost:6060/debug/pprof/heap'}"))
	assert.NotSame(t, first, create(NewFactory(), "max_in_flight: 23MiB\nserver: {}"), "another Collector in this process")
}

// The certificate of an httptest.Server is for 127.0.0.1, and its client trusts it.
func TestTLS(t *testing.T) {
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	pair := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	certFile := profiletest.WriteFile(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	keyFile := profiletest.WriteFile(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	body := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1))
	for _, mutual := range []string{"", ", client_ca_file: " + certFile} {
		b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, tls: {cert_file: "+certFile+", key_file: "+keyFile+mutual+"}}", &sink{t: t})
		assert.Equal(t, http.StatusBadRequest, b.push("", body).status, "without TLS")
		response, err := other.Client().Post(strings.Replace(b.url("/v1/pprof"), "http:", "https:", 1), "", bytes.NewReader(body))
		if mutual != "" {
			require.Error(t, err, "without a certificate of the client")
			continue
		}
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusNoContent, response.StatusCode)
	}
}

// TestForeignPagesCannotPush_A6: a page of another site cannot push by the browser of a person, unless cors allows its origin.
func TestForeignPagesCannotPush_A6(t *testing.T) {
	next := &sink{t: t}
	b := startTestReceiver(t, "server: {cors: {allowed_origins: ['https://friend.example']}}", next)
	profile := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1))
	foreign := []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty", "Content-Type", "text/plain"}
	paths := []string{"/v1/pprof", "/ingest?name=a", "/push.v1.PusherService/Push", "/profiling/v1/input", "/other"}
	for _, path := range paths {
		got := b.post(path, profile, foreign...)
		assert.Equal(t, http.StatusForbidden, got.status, path)
		assert.Contains(t, got.body, "sent by a page of another site")
	}
	navigated := b.post("/v1/pprof", profile, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
	assert.Equal(t, http.StatusForbidden, navigated.status, "a form")
	assert.Equal(t, map[string]int64{"foreign_page": int64(len(paths)) + 1}, b.counts("otelcol_receiver_pprof_rejected_requests", "reason"))
	assert.Empty(t, next.AllProfiles())

	foreign[1] = "https://friend.example"
	assert.Equal(t, http.StatusNoContent, b.post("/v1/pprof", profile, foreign...).status)
	assert.Equal(t, http.StatusNoContent, b.push("", profile).status, "a client that is no browser")
}
