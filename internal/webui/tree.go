// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"math"
	"slices"
)

// Tree is the call tree of stacks, which flame graphs draw.
type Tree struct {
	// Frames has the one of the root first.
	Frames []Frame
	// Nodes has the root first, and each parent before its children.
	Nodes []Node

	known    map[[2]string]int32 // by name and file
	children map[edge]int32
}

// Frame is a function, or a location without one. Those with the same name and file are one.
type Frame struct {
	Name, File string
	// Line is where the function starts, 0 if that is not known.
	Line int64
}

// Node is a frame with a path of callers.
type Node struct {
	Frame, Parent int32
	Self          Sides
}

// Sides are the values of both sides of a difference. A flame graph without a base has only the first.
type Sides [2]int64

type edge struct{ parent, frame int32 }

// Root is the index of the root among nodes, and of its frame.
const Root = 0

// NewTree returns a tree whose root has a name.
func NewTree(root string) *Tree {
	return &Tree{Frames: []Frame{{Name: root}}, Nodes: []Node{{Parent: -1}}, known: map[[2]string]int32{}, children: map[edge]int32{}}
}

// Intern returns the index of a frame.
func (t *Tree) Intern(f Frame) int32 {
	key := [2]string{f.Name, f.File}
	i, found := t.known[key]
	if !found {
		i = int32(len(t.Frames)) // #nosec G115 -- fewer than the locations of samples, which are in memory
		t.known[key] = i
		t.Frames = append(t.Frames, f)
	}
	return i
}

// Child returns the node of a frame that the node at calls.
func (t *Tree) Child(at, frame int32) int32 {
	child, found := t.children[edge{at, frame}]
	if !found {
		child = int32(len(t.Nodes)) // #nosec G115 -- as the frames
		t.children[edge{at, frame}] = child
		t.Nodes = append(t.Nodes, Node{Frame: frame, Parent: at})
	}
	return child
}

// Totals returns the sums of the nodes with all that they call.
func (t *Tree) Totals() []Sides {
	totals := make([]Sides, len(t.Nodes))
	for i, n := range slices.Backward(t.Nodes) {
		totals[i].add(n.Self)
		if i != Root {
			totals[n.Parent].add(totals[i])
		}
	}
	return totals
}

// Largest reports which nodes are the root and the n largest others. The callers of each are among them.
func (t *Tree) Largest(n int) []bool {
	totals, order, large := t.Totals(), make([]int, len(t.Nodes)), make([]bool, len(t.Nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order[1:], func(a, b int) int {
		return cmp.Or(cmp.Compare(totals[b].weight(), totals[a].weight()), a-b)
	})
	for _, i := range order[:min(n, len(order)-1)+1] {
		large[i] = true
	}
	for i, n := range t.Nodes[1:] {
		large[i+1] = large[i+1] && large[n.Parent] // values of both signs may leave a caller with a small sum
	}
	return large
}

// Fold keeps the root and the n largest other nodes. In place of others, their caller has one node with the name other. No more
// nodes can be added afterwards.
func (t *Tree) Fold(n int, other string) {
	if len(t.Nodes)-1 <= n {
		return
	}
	totals, large, folded := t.Totals(), t.Largest(n), t.Intern(Frame{Name: other})
	kept, others := t.Nodes[:1], map[int32]int32{}
	places := make([]int32, len(t.Nodes)) // where a node went
	for i := 1; i < len(t.Nodes); i++ {
		node := t.Nodes[i]
		if !large[node.Parent] {
			continue
		}
		node.Parent = places[node.Parent]
		if large[i] {
			places[i] = int32(len(kept)) // #nosec G115 -- as the frames
			kept = append(kept, node)
			continue
		}
		place, found := others[node.Parent]
		if !found {
			place = int32(len(kept)) // #nosec G115 -- as the frames
			others[node.Parent] = place
			kept = append(kept, Node{Frame: folded, Parent: node.Parent})
		}
		kept[place].Self.add(totals[i])
	}
	t.Nodes, t.children = kept, nil
}

func (s *Sides) add(other Sides) {
	s[0] += other[0]
	s[1] += other[1]
}

// weight is the width of a box. It may be above the largest int64.
func (s Sides) weight() float64 { return math.Abs(float64(s[0])) + math.Abs(float64(s[1])) }
