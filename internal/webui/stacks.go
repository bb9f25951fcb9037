// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/google/pprof/profile"
)

// stacks is the tree of the stacks of a profile, with the values of one sample type.
type stacks struct {
	frames []frame
	// functions has the values of each frame in all stacks.
	functions []function
	// nodes has the root first, and each parent before its children.
	nodes []node
	known map[frameKey]int32
}

// frame is a function, or a location without one.
type frame struct {
	name, file string
	// line is where the function starts, 0 if that is not known.
	line int64
}

type frameKey struct{ name, file string }

// node is a frame with a path of callers.
type node struct {
	frame, parent int32
	self          sides
}

// function has the values of the samples that end in a frame, and of those that it is part of.
type function struct{ self, total sides }

// sides are the sum of the positive values, and the one of the negative values without the sign. In a difference,
// these are the values of the selection and of the base.
type sides struct{ now, base int64 }

func sidesOf(value int64) sides { return sides{now: max(value, 0), base: max(-value, 0)} }

func (s *sides) add(other sides) {
	s.now += other.now
	s.base += other.base
}

// weight is the width of a box. It may be above the largest int64.
func (s sides) weight() float64 { return float64(s.now) + float64(s.base) }

// root is the index of the root among nodes, and of its frame.
const root = 0

// newStacks returns the stacks of p with the values of the sample type at index.
func newStacks(ctx context.Context, p *profile.Profile, index int) (*stacks, error) {
	t := &stacks{
		frames: []frame{{name: "(all)"}}, functions: make([]function, 1),
		nodes: []node{{parent: -1}}, known: map[frameKey]int32{},
	}
	type edge struct{ parent, frame int32 }
	children := map[edge]int32{}
	locations := make(map[*profile.Location][]int32, len(p.Location))
	counted := []int{0} // of each frame: the number of the last sample that it is part of
	for number, s := range p.Sample {
		const often = 1000
		if number%often == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		value, at := sidesOf(s.Value[index]), int32(root)
		for _, l := range slices.Backward(s.Location) {
			frames, found := locations[l]
			if !found {
				frames = t.framesOf(l)
				locations[l] = frames
				counted = append(counted, make([]int, len(t.frames)-len(counted))...)
			}
			for _, f := range frames {
				child, found := children[edge{at, f}]
				if !found {
					child = int32(len(t.nodes)) // #nosec G115 -- fewer than the locations of samples, which are in memory
					children[edge{at, f}] = child
					t.nodes = append(t.nodes, node{frame: f, parent: at})
				}
				if at = child; counted[f] <= number {
					t.functions[f].total.add(value)
					counted[f] = number + 1
				}
			}
		}
		t.nodes[at].self.add(value)
		t.functions[t.nodes[at].frame].self.add(value)
		t.functions[root].total.add(value)
	}
	return t, nil
}

// framesOf returns the frames of a location, callers first.
func (t *stacks) framesOf(l *profile.Location) (frames []int32) {
	for _, line := range slices.Backward(l.Line) {
		f := frame{}
		if function := line.Function; function != nil {
			f = frame{name: cmp.Or(function.Name, function.SystemName), file: function.Filename, line: function.StartLine}
		}
		f.name = cmp.Or(f.name, address(l))
		frames = append(frames, t.intern(f))
	}
	if len(l.Line) == 0 {
		frames = append(frames, t.intern(frame{name: address(l)}))
	}
	return frames
}

func (t *stacks) intern(f frame) int32 {
	key := frameKey{f.name, f.file}
	i, found := t.known[key]
	if !found {
		i = int32(len(t.frames)) // #nosec G115 -- as the nodes
		t.known[key] = i
		t.frames, t.functions = append(t.frames, f), append(t.functions, function{})
	}
	return i
}

// address names a location without a function.
func address(l *profile.Location) string {
	switch {
	case l.Mapping != nil && l.Mapping.File != "":
		return fmt.Sprintf("[%s] 0x%x", path.Base(l.Mapping.File), l.Address)
	case l.Address == 0:
		return "[unknown]"
	}
	return fmt.Sprintf("0x%x", l.Address)
}

// totals returns the sums of the nodes with all that they call.
func (t *stacks) totals() []sides {
	totals := make([]sides, len(t.nodes))
	for i, n := range slices.Backward(t.nodes) {
		totals[i].add(n.self)
		if i != root {
			totals[n.parent].add(totals[i])
		}
	}
	return totals
}

// fold keeps at most the most largest nodes. In place of others, their caller has one node "(other)".
func (t *stacks) fold(most int) {
	if len(t.nodes) <= most {
		return
	}
	totals := t.totals()
	weights := make([]float64, len(totals))
	for i, total := range totals {
		weights[i] = total.weight()
	}
	slices.Sort(weights)
	least := weights[len(weights)-most]
	other := t.intern(frame{name: "(other)"})
	kept, others := t.nodes[:1], map[int32]int32{}
	places := make([]int32, len(t.nodes)) // where a node went, or -1
	for i := 1; i < len(t.nodes); i++ {
		n := t.nodes[i]
		places[i] = -1
		if n.parent = places[n.parent]; n.parent < 0 {
			continue // its caller is among others
		}
		if totals[i].weight() > least {
			places[i] = int32(len(kept)) // #nosec G115 -- as the nodes
			kept = append(kept, n)
			continue
		}
		place, found := others[n.parent]
		if !found {
			place = int32(len(kept)) // #nosec G115 -- as the nodes
			others[n.parent] = place
			kept = append(kept, node{frame: other, parent: n.parent})
		}
		kept[place].self.add(totals[i])
	}
	t.nodes = kept
}
