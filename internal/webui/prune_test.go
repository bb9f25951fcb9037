// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"net/http/httptest"
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
		var before, mounted, rendered runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		handler, err := webui.Handler(p, webui.Options{})
		require.NoError(t, err, name)
		runtime.GC()
		runtime.ReadMemStats(&mounted)
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/flamegraph", nil))
		runtime.ReadMemStats(&rendered)
		require.Equal(t, http.StatusOK, response.Code, name)
		size, kept, allocated := webui.Size(p), int64(mounted.HeapAlloc)-int64(before.HeapAlloc), int64(rendered.TotalAlloc-mounted.TotalAlloc)
		t.Logf("%s: estimated %d KiB, kept %d KiB, allocated for a page %d KiB, %.1f times the estimate", name, size>>10, kept>>10, allocated>>10, float64(allocated)/float64(size))
		const fixed = 1 << 20 // templates
		assert.LessOrEqual(t, kept, size+fixed, name)
		assert.LessOrEqual(t, allocated, size*webui.RenderingFactor+fixed, name)
		runtime.KeepAlive(handler)
	}
}
