// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// stack returns the locations of stack i, leaf first.
func (b *builder) stack(i int32) ([]*profile.Location, error) {
	if b.remap.Stack(i) == 0 {
		return nil, nil
	}
	indices := b.from.StackTable().At(int(i)).LocationIndices()
	stack := make([]*profile.Location, 0, indices.Len())
	for _, l := range indices.All() {
		location, err := b.location(l)
		if err != nil {
			return nil, fmt.Errorf("location_table[%d]: %w", l, err)
		}
		stack = append(stack, location)
	}
	return stack, nil
}

// location returns location i. The zero value becomes an empty location, as a stack
// cannot leave one out.
func (b *builder) location(i int32) (*profile.Location, error) {
	value := b.remap.Location(i)
	if l, ok := b.locations[value]; ok {
		return l, nil
	}
	l := &profile.Location{ID: uint64(len(b.pprof.Location)) + 1}
	b.pprof.Location = append(b.pprof.Location, l)
	b.locations[value] = l
	if value == 0 {
		return l, nil
	}
	from := b.from.LocationTable().At(int(i))
	err := b.attributes(from.AttributeIndices(), func(key string, v pcommon.Value) {
		if key == LocationIsFolded {
			l.IsFolded = v.Bool()
		}
	})
	if err != nil {
		return nil, err
	}
	if l.Mapping, err = b.mapping(from.MappingIndex()); err != nil {
		return nil, fmt.Errorf("mapping_table[%d]: %w", from.MappingIndex(), err)
	}
	l.Address = from.Address()
	l.Line = slices.Grow(l.Line, from.Lines().Len())
	for _, line := range from.Lines().All() {
		l.Line = append(l.Line, profile.Line{
			Function: b.function(line.FunctionIndex()), Line: line.Line(), Column: line.Column(),
		})
	}
	return l, nil
}

// function returns function i. The zero value becomes an empty function, as each line
// must have one.
func (b *builder) function(i int32) *profile.Function {
	value := b.remap.Function(i)
	if f, ok := b.functions[value]; ok {
		return f
	}
	f := &profile.Function{ID: uint64(len(b.pprof.Function)) + 1}
	b.pprof.Function = append(b.pprof.Function, f)
	b.functions[value] = f
	if value != 0 {
		from := b.from.FunctionTable().At(int(i))
		f.Name = b.text(from.NameStrindex())
		f.SystemName = b.text(from.SystemNameStrindex())
		f.Filename = b.text(from.FilenameStrindex())
		f.StartLine = from.StartLine()
	}
	return f
}

// kernelPrefix starts the file name of a Linux kernel mapping. The relocation symbol
// follows it, which google/pprof keeps in a field of its own.
const kernelPrefix = "[kernel.kallsyms]"

// mapping returns mapping i; nil for the zero value.
func (b *builder) mapping(i int32) (*profile.Mapping, error) {
	value := b.remap.Mapping(i)
	if m, ok := b.mappings[value]; ok || value == 0 {
		return m, nil
	}
	from := b.from.MappingTable().At(int(i))
	m := &profile.Mapping{
		ID:     uint64(len(b.pprof.Mapping)) + 1,
		Start:  from.MemoryStart(),
		Limit:  from.MemoryLimit(),
		Offset: from.FileOffset(),
		File:   b.text(from.FilenameStrindex()),
	}
	if symbol, ok := strings.CutPrefix(m.File, kernelPrefix); ok {
		m.KernelRelocationSymbol = symbol
	}
	flags := [...]*bool{&m.HasFunctions, &m.HasFilenames, &m.HasLineNumbers, &m.HasInlineFrames}
	var ids [len(BuildIDs)]string
	err := b.attributes(from.AttributeIndices(), func(key string, v pcommon.Value) {
		if id := slices.Index(BuildIDs[:], key); id >= 0 {
			ids[id] = textOf(v)
		} else if flag := slices.Index(sampletypes.MappingFlags[:], key); flag >= 0 {
			*flags[flag] = v.Bool()
		}
	})
	if err != nil {
		return nil, err
	}
	m.BuildID = cmp.Or(ids[:]...)
	b.pprof.Mapping = append(b.pprof.Mapping, m)
	b.mappings[value] = m
	return m, nil
}

// moveToFront puts the first mapping of the executable before the others, whose order
// stays, and renumbers them.
func moveToFront(mappings []*profile.Mapping, executable string) {
	at := slices.IndexFunc(mappings, func(m *profile.Mapping) bool { return BaseName(m.File) == executable })
	if executable == "" || at < 0 {
		return
	}
	m := mappings[at]
	copy(mappings[1:at+1], mappings[:at])
	mappings[0] = m
	for i, m := range mappings {
		m.ID = uint64(i) + 1
	}
}
