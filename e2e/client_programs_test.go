// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/DataDog/dd-trace-go/v2/profiler"
	"github.com/grafana/pyroscope-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The clients run in processes of their own, because a process has one CPU profiler and one heap.
// The test binary runs itself with the name of the client and the address to push to.
const (
	clientVariable  = "E2E_CLIENT"
	addressVariable = "E2E_ADDRESS"
)

var clientPrograms = map[string]func(address string) error{
	"pyroscope-go": pyroscopeProgram,
	"dd-trace-go":  datadogProgram,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(clientVariable); name != "" {
		if err := clientPrograms[name](os.Getenv(addressVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	var err error
	if own, err = profileSelf(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// runClientProgram runs a client until it exits.
func runClientProgram(t *testing.T, name, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(os.Environ(), clientVariable+"="+name, addressVariable+"="+address,
		// Only profiles, and only to this address.
		"DD_INSTRUMENTATION_TELEMETRY_ENABLED=false", "DD_REMOTE_CONFIGURATION_ENABLED=false",
		"DD_PROFILING_FLUSH_ON_EXIT=true", "DD_TRACE_STARTUP_LOGS=false")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", name, out)
	assert.NotContains(t, string(out), "failed", "%s says: %s", name, out)
}

// What the clients profile. The tests look for these names.
const (
	clientService = "checkout"
	clientRounds  = 3
	clientRound   = time.Second
)

// clientWork works for clientRounds rounds. It calls between after each.
func clientWork(between func()) {
	var kept [][]byte
	for range clientRounds {
		kept = append(kept, work("burn", clientRound)...)
		runtime.GC()
		between()
	}
	runtime.KeepAlive(kept)
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

func profileEverything() {
	runtime.MemProfileRate = 512
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
}

func pyroscopeProgram(address string) error {
	profileEverything()
	running, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: clientService,
		Tags:            map[string]string{"region": "eu"},
		ServerAddress:   "http://" + address,
		UploadRate:      time.Hour, // flushed by hand
		Logger:          pyroscopeLogger{},
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileGoroutines,
			pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace, pyroscope.ProfileInuseObjects, pyroscope.ProfileInuseSpace,
			pyroscope.ProfileMutexCount, pyroscope.ProfileMutexDuration, pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration,
		},
	})
	if err != nil {
		return err
	}
	clientWork(func() { running.Flush(true) })
	return running.Stop()
}

// pyroscopeLogger prints errors only.
type pyroscopeLogger struct{}

func (pyroscopeLogger) Infof(string, ...any)  {}
func (pyroscopeLogger) Debugf(string, ...any) {}
func (pyroscopeLogger) Errorf(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "failed: "+format+"\n", arguments...)
}

func datadogProgram(address string) error {
	profileEverything()
	err := profiler.Start(
		profiler.WithAgentAddr(address),
		profiler.WithService(clientService),
		profiler.WithEnv("test"),
		profiler.WithVersion("1.2.3"),
		profiler.WithTags("region:eu"),
		profiler.WithPeriod(clientRound),
		profiler.CPUDuration(clientRound),
		profiler.WithLogStartup(false),
		profiler.MutexProfileFraction(1),
		profiler.BlockProfileRate(1),
		profiler.WithProfileTypes(profiler.CPUProfile, profiler.HeapProfile, profiler.MutexProfile, profiler.BlockProfile, profiler.GoroutineProfile, profiler.MetricsProfile),
	)
	if err != nil {
		return err
	}
	clientWork(func() {})
	time.Sleep(clientRound / 2)
	profiler.Stop()
	return nil
}
