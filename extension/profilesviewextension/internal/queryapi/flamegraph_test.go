// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
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

// TestFoldedProfileKeepsSums: the sum of each node that is left is that of the whole profile.
func TestFoldedProfileKeepsSums(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 50, 2000)) {
		r := profiletest.NewRand(seed)
		p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}}
		for i := range uint64(6) {
			f := &profile.Function{ID: i + 1, Name: fmt.Sprint("f", i)}
			p.Function = append(p.Function, f)
			p.Location = append(p.Location, &profile.Location{ID: i + 1, Line: []profile.Line{{Function: f}}})
		}
		for range r.IntN(60) {
			s := &profile.Sample{Value: []int64{r.Int64N(1000) + 1}, Label: map[string][]string{"thread": {fmt.Sprint(r.IntN(2))}}}
			for range 1 + r.IntN(5) {
				s.Location = append(s.Location, p.Location[r.IntN(len(p.Location))])
			}
			p.Sample = append(p.Sample, s)
		}
		whole := nodeSums(p)
		n := 1 + r.IntN(30)
		folded, err := fold(p, n, math.MaxInt64)
		require.NoError(t, err)
		require.NoError(t, folded.CheckValid())
		left, kept := nodeSums(folded), 0
		for path, sum := range left {
			if !strings.HasSuffix(path, other+"/") {
				kept++
				require.Equal(t, whole[path], sum, "%d: %s", seed, path)
			}
		}
		require.Equal(t, whole[""], left[""], "nothing is lost")
		require.Equal(t, min(n, len(whole)-1), kept-1, "the root does not count")
	}
}

// nodeSums are the sums of the paths from the root.
func nodeSums(p *profile.Profile) map[string]int64 {
	sums := map[string]int64{}
	for _, s := range p.Sample {
		path := ""
		sums[path] += s.Value[0]
		for _, l := range slices.Backward(s.Location) {
			path += l.Line[0].Function.Name + "/"
			sums[path] += s.Value[0]
		}
	}
	return sums
}
