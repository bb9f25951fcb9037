// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Remap leads from the indices of one dictionary to those of Tables, interning
// each entry when it is first asked for, so that what nothing refers to is left
// behind. The dictionary must have passed Check; it is only read.
//
// Index 0 of a table that is empty is the zero value; an index into a table
// whose first entry is no zero value means the entry it leads to.
type Remap struct {
	// Coarsening is what is left out of locations; set it before Reset.
	Coarsening Coarsening

	to   *Tables
	from pprofile.ProfilesDictionary
	// By source index, the index in to plus one; 0 where it is not known yet.
	strings, mappings, locations, functions, links, attributes, stacks []int32
	rebasings                                                          []int32 // of mappings
	bases                                                              []Base
	// By source index, the number of the last BeginBases that has come by.
	reachedStacks, reachedLocations []int32
	reach                           int32
	lastStack                       int32 // in to

	location Location
	mapping  Mapping
	stack    []int32
	set      []int32
	value    Value
}

// Reset makes r lead from from to to. It keeps the memory of what r was before.
func (r *Remap) Reset(from pprofile.ProfilesDictionary, to *Tables) {
	r.from, r.to = from, to
	n := LengthsOf(from)
	r.strings = zeroed(r.strings, n.Strings)
	r.mappings = zeroed(r.mappings, n.Mappings)
	r.locations = zeroed(r.locations, n.Locations)
	r.functions = zeroed(r.functions, n.Functions)
	r.links = zeroed(r.links, n.Links)
	r.attributes = zeroed(r.attributes, n.Attributes)
	r.stacks = zeroed(r.stacks, n.Stacks)
	r.bases, r.lastStack, r.reach = r.bases[:0], 0, 0
	if r.Coarsening.RebaseMappings {
		r.rebasings = zeroed(r.rebasings, n.Mappings)
	}
}

// Len is how many indices of the largest dictionary so far r has memory for.
func (r *Remap) Len() int {
	return cap(r.strings) + cap(r.mappings) + cap(r.locations) + cap(r.functions) + cap(r.links) + cap(r.attributes) + cap(r.stacks)
}

func zeroed(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// known returns the index for i if there is one already, or if there is nothing
// at i: an empty table at index 0.
func known(s []int32, i int32) (int32, bool) {
	if int(i) >= len(s) {
		return 0, true
	}
	return s[i] - 1, s[i] != 0
}

// String returns the index in the tables of string i.
func (r *Remap) String(i int32) int32 {
	to, ok := known(r.strings, i)
	if !ok {
		to = r.to.String(r.from.StringTable().At(int(i)))
		r.strings[i] = to + 1
	}
	return to
}

// Function returns the index in the tables of function i.
func (r *Remap) Function(i int32) int32 {
	to, ok := known(r.functions, i)
	if !ok {
		f := r.from.FunctionTable().At(int(i))
		to = r.to.Function(Function{
			Name:       r.String(f.NameStrindex()),
			SystemName: r.String(f.SystemNameStrindex()),
			Filename:   r.String(f.FilenameStrindex()),
			StartLine:  f.StartLine(),
		})
		r.functions[i] = to + 1
	}
	return to
}

// Mapping returns the index in the tables of mapping i.
func (r *Remap) Mapping(i int32) int32 {
	to, ok := known(r.mappings, i)
	if !ok {
		m := r.from.MappingTable().At(int(i))
		r.mapping.MemoryStart = m.MemoryStart()
		r.mapping.MemoryLimit = m.MemoryLimit()
		r.mapping.FileOffset = m.FileOffset()
		r.mapping.Filename = r.String(m.FilenameStrindex())
		r.mapping.Attributes = r.appendAttributes(r.mapping.Attributes[:0], m.AttributeIndices())
		to = r.to.Mapping(r.mapping)
		r.mappings[i] = to + 1
	}
	return to
}

// Location returns the index in the tables of location i.
func (r *Remap) Location(i int32) int32 {
	to, ok := known(r.locations, i)
	if !ok {
		l := r.from.LocationTable().At(int(i))
		r.location.Mapping, r.location.Address = r.position(l)
		r.location.Lines = r.location.Lines[:0]
		lines := l.Lines()
		for j := range lines.Len() {
			line := lines.At(j)
			r.location.Lines = append(r.location.Lines, r.line(Line{
				Function: r.Function(line.FunctionIndex()), Line: line.Line(), Column: line.Column(),
			}))
		}
		r.location.Attributes = r.appendAttributes(r.location.Attributes[:0], l.AttributeIndices())
		to = r.to.Location(r.location)
		r.locations[i] = to + 1
	}
	return to
}

// Link returns the index in the tables of link i. A link without both ids is no
// link, 0.
func (r *Remap) Link(i int32) int32 {
	to, ok := known(r.links, i)
	if !ok {
		l := r.from.LinkTable().At(int(i))
		if !l.TraceID().IsEmpty() && !l.SpanID().IsEmpty() {
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
	to, ok := known(r.attributes, i)
	if !ok {
		a := r.from.AttributeTable().At(int(i))
		key, unit := r.String(a.KeyStrindex()), r.String(a.UnitStrindex())
		r.value = r.to.AppendPdata(r.value[:0], a.Value())
		to = r.to.Attribute(key, unit, r.value)
		r.attributes[i] = to + 1
	}
	return to
}

// Stack returns the index in the tables of stack i.
func (r *Remap) Stack(i int32) int32 {
	to, ok := known(r.stacks, i)
	if !ok {
		s := r.from.StackTable().At(int(i)).LocationIndices()
		r.stack = r.stack[:0]
		for j := range s.Len() {
			l := s.At(j)
			if int(l) < len(r.locations) && r.locations[l] != 0 {
				r.stack = append(r.stack, r.locations[l]-1)
			} else {
				r.stack = append(r.stack, r.Location(l))
			}
		}
		// A service that sends again mostly sends its stacks in the same order.
		if next := r.lastStack + 1; int(next) < r.to.stacks.len() && slices.Equal(r.to.stacks.at(next), r.stack) {
			to = next
		} else {
			to = r.to.Stack(r.stack)
		}
		r.lastStack = to
		r.stacks[i] = to + 1
	}
	return to
}

// AttributeSet returns the number of a set of attribute indices: see
// Tables.AttributeSet.
func (r *Remap) AttributeSet(indices pcommon.Int32Slice) int32 {
	if indices.Len() == 0 {
		return 0
	}
	r.set = r.appendAttributes(r.set[:0], indices)
	return r.to.AttributeSet(r.set)
}

// appendAttributes leaves out the zero value, which says nothing.
func (r *Remap) appendAttributes(dst []int32, indices pcommon.Int32Slice) []int32 {
	for i := range indices.Len() {
		if a := r.Attribute(indices.At(i)); a != 0 {
			dst = append(dst, a)
		}
	}
	return dst
}
