// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Function is an entry of the function table. Its names are indices into the string
// table.
type Function struct {
	Name, SystemName, Filename int32
	StartLine                  int64
}

// AppendKey appends the key of f.
func (f *Function) AppendKey(key []byte) []byte {
	key = appendIndex(key, f.Name)
	key = appendIndex(key, f.SystemName)
	key = appendIndex(key, f.Filename)
	return appendInt(key, f.StartLine)
}

// Decode reads a key.
func (f *Function) Decode(key []byte) {
	r := reader{key: key}
	f.Name, f.SystemName, f.Filename = r.index(), r.index(), r.index()
	f.StartLine = r.int()
}

// Write fills dst, which is empty.
func (f *Function) Write(dst pprofile.Function) {
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

// AppendKey appends the key of m.
func (m *Mapping) AppendKey(key []byte) []byte {
	key = appendUint(key, m.MemoryStart)
	key = appendUint(key, m.MemoryLimit)
	key = appendUint(key, m.FileOffset)
	key = appendIndex(key, m.Filename)
	return appendIndices(key, m.Attributes)
}

// Decode reads a key. It reuses the memory of m.Attributes.
func (m *Mapping) Decode(key []byte) {
	r := reader{key: key}
	m.MemoryStart, m.MemoryLimit, m.FileOffset = r.uint(), r.uint(), r.uint()
	m.Filename = r.index()
	m.Attributes = r.indices(m.Attributes[:0])
}

// Write fills dst, which is empty.
func (m *Mapping) Write(dst pprofile.Mapping) {
	dst.SetMemoryStart(m.MemoryStart)
	dst.SetMemoryLimit(m.MemoryLimit)
	dst.SetFileOffset(m.FileOffset)
	dst.SetFilenameStrindex(m.Filename)
	if len(m.Attributes) > 0 {
		dst.AttributeIndices().FromRaw(m.Attributes)
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

// AppendKey appends the key of l.
func (l *Location) AppendKey(key []byte) []byte {
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

// Decode reads a key. It reuses the memory of l.Lines and l.Attributes.
func (l *Location) Decode(key []byte) {
	r := reader{key: key}
	l.Lines = l.Lines[:0]
	for range r.uint() {
		l.Lines = append(l.Lines, Line{Function: r.index(), Line: r.int(), Column: r.int()})
	}
	l.Mapping, l.Address = r.index(), r.uint()
	l.Attributes = r.indices(l.Attributes[:0])
}

// Write fills dst, which is empty.
func (l *Location) Write(dst pprofile.Location) {
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
		dst.AttributeIndices().FromRaw(l.Attributes)
	}
}

// Attribute is an entry of the attribute table.
type Attribute struct {
	Key, Unit int32 // of the string table
	Value     Value
}

// AppendKey appends the key of a.
func (a *Attribute) AppendKey(key []byte) []byte {
	return append(appendIndex(appendIndex(key, a.Key), a.Unit), a.Value...)
}

// Decode reads a key, of which a.Value becomes a part.
func (a *Attribute) Decode(key []byte) {
	r := reader{key: key}
	a.Key, a.Unit = r.index(), r.index()
	a.Value = r.rest()
}

// Write fills dst, which is empty.
func (a *Attribute) Write(dst pprofile.KeyValueAndUnit) {
	dst.SetKeyStrindex(a.Key)
	dst.SetUnitStrindex(a.Unit)
	a.Value.Write(dst.Value())
}

// appendLink appends the key of a link.
func appendLink(key []byte, traceID [16]byte, spanID [8]byte) []byte {
	return append(append(key, traceID[:]...), spanID[:]...)
}

// writeLink fills dst with the link of this key.
func writeLink(dst pprofile.Link, key []byte) {
	dst.SetTraceID([16]byte(key[:16]))
	dst.SetSpanID([8]byte(key[16:]))
}

// writeStack fills dst, which is empty.
func writeStack(dst pprofile.Stack, locations []int32) {
	if len(locations) > 0 {
		dst.LocationIndices().FromRaw(locations)
	}
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

// lengthsOf returns the numbers of entries of d. Sets are by attribute, as in a Remap.
func lengthsOf(d pprofile.ProfilesDictionary) perTable[int] {
	return perTable[int]{
		strings: d.StringTable().Len(), mappings: d.MappingTable().Len(), locations: d.LocationTable().Len(),
		functions: d.FunctionTable().Len(), links: d.LinkTable().Len(), attributes: d.AttributeTable().Len(),
		stacks: d.StackTable().Len(), sets: d.AttributeTable().Len(),
	}
}
