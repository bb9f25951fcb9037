// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/queryapi/querierpb"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
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
					frames = t.frames(pd.Dictionary(), location)
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

// frames returns the frames of a location, the innermost of which comes first.
func (t *tree) frames(dict pprofile.ProfilesDictionary, location int32) (frames []int32) {
	for _, name := range query.FrameNames(dict, location) {
		frames = append(frames, t.Intern(webui.Frame{Name: name}))
	}
	return frames
}

// addStack adds a value to the frames of a stack, the innermost of which comes first.
func (t *tree) addStack(stack []int32, value int64, side int) error {
	size := max(value, -value)
	if size < 0 || t.sums[side] > math.MaxInt64-size {
		return fmt.Errorf("a sum does not fit into 64 bits: select less, by service, type or time")
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

// graph is the encoded form of a tree.
type graph struct {
	*tree

	names    []string
	places   map[int32]int64 // of frames in names
	levels   []*querierpb.Level
	ends     []webui.Sides // of each level
	totals   []webui.Sides
	children [][]int32
	maxSelf  int64
	sides    int
}

// graph encodes the tree, with about n nodes.
func (t *tree) graph(n int64, sides int) *graph {
	if n <= 0 {
		n = defaultNodes
	}
	t.Fold(int(min(n, maxNodes)), other)
	g := &graph{tree: t, places: map[int32]int64{}, totals: t.Totals(), children: make([][]int32, len(t.Nodes)), sides: sides}
	for i, node := range t.Nodes {
		if i != webui.Root {
			g.children[node.Parent] = append(g.children[node.Parent], int32(i)) // #nosec G115 -- as their parents
		}
	}
	g.add(webui.Root, 0, webui.Sides{})
	return g
}

// add encodes a node and those below it, at an offset of each side.
func (g *graph) add(i int32, level int, at webui.Sides) {
	if level == len(g.levels) {
		g.levels, g.ends = append(g.levels, &querierpb.Level{}), append(g.ends, webui.Sides{})
	}
	l, n, total := g.levels[level], g.Nodes[i], g.totals[i]
	for side := range g.sides {
		l.Values = append(l.Values, at[side]-g.ends[level][side], total[side], n.Self[side])
		g.ends[level][side] = at[side] + total[side]
		g.maxSelf = max(g.maxSelf, n.Self[side])
		at[side] += n.Self[side]
	}
	l.Values = append(l.Values, g.place(n.Frame))
	slices.SortFunc(g.children[i], func(a, b int32) int { return cmp.Compare(g.name(a), g.name(b)) })
	for _, child := range g.children[i] {
		g.add(child, level+1, at)
		for side := range g.sides {
			at[side] += g.totals[child][side]
		}
	}
}

func (g *graph) name(node int32) string { return g.Frames[g.Nodes[node].Frame].Name }

// place returns the index of a frame in names.
func (g *graph) place(frame int32) int64 {
	place, known := g.places[frame]
	if !known {
		place = int64(len(g.names))
		g.places[frame] = place
		g.names = append(g.names, g.Frames[frame].Name)
	}
	return place
}
