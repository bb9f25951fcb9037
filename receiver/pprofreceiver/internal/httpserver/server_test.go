// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/section"
)

// newTestServer returns a server of one protocol, which reads no profiles.
func newTestServer(t *testing.T, read func(*Request) (Push, error)) *Server {
	config := confighttp.NewDefaultServerConfig()
	config.NetAddr.Endpoint = "127.0.0.1:0"
	config.MaxRequestBodySize = 64 << 20
	telemetry := componenttest.NewNopTelemetrySettings()
	metrics, err := section.NewTelemetry(telemetry, component.NewID(metadata.Type))
	require.NoError(t, err)
	s := New(Config{HTTP: config, MaxDecompressedSize: 4 << 20},
		section.Settings{InFlight: budget.New(64 << 20), Telemetry: telemetry, Metrics: metrics},
		nil)
	s.protocols = []Protocol{{Path: "/push", Success: http.StatusNoContent, Read: read}}
	return s
}

// post starts a request, whose status arrives at the channel, or 0 if there is no response.
func post(s *Server) <-chan int {
	answered := make(chan int, 1)
	go func() {
		status := 0
		if response, err := http.Post("http://"+s.Addr().String()+"/push", "", nil); err == nil {
			status = response.StatusCode
			_ = response.Body.Close() // it is empty
		}
		answered <- status
	}()
	return answered
}

// A request that does not end by then gets no response of success. Shutdown does not wait for one that ignores its context.
func TestShutdownClosesConnectionsAtTheDeadline(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		entered, release := make(chan struct{}), make(chan struct{})
		s := newTestServer(t, func(r *Request) (Push, error) {
			close(entered)
			if ignores {
				<-release
			}
			<-r.Context().Done()
			return Push{}, r.Context().Err()
		})
		s.drainTimeout, s.abortTimeout = time.Millisecond, time.Minute
		if ignores {
			s.abortTimeout = time.Millisecond
		}
		require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
		answered := post(s)
		<-entered
		if err := s.Shutdown(context.Background()); ignores {
			require.ErrorContains(t, err, "1 requests still running after shutdown")
		} else {
			require.NoError(t, err)
		}
		require.NotEqual(t, http.StatusNoContent, <-answered, "not acknowledged")
		close(release)
		require.Eventually(t, func() bool { return s.handlers.Load() == 0 }, time.Minute, time.Millisecond)
	}
}

func explode() { panic("out of the blue") }

// A panic while a request is read is logged with its stack, and answered with 500.
func TestPanicWhileReading_R13(t *testing.T) {
	s := newTestServer(t, func(*Request) (Push, error) {
		explode()
		return Push{}, nil
	})
	core, logs := observer.New(zap.ErrorLevel)
	s.logger = zap.New(core)
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	require.Equal(t, http.StatusInternalServerError, <-post(s))
	require.NoError(t, s.Shutdown(context.Background()))
	require.Equal(t, 1, logs.FilterMessage("Panic while processing a profile").Len())
	require.Contains(t, logs.All()[0].ContextMap()["stack"], "httpserver.explode")
	profiletest.Injected(t, "1 panics")
}

// Names of parts count towards the limit, including those of skipped parts.
func TestFormReservesNamesOfParts_R3(t *testing.T) {
	const parts, length = 500, 15 << 10
	var all []profiletest.FormPart
	for i := range parts {
		all = append(all, profiletest.FormPart{Name: strings.Repeat("n", length), File: strings.Repeat("f", length), Body: []byte(fmt.Sprint(i))})
	}
	body, header := profiletest.Form(t, all...)
	s := newTestServer(t, nil)
	s.settings.InFlight = budget.New(256 << 20)
	post := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	post.Header.Set(header[0], header[1])
	r := s.newRequest(post)
	read, err := r.Form()
	require.NoError(t, err)
	require.Len(t, read, parts)
	assert.GreaterOrEqual(t, s.settings.InFlight.InUse(), int64(parts*2*length))
	profiletest.Injected(t, fmt.Sprintf("%d parts with long names", parts))
}
