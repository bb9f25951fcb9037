// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"encoding/json"
	"html/template"
	"math"
	"slices"

	"github.com/google/pprof/profile"
)

const (
	// maxNodes bounds the boxes of a flame graph. Each is about 20 bytes of the page.
	maxNodes = 200_000
	// topFunctions is how many functions the table of the page has. The script finds others.
	topFunctions = 50
	// fewSamples is below how many samples, in the selection and the base together, a change may be chance.
	fewSamples = 20
	// fewPart is the part of the total below which it may be, if the value of a sample is not known.
	fewPart = 0.001
)

// drawing is what the script draws. Its slices of numbers have one for each node or frame, and those of sides have one
// slice of these for the selection and in a difference one for the base.
type drawing struct {
	Scales []scale   `json:"scales"`
	Names  []string  `json:"names"`
	Places []string  `json:"places"` // file and line of frames
	Frames []int32   `json:"frames"`
	Parent []int32   `json:"parents"`
	Self   [][]int64 `json:"self"`

	FunctionSelf  [][]int64 `json:"functionSelf"`
	FunctionTotal [][]int64 `json:"functionTotal"`

	// Few is the value, of both sides together, below which a change is grey.
	Few float64 `json:"few"`
}

func newDrawing(t *Tree, functions []function, scales []scale, few float64, difference bool) *drawing {
	d := &drawing{Scales: scales, Few: few}
	for _, f := range t.Frames {
		d.Names, d.Places = append(d.Names, f.Name), append(d.Places, f.place())
	}
	for _, n := range t.Nodes {
		d.Frames, d.Parent = append(d.Frames, n.Frame), append(d.Parent, n.Parent)
	}
	sides := 1
	if difference {
		sides = 2
	}
	for side := range sides {
		self := make([]int64, len(t.Nodes))
		for i, n := range t.Nodes {
			self[i] = n.Self[side]
		}
		functionSelf, functionTotal := make([]int64, len(t.Frames)), make([]int64, len(t.Frames))
		for i, f := range functions {
			functionSelf[i], functionTotal[i] = f.self[side], f.total[side]
		}
		d.Self, d.FunctionSelf, d.FunctionTotal = append(d.Self, self), append(d.FunctionSelf, functionSelf), append(d.FunctionTotal, functionTotal)
	}
	return d
}

// FlameGraph is what a page shows of the stacks of a profile.
type FlameGraph struct {
	// Data is for the script.
	Data template.JS
	// Functions are those with the largest values of their own, or of a difference the largest changes.
	Functions []Function
	// Difference: there is a base. Few is the value of both sides together below which a change is grey.
	Difference bool
	Few        string
}

// Function is one in the table of a page.
type Function struct{ Name, Place, Self, SelfShare, Total, TotalShare, Before, After, Change, Relative string }

// NewFlameGraph returns the flame graph of a sample type of p, whose functions it gives the names by which they are shown.
func NewFlameGraph(ctx context.Context, p *profile.Profile, index int) (*FlameGraph, error) {
	NameFunctions(p)
	t, err := newStacks(ctx, p, index)
	if err != nil {
		return nil, err
	}
	difference := slices.ContainsFunc(p.Sample, func(s *profile.Sample) bool { return s.Value[index] < 0 || s.DiffBaseSample() })
	return FlameGraphOf(t, p.SampleType[index].Unit, valueOfSample(p, p.SampleType[index]), difference)
}

// FlameGraphOf returns the flame graph of a tree, to which nothing is added afterwards: of its first sides or, if difference is set, of their
// difference to the second ones. oneSample is the value of a sample, 0 if it is not known.
func FlameGraphOf(t *Tree, unit string, oneSample int64, difference bool) (*FlameGraph, error) {
	functions, scales := functionsOf(t), scalesOf(unit)
	g := &FlameGraph{Difference: difference, Functions: table(t, functions, scales, difference)}
	before := len(t.Frames)
	t.Fold(maxNodes-1, "(other)")
	functions = append(functions, make([]function, len(t.Frames)-before)...)
	few, total := fewSamples*float64(oneSample), functions[Root].total
	if oneSample == 0 {
		few = fewPart * float64(max(total[0], total[1]))
	}
	g.Few = quantity(few, scales)
	data, err := json.Marshal(newDrawing(t, functions, scales, few, difference))
	g.Data = template.JS(data) // #nosec G203 -- Marshal escapes what ends a script
	return g, err
}

// function has the values of the stacks that end in a frame, and of those that it is part of.
type function struct{ self, total Sides }

// functionsOf returns the functions of a tree, by frame. A stack counts once for each function, however often it has it.
func functionsOf(t *Tree) []function {
	functions, totals := make([]function, len(t.Frames)), t.Totals()
	first, next := make([]int32, len(t.Nodes)), make([]int32, len(t.Nodes)) // children of a node, 0 after the last one
	for i := len(t.Nodes) - 1; i > Root; i-- {
		parent := t.Nodes[i].Parent
		first[parent], next[i] = int32(i), first[parent] // #nosec G115 -- as the frames
	}
	// The walk takes as long as there are nodes, however deep they are.
	calls := make([]int32, len(t.Frames)) // of each function on the path to the node at
	for at := int32(Root); at >= Root; {
		frame := t.Nodes[at].Frame
		functions[frame].self.add(t.Nodes[at].Self)
		if calls[frame] == 0 {
			functions[frame].total.add(totals[at])
		}
		if calls[frame]++; first[at] != 0 {
			at = first[at]
			continue
		}
		for ; at >= Root; at = t.Nodes[at].Parent {
			calls[t.Nodes[at].Frame]--
			if next[at] != 0 {
				at = next[at]
				break
			}
		}
	}
	return functions
}

// valueOfSample returns the value of one sample, 0 if it is not known.
func valueOfSample(p *profile.Profile, t *profile.ValueType) int64 {
	switch {
	case t.Type == "samples":
		return 1
	case p.PeriodType != nil && p.PeriodType.Unit == t.Unit:
		return p.Period
	}
	return 0
}

// table returns the functions with the largest values of their own, or with the largest changes.
func table(t *Tree, functions []function, scales []scale, difference bool) (rows []Function) {
	order := make([]int, 0, len(functions))
	for i := 1; i < len(functions); i++ {
		order = append(order, i)
	}
	key := func(i int) float64 {
		if total := functions[i].total; difference {
			return math.Abs(float64(total[0]) - float64(total[1]))
		}
		return functions[i].self.weight()
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(b), key(a)) })
	all := functions[Root].total
	for _, i := range order[:min(len(order), topFunctions)] {
		row := totalRow(functions[i].total, all, scales)
		row.Name, row.Place = t.Frames[i].Name, t.Frames[i].place()
		self := functions[i].self.weight()
		row.Self, row.SelfShare = quantity(self, scales), percentage(self, all.weight())
		rows = append(rows, row)
	}
	return rows
}

// totalRow writes the total of a function.
func totalRow(total, all Sides, scales []scale) Function {
	change := float64(total[0]) - float64(total[1])
	row := Function{
		Total: quantity(total.weight(), scales), TotalShare: percentage(total.weight(), all.weight()),
		Before: quantity(float64(total[1]), scales), After: quantity(float64(total[0]), scales),
		Change: quantity(change, scales), Relative: "new",
	}
	if change > 0 {
		row.Change = "+" + row.Change
	}
	if total[1] > 0 {
		row.Relative = percentage(change, float64(total[1]))
	}
	return row
}
