// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// drawing is the part of the data of a flame graph that says which stacks there are.
type drawing struct {
	Names, Places   []string
	Frames, Parents []int
	Self            [][]int64
}

func flameGraph(t *testing.T, p *profile.Profile) (g *webui.FlameGraph, d drawing) {
	t.Helper()
	g, err := webui.NewFlameGraph(t.Context(), p, len(p.SampleType)-1)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(g.Data), &d))
	return g, d
}

// sums returns the values of all paths.
func (d drawing) sums(side int) map[string]int64 {
	paths, sums := make([]string, len(d.Frames)), map[string]int64{}
	for i := 1; i < len(d.Frames); i++ {
		paths[i] = paths[d.Parents[i]] + "\n" + d.Names[d.Frames[i]]
	}
	for i, value := range d.Self[side] {
		if value != 0 {
			sums[paths[i]] += value
		}
	}
	return sums
}

// TestFlameGraphHasTheValuesOfAllStacks compares it with sums over the samples, those of a difference by their sign.
func TestFlameGraphHasTheValuesOfAllStacks(t *testing.T) {
	seed := profiletest.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- a test
	for range 50 {
		p := profiletest.GeneratePprof(r)
		for i, sampleType := range p.SampleType {
			sampleType.Type = fmt.Sprint("type", i) // pprof rejects equal ones
		}
		index := len(p.SampleType) - 1
		p.DefaultSampleType = ""
		want := []map[string]int64{{}, {}}
		for _, s := range p.Sample {
			path := ""
			for _, name := range profiletest.StackOf(s) {
				path += "\n" + name
			}
			if v := s.Value[index]; v > 0 {
				want[0][path] += v
			} else if v < 0 {
				want[1][path] -= v
			}
		}
		_, d := flameGraph(t, p)
		for side := range want {
			if side < len(d.Self) {
				assert.Equal(t, want[side], d.sums(side))
			} else {
				assert.Empty(t, want[side])
			}
		}
	}
}

// A stack counts once for a function that calls itself, and a deep stack takes no longer than many.
func TestFlameGraphOfDeepStacks(t *testing.T) {
	const depth = 150_000
	tree, at := webui.NewTree("(all)"), int32(webui.Root)
	for i := range depth {
		at = tree.Child(at, tree.Intern(webui.Frame{Name: fmt.Sprint("f", i%2*i)})) // each other one is f0
	}
	tree.Nodes[at].Self[0] = 7
	began := time.Now()
	g, err := webui.FlameGraphOf(tree, "count", 1, false)
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 10*time.Second)
	var drawn struct{ FunctionTotal [][]int64 }
	require.NoError(t, json.Unmarshal([]byte(g.Data), &drawn))
	for _, total := range drawn.FunctionTotal[0] {
		require.EqualValues(t, 7, total)
	}
	assert.Equal(t, fmt.Sprint("f", depth-1), g.Functions[0].Name)
	assert.Equal(t, "7", g.Functions[0].Self)
}

func TestFlameGraphFoldsTheSmallestBoxes(t *testing.T) {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}}
	const leaves = 205_000
	top := &profile.Location{ID: leaves + 1, Address: leaves + 1}
	p.Location = append(p.Location, top)
	total := int64(0)
	for i := range leaves {
		l := &profile.Location{ID: uint64(i + 1), Address: uint64(i + 1)}
		p.Location = append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l, top}, Value: []int64{int64(i + 1)}})
		total += int64(i + 1)
	}
	g, d := flameGraph(t, p)
	assert.LessOrEqual(t, len(d.Frames), 200_001)
	sum, sums := int64(0), d.sums(0)
	for _, v := range sums {
		sum += v
	}
	assert.Equal(t, total, sum)
	assert.Positive(t, sums[fmt.Sprintf("\n0x%x\n(other)", leaves+1)])
	assert.Equal(t, fmt.Sprintf("0x%x", leaves), g.Functions[0].Name, "the table has what is folded")
}
