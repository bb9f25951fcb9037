// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Size is what a table of a dictionary takes.
type Size struct {
	Entries int
	Bytes   int // of OTLP protobuf
}

// Sizes are those of the seven tables.
type Sizes struct {
	String, Mapping, Location, Function, Link, Attribute, Stack Size
}

// SizesOf measures d, of which it marshals nothing. d must have passed Check.
func SizesOf(d pprofile.ProfilesDictionary) Sizes {
	n := LengthsOf(d)
	s := Sizes{
		String: Size{Entries: n.Strings}, Mapping: Size{Entries: n.Mappings}, Location: Size{Entries: n.Locations},
		Function: Size{Entries: n.Functions}, Link: Size{Entries: n.Links}, Attribute: Size{Entries: n.Attributes},
		Stack: Size{Entries: n.Stacks},
	}
	for _, text := range d.StringTable().All() {
		s.String.Bytes += sizeOfRun(len(text))
	}
	for _, m := range d.MappingTable().All() {
		s.Mapping.Bytes += sizeOfRun(sizeOfField(m.MemoryStart()) + sizeOfField(m.MemoryLimit()) +
			sizeOfField(m.FileOffset()) + sizeOfIndex(m.FilenameStrindex()) + sizeOfIndices(m.AttributeIndices()))
	}
	for _, l := range d.LocationTable().All() {
		size := sizeOfIndex(l.MappingIndex()) + sizeOfField(l.Address()) + sizeOfIndices(l.AttributeIndices())
		lines := l.Lines()
		for i := range lines.Len() {
			line := lines.At(i)
			size += sizeOfRun(sizeOfIndex(line.FunctionIndex()) + sizeOfField(uint64(line.Line())) + sizeOfField(uint64(line.Column())))
		}
		s.Location.Bytes += sizeOfRun(size)
	}
	for _, f := range d.FunctionTable().All() {
		s.Function.Bytes += sizeOfRun(sizeOfIndex(f.NameStrindex()) + sizeOfIndex(f.SystemNameStrindex()) +
			sizeOfIndex(f.FilenameStrindex()) + sizeOfField(uint64(f.StartLine())))
	}
	for _, l := range d.LinkTable().All() {
		size := 2 + 2 // pdata writes ids that are not there as empty ones
		if !l.TraceID().IsEmpty() {
			size += 16
		}
		if !l.SpanID().IsEmpty() {
			size += 8
		}
		s.Link.Bytes += sizeOfRun(size)
	}
	for _, a := range d.AttributeTable().All() {
		s.Attribute.Bytes += sizeOfRun(sizeOfIndex(a.KeyStrindex()) + sizeOfIndex(a.UnitStrindex()) + sizeOfRun(sizeOfAny(a.Value())))
	}
	for _, stack := range d.StackTable().All() {
		s.Stack.Bytes += sizeOfRun(sizeOfIndices(stack.LocationIndices()))
	}
	return s
}

// Total is the sum over all tables.
func (s Sizes) Total() (total Size) {
	for _, size := range []Size{s.String, s.Mapping, s.Location, s.Function, s.Link, s.Attribute, s.Stack} {
		total.Entries += size.Entries
		total.Bytes += size.Bytes
	}
	return total
}

// All tags are one byte: there are fewer than 16 fields.

func sizeOfVarint(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// sizeOfField is 0 for 0, which is not written.
func sizeOfField(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + sizeOfVarint(v)
}

func sizeOfIndex(i int32) int { return sizeOfField(uint64(int64(i))) }

// sizeOfRun is the size of a string, or a message, of n bytes.
func sizeOfRun(n int) int { return 1 + sizeOfVarint(uint64(n)) + n }

func sizeOfIndices(s pcommon.Int32Slice) int {
	if s.Len() == 0 {
		return 0
	}
	size := 0
	for i := range s.Len() {
		size += sizeOfVarint(uint64(int64(s.At(i))))
	}
	return sizeOfRun(size)
}

func sizeOfAny(v pcommon.Value) int {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return sizeOfRun(len(v.Str()))
	case pcommon.ValueTypeBool:
		return 2
	case pcommon.ValueTypeInt:
		return 1 + sizeOfVarint(uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		return 9
	case pcommon.ValueTypeBytes:
		return sizeOfRun(v.Bytes().Len())
	case pcommon.ValueTypeSlice:
		size := 0
		for _, e := range v.Slice().All() {
			size += sizeOfRun(sizeOfAny(e))
		}
		return sizeOfRun(size)
	case pcommon.ValueTypeMap:
		size := 0
		for key, e := range v.Map().All() {
			entry := sizeOfRun(sizeOfAny(e))
			if key != "" {
				entry += sizeOfRun(len(key))
			}
			size += sizeOfRun(entry)
		}
		return sizeOfRun(size)
	default:
		return 0
	}
}
