// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package loadbench

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/load"
)

const (
	// services is the number of services, and of clients.
	services = 8
	// window is that of the processor. Clients push for two and a half windows.
	window   = 2 * time.Second
	duration = 5 * time.Second
)

func body(b *testing.B, data []byte) load.Body {
	b.Helper()
	body, err := load.NewBody(data)
	require.NoError(b, err)
	return body
}

func workloadBody(b *testing.B, workload profiletest.Workload) load.Body {
	b.Helper()
	var buf bytes.Buffer
	require.NoError(b, workload.Pprof(1).Write(&buf))
	return body(b, buf.Bytes())
}

// push fails if a request gets no response.
func push(b *testing.B, c *collector, body load.Body, rate float64) *load.Result {
	b.Helper()
	result, err := load.Run(b.Context(), load.Options{
		URL: c.url + "/v1/pprof", Bodies: []load.Body{body}, Clients: services, Services: services, Rate: rate, Duration: duration, Timeout: time.Minute,
	})
	require.NoError(b, err)
	if result.FirstError != nil {
		b.Fatal(result.FirstError, c.logs())
	}
	return result
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func report(b *testing.B, c *collector, result *load.Result, used time.Duration, peak int64) {
	b.Helper()
	accepted := result.Accepted()
	if accepted == 0 {
		b.Fatal("nothing was accepted", result.Statuses, c.logs())
	}
	seconds := result.Elapsed.Seconds()
	b.ReportMetric(float64(accepted)/seconds, "profiles/s")
	b.ReportMetric(float64(result.Bytes)/seconds/1e6, "in-MB/s")
	b.ReportMetric(float64(result.PprofBytes)/seconds/1e6, "pprof-MB/s")
	b.ReportMetric(milliseconds(result.Percentile(50)), "p50-ms")
	b.ReportMetric(milliseconds(result.Percentile(99)), "p99-ms")
	b.ReportMetric(float64(used.Microseconds())/1000/float64(accepted), "cpu-ms")
	b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
	b.ReportMetric(float64(len(result.Latencies)-accepted), "rejected")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSidecar pushes profiles of one size at increasing rates to a program with one core and
// the GOMEMLIMIT of a 256 MiB container.
func BenchmarkSidecar(b *testing.B) {
	workload := profiletest.Workloads()[0]
	one := workloadBody(b, workload)
	for _, rate := range []float64{25, 50, 100, 200, 400, 0} {
		speed := "full"
		if rate > 0 {
			speed = fmt.Sprint(rate)
		}
		b.Run("rate="+speed, func(b *testing.B) {
			c := start(b, program(b), config{
				window: window, processor: "memory_limit: 64MiB", exporter: "sync: interval", server: "max_decompressed_size: 16MiB",
				environment: []string{"GOMAXPROCS=1", "GOMEMLIMIT=200MiB"},
			})
			result := push(b, c, one, rate)
			used, peak := c.cpu(b), c.peak(b)
			c.stop(b)
			report(b, c, result, used, peak)
			b.ReportMetric(float64(one.PprofSize), "pprof-B")
			b.ReportMetric(100*used.Seconds()/result.Elapsed.Seconds(), "core-%")
		})
	}
}

// BenchmarkCores pushes profiles of one size at full speed to a program with one core and to one with two, in turns. It
// needs a third core for the clients. On two, two-cores says how much of both the program got.
func BenchmarkCores(b *testing.B) {
	const rounds = 5
	one := workloadBody(b, profiletest.Workloads()[0])
	perSecond := func(cores int) (rate, used float64) {
		c := start(b, program(b), config{
			window: window, processor: "memory_limit: 64MiB", exporter: "sync: interval", server: "max_decompressed_size: 16MiB",
			environment: []string{fmt.Sprintf("GOMAXPROCS=%d", cores), "GOMEMLIMIT=200MiB"},
		})
		result := push(b, c, one, 0)
		used = c.cpu(b).Seconds() / result.Elapsed.Seconds()
		c.stop(b)
		return float64(result.Accepted()) / result.Elapsed.Seconds(), used
	}
	var ones, twos, ratios, cores []float64
	for range rounds {
		one, _ := perSecond(1)
		two, used := perSecond(2)
		ones, twos, ratios, cores = append(ones, one), append(twos, two), append(ratios, two/one), append(cores, used)
	}
	b.ReportMetric(median(ones), "one/s")
	b.ReportMetric(median(twos), "two/s")
	b.ReportMetric(median(ratios), "two/one")
	b.ReportMetric(median(cores), "two-cores")
	b.ReportMetric(0, "ns/op")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
