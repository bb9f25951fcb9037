// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

const (
	// defaultNodes and maxNodes are how many nodes a flame graph has without max_nodes, and at most.
	defaultNodes = 8192
	maxNodes     = 1 << 16
	// nodeSize is the memory of a node.
	nodeSize = 200

	left, right = 0, 1 // the sides of a difference; a flame graph has one
)

// other is the name of what max_nodes leaves out.
const other = "other"

// tree builds a flame graph.
type tree struct {
	*webui.Tree
	sums  webui.Sides // of the values without their signs
	limit int         // of nodes
}

func newTree() *tree { return &tree{Tree: webui.NewTree("total")} }

// add adds the values of all Profiles to a side.
func (t *tree) add(pd pprofile.Profiles, side int) error {
	stacks := pd.Dictionary().StackTable()
	locations, stack := map[int32][]int32{}, []int32(nil)
	for p := range sampletypes.ProfilesOf(pd) {
		for _, sample := range p.Samples().All() {
			stack = stack[:0]
			for _, location := range stacks.At(int(sample.StackIndex())).LocationIndices().All() {
				frames, known := locations[location]
				if !known {
					for _, name := range dictionary.FrameNames(pd.Dictionary(), location) {
						frames = append(frames, t.Intern(webui.Frame{Name: name}))
					}
					locations[location] = frames
				}
				stack = append(stack, frames...)
			}
			if err := t.addStack(stack, sampletypes.ValueOf(sample), side); err != nil {
				return err
			}
		}
	}
	return nil
}

// addStack adds a value to the frames of a stack, the innermost of which comes first.
func (t *tree) addStack(stack []int32, value int64, side int) error {
	size := max(value, -value)
	if size < 0 || t.sums[side] > math.MaxInt64-size {
		return errOverflow
	}
	t.sums[side] += size
	at := int32(webui.Root)
	for _, frame := range slices.Backward(stack) {
		if at = t.Child(at, frame); len(t.Nodes)-1 > t.limit {
			return fmt.Errorf("the flame graph has more than %d nodes, which take a quarter of the memory limit: select less, by service, type or time", t.limit)
		}
	}
	t.Nodes[at].Self[side] += value
	return nil
}

// multiply multiplies the values of a side.
func (t *tree) multiply(side int, factor float64) error {
	if factor == 1 {
		return nil
	}
	if float64(t.sums[side])*factor >= math.MaxInt64/2 {
		return errOverflow
	}
	for i := range t.Nodes {
		t.Nodes[i].Self[side] = int64(math.Round(float64(t.Nodes[i].Self[side]) * factor))
	}
	return nil
}

var errOverflow = errors.New("a sum does not fit into 64 bits: select less, by service, type or time")

// graph is the encoded form of a tree.
type graph struct {
	names   []string
	levels  []*querierpb.Level
	total   webui.Sides
	maxSelf int64
}

// graph encodes the tree, with about n nodes.
func (t *tree) graph(n int64, sides int) *graph {
	if n <= 0 {
		n = defaultNodes
	}
	t.Fold(int(min(n, maxNodes)), other)
	totals, children := t.Totals(), make([][]int32, len(t.Nodes))
	for i, node := range t.Nodes {
		if i != webui.Root {
			children[node.Parent] = append(children[node.Parent], int32(i)) // #nosec G115 -- as their parents
		}
	}
	name := func(node int32) string { return t.Frames[t.Nodes[node].Frame].Name }
	g, places := &graph{total: totals[webui.Root]}, map[int32]int64{} // of frames in names
	starts := make([]webui.Sides, len(t.Nodes))
	for level := []int32{webui.Root}; len(level) > 0; {
		var values []int64
		var below []int32
		var end webui.Sides
		for _, i := range level {
			node, at := t.Nodes[i], starts[i]
			for side := range sides {
				values = append(values, at[side]-end[side], totals[i][side], node.Self[side])
				end[side] = at[side] + totals[i][side]
				g.maxSelf = max(g.maxSelf, node.Self[side])
				at[side] += node.Self[side]
			}
			place, known := places[node.Frame]
			if !known {
				place = int64(len(g.names))
				places[node.Frame] = place
				g.names = append(g.names, name(i))
			}
			values = append(values, place)
			slices.SortFunc(children[i], func(a, b int32) int { return cmp.Compare(name(a), name(b)) })
			for _, child := range children[i] {
				starts[child] = at
				for side := range sides {
					at[side] += totals[child][side]
				}
			}
			below = append(below, children[i]...)
		}
		g.levels, level = append(g.levels, &querierpb.Level{Values: values}), below
	}
	return g
}
