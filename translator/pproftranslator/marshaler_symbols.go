// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"strings"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// stack returns the locations of stack i, leaf first.
func (c *pprofConverter) stack(i int32) ([]*profile.Location, error) {
	if c.remap.Stack(i) == 0 {
		return nil, nil
	}
	indices := c.from.StackTable().At(int(i)).LocationIndices()
	stack := make([]*profile.Location, 0, indices.Len())
	for _, l := range indices.All() {
		location, err := c.location(l)
		if err != nil {
			return nil, fmt.Errorf("location_table[%d]: %w", l, err)
		}
		stack = append(stack, location)
	}
	return stack, nil
}

// location returns location i of the pprof. The zero value is an empty one, as a
// stack cannot leave a place out.
func (c *pprofConverter) location(i int32) (*profile.Location, error) {
	index := c.remap.Location(i)
	number, isNew := c.locations.number(index)
	if !isNew {
		return c.pprof.Location[number], nil
	}
	l := &profile.Location{ID: uint64(number) + 1}
	c.pprof.Location = append(c.pprof.Location, l)
	if index == 0 {
		return l, nil
	}
	from := c.from.LocationTable().At(int(i))
	if _, err := c.attributeSet(from.AttributeIndices()); err != nil {
		return nil, err
	}
	mapping, err := c.mapping(from.MappingIndex())
	if err != nil {
		return nil, fmt.Errorf("mapping_table[%d]: %w", from.MappingIndex(), err)
	}
	l.Mapping, l.Address = mapping, from.Address()
	if n := from.Lines().Len(); n > 0 {
		l.Line = make([]profile.Line, 0, n)
	}
	for _, line := range from.Lines().All() {
		l.Line = append(l.Line, profile.Line{
			Function: c.function(line.FunctionIndex()), Line: line.Line(), Column: line.Column(),
		})
	}
	for _, a := range from.AttributeIndices().All() {
		if key, v, ok := c.attribute(a); ok && key == attrLocationIsFolded {
			l.IsFolded = v.Bool()
		}
	}
	return l, nil
}

// function returns function i of the pprof. The zero value is an empty one, as
// each line must have a function.
func (c *pprofConverter) function(i int32) *profile.Function {
	index := c.remap.Function(i)
	number, isNew := c.functions.number(index)
	if !isNew {
		return c.pprof.Function[number]
	}
	f := &profile.Function{ID: uint64(number) + 1}
	c.pprof.Function = append(c.pprof.Function, f)
	if index == 0 {
		return f
	}
	from := c.from.FunctionTable().At(int(i))
	f.Name = c.text(from.NameStrindex())
	f.SystemName = c.text(from.SystemNameStrindex())
	f.Filename = c.text(from.FilenameStrindex())
	f.StartLine = from.StartLine()
	return f
}

// kernelPrefix begins the file of a Linux kernel mapping; what follows it is the
// relocation symbol, which google/pprof keeps in a field of its own.
const kernelPrefix = "[kernel.kallsyms]"

// mapping returns mapping i of the pprof; nil for the zero value.
func (c *pprofConverter) mapping(i int32) (*profile.Mapping, error) {
	index := c.remap.Mapping(i)
	if index == 0 {
		return nil, nil
	}
	number, isNew := c.mappings.number(index)
	if !isNew {
		return c.pprof.Mapping[number], nil
	}
	from := c.from.MappingTable().At(int(i))
	if _, err := c.attributeSet(from.AttributeIndices()); err != nil {
		return nil, err
	}
	m := &profile.Mapping{
		ID:     uint64(number) + 1,
		Start:  from.MemoryStart(),
		Limit:  from.MemoryLimit(),
		Offset: from.FileOffset(),
		File:   c.text(from.FilenameStrindex()),
	}
	c.pprof.Mapping = append(c.pprof.Mapping, m)
	if symbol, ok := strings.CutPrefix(m.File, kernelPrefix); ok {
		m.KernelRelocationSymbol = symbol
	}
	var gnu, golang, hash string
	for _, a := range from.AttributeIndices().All() {
		key, v, ok := c.attribute(a)
		if !ok {
			continue
		}
		switch key {
		case attrBuildIDGNU:
			gnu = validText(v.AsString())
		case attrBuildIDGo:
			golang = validText(v.AsString())
		case attrBuildIDHTLHash:
			hash = validText(v.AsString())
		case attrHasFunctions:
			m.HasFunctions = v.Bool()
		case attrHasFilenames:
			m.HasFilenames = v.Bool()
		case attrHasLineNumbers:
			m.HasLineNumbers = v.Bool()
		case attrHasInlineFrames:
			m.HasInlineFrames = v.Bool()
		}
	}
	m.BuildID = orDefault(gnu, orDefault(golang, hash))
	return m, nil
}

// textOf returns the text of the attribute with that key; "" if there is none.
func textOf(attributes pcommon.Map, key string) string {
	v, ok := attributes.Get(key)
	if !ok {
		return ""
	}
	return validText(v.AsString())
}

// baseOfFile returns the last part of a file name of Unix or Windows, without
// the mark that Linux puts on a deleted one.
func baseOfFile(file string) string {
	file = strings.TrimSpace(strings.ReplaceAll(file, "(deleted)", ""))
	return file[strings.LastIndexAny(file, `/\`)+1:]
}

// moveToFront puts the first mapping of the executable before the others, whose
// order stays, and numbers them all again.
func moveToFront(mappings []*profile.Mapping, executable string) {
	if executable == "" {
		return
	}
	for i, m := range mappings {
		if baseOfFile(m.File) == executable {
			copy(mappings[1:i+1], mappings[:i])
			mappings[0] = m
			break
		}
	}
	for i, m := range mappings {
		m.ID = uint64(i) + 1
	}
}
