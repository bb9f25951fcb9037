// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// TestPagesTakeWhatIsReserved_V2 compares estimates with the heap.
func TestPagesTakeWhatIsReserved_V2(t *testing.T) {
	if profiletest.RaceEnabled {
		t.Skip("the race detector makes objects larger")
	}
	for _, w := range profiletest.Workloads()[:3] { // the last one takes a minute
		name, p := w.Name, w.Pprof(1)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := webui.NewFlameGraph(t.Context(), p, 0)
		runtime.ReadMemStats(&after)
		require.NoError(t, err, name)
		size, allocated := webui.Size(p), int64(after.TotalAlloc-before.TotalAlloc)
		t.Logf("%s: estimated %d KiB, allocated for a page %d KiB, %.1f times the estimate", name, size>>10, allocated>>10, float64(allocated)/float64(size))
		const fixed = 1 << 20
		assert.LessOrEqual(t, allocated, size*webui.RenderingFactor+fixed, name)
	}
}
