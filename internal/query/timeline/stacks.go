// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// Stacks is the call tree of the samples of some cells, and of the rest of the grid as the other side.
type Stacks struct {
	*webui.Tree

	Grid  Grid
	Cells Cells
	// Sums and Counts are those of all samples of each side.
	Sums   webui.Sides
	Counts [2]int64

	builder treeBuilder
	covers  []int32 // of each cell, how many Profiles more than of the one before have a part of its time
}

// NewStacks returns stacks without samples, whose tree may take limit bytes.
func NewStacks(g Grid, c Cells, limit int64) *Stacks {
	s := &Stacks{Tree: webui.NewTree("(all)"), Grid: g, Cells: c}
	s.builder, s.covers = treeBuilder{tree: s.Tree, limit: limit}, make([]int32, g.Columns*g.Rows+1)
	return s
}

// Time returns how long the cells and the rest of the grid are in nanoseconds, without cells of which no Profile with samples has a part.
func (s *Stacks) Time() (sides [2]uint64) {
	covering, cell := int32(0), s.Grid.Column/uint64(max(1, s.Grid.Rows))
	for i, more := range s.covers[:len(s.covers)-1] {
		if covering += more; covering == 0 {
			continue
		}
		side := 1
		if s.Cells.has(i/s.Grid.Rows, i%s.Grid.Rows) {
			side = 0
		}
		sides[side] += cell
	}
	return sides
}

// cover marks the cells of an interval.
func (s *Stacks) cover(from, to uint64) {
	end := s.Grid.From + uint64(s.Grid.Columns)*s.Grid.Column
	from, to = max(from, s.Grid.From), min(max(from+1, to), end)
	if from >= to {
		return
	}
	column, row, _ := s.Grid.cell(from)
	lastColumn, lastRow, _ := s.Grid.cell(to - 1)
	s.covers[column*s.Grid.Rows+row]++
	s.covers[lastColumn*s.Grid.Rows+lastRow+1]--
}

// Add adds the samples of a payload. The error says that the tree takes too much memory.
func (s *Stacks) Add(ctx context.Context, pd pprofile.Profiles) error {
	s.builder.start(pd)
	var last *profile
	_, err := each(ctx, pd, func(of *sample) error {
		if of.profile != last {
			last = of.profile
			s.cover(last.from, last.to)
		}
		var sides webui.Sides
		var counts [2]int64
		for k := range of.timestamps.Len() {
			column, row, ok := s.Grid.cell(of.timestamps.At(k))
			if !ok {
				continue
			}
			side := 1
			if s.Cells.has(column, row) {
				side = 0
			}
			sides[side] = sampletypes.AddSaturated(sides[side], of.value(k))
			counts[side]++
			if of.to == 0 { // it does not say what it covers
				s.cover(of.timestamps.At(k), 0)
			}
		}
		if counts == [2]int64{} {
			return nil
		}
		node, err := s.builder.node(of.StackIndex())
		if err != nil {
			return err
		}
		for side, value := range sides {
			s.Nodes[node].Self[side] = sampletypes.AddSaturated(s.Nodes[node].Self[side], value)
			s.Sums[side] = sampletypes.AddSaturated(s.Sums[side], value)
			s.Counts[side] += counts[side]
		}
		return nil
	})
	return err
}

// treeBuilder adds the stacks of payloads to a tree.
type treeBuilder struct {
	tree  *webui.Tree
	limit int64 // of the memory of the tree in bytes
	text  int64 // length of the names of its frames

	dict   pprofile.ProfilesDictionary
	nodes  map[int32]int32 // by index of the stack
	frames [][]int32       // of locations, by index: callers first
}

const (
	// nodeSize and frameSize are the memory of a node and a frame in bytes, with their places in maps and in a response.
	nodeSize  = 120
	frameSize = 250
)

// start starts with another payload.
func (b *treeBuilder) start(pd pprofile.Profiles) {
	b.dict = pd.Dictionary()
	b.nodes, b.frames = map[int32]int32{}, make([][]int32, b.dict.LocationTable().Len())
}

// node returns the node of the last frame of a stack.
func (b *treeBuilder) node(stack int32) (int32, error) {
	if node, known := b.nodes[stack]; known {
		return node, nil
	}
	at := int32(webui.Root)
	locations := b.dict.StackTable().At(int(stack)).LocationIndices()
	for i := locations.Len() - 1; i >= 0; i-- {
		for _, frame := range b.framesOf(locations.At(i)) {
			at = b.tree.Child(at, frame)
		}
		if size := int64(len(b.tree.Nodes))*nodeSize + int64(len(b.tree.Frames))*frameSize + b.text; size > b.limit {
			return 0, fmt.Errorf("the stacks take more than %d MiB of memory, a part of max_memory: select less, by service, type or time", b.limit>>20)
		}
	}
	b.nodes[stack] = at
	return at, nil
}

// framesOf returns the frames of a location, callers first.
func (b *treeBuilder) framesOf(location int32) []int32 {
	if made := b.frames[location]; made != nil {
		return made
	}
	l := b.dict.LocationTable().At(int(location))
	text := func(i int32) string { return validText(b.dict, i) }
	var made []int32
	for i := l.Lines().Len() - 1; i >= 0; i-- {
		function := b.dict.FunctionTable().At(int(l.Lines().At(i).FunctionIndex()))
		f := webui.Frame{
			Name: sampletypes.FunctionName(text(function.NameStrindex()), text(function.SystemNameStrindex())),
			File: text(function.FilenameStrindex()), Line: function.StartLine(),
		}
		if f.Name == "" {
			f.Name = addressOf(b.dict, l)
		}
		made = append(made, b.intern(f))
	}
	if made == nil {
		made = append(made, b.intern(webui.Frame{Name: addressOf(b.dict, l)}))
	}
	b.frames[location] = made
	return made
}

func (b *treeBuilder) intern(f webui.Frame) int32 {
	before := len(b.tree.Frames)
	i := b.tree.Intern(f)
	if len(b.tree.Frames) > before {
		b.text += 2 * int64(len(f.Name)+len(f.File))
	}
	return i
}

// addressOf names a location without a function.
func addressOf(dict pprofile.ProfilesDictionary, l pprofile.Location) string {
	file := ""
	if i := int(l.MappingIndex()); i > 0 && i < dict.MappingTable().Len() {
		file = validText(dict, dict.MappingTable().At(i).FilenameStrindex())
	}
	return sampletypes.AddressName(file, l.Address())
}
