// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/queryapi/querierpb"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

const (
	// defaultNodes and maxNodes are how many nodes a flame graph has without max_nodes, and at most.
	defaultNodes = 8192
	maxNodes     = 1 << 16
	// nodeSize is the memory of a node with its place in the map of its parent.
	nodeSize = 200

	left, right = 0, 1 // the sides of a difference; a flame graph has one
)

// other is the name of what max_nodes leaves out.
const other = "other"

// node is a function with the same callers.
type node struct {
	name        string
	total, self [2]int64 // by side
	children    map[string]*node
}

// value decides which nodes a flame graph keeps.
func (n *node) value() int64 { return max(n.total[left], n.total[right]) }

// sorted returns the children by name.
func (n *node) sorted() []*node {
	return slices.SortedFunc(maps.Values(n.children), func(a, b *node) int { return cmp.Compare(a.name, b.name) })
}

// tree builds a flame graph.
type tree struct {
	root  node
	nodes int64
	limit int64 // of nodes
}

// add adds the values of all Profiles to a side.
func (t *tree) add(pd pprofile.Profiles, side int) error {
	names := newFrameNames(pd.Dictionary())
	for p := range sampletypes.ProfilesOf(pd) {
		for _, sample := range p.Samples().All() {
			value := int64(0)
			for _, v := range sample.Values().All() {
				value += v
			}
			if sample.Values().Len() == 0 {
				value = int64(sample.TimestampsUnixNano().Len())
			}
			if err := t.addStack(names.of(sample.StackIndex()), value, side); err != nil {
				return err
			}
		}
	}
	return nil
}

// addStack adds a value to the functions of a stack, the innermost of which comes first.
func (t *tree) addStack(stack []string, value int64, side int) error {
	at := &t.root
	for i := len(stack); ; i-- {
		if sum := at.total[side]; value > 0 && sum > math.MaxInt64-value || value < 0 && sum < math.MinInt64-value {
			return fmt.Errorf("a sum does not fit into 64 bits: select less, by service, type or time")
		}
		at.total[side] += value
		if i == 0 {
			at.self[side] += value
			return nil
		}
		child := at.children[stack[i-1]]
		if child == nil {
			if t.nodes++; t.nodes > t.limit {
				return fmt.Errorf("the flame graph has more than %d nodes, which take a quarter of the memory limit: select less, by service, type or time", t.limit)
			}
			if at.children == nil {
				at.children = map[string]*node{}
			}
			child = &node{name: stack[i-1]}
			at.children[child.name] = child
		}
		at = child
	}
}

// least returns the value of the smallest node that is among the n largest.
func (t *tree) least(n int64) int64 {
	if t.nodes <= n {
		return math.MinInt64
	}
	values := make([]int64, 0, t.nodes)
	var collect func(*node)
	collect = func(parent *node) {
		for _, child := range parent.children {
			values = append(values, child.value())
			collect(child)
		}
	}
	collect(&t.root)
	slices.Sort(values)
	return max(1, values[int64(len(values))-n])
}

// graph is the encoded form of a tree.
type graph struct {
	names   []string
	places  map[string]int64 // in names
	levels  []*querierpb.Level
	ends    [][2]int64 // of each level
	maxSelf int64
	least   int64
	sides   int
}

// graph encodes the tree, with about n nodes.
func (t *tree) graph(n int64, sides int) *graph {
	if n <= 0 {
		n = defaultNodes
	}
	g := &graph{places: map[string]int64{}, least: t.least(min(n, maxNodes)), sides: sides}
	t.root.name = "total"
	g.add(&t.root, 0, [2]int64{})
	return g
}

// add encodes a node and those below it that are large enough, at an offset of each side.
func (g *graph) add(n *node, level int, at [2]int64) {
	if level == len(g.levels) {
		g.levels, g.ends = append(g.levels, &querierpb.Level{}), append(g.ends, [2]int64{})
	}
	l := g.levels[level]
	for side := range g.sides {
		l.Values = append(l.Values, at[side]-g.ends[level][side], n.total[side], n.self[side])
		g.ends[level][side] = at[side] + n.total[side]
		g.maxSelf = max(g.maxSelf, n.self[side])
		at[side] += n.self[side]
	}
	l.Values = append(l.Values, g.place(n.name))
	rest := node{name: other}
	for _, child := range n.sorted() {
		if child.value() < g.least {
			for side := range g.sides {
				rest.total[side] += child.total[side]
				rest.self[side] += child.total[side]
			}
			continue
		}
		g.add(child, level+1, at)
		for side := range g.sides {
			at[side] += child.total[side]
		}
	}
	if rest.total != [2]int64{} {
		g.add(&rest, level+1, at)
	}
}

func (g *graph) place(name string) int64 {
	place, known := g.places[name]
	if !known {
		place = int64(len(g.names))
		g.places[name] = place
		g.names = append(g.names, name)
	}
	return place
}

// frameNames has the names of the functions of stacks.
type frameNames struct {
	dict   pprofile.ProfilesDictionary
	stack  []string
	frames map[int32][]string // by location
}

func newFrameNames(dict pprofile.ProfilesDictionary) *frameNames {
	return &frameNames{dict: dict, frames: map[int32][]string{}}
}

// of returns the names of a stack, the innermost first. They are valid until the next call.
func (f *frameNames) of(stack int32) []string {
	f.stack = f.stack[:0]
	for _, location := range f.dict.StackTable().At(int(stack)).LocationIndices().All() {
		names, known := f.frames[location]
		if !known {
			names = f.ofLocation(location)
			f.frames[location] = names
		}
		f.stack = append(f.stack, names...)
	}
	return f.stack
}

func (f *frameNames) ofLocation(index int32) (names []string) {
	l := f.dict.LocationTable().At(int(index))
	for _, line := range l.Lines().All() {
		function := f.dict.FunctionTable().At(int(line.FunctionIndex()))
		name := cmp.Or(f.text(function.NameStrindex()), f.text(function.SystemNameStrindex()), f.text(function.FilenameStrindex()))
		names = append(names, cmp.Or(name, "?"))
	}
	if len(names) > 0 {
		return names
	}
	binary := ""
	if i := int(l.MappingIndex()); i > 0 && i < f.dict.MappingTable().Len() {
		if file := f.text(f.dict.MappingTable().At(i).FilenameStrindex()); file != "" {
			binary = path.Base(file) + " "
		}
	}
	return []string{fmt.Sprintf("%s0x%x", binary, l.Address())}
}

func (f *frameNames) text(i int32) string { return dictionary.ValidString(f.dict.StringTable(), i) }
