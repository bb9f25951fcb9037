// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// TestTicksAreRoundInOneUnit: an axis has a few round values in the unit in which people read the highest one.
func TestTicksAreRoundInOneUnit(t *testing.T) {
	texts := func(sampleType, unit string, isRate bool, highest float64) (texts []string) {
		ticks := webui.Ticks(sampleType, unit, isRate, highest)
		last := ticks[len(ticks)-1].Value
		assert.GreaterOrEqual(t, last, highest*(1-1e-9))
		assert.Zero(t, ticks[0].Value)
		for i, tick := range ticks {
			assert.InDelta(t, last*float64(i)/float64(len(ticks)-1), tick.Value, last*1e-9)
			texts = append(texts, tick.Text)
		}
		return texts
	}
	assert.Equal(t, []string{"0", "1 cores", "2 cores", "3 cores", "4 cores"}, texts("cpu", "nanoseconds", true, 3.3e9))
	assert.Equal(t, []string{"0", "5 mcores", "10 mcores", "15 mcores", "20 mcores"}, texts("cpu", "nanoseconds", true, 20e6))
	assert.Equal(t, []string{"0", "200 MiB", "400 MiB", "600 MiB"}, texts("inuse_space", "bytes", false, 595*(1<<20)))
	assert.Equal(t, []string{"0", "0.5 GiB", "1 GiB", "1.5 GiB"}, texts("inuse_space", "bytes", false, 1.2*(1<<30)))
	assert.Equal(t, []string{"0", "1 MiB/s", "2 MiB/s", "3 MiB/s"}, texts("alloc_space", "bytes", true, 2.5*(1<<20)))
	assert.Equal(t, []string{"0", "0.5/min", "1/min", "1.5/min"}, texts("contentions", "count", true, 1.2/60))
	assert.Equal(t, []string{"0", "20 ms/s", "40 ms/s", "60 ms/s", "80 ms/s"}, texts("delay", "nanoseconds", true, 70e6))
	assert.Equal(t, []string{"0", "1 cores"}, texts("cpu", "nanoseconds", true, 0))
	assert.Equal(t, []string{"0", "1 B"}, texts("inuse_space", "bytes", false, 0))
	for highest := 1e-9; highest < 1e19; highest *= 1.37 {
		for _, unit := range []string{"nanoseconds", "bytes", "count", "frames", "hours"} {
			for _, sampleType := range []string{"cpu", "wall"} {
				assert.LessOrEqual(t, len(texts(sampleType, unit, true, highest)), 6)
				assert.LessOrEqual(t, len(texts(sampleType, unit, false, highest)), 6)
			}
		}
	}
}
