// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "go.opentelemetry.io/collector/pdata/pprofile"

// Mirror makes each entry go into dst, which must be empty, at the moment it is
// added, in that order: those that are there now, and those to come until Reset.
// Strings go there with WriteStrings, at the end.
func (t *Tables) Mirror(dst pprofile.ProfilesDictionary) {
	t.mirror = &dst
	var m Mapping
	for i := range int32(t.mappings.len()) {
		m.decode(t.mappings.key(i))
		m.write(dst.MappingTable().AppendEmpty())
	}
	var l Location
	for i := range int32(t.locations.len()) {
		l.decode(t.locations.key(i))
		l.write(dst.LocationTable().AppendEmpty())
	}
	var f Function
	for i := range int32(t.functions.len()) {
		f.decode(t.functions.key(i))
		f.write(dst.FunctionTable().AppendEmpty())
	}
	for i := range int32(t.links.len()) {
		writeLink(dst.LinkTable().AppendEmpty(), t.links.key(i))
	}
	var a attribute
	for i := range int32(t.attributes.len()) {
		a.decode(t.attributes.key(i))
		a.write(dst.AttributeTable().AppendEmpty())
	}
	for i := range int32(t.stacks.len()) {
		writeStack(dst.StackTable().AppendEmpty(), t.stacks.stack(i))
	}
}

// WriteStrings fills the string table of dst, which must be empty. One allocation
// holds all of them.
func (t *Tables) WriteStrings(dst pprofile.ProfilesDictionary) {
	writeStrings(dst, t.strings.keys, t.strings.ends)
}

func writeStrings(dst pprofile.ProfilesDictionary, keys []byte, ends []uint32) {
	all := string(keys)
	table := dst.StringTable()
	table.EnsureCapacity(len(ends))
	start := uint32(0)
	for _, end := range ends {
		table.Append(all[start:end])
		start = end
	}
}

func (m *Mapping) write(dst pprofile.Mapping) {
	dst.SetMemoryStart(m.MemoryStart)
	dst.SetMemoryLimit(m.MemoryLimit)
	dst.SetFileOffset(m.FileOffset)
	dst.SetFilenameStrindex(m.Filename)
	if len(m.Attributes) > 0 {
		dst.AttributeIndices().FromRaw(m.Attributes)
	}
}

func (l *Location) write(dst pprofile.Location) {
	dst.SetMappingIndex(l.Mapping)
	dst.SetAddress(l.Address)
	if len(l.Lines) > 0 {
		lines := dst.Lines()
		if len(l.Lines) > 1 {
			lines.EnsureCapacity(len(l.Lines))
		}
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

func (f *Function) write(dst pprofile.Function) {
	dst.SetNameStrindex(f.Name)
	dst.SetSystemNameStrindex(f.SystemName)
	dst.SetFilenameStrindex(f.Filename)
	dst.SetStartLine(f.StartLine)
}

func writeLink(dst pprofile.Link, key []byte) {
	dst.SetTraceID([16]byte(key[:16]))
	dst.SetSpanID([8]byte(key[16:]))
}

func (a attribute) write(dst pprofile.KeyValueAndUnit) {
	dst.SetKeyStrindex(a.key)
	dst.SetUnitStrindex(a.unit)
	r := reader{a.value}
	writeValue(&r, dst.Value())
}

func writeStack(dst pprofile.Stack, locations []int32) {
	if len(locations) > 0 {
		dst.LocationIndices().FromRaw(locations)
	}
}
