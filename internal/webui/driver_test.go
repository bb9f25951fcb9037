// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

func TestTopIsIndependentOfEarlierCalls(t *testing.T) {
	p := profiletest.Workloads()[0].Pprof(1)
	top := func(nodes int, cumulative bool) string {
		var out strings.Builder
		require.NoError(t, webui.Top(&out, p, nodes, cumulative))
		return out.String()
	}
	first := top(0, false)
	assert.NotEqual(t, first, top(3, false))
	assert.NotEqual(t, first, top(0, true))
	assert.Equal(t, first, top(0, false))
}

func TestTopNeedsNoHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	var out strings.Builder
	require.NoError(t, webui.Top(&out, profiletest.HeapPprof(1, 2, 3, 4), 0, false))
	assert.Contains(t, out.String(), "Showing nodes")
}

func TestGraphvizIsStoppedAfterTheTimeOfTheRequest(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "dot"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700)) // #nosec G306 -- a program
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	handler, err := webui.Handler(profiletest.HeapPprof(1, 2, 3, 4), webui.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/graph", nil))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), "Graphviz takes too long")
}

// TestPagesAreServedByName_V6: a page that another version of pprof adds is not. Those of ours allow no script but their own.
func TestPagesAreServedByName_V6(t *testing.T) {
	handler, err := webui.Handler(profiletest.HeapPprof(1, 2, 3, 4), webui.Options{})
	require.NoError(t, err)
	handler = webui.Protect(handler, func(*http.Request) bool { return false })
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil))
		return w
	}
	for _, path := range []string{"/source", "/disasm", "/saveconfig", "/deleteconfig", "/weblist", "/flamegraph2", "/flamegraphold", "/new"} {
		w := get(path)
		assert.Equal(t, http.StatusNotFound, w.Code, path)
		assert.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe", path)
	}
	for path, unsafe := range map[string]bool{"/top": true, "/peek?f=.": true, "/flamegraph": false, "/download": true} {
		w := get(path)
		assert.Equal(t, http.StatusOK, w.Code, path)
		assert.Equal(t, unsafe, strings.Contains(w.Header().Get("Content-Security-Policy"), "unsafe"), path)
	}
	w := get("/?si=inuse_space")
	assert.Equal(t, http.StatusFound, w.Code)
	assert.Equal(t, "flamegraph?si=inuse_space", w.Header().Get("Location"))
}

func TestGraphIsHiddenWithoutGraphviz(t *testing.T) {
	handler, err := webui.Handler(profiletest.HeapPprof(1, 2, 3, 4), webui.Options{})
	require.NoError(t, err)
	get := func(path string) string {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Body.String()
	}
	const link, hidden = `href="./graph?`, "#graphbtn { display: none"
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	assert.NotContains(t, get("/flamegraph"), link)
	assert.Contains(t, get("/top"), hidden)
	name := "dot"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o700)) // #nosec G306 -- a program
	assert.Contains(t, get("/flamegraph"), link)
	assert.NotContains(t, get("/top"), hidden)
}
