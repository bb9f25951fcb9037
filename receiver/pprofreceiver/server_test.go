// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
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
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"google.golang.org/grpc/codes"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
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
	next := newSink(t)
	slow := newGate(t, next)
	b := newTestReceiver(t, serverYAML+"max_in_flight: 4MiB", slow)
	b.start()
	p := samplePprof("/bin/app", 1)
	p.Comments = []string{strings.Repeat("x", 300<<10)}
	body := profiletest.Gzip(t, profiletest.Pprof(t, p))

	first := make(chan answer)
	go func() { first <- b.push("", body) }()
	<-slow.entered
	assert.Greater(t, b.inFlight.InUse(), int64(300<<10))
	for range 2 {
		other := b.inFlight.Reserve(0)
		defer other.Release()
		require.NoError(t, other.TryTake(ingest.Work, b.inFlight.MaxWork()/14*9))
	}

	got := b.push("", body)
	assert.Equal(t, http.StatusTooManyRequests, got.status)
	assert.Equal(t, "1", got.header.Get("Retry-After"))
	assert.Contains(t, got.body, "\"code\":8", "resource exhausted is "+codes.ResourceExhausted.String())

	close(slow.open)
	assert.Equal(t, 204, (<-first).status)
	assert.Equal(t, 204, b.push("", profiletest.Pprof(t, samplePprof("/bin/app", 1))).status)
	assert.Equal(t, 4, next.SampleCount())
}

func TestShutdownFinishesRequests(t *testing.T) {
	next := newSink(t)
	slow := newGate(t, next)
	b := newTestReceiver(t, serverYAML, slow)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	answered := make(chan answer)
	body := profiletest.Pprof(t, samplePprof("/bin/app", 1))
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
	b := newTestReceiver(t, fmt.Sprintf("server: {endpoint: %s}\nself:", endpoint), newSink(t))
	require.ErrorContains(t, b.Start(t.Context(), componenttest.NewNopHost()), endpoint)
	require.NoError(t, b.Shutdown(t.Context()))
}

func TestShutdownWithoutStart(t *testing.T) {
	b := newTestReceiver(t, serverYAML+"self: {}", newSink(t))
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

type hostWith map[component.ID]component.Component

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h }

var doormanID = component.MustNewID("doorman")

// The receivers that receiver_creator starts, one for each target, share one limit.
func TestReceiversShareMaxInFlight(t *testing.T) {
	create := func(yaml string) *ingest.InFlight {
		cfg, err := loadConfig(yaml)
		require.NoError(t, err)
		r, err := NewFactory().(xreceiver.Factory).CreateProfiles(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		return r.(*pprofReceiver).inFlight
	}
	first := create("max_in_flight: 23MiB\nserver: {}")
	assert.Same(t, first, create("max_in_flight: 23MiB\nremote: {endpoint: 'http://localhost:6060/debug/pprof/heap'}"))
	assert.NotSame(t, first, create("max_in_flight: 24MiB\nserver: {}"))
}

// With client_ca_file, the server accepts only clients with a certificate.
func TestTLS(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:         true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(signed)
	require.NoError(t, err)
	certificate := tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: private}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: signed},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, tls: {cert_file: "+at("cert.pem")+", key_file: "+at("key.pem")+", client_ca_file: "+at("cert.pem")+"}}", newSink(t))
	profile := profiletest.Pprof(t, samplePprof("/bin/app", 1))
	assert.Equal(t, http.StatusBadRequest, b.push("", profile).status, "without TLS")

	authorities := x509.NewCertPool()
	authorities.AddCert(parsed)
	for _, certificates := range [][]tls.Certificate{nil, {certificate}} {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: authorities, Certificates: certificates, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		}}
		t.Cleanup(client.CloseIdleConnections)
		response, err := client.Post(strings.Replace(b.url("/v1/pprof"), "http:", "https:", 1), "", bytes.NewReader(profile))
		if certificates == nil {
			require.Error(t, err, "without a certificate")
			continue
		}
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusNoContent, response.StatusCode)
	}
}
