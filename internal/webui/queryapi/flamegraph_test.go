// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

func TestFlameGraphIsBounded(t *testing.T) {
	tr := newTree()
	tr.limit = 2
	a, b, c := tr.Intern(webui.Frame{Name: "a"}), tr.Intern(webui.Frame{Name: "b"}), tr.Intern(webui.Frame{Name: "c"})
	require.NoError(t, tr.addStack([]int32{a, b}, math.MaxInt64, left))
	require.ErrorContains(t, tr.addStack([]int32{c}, 0, left), "more than 2 nodes")
	require.ErrorContains(t, tr.addStack([]int32{b}, 1, left), "does not fit into 64 bits")
	assert.NotContains(t, tr.Largest(math.MaxInt), false, "a request may ask for any number of nodes")
	for _, value := range []int64{1, -1} {
		deep := newTree()
		deep.limit = 1 << 20
		require.NoError(t, deep.addStack(make([]int32, 50_000), value, left))
		assert.Len(t, deep.graph(1<<20, 1).levels, 50_001)
	}
}
