// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/load"
)

// ratedLoad is in profiles of this process per second: the load of a sidecar with one core in the
// docs/operating.md.
const ratedLoad = 50

// TestResourcesStayFlatUnderSteadyLoad_D1 checks goroutines, file descriptors and RSS at the rated
// load. Only runs of at least twenty minutes can measure the slope of RSS.
func TestResourcesStayFlatUnderSteadyLoad_D1(t *testing.T) {
	parallel(t)
	if runtime.GOOS != "linux" {
		t.Skip("memory and descriptors are read from /proc")
	}
	duration, telling := 10*time.Second, false
	if full, limit := profiletest.Soak(t); full {
		duration = time.Hour
		if limit > 0 {
			duration = min(duration, limit)
		}
		telling = duration >= 20*time.Minute
	}
	c := start(t, "2s", "    rotation: {max_age: 5s}\n    retention: {max_files: 3}",
		"--set=receivers.pprof.self={collection_interval: 1s, profiles: [goroutine]}")

	var bodies []load.Body
	for _, data := range own {
		body, err := load.NewBody(data)
		require.NoError(t, err)
		bodies = append(bodies, body)
	}
	var pushing sync.WaitGroup
	var pushed *load.Result
	pushing.Go(func() {
		result, err := load.Run(t.Context(), load.Options{
			URL: c.url + "/v1/pprof", Bodies: bodies, Clients: 4, Services: 10, Rate: ratedLoad, Duration: duration, Timeout: patience,
		})
		assert.NoError(t, err)
		pushed = result
	})

	type reading struct{ seconds, resident, descriptors float64 }
	var readings []reading
	begin, every := time.Now(), max(duration/300, 200*time.Millisecond)
	for time.Since(begin) < duration {
		time.Sleep(every)
		descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.command.Process.Pid))
		require.NoError(t, err)
		readings = append(readings, reading{time.Since(begin).Seconds(), float64(memory(t, c.command.Process.Pid, "VmRSS:")), float64(len(descriptors))})
	}
	pushing.Wait()
	if pushed == nil || pushed.FirstError != nil || pushed.Accepted() != len(pushed.Latencies) {
		t.Fatalf("not all was accepted: %+v", pushed)
	}
	c.stop(t)

	// In the first third, pools, caches, the heap and the ID cache grow to their size.
	steady := readings[len(readings)/3:]
	var seconds, resident []float64
	// Files are closed and opened again, each with its directory: what may not grow is the most of a half.
	var most [2]float64
	for i, r := range steady {
		seconds, resident = append(seconds, r.seconds), append(resident, r.resident)
		half := &most[2*i/len(steady)]
		*half = max(*half, r.descriptors)
	}
	slope := slopeOf(seconds, resident) * 600 / (1 << 20)
	t.Logf("%d pushes in %s; resident %.0f MiB at the end, %+.2f MiB in 10 minutes; at most %.0f descriptors", pushed.Accepted(), duration, resident[len(resident)-1]/(1<<20), slope, most)
	if telling && slope >= 1 {
		t.Errorf("resident memory grows by %.2f MiB in 10 minutes, want less than 1", slope)
	}
	assert.LessOrEqual(t, most[1]-most[0], 10.0, "growth of the open descriptors")
	assert.LessOrEqual(t, goroutines(t, c.files), int64(60), "goroutines at the end")
	profiletest.Injected(t, fmt.Sprintf("%s of %d pushes/s", duration, ratedLoad))
}

// goroutines returns the number of goroutines in the last goroutine profile of the program in the
// remaining files.
func goroutines(t *testing.T, dir string) int64 {
	t.Helper()
	var last uint64
	var running int64
	for _, p := range readProfiles(t, dir) {
		if name := resourceAttribute(p, "service.name"); p.Type != "goroutine" && p.Type != "goroutines" || strings.HasPrefix(name, "load-") || p.Time < last {
			continue
		}
		if p.Time > last {
			last, running = p.Time, 0
		}
		for _, sample := range p.Samples {
			running += sample.Sum.Int64()
		}
	}
	require.NotZero(t, running, "no profile of the goroutines of the program was written")
	return running
}

// slopeOf returns the slope of the least-squares line.
func slopeOf(x, y []float64) float64 {
	var sumX, sumY, sumXX, sumXY float64
	for i := range x {
		sumX, sumY, sumXX, sumXY = sumX+x[i], sumY+y[i], sumXX+x[i]*x[i], sumXY+x[i]*y[i]
	}
	n := float64(len(x))
	return (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
}
