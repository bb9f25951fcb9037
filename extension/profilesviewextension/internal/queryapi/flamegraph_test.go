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

func limited(nodes int) *tree {
	t := newTree()
	t.limit = nodes
	return t
}

// intern returns the frames of functions.
func (t *tree) intern(functions ...string) (stack []int32) {
	for _, f := range functions {
		stack = append(stack, t.Intern(webui.Frame{Name: f}))
	}
	return stack
}

func TestFlameGraphIsBounded(t *testing.T) {
	tr := limited(2)
	require.NoError(t, tr.addStack(tr.intern("a", "b"), math.MaxInt64, left))
	require.ErrorContains(t, tr.addStack(tr.intern("c"), 0, left), "more than 2 nodes")
	require.ErrorContains(t, tr.addStack(tr.intern("b"), 1, left), "does not fit into 64 bits")
	assert.NotContains(t, tr.Largest(math.MaxInt), false, "a request may ask for any number of nodes")
	for _, value := range []int64{1, -1} {
		deep := limited(1 << 20)
		stack := make([]int32, 50_000)
		require.NoError(t, deep.addStack(stack, value, left))
		assert.Len(t, deep.graph(1<<20, 1).levels, 50_001)
	}
}
