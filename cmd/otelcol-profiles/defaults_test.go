// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

func TestMemoryLimitFollowsTheContainer_M5(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	_, inherited := os.LookupEnv("GOMEMLIMIT")
	if inherited {
		t.Skip("GOMEMLIMIT is set")
	}
	setMemoryLimit(func() (uint64, error) { return 0, errors.New("no cgroup") })
	assert.Equal(t, before, debug.SetMemoryLimit(-1))
	for _, container := range []uint64{128 << 20, 256 << 20, 1 << 30, 8 << 30} {
		setMemoryLimit(func() (uint64, error) { return container, nil })
		assert.InDelta(t, float64(container)*memoryRatio, debug.SetMemoryLimit(-1), 1)
		assert.LessOrEqual(t, int64(config.MemoryLimit()), debug.SetMemoryLimit(-1))
	}
	debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "1GiB")
	setMemoryLimit(func() (uint64, error) { return 128 << 20, nil })
	assert.Equal(t, before, debug.SetMemoryLimit(-1), "the environment has set it")
}

func TestGCPercentWithAMemoryLimit(t *testing.T) {
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	defer func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}()
	for _, row := range []struct {
		gogc  string
		limit int64
		want  int
	}{
		{"", math.MaxInt64, 100},
		{"", 1 << 30, gcPercent},
		{"50", 1 << 30, 100}, // the runtime has set it
		{"off", 1 << 30, 100},
	} {
		t.Setenv("GOGC", row.gogc)
		debug.SetMemoryLimit(row.limit)
		setGCPercent()
		assert.Equal(t, row.want, debug.SetGCPercent(100), "%+v", row)
	}
}
