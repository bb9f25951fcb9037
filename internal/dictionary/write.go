// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "go.opentelemetry.io/collector/pdata/pprofile"

// Write fills dst, which must be empty, with all entries in the order in which
// they were added.
func (t *Tables) Write(dst pprofile.ProfilesDictionary) {
	var w writer
	w.strings(dst, t, t.strings.len(), nil)

	mappings := dst.MappingTable()
	mappings.EnsureCapacity(t.mappings.len())
	for i := range t.mappings.len() {
		w.mapping.decode(t.mappings.key(int32(i)))
		w.writeMapping(mappings.AppendEmpty())
	}
	locations := dst.LocationTable()
	locations.EnsureCapacity(t.locations.len())
	for i := range t.locations.len() {
		w.location.decode(t.locations.key(int32(i)))
		w.writeLocation(locations.AppendEmpty())
	}
	functions := dst.FunctionTable()
	functions.EnsureCapacity(t.functions.len())
	for i := range t.functions.len() {
		w.function.decode(t.functions.key(int32(i)))
		w.writeFunction(functions.AppendEmpty())
	}
	links := dst.LinkTable()
	links.EnsureCapacity(t.links.len())
	for i := range t.links.len() {
		writeLink(links.AppendEmpty(), t.links.key(int32(i)))
	}
	attributes := dst.AttributeTable()
	attributes.EnsureCapacity(t.attributes.len())
	for i := range t.attributes.len() {
		w.attribute.decode(t.attributes.key(int32(i)))
		w.writeAttribute(attributes.AppendEmpty())
	}
	stacks := dst.StackTable()
	stacks.EnsureCapacity(t.stacks.len())
	for i := range t.stacks.len() {
		r := reader{t.stacks.key(int32(i))}
		w.stack = r.indices(w.stack[:0])
		w.writeStack(stacks.AppendEmpty())
	}
}

// writer holds one entry of each table between its decoding and its writing.
type writer struct {
	mapping   Mapping
	location  Location
	function  Function
	attribute attribute
	stack     []int32
}

// strings writes n strings: those numbered in order, or all if order is nil. One
// allocation holds their bytes.
func (w *writer) strings(dst pprofile.ProfilesDictionary, t *Tables, n int, order []int32) {
	var all string
	ends := t.strings.ends
	if order == nil {
		all = string(t.strings.keys)
	} else {
		size := 0
		for _, i := range order {
			size += len(t.strings.key(i))
		}
		keys := make([]byte, 0, size)
		ends = make([]uint32, 0, n)
		for _, i := range order {
			keys = append(keys, t.strings.key(i)...)
			ends = append(ends, uint32(len(keys)))
		}
		all = string(keys)
	}
	table := dst.StringTable()
	table.EnsureCapacity(n)
	start := uint32(0)
	for _, end := range ends[:n] {
		table.Append(all[start:end])
		start = end
	}
}

func (w *writer) writeMapping(dst pprofile.Mapping) {
	dst.SetMemoryStart(w.mapping.MemoryStart)
	dst.SetMemoryLimit(w.mapping.MemoryLimit)
	dst.SetFileOffset(w.mapping.FileOffset)
	dst.SetFilenameStrindex(w.mapping.Filename)
	if len(w.mapping.Attributes) > 0 {
		dst.AttributeIndices().FromRaw(w.mapping.Attributes)
	}
}

func (w *writer) writeLocation(dst pprofile.Location) {
	dst.SetMappingIndex(w.location.Mapping)
	dst.SetAddress(w.location.Address)
	lines := dst.Lines()
	lines.EnsureCapacity(len(w.location.Lines))
	for _, l := range w.location.Lines {
		line := lines.AppendEmpty()
		line.SetFunctionIndex(l.Function)
		line.SetLine(l.Line)
		line.SetColumn(l.Column)
	}
	if len(w.location.Attributes) > 0 {
		dst.AttributeIndices().FromRaw(w.location.Attributes)
	}
}

func (w *writer) writeFunction(dst pprofile.Function) {
	dst.SetNameStrindex(w.function.Name)
	dst.SetSystemNameStrindex(w.function.SystemName)
	dst.SetFilenameStrindex(w.function.Filename)
	dst.SetStartLine(w.function.StartLine)
}

func writeLink(dst pprofile.Link, key []byte) {
	dst.SetTraceID([16]byte(key[:16]))
	dst.SetSpanID([8]byte(key[16:]))
}

func (w *writer) writeAttribute(dst pprofile.KeyValueAndUnit) {
	dst.SetKeyStrindex(w.attribute.key)
	dst.SetUnitStrindex(w.attribute.unit)
	r := reader{w.attribute.value}
	writeValue(&r, dst.Value())
}

func (w *writer) writeStack(dst pprofile.Stack) {
	if len(w.stack) > 0 {
		dst.LocationIndices().FromRaw(w.stack)
	}
}
