// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"strings"
	"testing"

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
