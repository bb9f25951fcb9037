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
	// KeepPartialLinks keeps links that have only one of the two ids.
	KeepPartialLinks bool

	from pprofile.ProfilesDictionary
	to   *Tables
	// By index in the source: the index in the tables plus one, 0 before it is asked for. That of sets is by
	// attribute, and has the set of it alone. All are parts of known.
	perTable[[]int32]
	known []int32

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
	r.known = slices.Grow(r.known[:0], size)[:size]
	clear(r.known)
	rest := r.known
	for i, length := range lengths.all() {
		known := rest[:max(*length, 1)]
		if *length == 0 {
			known[0] = 1 // index 0 of an empty table is the zero value
		}
		*r.all()[i], rest = known, rest[len(known):]
	}
}

// maxKept is how much memory Forget keeps, in bytes. It takes no notable time to get more for a dictionary that needs
// it.
const maxKept = 128 << 10

// Forget makes r refer to no dictionary and no tables. It keeps little memory.
func (r *Remap) Forget() {
	if r.Retained() > maxKept {
		*r = Remap{Granularity: r.Granularity, KeepPartialLinks: r.KeepPartialLinks}
	}
	r.from, r.to = pprofile.ProfilesDictionary{}, nil
}

// Retained is the memory that r holds on to, in bytes.
func (r *Remap) Retained() int {
	const lineSize = 24
	indices := cap(r.known) + cap(r.ofStack) + cap(r.ofSet) + cap(r.ofLocation.Attributes) + cap(r.ofMapping.Attributes)
	return 4*indices + lineSize*cap(r.ofLocation.Lines) + cap(r.value)
}

// lookUp returns the index for i if it is known.
func lookUp(known []int32, i int32) (to int32, ok bool) {
	to = known[i]
	return to - 1, to != 0
}

// String returns the index in the tables of string i.
func (r *Remap) String(i int32) int32 {
	to, ok := lookUp(r.strings, i)
	if !ok {
		to = r.to.String(r.from.StringTable().At(int(i)))
		r.strings[i] = to + 1
	}
	return to
}

// Function returns the index in the tables of function i.
func (r *Remap) Function(i int32) int32 {
	to, ok := lookUp(r.functions, i)
	if !ok {
		from := r.from.FunctionTable().At(int(i))
		to = r.to.Function(Function{
			Name: r.String(from.NameStrindex()), SystemName: r.String(from.SystemNameStrindex()),
			Filename: r.String(from.FilenameStrindex()), StartLine: from.StartLine(),
		})
		r.functions[i] = to + 1
	}
	return to
}

// Mapping returns the index in the tables of mapping i.
func (r *Remap) Mapping(i int32) int32 {
	to, ok := lookUp(r.mappings, i)
	if !ok {
		from, m := r.from.MappingTable().At(int(i)), &r.ofMapping
		m.MemoryStart, m.MemoryLimit, m.FileOffset = from.MemoryStart(), from.MemoryLimit(), from.FileOffset()
		m.Filename = r.String(from.FilenameStrindex())
		m.Attributes = r.appendAttributes(m.Attributes[:0], from.AttributeIndices(), nil)
		to = r.to.Mapping(*m)
		r.mappings[i] = to + 1
	}
	return to
}

// Location returns the index in the tables of location i.
func (r *Remap) Location(i int32) int32 {
	to, ok := lookUp(r.locations, i)
	if ok {
		return to
	}
	from, l := r.from.LocationTable().At(int(i)), &r.ofLocation
	lines := from.Lines()
	l.Mapping, l.Address = r.Mapping(from.MappingIndex()), from.Address()
	if r.Granularity != ByAddress && lines.Len() > 0 {
		l.Address = 0
	}
	l.Lines = l.Lines[:0]
	for j := range lines.Len() {
		from := lines.At(j)
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
	to = r.to.Location(l)
	r.locations[i] = to + 1
	return to
}

// Link returns the index in the tables of link i. A link without both ids is no
// link, 0.
func (r *Remap) Link(i int32) int32 {
	to, ok := lookUp(r.links, i)
	if !ok {
		l := r.from.LinkTable().At(int(i))
		if r.KeepPartialLinks || !l.TraceID().IsEmpty() && !l.SpanID().IsEmpty() {
			to = r.to.Link(l.TraceID(), l.SpanID())
		} else {
			to = 0
		}
		r.links[i] = to + 1
	}
	return to
}

// Attribute returns the index in the tables of attribute i.
func (r *Remap) Attribute(i int32) int32 {
	to, ok := lookUp(r.attributes, i)
	if !ok {
		from := r.from.AttributeTable().At(int(i))
		r.value = AppendPdata(r.value[:0], from.Value())
		to = r.to.Attribute(r.String(from.KeyStrindex()), r.String(from.UnitStrindex()), r.value)
		r.attributes[i] = to + 1
	}
	return to
}

// Stack returns the index in the tables of stack i.
func (r *Remap) Stack(i int32) int32 {
	to, ok := lookUp(r.stacks, i)
	if ok {
		return to
	}
	locations := r.from.StackTable().At(int(i)).LocationIndices()
	r.ofStack = slices.Grow(r.ofStack[:0], locations.Len())[:locations.Len()]
	stack, known := r.ofStack, r.locations
	for j := range stack {
		from := locations.At(j)
		if stack[j], ok = lookUp(known, from); !ok { // most are known: this saves a call
			stack[j] = r.Location(from)
		}
	}
	to = r.to.Stack(stack)
	r.stacks[i] = to + 1
	return to
}

// Sample returns the identity of a sample, without the attributes for which drop is true, by index in the source. Of no
// length, drop drops none.
func (r *Remap) Sample(s pprofile.Sample, drop []bool) (stack, set, link int32) {
	stack, ok := lookUp(r.stacks, s.StackIndex())
	if !ok {
		stack = r.Stack(s.StackIndex())
	}
	if indices := s.AttributeIndices(); indices.Len() > 0 {
		set = r.attributeSet(indices, drop)
	}
	if link, ok = lookUp(r.links, s.LinkIndex()); !ok {
		link = r.Link(s.LinkIndex())
	}
	return stack, set, link
}

// AttributeSet returns the number of a set of attribute indices: see
// Tables.AttributeSet.
func (r *Remap) AttributeSet(indices pcommon.Int32Slice) int32 {
	return r.attributeSet(indices, nil)
}

func (r *Remap) attributeSet(indices pcommon.Int32Slice, drop []bool) int32 {
	n := indices.Len()
	if n == 0 {
		return 0
	}
	single := n == 1 && len(drop) == 0 // usual
	if single {
		if to, ok := lookUp(r.sets, indices.At(0)); ok {
			return to
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
	for j := range indices.Len() {
		i := indices.At(j)
		if int(i) < len(drop) && drop[i] {
			continue
		}
		a, ok := lookUp(r.attributes, i)
		if !ok {
			a = r.Attribute(i)
		}
		if a != 0 {
			dst = append(dst, a)
		}
	}
	return dst
}
