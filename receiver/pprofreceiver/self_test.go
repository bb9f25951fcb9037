// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// temporalities returns otelcol_profiles.temporality by profile type and sample type.
func temporalities(t *testing.T, payloads []pprofile.Profiles) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, p := range arrivals(t, payloads...) {
		found[p.kind+" "+p.sampleType] = p.temporality
	}
	return found
}

func TestSelf(t *testing.T) {
	next := &sink{t: t}
	b := startTestReceiver(t, "self: {collection_interval: 200ms, cpu_duration: 100ms}\nresource_attributes: {host.name: here}", next)
	var stop atomic.Bool
	defer stop.Store(true)
	go func() { // there is no CPU profile without CPU time
		for !stop.Load() {
		}
	}()
	want := map[string]string{
		"cpu samples": "delta", "cpu cpu": "delta", "goroutine goroutine": "instant",
		"heap alloc_objects": "cumulative", "heap alloc_space": "cumulative", "heap inuse_objects": "instant", "heap inuse_space": "instant",
	}
	require.Eventually(t, func() bool {
		all := next.AllProfiles()
		return len(all) >= 2*3 && len(temporalities(t, all)) == len(want)
	}, time.Minute, time.Millisecond)
	require.NoError(t, b.Shutdown(t.Context()))

	assert.Equal(t, want, temporalities(t, next.AllProfiles()))
	for _, pd := range next.AllProfiles() {
		resource := pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
		delete(resource, "process.executable.name") // the test binary, on some platforms
		assert.Equal(t, map[string]any{
			"service.name": "the-collector", "service.instance.id": "instance-1", "service.version": "1.2.3", "host.name": "here",
		}, resource)
		if hashes := hashesOf(t, pd); pd.SampleCount() > 0 {
			assert.Equal(t, ownHash(t), hashes[0], "the first mapping is that of the program")
		}
	}
	for id, n := range next.idsOf() {
		assert.Equal(t, 1, n, "each collection has IDs of its own, but not %v", id)
	}
	assert.Zero(t, b.logs.FilterMessage("Dropped a self profile").Len())
}

// ownHash returns the build ID of the test's program that is made of its file, as OpenTelemetry defines it.
func ownHash(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Concat(data[:4096], data[len(data)-4096:]), uint64(len(data))))
	return hex.EncodeToString(sum[:16])
}

// hashesOf returns the build IDs of mappings that are made of files.
func hashesOf(t *testing.T, pd pprofile.Profiles) (hashes []string) {
	t.Helper()
	d := pd.Dictionary()
	for _, mapping := range d.MappingTable().All() {
		attributes, err := pprofile.FromAttributeIndices(d.AttributeTable(), mapping, d)
		require.NoError(t, err)
		if hash, ok := attributes.Get("process.executable.build_id.htlhash"); ok {
			hashes = append(hashes, hash.Str())
		}
	}
	return hashes
}

// If other code uses the CPU profiler, only CPU profiles are dropped, with a warning.
func TestCPUProfilerIsTaken_R18(t *testing.T) {
	require.NoError(t, pprof.StartCPUProfile(&bytes.Buffer{}))
	defer pprof.StopCPUProfile()
	next := &sink{t: t}
	b := startTestReceiver(t, "self: {collection_interval: 50ms, cpu_duration: 10ms}", next)
	require.Eventually(t, func() bool { return len(next.AllProfiles()) >= 4 }, time.Minute, time.Millisecond)
	require.NoError(t, b.Shutdown(t.Context()))
	got := temporalities(t, next.AllProfiles())
	assert.Contains(t, got, "heap inuse_space")
	assert.Contains(t, got, "goroutine goroutine")
	assert.NotContains(t, got, "cpu cpu")
	warnings := b.logs.FilterMessage("Dropped a self profile").All()
	require.NotEmpty(t, warnings)
	assert.Equal(t, "cpu", warnings[0].ContextMap()["profile"])
	profiletest.Injected(t, "1 other owners of the CPU profiler")
}

// goroutinesIn counts the goroutines that are in a function.
func goroutinesIn(t *testing.T, function string) int {
	t.Helper()
	var stacks bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&stacks, 2))
	return strings.Count(stacks.String(), function+"(")
}

// Shutdown does not wait for a CPU profile to end, nor for a consumer.
func TestSelfStopsAtOnce(t *testing.T) {
	b := newTestReceiver(t, "self: {collection_interval: 2h, cpu_duration: 1h, profiles: [cpu]}", &sink{t: t})
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return goroutinesIn(t, "runtime/pprof.profileWriter") == 1 }, time.Minute, time.Millisecond, "it profiles")
	waiting := newTestReceiver(t, "self: {collection_interval: 2h, cpu_duration: 1h, profiles: [cpu]}", &sink{t: t})
	require.NoError(t, waiting.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return goroutinesIn(t, "internal/self.profileCPU") == 2 }, time.Minute, time.Millisecond, "it waits for the profiler")
	require.NoError(t, waiting.Shutdown(t.Context()))
	require.NoError(t, b.Shutdown(t.Context()))
	require.NoError(t, pprof.StartCPUProfile(&bytes.Buffer{}))
	pprof.StopCPUProfile()

	stuck := newGate(t, &sink{t: t})
	b = newTestReceiver(t, "self: {profiles: [heap]}", stuck)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	<-stuck.entered
	require.NoError(t, b.Shutdown(t.Context()))
}

// An error or a panic of the pipeline does not end the collection, nor does a profile that this build does not have.
func TestSelfCarriesOn(t *testing.T) {
	next := &sink{t: t}
	calls := 0
	b := startTestReceiver(t, "self: {collection_interval: 20ms, profiles: [goroutineleak, goroutine]}", consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
		calls++
		switch calls {
		case 1:
			explode()
		case 2:
			return context.DeadlineExceeded
		}
		return next.ConsumeProfiles(ctx, pd)
	}))
	require.Eventually(t, func() bool { return len(next.AllProfiles()) > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Equal(t, 2, b.logs.FilterMessage("Dropped a self profile").Len())
	b.assertPanicLogged()
}

// The runtime's rates change only if they are configured, and Shutdown restores them.
func TestRatesAreRestored_R18(t *testing.T) {
	const outside = 77
	before := runtime.SetMutexProfileFraction(outside)
	defer runtime.SetMutexProfileFraction(before)
	rate := func() int { return runtime.SetMutexProfileFraction(-1) }

	untouched := startTestReceiver(t, "self: {profiles: [mutex, block]}", &sink{t: t})
	assert.Equal(t, outside, rate(), "none is configured")

	ten := newTestReceiver(t, "self: {profiles: [mutex], mutex_profile_fraction: 10, block_profile_fraction: 1000}", &sink{t: t})
	require.NoError(t, ten.Start(t.Context(), componenttest.NewNopHost()))
	assert.Equal(t, 10, rate())
	require.NoError(t, ten.Shutdown(t.Context()))
	assert.Equal(t, outside, rate())
	require.NoError(t, untouched.Shutdown(t.Context()))
	assert.Equal(t, outside, rate())
	profiletest.Injected(t, "2 receivers that ask for rates")
}
