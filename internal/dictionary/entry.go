// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "slices"

// Function is an entry of the function table. Its name fields are indices into
// the string table.
type Function struct {
	Name, SystemName, Filename int32
	StartLine                  int64
}

// Mapping is an entry of the mapping table. Filename is an index into the string
// table, Attributes are indices into the attribute table, in any order.
type Mapping struct {
	MemoryStart, MemoryLimit, FileOffset uint64
	Filename                             int32
	Attributes                           []int32
}

// Line is one source position of a location. Function is an index into the
// function table.
type Line struct {
	Function     int32
	Line, Column int64
}

// Location is an entry of the location table. Mapping is an index into the
// mapping table, Attributes are indices into the attribute table, in any order.
type Location struct {
	Mapping    int32
	Address    uint64
	Lines      []Line
	Attributes []int32
}

func (f *Function) appendKey(key []byte) []byte {
	key = appendIndex(key, f.Name)
	key = appendIndex(key, f.SystemName)
	key = appendIndex(key, f.Filename)
	return appendInt(key, f.StartLine)
}

// functionPart is the name: few functions share one.
func functionPart(key []byte) int32 {
	r := reader{key}
	return r.index()
}

func (f *Function) decode(key []byte) {
	r := reader{key}
	f.Name, f.SystemName, f.Filename = r.index(), r.index(), r.index()
	f.StartLine = r.int()
}

func (m *Mapping) appendKey(key []byte) []byte {
	key = appendUint(key, m.MemoryStart)
	key = appendUint(key, m.MemoryLimit)
	key = appendUint(key, m.FileOffset)
	key = appendIndex(key, m.Filename)
	return appendIndices(key, m.Attributes)
}

// decode reuses the memory of m.Attributes.
func (m *Mapping) decode(key []byte) {
	r := reader{key}
	m.MemoryStart, m.MemoryLimit, m.FileOffset = r.uint(), r.uint(), r.uint()
	m.Filename = r.index()
	m.Attributes = r.indices(m.Attributes[:0])
}

func (l *Location) appendKey(key []byte) []byte {
	key = appendUint(key, uint64(len(l.Lines)))
	for _, line := range l.Lines {
		key = appendIndex(key, line.Function)
		key = appendInt(key, line.Line)
		key = appendInt(key, line.Column)
	}
	key = appendIndex(key, l.Mapping)
	key = appendUint(key, l.Address)
	return appendIndices(key, l.Attributes)
}

// part is the function of the first line, if there is one.
func (l *Location) part() int32 {
	if len(l.Lines) == 0 {
		return noPart
	}
	return l.Lines[0].Function
}

// locationPart is the part of a location by its key.
func locationPart(key []byte) int32 {
	r := reader{key}
	if r.uint() == 0 {
		return noPart
	}
	return r.index()
}

// decode reuses the memory of l.Lines and l.Attributes.
func (l *Location) decode(key []byte) {
	r := reader{key}
	l.Lines = l.Lines[:0]
	for range r.uint() {
		l.Lines = append(l.Lines, Line{Function: r.index(), Line: r.int(), Column: r.int()})
	}
	l.Mapping, l.Address = r.index(), r.uint()
	l.Attributes = r.indices(l.Attributes[:0])
}

// attribute is an entry of the attribute table; value is as appendValue made it.
type attribute struct {
	key, unit int32
	value     []byte
}

func (a *attribute) decode(key []byte) {
	r := reader{key}
	a.key, a.unit = r.index(), r.index()
	a.value = r.key
}

// set sorts indices in place and drops repeats.
func set(indices []int32) []int32 {
	if len(indices) < 2 {
		return indices
	}
	slices.Sort(indices)
	return slices.Compact(indices)
}
