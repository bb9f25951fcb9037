// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func init() {
	runtime.MemProfileRate = 512 // before anything that is worth a sample is allocated
}

// payload is a profile that is pushed as its own service.
type payload struct {
	service string
	data    []byte
}

// payloads returns the files of the corpus, if there is one, and the profiles of this process.
func payloads(t *testing.T) []payload {
	t.Helper()
	var out []payload
	t.Run("corpus", func(t *testing.T) {
		for _, file := range profiletest.Corpus(t) {
			out = append(out, payload{"corpus/" + file.Name, file.Data})
		}
	})
	for name, data := range own {
		out = append(out, payload{"own/" + name, data})
	}
	return out
}

func TestMain(m *testing.M) {
	var err error
	if own, err = profileSelf(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// own holds the profiles of this process, made by TestMain before any test runs: a heap profile
// of all tests would be large.
var own map[string][]byte

// profileSelf profiles this process while it works, with labels, generic and inlined functions,
// contended locks and waiting goroutines.
func profileSelf() (map[string][]byte, error) {
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	runtime.SetBlockProfileRate(1)
	defer runtime.SetBlockProfileRate(0)

	release := make(chan struct{})
	var waiting sync.WaitGroup
	for i := range 3 {
		labels := pprof.Labels("worker", fmt.Sprint(i), "state", "waiting")
		waiting.Go(func() {
			pprof.Do(context.Background(), labels, func(context.Context) { <-release })
		})
	}
	defer waiting.Wait()
	defer close(release)

	out := map[string][]byte{}
	var cpu bytes.Buffer
	var kept [][]byte
	for sampled := false; !sampled; { // on a busy machine a CPU profile can have no samples
		cpu.Reset()
		if err := pprof.StartCPUProfile(&cpu); err != nil {
			return nil, fmt.Errorf("cpu profile: %w", err)
		}
		kept = work(fmt.Sprint("work-", len(kept)), 300*time.Millisecond)
		pprof.StopCPUProfile()
		p, err := profile.ParseData(cpu.Bytes())
		if err != nil {
			return nil, fmt.Errorf("cpu profile: %w", err)
		}
		sampled = len(p.Sample) > 0
	}
	out["cpu"] = cpu.Bytes()

	runtime.GC()
	for _, kind := range []string{"heap", "allocs", "goroutine", "mutex", "block", "threadcreate"} {
		var buf bytes.Buffer
		if err := pprof.Lookup(kind).WriteTo(&buf, 0); err != nil {
			return nil, fmt.Errorf("%s profile: %w", kind, err)
		}
		out[kind] = buf.Bytes()
	}
	runtime.KeepAlive(kept)
	return out, nil
}

// work uses CPU under a label, keeps memory and contends for a lock.
func work(request string, duration time.Duration) (kept [][]byte) {
	pprof.Do(context.Background(), pprof.Labels("request", request), func(context.Context) { burnCPU(duration) })
	fightForLock()
	return keepMemory()
}

//go:noinline
func burnCPU(duration time.Duration) {
	sum := 0
	for end := time.Now().Add(duration); time.Now().Before(end); {
		for i := range 100_000 {
			sum += fold([]int{i, 3}, func(a, b int) int { return a*31 + b })
			sum += int(fold([]float64{float64(i), 2}, func(a, b float64) float64 { return a + b }))
		}
	}
	runtime.KeepAlive(sum)
}

// fold is generic, and small enough to be inlined.
func fold[E any](elements []E, join func(a, b E) E) E {
	var result E
	for _, e := range elements {
		result = join(result, e)
	}
	return result
}

//go:noinline
func keepMemory() [][]byte {
	kept := make([][]byte, 0, 64)
	for range 64 {
		kept = append(kept, make([]byte, 64<<10))
	}
	return kept
}

//go:noinline
func fightForLock() {
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
	)
	for range 4 {
		workers.Go(func() {
			for range 5 {
				mu.Lock()
				time.Sleep(time.Millisecond)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
}
