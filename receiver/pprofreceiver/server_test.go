// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc/codes"
)

func consumer(t *testing.T, consume xconsumer.ConsumeProfilesFunc) xconsumer.Profiles {
	t.Helper()
	next, err := xconsumer.NewProfiles(consume)
	require.NoError(t, err)
	return next
}

// gate is a consumer that holds everything back until it is opened.
type gate struct {
	xconsumer.Profiles
	entered chan struct{} // one for each payload that is held back
	open    chan struct{}
}

func newGate(t *testing.T, next xconsumer.Profiles, heedsContext bool) *gate {
	t.Helper()
	g := &gate{entered: make(chan struct{}, 100), open: make(chan struct{})}
	g.Profiles = consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
		g.entered <- struct{}{}
		if !heedsContext {
			ctx = context.WithoutCancel(ctx)
		}
		select {
		case <-g.open:
			return next.ConsumeProfiles(ctx, pd)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return g
}

// Row R12 of the faults, and the collector's contract of consumers: clients send
// again what was not accepted, and what they were told is accepted is there,
// exactly once.
func TestManyClients(t *testing.T) {
	const clients, pushes = 64, 12
	next := newSink(t)
	var calls atomic.Int64
	b := startBench(t, serverYAML, consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
		switch call := calls.Add(1); {
		case call%5 == 0:
			return errors.New("not now")
		case call%17 == 0:
			return consumererror.NewPermanent(errors.New("never"))
		}
		return next.ConsumeProfiles(ctx, pd)
	}))

	var accepted, refused atomic.Int64
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for push := range pushes {
				value := int64(1 + client*pushes + push)
				p := samplePprof("/bin/app", value)
				p.Sample[0].Label = map[string][]string{"id": {strconv.FormatInt(value, 10)}}
				body := gzipped(t, plain(t, p))
				for {
					status := b.push("?service.name=client-"+strconv.Itoa(client), body).status
					if status == http.StatusServiceUnavailable {
						continue
					}
					if status == http.StatusNoContent {
						accepted.Add(value)
					} else {
						assert.Equal(t, http.StatusInternalServerError, status)
						refused.Add(value)
					}
					break
				}
			}
		})
	}
	wg.Wait()

	total := int64(clients * pushes)
	assert.Equal(t, total*(total+1)/2, accepted.Load()+refused.Load())
	assert.NotZero(t, refused.Load())
	var arrived int64
	ids := map[pprofile.ProfileID]bool{}
	for _, pd := range next.AllProfiles() {
		profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
		for _, profile := range profiles.All() {
			assert.False(t, ids[profile.ProfileID()], "%s came twice", profile.ProfileID())
			ids[profile.ProfileID()] = true
			name := pd.Dictionary().StringTable().At(int(profile.SampleType().TypeStrindex()))
			if name == "samples" {
				arrived += profile.Samples().At(0).Values().At(0)
			}
		}
	}
	assert.Equal(t, accepted.Load(), arrived)
	assert.Zero(t, b.server.budget.inUse())
}

// Row R13 of the faults.
func TestPanicIsAnswered(t *testing.T) {
	next := newSink(t)
	var calls atomic.Int64
	b := startBench(t, serverYAML, consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
		if calls.Add(1) == 1 {
			panic("out of the blue")
		}
		return next.ConsumeProfiles(ctx, pd)
	}))
	body := plain(t, samplePprof("/bin/app", 1))
	got := b.push("", body)
	assert.Equal(t, http.StatusInternalServerError, got.status)
	assert.Contains(t, got.body, "internal error")
	assert.NotContains(t, got.body, "out of the blue")
	assert.Equal(t, 1, b.logs.FilterMessage("panic while handling a request").Len())
	assert.Zero(t, b.server.budget.inUse())

	for range 200 {
		require.Equal(t, 204, b.push("", body).status)
	}
	assert.Equal(t, 400, next.SampleCount())

	requests, err := b.telemetry.GetMetric("otelcol_receiver_pprof_requests")
	require.NoError(t, err)
	counts := map[int64]int64{}
	for _, point := range requests.Data.(metricdata.Sum[int64]).DataPoints {
		status, _ := point.Attributes.Value("http.response.status_code")
		counts[status.AsInt64()] = point.Value
	}
	assert.Equal(t, map[int64]int64{500: 1, 204: 200}, counts)
}

// A consumer that is slow fills the budget; then clients are told to wait.
func TestOverBudget(t *testing.T) {
	next := newSink(t)
	slow := newGate(t, next, true)
	b := newBench(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 1KiB, max_in_flight: 1KiB}", slow)
	b.server.budget.wait = 0
	b.start()
	p := samplePprof("/bin/app", 1)
	p.Comments = []string{strings.Repeat("x", 500)}
	body := plain(t, p)

	first := make(chan answer)
	go func() { first <- b.push("", body) }()
	<-slow.entered

	got := b.push("", body)
	assert.Equal(t, http.StatusTooManyRequests, got.status)
	assert.Equal(t, "1", got.header.Get("Retry-After"))
	assert.Contains(t, got.body, "\"code\":8", "resource exhausted is "+codes.ResourceExhausted.String())

	close(slow.open)
	assert.Equal(t, 204, (<-first).status)
	assert.Equal(t, 204, b.push("", body).status)
	assert.Equal(t, 4, next.SampleCount())
}

func TestShutdownFinishesRequests(t *testing.T) {
	next := newSink(t)
	slow := newGate(t, next, true)
	b := newBench(t, serverYAML, slow)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	answered := make(chan answer)
	body := plain(t, samplePprof("/bin/app", 1))
	go func() { answered <- b.push("", body) }()
	<-slow.entered

	address := b.server.listener.Addr().String()
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

func TestShutdownCutsOffRequests(t *testing.T) {
	stuck := newGate(t, consumertest.NewNop(), true)
	b := newBench(t, serverYAML, stuck)
	b.server.drainTime = time.Millisecond
	b.server.abortTime = time.Minute
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	failed := make(chan error)
	body := plain(t, samplePprof("/bin/app", 1))
	go func() {
		_, err := b.send(http.MethodPost, "/v1/pprof", bytes.NewReader(body))
		failed <- err
	}()
	<-stuck.entered
	require.NoError(t, b.Shutdown(context.Background()))
	require.Error(t, <-failed, "not acknowledged")
}

func TestShutdownDoesNotWaitForEver(t *testing.T) {
	stuck := newGate(t, consumertest.NewNop(), false)
	b := newBench(t, serverYAML, stuck)
	b.server.drainTime = time.Millisecond
	b.server.abortTime = time.Millisecond
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	failed := make(chan error)
	body := plain(t, samplePprof("/bin/app", 1))
	go func() {
		_, err := b.send(http.MethodPost, "/v1/pprof", bytes.NewReader(body))
		failed <- err
	}()
	<-stuck.entered
	require.ErrorContains(t, b.Shutdown(context.Background()), "1 requests did not end")
	require.Error(t, <-failed)
	close(stuck.open)
	assert.True(t, b.server.handlers.wait(time.Minute))
}

// Row R11 of the faults, a part of it: clients that send half of something.
func TestDrippingClients(t *testing.T) {
	next := newSink(t)
	b := startBench(t, "server: {endpoint: 127.0.0.1:0, read_timeout: 2s, read_header_timeout: 2s}", next)
	const clients = 20
	var wg sync.WaitGroup
	for i := range clients {
		conn, err := net.Dial("tcp", b.server.listener.Addr().String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }() // the server may have closed it
		body := i%2 == 0
		_, err = io.WriteString(conn, "POST /v1/pprof HTTP/1.1\r\nHost: x\r\n")
		require.NoError(t, err)
		if body {
			_, err = io.WriteString(conn, "Content-Length: 60000000\r\n\r\nabc")
			require.NoError(t, err)
		}
		wg.Go(func() {
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if body {
				if assert.NoError(t, err) {
					assert.Equal(t, http.StatusRequestTimeout, response.StatusCode)
					assert.NoError(t, response.Body.Close())
				}
			} else if err == nil {
				assert.GreaterOrEqual(t, response.StatusCode, 400)
				assert.NoError(t, response.Body.Close())
			}
		})
	}
	assert.Equal(t, 204, b.push("", plain(t, samplePprof("/bin/app", 1))).status)
	wg.Wait()
	assert.Zero(t, b.server.budget.inUse())
}

func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	endpoint := taken.Addr().String()
	b := newBench(t, fmt.Sprintf("server: {endpoint: %s}\nself:", endpoint), newSink(t))
	require.ErrorContains(t, b.Start(t.Context(), componenttest.NewNopHost()), endpoint)
	require.NoError(t, b.Shutdown(t.Context()))
}

func TestShutdownWithoutStart(t *testing.T) {
	b := newBench(t, serverYAML+"self:", newSink(t))
	require.NoError(t, b.Shutdown(t.Context()))
}

func TestStopAndStartAgain(t *testing.T) {
	first := startBench(t, serverYAML, consumertest.NewNop())
	endpoint := first.server.listener.Addr().String()
	require.NoError(t, first.Shutdown(t.Context()))
	second := startBench(t, fmt.Sprintf("server: {endpoint: %s}", endpoint), consumertest.NewNop())
	assert.Equal(t, 204, second.push("", plain(t, samplePprof("/bin/app", 1))).status)
}

// doorman is an authenticator that lets nobody in without the password.
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

// What confighttp refuses has the same kind of answer.
func TestUnauthenticated(t *testing.T) {
	next := newSink(t)
	b := newBench(t, "server: {endpoint: 127.0.0.1:0, auth: {authenticator: doorman, request_params: [password]}}", next)
	host := hostWith{component.MustNewID("doorman"): doorman{}}
	require.NoError(t, b.Start(t.Context(), host))
	defer func() { require.NoError(t, b.Shutdown(context.Background())) }()
	body := plain(t, samplePprof("/bin/app", 1))

	got := b.push("", body)
	assert.Equal(t, http.StatusUnauthorized, got.status)
	assert.Equal(t, "application/json", got.header.Get("Content-Type"))
	assert.Contains(t, got.body, "\"code\":16")
	assert.Contains(t, got.body, "who are you?")

	require.Equal(t, 204, b.push("?password=sesame&service.name=x", body).status)
	assert.NotContains(t, fmt.Sprint(next.only().ResourceProfiles().At(0).Resource().Attributes().AsRaw()), "sesame")
}

func TestUnknownAuthenticator(t *testing.T) {
	b := newBench(t, "server: {endpoint: 127.0.0.1:0, auth: {authenticator: nobody}}", consumertest.NewNop())
	require.Error(t, b.Start(t.Context(), hostWith{}))
	require.NoError(t, b.Shutdown(t.Context()))
}
