// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Function is an entry of the function table. Its names are indices into the string
// table.
type Function struct {
	Name, SystemName, Filename int32
	StartLine                  int64
}

func (f *Function) appendKey(key []byte) []byte {
	key = appendIndex(key, f.Name)
	key = appendIndex(key, f.SystemName)
	key = appendIndex(key, f.Filename)
	return appendInt(key, f.StartLine)
}

func (f *Function) decode(key []byte) {
	r := reader{key}
	f.Name, f.SystemName, f.Filename = r.index(), r.index(), r.index()
	f.StartLine = r.int()
}

func (f *Function) hash() uint32 {
	h := fold(0, uint64(uint32(f.Name))<<32|uint64(uint32(f.SystemName)), uint64(uint32(f.Filename)))
	return uint32(fold(h, uint64(f.StartLine), 0))
}

func (f *Function) equals(other pprofile.Function) bool {
	return f.Name == other.NameStrindex() && f.SystemName == other.SystemNameStrindex() &&
		f.Filename == other.FilenameStrindex() && f.StartLine == other.StartLine()
}

func (f *Function) write(dst pprofile.Function) {
	dst.SetNameStrindex(f.Name)
	dst.SetSystemNameStrindex(f.SystemName)
	dst.SetFilenameStrindex(f.Filename)
	dst.SetStartLine(f.StartLine)
}

// Mapping is an entry of the mapping table. Filename is an index into the string
// table, Attributes are indices into the attribute table, in any order.
type Mapping struct {
	MemoryStart, MemoryLimit, FileOffset uint64
	Filename                             int32
	Attributes                           []int32
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

func (m *Mapping) write(dst pprofile.Mapping) {
	dst.SetMemoryStart(m.MemoryStart)
	dst.SetMemoryLimit(m.MemoryLimit)
	dst.SetFileOffset(m.FileOffset)
	dst.SetFilenameStrindex(m.Filename)
	if len(m.Attributes) > 0 {
		setIndices(dst.AttributeIndices(), m.Attributes)
	}
}

// Line is one source position of a location. Function is an index into the function
// table.
type Line struct {
	Function     int32
	Line, Column int64
}

// Location is an entry of the location table. Mapping is an index into the mapping
// table, Attributes are indices into the attribute table, in any order.
type Location struct {
	Mapping    int32
	Address    uint64
	Lines      []Line
	Attributes []int32
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

// hash marks columns and attributes, so that no other location has the same sequence.
func (l *Location) hash() uint32 {
	const column, attribute = 1 << 32, 2 << 32
	h := fold(0, l.Address, uint64(uint32(l.Mapping)))
	for _, line := range l.Lines {
		h = fold(h, uint64(line.Line), uint64(uint32(line.Function)))
		if line.Column != 0 {
			h = fold(h, uint64(line.Column), column)
		}
	}
	for _, a := range l.Attributes {
		h = fold(h, uint64(uint32(a)), attribute)
	}
	return uint32(fold(h, 0, 0))
}

func (l *Location) equals(other pprofile.Location) bool {
	lines := other.Lines()
	if l.Address != other.Address() || l.Mapping != other.MappingIndex() || len(l.Lines) != lines.Len() {
		return false
	}
	for i, line := range l.Lines {
		to := lines.At(i)
		if line.Function != to.FunctionIndex() || line.Line != to.Line() || line.Column != to.Column() {
			return false
		}
	}
	return equalIndices(other.AttributeIndices(), l.Attributes)
}

// primary is the function of the first line.
func (l *Location) primary() int32 {
	if len(l.Lines) == 0 {
		return noPrimary
	}
	return l.Lines[0].Function
}

func (l *Location) write(dst pprofile.Location) {
	dst.SetMappingIndex(l.Mapping)
	dst.SetAddress(l.Address)
	if len(l.Lines) > 0 {
		lines := dst.Lines()
		lines.EnsureCapacity(len(l.Lines)) // faster than growing, for one line too
		for _, from := range l.Lines {
			line := lines.AppendEmpty()
			line.SetFunctionIndex(from.Function)
			line.SetLine(from.Line)
			line.SetColumn(from.Column)
		}
	}
	if len(l.Attributes) > 0 {
		setIndices(dst.AttributeIndices(), l.Attributes)
	}
}

// attribute is an entry of the attribute table.
type attribute struct {
	key, unit int32
	value     Value
}

func (a *attribute) appendKey(key []byte) []byte {
	return append(appendIndex(appendIndex(key, a.key), a.unit), a.value...)
}

func (a *attribute) decode(key []byte) {
	r := reader{key}
	a.key, a.unit = r.index(), r.index()
	a.value = r.key
}

func (a *attribute) write(dst pprofile.KeyValueAndUnit) {
	dst.SetKeyStrindex(a.key)
	dst.SetUnitStrindex(a.unit)
	r := reader{a.value}
	writeValue(&r, dst.Value())
}

func appendLink(key []byte, traceID [16]byte, spanID [8]byte) []byte {
	return append(append(key, traceID[:]...), spanID[:]...)
}

func writeLink(dst pprofile.Link, key []byte) {
	dst.SetTraceID([16]byte(key[:16]))
	dst.SetSpanID([8]byte(key[16:]))
}

func writeStack(dst pprofile.Stack, locations []int32) {
	if len(locations) > 0 {
		setIndices(dst.LocationIndices(), locations)
	}
}

// setIndices fills dst, which is empty. FromRaw grows, which is slower.
func setIndices(dst pcommon.Int32Slice, indices []int32) {
	dst.EnsureCapacity(len(indices))
	dst.Append(indices...)
}

func equalIndices(s pcommon.Int32Slice, indices []int32) bool {
	if s.Len() != len(indices) {
		return false
	}
	for i, index := range indices {
		if s.At(i) != index {
			return false
		}
	}
	return true
}

// writeStrings fills the string table of dst with the parts of content. One allocation
// holds all of them.
func writeStrings(dst pprofile.ProfilesDictionary, content []byte, ends []uint32) {
	all := string(content)
	table := dst.StringTable()
	table.EnsureCapacity(len(ends))
	start := uint32(0)
	for _, end := range ends {
		table.Append(all[start:end])
		start = end
	}
}

// set sorts indices in place and removes duplicates.
func set(indices []int32) []int32 {
	if len(indices) < 2 {
		return indices
	}
	if !slices.IsSorted(indices) {
		slices.Sort(indices)
	}
	return slices.Compact(indices)
}
