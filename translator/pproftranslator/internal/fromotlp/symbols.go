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

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/semconv"
)

// symbols makes the locations, functions and mappings of one pprof, each when it is
// first used. The maps are by value.
type symbols struct {
	*Converter
	pprof     *profile.Profile
	locations map[int32]*profile.Location
	functions map[int32]*profile.Function
	mappings  map[int32]*profile.Mapping
}

func newSymbols(c *Converter, p *profile.Profile) symbols {
	return symbols{
		Converter: c, pprof: p,
		locations: map[int32]*profile.Location{}, functions: map[int32]*profile.Function{}, mappings: map[int32]*profile.Mapping{},
	}
}

// stack returns the locations of stack i, leaf first.
func (y *symbols) stack(i int32) ([]*profile.Location, error) {
	if y.remap.Stack(i) == 0 {
		return nil, nil
	}
	indices := y.from.StackTable().At(int(i)).LocationIndices()
	stack := make([]*profile.Location, 0, indices.Len())
	for _, l := range indices.All() {
		location, err := y.location(l)
		if err != nil {
			return nil, fmt.Errorf("location_table[%d]: %w", l, err)
		}
		stack = append(stack, location)
	}
	return stack, nil
}

// location returns location i. The zero value becomes an empty location, as a stack
// cannot leave one out.
func (y *symbols) location(i int32) (*profile.Location, error) {
	value := y.remap.Location(i)
	if l, ok := y.locations[value]; ok {
		return l, nil
	}
	l := &profile.Location{ID: uint64(len(y.pprof.Location)) + 1}
	y.pprof.Location = append(y.pprof.Location, l)
	y.locations[value] = l
	if value == 0 {
		return l, nil
	}
	from := y.from.LocationTable().At(int(i))
	err := y.attributes(from.AttributeIndices(), func(key string, v pcommon.Value) {
		if key == semconv.LocationIsFolded {
			l.IsFolded = v.Bool()
		}
	})
	if err != nil {
		return nil, err
	}
	if l.Mapping, err = y.mapping(from.MappingIndex()); err != nil {
		return nil, fmt.Errorf("mapping_table[%d]: %w", from.MappingIndex(), err)
	}
	l.Address = from.Address()
	l.Line = slices.Grow(l.Line, from.Lines().Len())
	for _, line := range from.Lines().All() {
		l.Line = append(l.Line, profile.Line{
			Function: y.function(line.FunctionIndex()), Line: line.Line(), Column: line.Column(),
		})
	}
	return l, nil
}

// function returns function i. The zero value becomes an empty function, as each line
// must have one.
func (y *symbols) function(i int32) *profile.Function {
	value := y.remap.Function(i)
	if f, ok := y.functions[value]; ok {
		return f
	}
	f := &profile.Function{ID: uint64(len(y.pprof.Function)) + 1}
	y.pprof.Function = append(y.pprof.Function, f)
	y.functions[value] = f
	if value != 0 {
		from := y.from.FunctionTable().At(int(i))
		f.Name = y.text(from.NameStrindex())
		f.SystemName = y.text(from.SystemNameStrindex())
		f.Filename = y.text(from.FilenameStrindex())
		f.StartLine = from.StartLine()
	}
	return f
}

// kernelPrefix starts the file name of a Linux kernel mapping. The relocation symbol
// follows it, which google/pprof keeps in a field of its own.
const kernelPrefix = "[kernel.kallsyms]"

// mapping returns mapping i; nil for the zero value.
func (y *symbols) mapping(i int32) (*profile.Mapping, error) {
	value := y.remap.Mapping(i)
	if m, ok := y.mappings[value]; ok || value == 0 {
		return m, nil
	}
	from := y.from.MappingTable().At(int(i))
	m := &profile.Mapping{
		ID:     uint64(len(y.pprof.Mapping)) + 1,
		Start:  from.MemoryStart(),
		Limit:  from.MemoryLimit(),
		Offset: from.FileOffset(),
		File:   y.text(from.FilenameStrindex()),
	}
	if symbol, ok := strings.CutPrefix(m.File, kernelPrefix); ok {
		m.KernelRelocationSymbol = symbol
	}
	flags := [...]*bool{&m.HasFunctions, &m.HasFilenames, &m.HasLineNumbers, &m.HasInlineFrames}
	var gnu, golang, hash string
	err := y.attributes(from.AttributeIndices(), func(key string, v pcommon.Value) {
		switch key {
		case semconv.BuildIDGNU:
			gnu = dictionary.ValidUTF8(v.AsString())
		case semconv.BuildIDGo:
			golang = dictionary.ValidUTF8(v.AsString())
		case semconv.BuildIDHTLHash:
			hash = dictionary.ValidUTF8(v.AsString())
		default:
			if flag := slices.Index(semconv.MappingFlags[:], key); flag >= 0 {
				*flags[flag] = v.Bool()
			}
		}
	})
	if err != nil {
		return nil, err
	}
	m.BuildID = cmp.Or(gnu, golang, hash)
	y.pprof.Mapping = append(y.pprof.Mapping, m)
	y.mappings[value] = m
	return m, nil
}

// moveToFront puts the first mapping of the executable before the others, whose order
// stays, and renumbers them.
func moveToFront(mappings []*profile.Mapping, executable string) {
	at := slices.IndexFunc(mappings, func(m *profile.Mapping) bool { return semconv.BaseName(m.File) == executable })
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
