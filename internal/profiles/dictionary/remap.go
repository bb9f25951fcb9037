// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Granularity says which fields distinguish locations.
type Granularity uint8

// A location without lines always keeps its address.
const (
	ByAddress  Granularity = iota // all fields
	ByLine                        // function and line, not address and column
	ByFunction                    // function
)

// Remap translates the indices of one dictionary into those of Tables. It interns an entry when
// it is first asked for, so that unused entries are left out. The dictionary must have passed Check, and is
// only read.
//
// Index 0 of an empty table is the zero value; an index into a table whose first entry
// is not a zero value means the entry that is there.
type Remap struct {
	// Granularity says which fields of locations are left out, so that more of them are equal.
	Granularity Granularity
	// Relocate makes one location of those that are the same code at other addresses. Only a Writer can
	// write the tables then.
	Relocate bool
	// KeepPartialLinks keeps links that have only one of the two ids.
	KeepPartialLinks bool

	from pprofile.ProfilesDictionary
	to   *Tables
	// By index in the source: the index in the tables plus one, 0 before it is asked for. That of sets is by
	// attribute, and has the set of it alone. All are parts of indices.
	perTable[memo]
	indices    memo
	placements []placement // by mapping of the source, if Relocate is set

	// The entry that is being read.
	ofLocation Location
	ofMapping  Mapping
	ofStack    []int32
	ofSet      []int32
	value      Value
}

// Reset makes r translate from one dictionary to the tables. It keeps its memory.
func (r *Remap) Reset(from pprofile.ProfilesDictionary, to *Tables) {
	r.from, r.to = from, to
	lengths, size := lengthsOf(from), 0
	for _, length := range lengths.all() {
		size += max(*length, 1)
	}
	r.indices = slices.Grow(r.indices[:0], size)[:size]
	clear(r.indices)
	rest := r.indices
	for i, length := range lengths.all() {
		indices := rest[:max(*length, 1)]
		if *length == 0 {
			indices[0] = 1 // index 0 of an empty table is the zero value
		}
		*r.all()[i], rest = indices, rest[len(indices):]
	}
	r.placements = r.placements[:0]
	if r.Relocate {
		r.placements = slices.Grow(r.placements, len(r.mappings))[:len(r.mappings)]
		clear(r.placements)
	}
}

// Forget makes r refer to no dictionary and no tables. It keeps its memory.
func (r *Remap) Forget() { r.from, r.to = pprofile.ProfilesDictionary{}, nil }

// memo has indices in the tables.
type memo []int32

func (m memo) set(i, to int32) int32 {
	m[i] = to + 1
	return to
}

// String returns the index in the tables of string i. It is inlined, as are Function and so on.
func (r *Remap) String(i int32) int32 {
	if to := r.strings[i]; to != 0 {
		return to - 1
	}
	return r.internString(i)
}

func (r *Remap) internString(i int32) int32 {
	return r.strings.set(i, r.to.String(r.from.StringTable().At(int(i))))
}

// Function returns the index in the tables of function i.
func (r *Remap) Function(i int32) int32 {
	if to := r.functions[i]; to != 0 {
		return to - 1
	}
	return r.internFunction(i)
}

func (r *Remap) internFunction(i int32) int32 {
	from := r.from.FunctionTable().At(int(i))
	return r.functions.set(i, r.to.Function(Function{
		Name: r.String(from.NameStrindex()), SystemName: r.String(from.SystemNameStrindex()),
		Filename: r.String(from.FilenameStrindex()), StartLine: from.StartLine(),
	}))
}

// Mapping returns the index in the tables of mapping i.
func (r *Remap) Mapping(i int32) int32 {
	if to := r.mappings[i]; to != 0 {
		return to - 1
	}
	return r.internMapping(i)
}

func (r *Remap) internMapping(i int32) int32 {
	return r.mappings.set(i, r.to.Mapping(*r.readMapping(i)))
}

// readMapping returns mapping i with indices of the tables, in memory that the next call overwrites.
func (r *Remap) readMapping(i int32) *Mapping {
	from, m := r.from.MappingTable().At(int(i)), &r.ofMapping
	m.MemoryStart, m.MemoryLimit, m.FileOffset = from.MemoryStart(), from.MemoryLimit(), from.FileOffset()
	m.Filename = r.String(from.FilenameStrindex())
	m.Attributes = r.appendAttributes(m.Attributes[:0], from.AttributeIndices(), nil)
	return m
}

// Location returns the index in the tables of location i.
func (r *Remap) Location(i int32) int32 {
	if to := r.locations[i]; to != 0 {
		return to - 1
	}
	return r.internLocation(i)
}

func (r *Remap) internLocation(i int32) int32 {
	from, l := r.from.LocationTable().At(int(i)), &r.ofLocation
	lines := from.Lines()
	l.Address = from.Address()
	if r.Granularity != ByAddress && lines.Len() > 0 {
		l.Address = 0
	}
	if m := from.MappingIndex(); int(m) < len(r.placements) && r.placements[m].moves != movesNone {
		l.Mapping, l.Address = r.place(m, l.Address, lines.Len() > 0)
	} else {
		l.Mapping = r.Mapping(m)
	}
	l.Lines = l.Lines[:0]
	for _, from := range lines.All() {
		line := Line{Function: r.Function(from.FunctionIndex()), Line: from.Line(), Column: from.Column()}
		if r.Granularity != ByAddress {
			line.Column = 0
		}
		if r.Granularity == ByFunction {
			line.Line = 0
		}
		l.Lines = append(l.Lines, line)
	}
	l.Attributes = l.Attributes[:0]
	if attributes := from.AttributeIndices(); attributes.Len() > 0 {
		l.Attributes = r.appendAttributes(l.Attributes, attributes, nil)
	}
	return r.locations.set(i, r.to.Location(l))
}

// Link returns the index in the tables of link i. A link without both ids is no
// link, 0.
func (r *Remap) Link(i int32) int32 {
	if to := r.links[i]; to != 0 {
		return to - 1
	}
	return r.internLink(i)
}

func (r *Remap) internLink(i int32) (to int32) {
	l := r.from.LinkTable().At(int(i))
	if r.KeepPartialLinks || !l.TraceID().IsEmpty() && !l.SpanID().IsEmpty() {
		to = r.to.Link(l.TraceID(), l.SpanID())
	}
	return r.links.set(i, to)
}

// Attribute returns the index in the tables of attribute i.
func (r *Remap) Attribute(i int32) int32 {
	if to := r.attributes[i]; to != 0 {
		return to - 1
	}
	return r.internAttribute(i)
}

func (r *Remap) internAttribute(i int32) int32 {
	from := r.from.AttributeTable().At(int(i))
	r.value = AppendPdata(r.value[:0], from.Value())
	return r.attributes.set(i, r.to.Attribute(r.String(from.KeyStrindex()), r.String(from.UnitStrindex()), r.value))
}

// Stack returns the index in the tables of stack i.
func (r *Remap) Stack(i int32) int32 {
	if to := r.stacks[i]; to != 0 {
		return to - 1
	}
	return r.internStack(i)
}

func (r *Remap) internStack(i int32) int32 {
	locations := r.from.StackTable().At(int(i)).LocationIndices()
	r.ofStack = slices.Grow(r.ofStack[:0], locations.Len())[:locations.Len()]
	stack, known := r.ofStack, r.locations // read once: Location for each takes half as many instructions again
	for j, l := range locations.All() {
		if stack[j] = known[l] - 1; stack[j] < 0 {
			stack[j] = r.internLocation(l)
		}
	}
	return r.stacks.set(i, r.to.Stack(stack))
}

// Sample returns the identity of a sample, without the attributes for which drop is true, by index in the source. Of no
// length, drop drops none.
func (r *Remap) Sample(s pprofile.Sample, drop []bool) (stack, set, link int32) {
	if indices := s.AttributeIndices(); indices.Len() > 0 {
		set = r.AttributeSet(indices, drop)
	}
	return r.Stack(s.StackIndex()), set, r.Link(s.LinkIndex())
}

// AttributeSet returns the number of a set of attribute indices, see Tables.AttributeSet, without those for which drop is
// true. Of no length, drop drops none.
func (r *Remap) AttributeSet(indices pcommon.Int32Slice, drop []bool) int32 {
	n := indices.Len()
	if n == 0 {
		return 0
	}
	single := n == 1 && len(drop) == 0 // usual
	if single {
		if to := r.sets[indices.At(0)]; to != 0 {
			return to - 1
		}
	}
	r.ofSet = r.appendAttributes(r.ofSet[:0], indices, drop)
	to := r.to.AttributeSet(r.ofSet)
	if single {
		r.sets[indices.At(0)] = to + 1
	}
	return to
}

// appendAttributes leaves out the zero value, which says nothing, and attributes to drop.
func (r *Remap) appendAttributes(dst []int32, indices pcommon.Int32Slice, drop []bool) []int32 {
	for _, i := range indices.All() {
		if int(i) < len(drop) && drop[i] {
			continue
		}
		if a := r.Attribute(i); a != 0 {
			dst = append(dst, a)
		}
	}
	return dst
}
