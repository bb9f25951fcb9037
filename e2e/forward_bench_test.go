// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// measuredSidecar runs config/sidecar.yaml.
func measuredSidecar(b *testing.B, gateway string, environment ...string) *measured {
	b.Helper()
	address, dir := freeAddress(b), b.TempDir()
	c := launch(b, program(b), append(environment, "DATA_DIR="+dir, "PPROF_LISTEN="+address, "GATEWAY_ENDPOINT="+gateway),
		"--config", filepath.Join(configs, "sidecar.yaml"), "--set=service.telemetry.metrics.level=none", "--set=service.extensions=[]")
	c.url = "http://" + address
	c.awaitReady(b)
	return measure(b, c)
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
			gateway := startBackend(b)
			m := measuredSidecar(b, gateway.address, environment...)
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
			m.stop(b)
			var latencies []time.Duration
			for i := range pushes {
				latencies = append(latencies, gateway.arrived[fmt.Sprintf("service-%d", i)].Sub(started[i]))
			}
			slices.Sort(latencies)
			slices.Sort(responses)
			b.ReportMetric(milliseconds(responses[pushes/2]), "response-p50-ms")
			b.ReportMetric(milliseconds(responses[pushes*99/100]), "response-p99-ms")
			b.ReportMetric(milliseconds(latencies[pushes/2]), "gateway-p50-ms")
			b.ReportMetric(milliseconds(latencies[pushes*99/100]), "gateway-p99-ms")
			b.ReportMetric(float64(used.Microseconds())/1000/pushes, "cpu-ms")
			b.ReportMetric(float64(len(gateway.received)), "requests")
			b.ReportMetric(0, "ns/op")
		})
	}
}
