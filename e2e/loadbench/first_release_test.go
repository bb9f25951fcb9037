// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package loadbench

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/load"
)

// firstReleaseEnv names the variable with the path of the first release. make bench sets it.
const firstReleaseEnv = "OTELCOL_PROFILES_FIRST_BIN"

// measured is what one program used in all its rounds.
type measured struct {
	cpu, p50, p99 []float64 // milliseconds, of each round; CPU time is per profile
	peak          int64     // RSS in bytes
}

// round runs a program, pushes one load, and adds what it took until the program has written
// everything and ended.
func (m *measured) round(b *testing.B, path string, c config, body load.Body, rate float64) {
	b.Helper()
	running := start(b, path, c)
	result := push(b, running, []load.Body{body}, services, rate)
	m.peak = max(m.peak, running.peak(b))
	running.stop(b)
	if result.Accepted() < len(result.Latencies) {
		b.Fatalf("not all pushes were accepted: %v\n%s", result.Statuses, running.output)
	}
	m.cpu = append(m.cpu, milliseconds(running.cpu(b))/float64(result.Accepted()))
	m.p50 = append(m.p50, milliseconds(result.Percentile(50)))
	m.p99 = append(m.p99, milliseconds(result.Percentile(99)))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// medianRatio is of neighbouring rounds, which the rest of the machine slows alike.
func medianRatio(of, to []float64) float64 {
	var ratios []float64
	for i := range of {
		ratios = append(ratios, of[i]/to[i])
	}
	return median(ratios)
}

// BenchmarkFirstRelease pushes the same load to the first release and to this program, in turns. Both
// do what their defaults say: this one also writes indexes and frame types.
func BenchmarkFirstRelease(b *testing.B) {
	const rounds = 5
	first := os.Getenv(firstReleaseEnv)
	if _, err := os.Stat(first); err != nil {
		b.Skipf("no first release to compare with: %v (make bench builds it, if git has its commit)", err)
	}
	body := workloadBody(b, profiletest.Workloads()[0])
	for _, cores := range []int{1, 2} {
		for _, rate := range []float64{50, 0} {
			speed := "full"
			if rate > 0 {
				speed = fmt.Sprintf("%g_per_s", rate)
			}
			b.Run(fmt.Sprintf("cores=%d/speed=%s", cores, speed), func(b *testing.B) {
				c := config{
					window: window, processor: "memory_limit: 64MiB", exporter: "sync: interval", server: "max_decompressed_size: 16MiB",
					environment: []string{fmt.Sprintf("GOMAXPROCS=%d", cores), "GOMEMLIMIT=200MiB"},
				}
				var before, after measured
				for range rounds {
					before.round(b, first, c, body, rate)
					after.round(b, program(b), c, body, rate)
				}
				b.ReportMetric(float64(body.PprofSize), "pprof-B")
				b.ReportMetric(median(before.cpu), "first-cpu-ms")
				b.ReportMetric(median(after.cpu), "now-cpu-ms")
				b.ReportMetric(medianRatio(after.cpu, before.cpu), "cpu-now/first")
				b.ReportMetric(median(before.p50), "first-p50-ms")
				b.ReportMetric(median(after.p50), "now-p50-ms")
				b.ReportMetric(median(before.p99), "first-p99-ms")
				b.ReportMetric(median(after.p99), "now-p99-ms")
				b.ReportMetric(medianRatio(after.p99, before.p99), "p99-now/first")
				b.ReportMetric(float64(before.peak)/(1<<20), "first-peak-MiB")
				b.ReportMetric(float64(after.peak)/(1<<20), "now-peak-MiB")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
