// Copyright The otelcol-profiles Authors
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
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// BenchmarkPush pushes each file of the corpus over loopback into a receiver whose next consumer accepts
// all. It compares the medians with those of gunzip and of translation alone, which run in turns. The
// rest is the time of receiver, HTTP, loopback and client. Own is the time of the handler that the HTTP
// server calls, without gunzip and translation.
func BenchmarkPush(b *testing.B) {
	for _, file := range profiletest.Corpus(b) {
		plain, err := pproftranslator.Decompress(file.Data, 1<<30)
		require.NoError(b, err)
		body := profiletest.Gzip(b, plain)
		b.Run(file.Name, func(b *testing.B) {
			server, _ := benchServer(b, consumertest.NewNop())
			client := dialBench(b, server, body)
			var unmarshaler pproftranslator.Unmarshaler
			runs := []func() error{
				client.push,
				func() error { _, err := pproftranslator.Decompress(body, 1<<30); return err },
				func() error { _, err := unmarshaler.UnmarshalProfiles(plain); return err },
				func() error { return handle(server, body) },
			}
			times := make([][]time.Duration, len(runs))
			for b.Loop() {
				for i, run := range runs {
					start := time.Now()
					require.NoError(b, run())
					times[i] = append(times[i], time.Since(start))
				}
			}
			medians := make([]float64, len(runs))
			for i, t := range times {
				slices.Sort(t)
				medians[i] = t[len(t)/2].Seconds()
			}
			push, gunzip, translate, handler := medians[0], medians[1], medians[2], medians[3]
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(plain)), "pprof-B")
			b.ReportMetric(float64(len(body)), "gzip-B")
			b.ReportMetric(1/push, "pushes/s")
			b.ReportMetric(float64(len(plain))/push/1e6, "MB/s")
			b.ReportMetric(100*gunzip/push, "gunzip-%")
			b.ReportMetric(100*translate/push, "translate-%")
			b.ReportMetric(100*(push-gunzip-translate)/push, "rest-%")
			b.ReportMetric(1e6*(push-gunzip-translate), "rest-µs")
			b.ReportMetric(1e6*(handler-gunzip-translate), "own-µs")
			b.ReportMetric(100*(handler/(gunzip+translate)-1), "own-%")
		})
	}
}

// handle has the handler of the server answer a push.
func handle(s *httpserver.Server, body []byte) error {
	request := httptest.NewRequest(http.MethodPost, "/v1/pprof?service.name=checkout", bytes.NewReader(body))
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, request)
	if answer.Code != http.StatusNoContent {
		return fmt.Errorf("%d: %s", answer.Code, answer.Body)
	}
	return nil
}

// BenchmarkInFlight measures the memory of requests that wait for the next consumer, for each of their
// bytes in flight.
func BenchmarkInFlight(b *testing.B) {
	for _, file := range profiletest.Corpus(b) {
		plain, err := pproftranslator.Decompress(file.Data, 1<<30)
		require.NoError(b, err)
		if len(plain) < 100<<10 {
			continue // connections would take most of it
		}
		body := profiletest.Gzip(b, plain)
		b.Run(file.Name, func(b *testing.B) {
			const requests = 16
			for b.Loop() {
				held := make(chan struct{})
				entered := make(chan struct{}, requests)
				next, err := xconsumer.NewProfiles(func(context.Context, pprofile.Profiles) error {
					entered <- struct{}{}
					<-held
					return nil
				})
				require.NoError(b, err)
				server, limit := benchServer(b, next)
				before := heapInUse()
				var clients sync.WaitGroup
				for range requests {
					client := dialBench(b, server, body)
					clients.Go(func() { _ = client.push() })
					<-entered
				}
				inFlight := limit.InUse()
				grown := heapInUse() - before
				close(held)
				clients.Wait()
				b.ReportMetric(float64(inFlight)/requests, "counted-B")
				b.ReportMetric(float64(grown)/requests, "heap-B")
				b.ReportMetric(float64(grown)/float64(inFlight), "heap/counted")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func benchServer(b *testing.B, next xconsumer.Profiles) (*httpserver.Server, *ingest.InFlight) {
	b.Helper()
	cfg, err := loadConfig(serverYAML)
	require.NoError(b, err)
	telemetry := componenttest.NewTelemetry()
	set := settings(telemetry)
	set.TracerProvider = noop.NewTracerProvider() // the other keeps every span
	r, err := newReceiver(set, cfg, ingest.NewInFlight(int64(cfg.MaxInFlight)), next)
	require.NoError(b, err)
	require.NoError(b, r.Start(b.Context(), componenttest.NewNopHost()))
	b.Cleanup(func() {
		require.NoError(b, r.Shutdown(context.Background()))
		require.NoError(b, telemetry.Shutdown(context.Background()))
	})
	return sectionOf[*httpserver.Server](r), r.inFlight
}

// benchClient is a minimal HTTP client: one connection, and one request that was written before.
type benchClient struct {
	conn    net.Conn
	answers *bufio.Reader
	request []byte
}

func dialBench(b *testing.B, s *httpserver.Server, body []byte) *benchClient {
	b.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	require.NoError(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	request := fmt.Appendf(nil, "POST /v1/pprof?service.name=checkout HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(body))
	return &benchClient{conn: conn, answers: bufio.NewReader(conn), request: append(request, body...)}
}

func (c *benchClient) push() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return err
}
