// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // as the exporter compresses

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// arrivals is a gateway that responds at once and notes when it got the profiles of each service.
type arrivals struct {
	pprofileotlp.UnimplementedGRPCServer
	mu       sync.Mutex
	at       map[string]time.Time
	requests int
}

func (a *arrivals) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests++
	for _, rp := range request.Profiles().ResourceProfiles().All() {
		if service, _ := rp.Resource().Attributes().Get("service.name"); a.at[service.Str()].IsZero() {
			a.at[service.Str()] = time.Now()
		}
	}
	return pprofileotlp.NewExportResponse(), nil
}

// serve starts the gateway and returns its address.
func (a *arrivals) serve(b *testing.B) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	pprofileotlp.RegisterGRPCServer(server, a)
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(server.Stop)
	return listener.Addr().String()
}

// measuredSidecar runs config/sidecar.yaml.
func measuredSidecar(b *testing.B, gateway string, environment ...string) *measured {
	b.Helper()
	address, dir := freeAddress(b), b.TempDir()
	return measure(b, address, filepath.Join(dir, "files"), append(environment, "DATA_DIR="+dir, "PPROF_LISTEN="+address, "GATEWAY_ENDPOINT="+gateway),
		"--config", filepath.Join(configs, "sidecar.yaml"), "--set=service.telemetry.metrics.level=none", "--set=service.extensions=[]")
}

// BenchmarkPushToGateway pushes profiles to the shipped sidecar, each of a service of its own. It
// measures the time to the response, and to the arrival at a gateway that responds at once.
func BenchmarkPushToGateway(b *testing.B) {
	const rate, pushes = 10, 200
	one := profiletest.Gzip(b, profiletest.Pprof(b, profiletest.Workloads()[0].Pprof(1)))
	for name, environment := range map[string][]string{
		"on receive, 10s": nil,
		"on flush, 1s":    {"WINDOW=1s", "ACKNOWLEDGE=on_flush"},
	} {
		b.Run("mode="+name, func(b *testing.B) {
			gateway := &arrivals{at: map[string]time.Time{}}
			m := measuredSidecar(b, gateway.serve(b), environment...)
			started, responses := make([]time.Time, pushes), make([]time.Duration, pushes)
			var running sync.WaitGroup
			for i := range pushes {
				running.Go(func() {
					started[i] = time.Now()
					response, err := http.Post(fmt.Sprintf("%s/v1/pprof?service.name=service-%d", m.url, i), "", bytes.NewReader(one))
					if err != nil || response.Body.Close() != nil || response.StatusCode != http.StatusNoContent {
						b.Errorf("push %d: %v %v", i, response, err)
					}
					responses[i] = time.Since(started[i])
				})
				time.Sleep(time.Second / rate)
			}
			running.Wait()
			for deadline := time.Now().Add(patience); gateway.services() < pushes; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					b.Fatalf("the gateway has %d of %d services\n%s", gateway.services(), pushes, m.kill())
				}
			}
			used := m.cpu(b)
			m.end(b)
			var latencies []time.Duration
			for i := range pushes {
				latencies = append(latencies, gateway.at[fmt.Sprintf("service-%d", i)].Sub(started[i]))
			}
			slices.Sort(latencies)
			slices.Sort(responses)
			b.ReportMetric(milliseconds(responses[pushes/2]), "response-p50-ms")
			b.ReportMetric(milliseconds(responses[pushes*99/100]), "response-p99-ms")
			b.ReportMetric(milliseconds(latencies[pushes/2]), "gateway-p50-ms")
			b.ReportMetric(milliseconds(latencies[pushes*99/100]), "gateway-p99-ms")
			b.ReportMetric(float64(used.Microseconds())/1000/pushes, "cpu-ms")
			b.ReportMetric(float64(gateway.requests), "requests")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func (a *arrivals) services() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at)
}
