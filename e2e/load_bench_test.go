// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/load"
)

const (
	// benchServices is the number of services, and of clients.
	benchServices = 8
	// benchWindow is that of the processor. Clients push for two and a half windows.
	benchWindow   = 2 * time.Second
	benchDuration = 5 * time.Second
)

// measured is a program whose CPU time is measured.
type measured struct {
	*collector
	started time.Duration // CPU time until its server responded
}

// startMeasured runs a program with one pipeline and the GOMEMLIMIT of a 256 MiB container, and measures it from then on.
func startMeasured(b *testing.B, cores int, args ...string) *measured {
	b.Helper()
	b.Setenv("GOMAXPROCS", strconv.Itoa(cores))
	b.Setenv("GOMEMLIMIT", "200MiB")
	args = append(args, "--set=receivers.pprof.server.max_decompressed_size=16MiB", "--set=processors.profiles_dedup.memory_limit=64MiB")
	return measure(b, start(b, benchWindow.String(), "    sync: interval", args...))
}

// measure measures a program whose server responds. The clients in this process take no profile of their memory.
func measure(b *testing.B, c *collector) *measured {
	b.Helper()
	runtime.MemProfileRate = 0
	m := &measured{collector: c}
	m.started = m.sinceExec(b)
	return m
}

// cpu returns the CPU time of the program since its start was complete.
func (m *measured) cpu(b *testing.B) time.Duration {
	b.Helper()
	return m.sinceExec(b) - m.started
}

func (m *measured) sinceExec(b *testing.B) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.command.Process.Pid))
	if err != nil {
		b.Skipf("its time cannot be read: %v", err)
	}
	// After the name in parentheses, state is the first field; utime and stime, in hundredths of a
	// second, are the twelfth and thirteenth.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		require.NoError(b, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// benchBody is the profile that all benchmarks of the program push.
func benchBody(b *testing.B) load.Body {
	b.Helper()
	body, err := load.NewBody(profiletest.Gzip(b, profiletest.Pprof(b, profiletest.Workloads()[0].Pprof(1))))
	require.NoError(b, err)
	return body
}

// pushFor fails if a request gets no response.
func (m *measured) pushFor(b *testing.B, body load.Body, rate float64) *load.Result {
	b.Helper()
	result, err := load.Run(b.Context(), load.Options{
		URL: m.url + "/v1/pprof", Bodies: []load.Body{body}, Clients: benchServices, Services: benchServices, Rate: rate, Duration: benchDuration, Timeout: time.Minute,
	})
	require.NoError(b, err)
	if result.FirstError != nil {
		b.Fatal(result.FirstError, m.kill())
	}
	return result
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkSidecar pushes profiles of one size at increasing rates to a program with one core and
// the GOMEMLIMIT of a 256 MiB container.
func BenchmarkSidecar(b *testing.B) {
	one := benchBody(b)
	for _, rate := range []float64{25, 50, 100, 200, 400, 0} {
		speed := "full"
		if rate > 0 {
			speed = fmt.Sprint(rate)
		}
		b.Run("rate="+speed, func(b *testing.B) {
			m := startMeasured(b, 1)
			result := m.pushFor(b, one, rate)
			used, peak := m.cpu(b), memory(b, m.command.Process.Pid, "VmHWM:")
			m.stop(b)
			accepted := float64(result.Accepted())
			require.NotZero(b, accepted, "%v\n%s", result.Statuses, m.logs)
			b.ReportMetric(accepted/result.Elapsed.Seconds(), "profiles/s")
			b.ReportMetric(milliseconds(result.Percentile(50)), "p50-ms")
			b.ReportMetric(milliseconds(result.Percentile(99)), "p99-ms")
			b.ReportMetric(100*used.Seconds()/result.Elapsed.Seconds(), "core-%")
			b.ReportMetric(milliseconds(used)/accepted, "cpu-ms")
			b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkGroups pushes profiles of 16 and of 160 services at full speed, in turns, to a program that may have 50 files open. A window is
// so short that most records have one profile (A10: at least half as many pushes).
func BenchmarkGroups(b *testing.B) {
	const rounds = 3
	one := benchBody(b)
	perSecond := func(services int) (rate, cpu float64) {
		b.Setenv("GOMEMLIMIT", "1GiB")
		m := measure(b, start(b, "20ms", "    group_by: [service.name]\n    max_open_files: 50"))
		result, err := load.Run(b.Context(), load.Options{
			URL: m.url + "/v1/pprof", Bodies: []load.Body{one}, Clients: benchServices, Services: services, Duration: benchDuration, Timeout: time.Minute,
		})
		require.NoError(b, err)
		require.NoError(b, result.FirstError)
		used := m.cpu(b)
		m.stop(b)
		accepted := float64(result.Accepted())
		return accepted / result.Elapsed.Seconds(), milliseconds(used) / accepted
	}
	var rates, times []float64
	for range rounds {
		few, cpu := perSecond(16)
		many, cpuOfMany := perSecond(160)
		rates, times = append(rates, many/few), append(times, cpuOfMany/cpu)
	}
	b.ReportMetric(median(rates), "160/16-pushes")
	b.ReportMetric(median(times), "160/16-cpu")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCores pushes profiles of one size at full speed to a program with one core and to one with two, in turns. It
// needs a third core for the clients. On two, two-cores says how much of both the program got.
func BenchmarkCores(b *testing.B) {
	const rounds = 5
	one := benchBody(b)
	perSecond := func(cores int) (rate, used float64) {
		m := startMeasured(b, cores)
		result := m.pushFor(b, one, 0)
		used = m.cpu(b).Seconds() / result.Elapsed.Seconds()
		m.stop(b)
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
