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
	top := func(options webui.TopOptions) string {
		var out strings.Builder
		require.NoError(t, webui.Top(&out, p, options))
		return out.String()
	}
	first := top(webui.TopOptions{})
	assert.NotEqual(t, first, top(webui.TopOptions{Nodes: 3}))
	assert.NotEqual(t, first, top(webui.TopOptions{Cumulative: true}))
	assert.Equal(t, first, top(webui.TopOptions{}))
}

func TestTopNeedsNoHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	var out strings.Builder
	require.NoError(t, webui.Top(&out, profiletest.HeapPprof(1, 2, 3, 4), webui.TopOptions{}))
	assert.Contains(t, out.String(), "Showing nodes")
}
