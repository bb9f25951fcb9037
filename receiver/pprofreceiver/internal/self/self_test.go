// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"bytes"
	"context"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCPUDurationFollowsTheInterval(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 10 * time.Second,
		time.Minute:      10 * time.Second,
		10 * time.Second: 5 * time.Second,
		time.Second:      500 * time.Millisecond,
	} {
		config := DefaultConfig()
		config.CollectionInterval = interval
		assert.Equal(t, want, config.cpuDuration(), interval)
	}
}

// Neither a CPU profile nor the wait for the profiler outlives its context.
func TestCPUProfileEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for range cap(done) {
		go func() { done <- profileCPU(ctx, time.Hour, &bytes.Buffer{}) }()
	}
	require.Eventually(t, func() bool { return len(cpuProfiler) == 1 }, time.Minute, time.Millisecond)
	cancel()
	for range cap(done) {
		require.ErrorIs(t, <-done, context.Canceled)
	}
	require.NoError(t, pprof.StartCPUProfile(&bytes.Buffer{}), "the profiler is free again")
	pprof.StopCPUProfile()
}

// The smallest rate that is held counts, and at the end the rate is what it was.
func TestRatesAreRestored_R18(t *testing.T) {
	current := 77
	rate := profileRate{set: func(rate int) (before int) {
		before, current = current, rate
		return before
	}}
	rate.hold(0)()
	assert.Equal(t, 77, current, "0 changes nothing")
	assert.Empty(t, rate.held)
	ten := rate.hold(10)
	assert.Equal(t, 10, current)
	five := rate.hold(5)
	assert.Equal(t, 5, current)
	five()
	assert.Equal(t, 10, current)
	ten()
	assert.Equal(t, 77, current)
	assert.Empty(t, rate.held)
}
