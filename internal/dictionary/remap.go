// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Remap translates the indices of one dictionary into those of Tables. It interns an
// entry when it is first asked for, so that what nothing refers to is left out. The
// dictionary must have passed Check; it is only read.
//
// Index 0 of an empty table is the zero value; an index into a table whose first entry
// is no zero value means the entry that is there.
type Remap struct {
	// Coarsening is what is left out of locations; set it before Reset.
	Coarsening Coarsening
	// keepPartialLinks keeps links that have only one of the two ids.
	keepPartialLinks bool

	to      *Tables
	from    pprofile.ProfilesDictionary
	view    *View // of Find
	nextSet int32 // that FindSet expects

	wantedBytes, wantedLocations int // of the strings and the stacks that are wanted

	strings, mappings, locations, functions, links, attributes, stacks memo
	singles                                                            memo // by attribute: the set of it alone

	rebased                     memo // of mappings
	bases                       []Base
	basedStacks, basedLocations memo // those that AppendBases has looked at since BeginBases

	location Location
	mapping  Mapping
	stack    []int32
	set      []int32
	value    Value
	key      []byte
}

// memo holds what is known of the entries of one table.
type memo struct {
	// By source index: the index in the tables plus one, 0 if it is not known, or wanted.
	to     []int32
	used   []int32 // the source indices that are known, unless whole is set
	whole  bool    // any may be known
	wanted []int32 // the source indices that are wanted: see Remap.WantStack
}

const wanted = -1

// reset makes m one for a table of n entries. It takes time for the known entries only.
func (m *memo) reset(n int) {
	if m.whole {
		clear(m.to)
		m.whole = false
	}
	for _, i := range m.used {
		m.to[i] = 0
	}
	m.used, m.wanted = m.used[:0], m.wanted[:0]
	if cap(m.to) < n {
		m.to = make([]int32, n)
	}
	m.to = m.to[:n]
}

// get returns the index for i if it is known, or if there is nothing at i: index 0 of
// an empty table.
func (m *memo) get(i int32) (to int32, ok bool) {
	if int(i) >= len(m.to) {
		return 0, true
	}
	return m.to[i] - 1, m.to[i] > 0
}

func (m *memo) set(i, to int32) {
	m.to[i] = to + 1
	if !m.whole {
		m.used = append(m.used, i)
	}
}

// Reset makes r translate from one dictionary to the tables. It keeps its memory.
func (r *Remap) Reset(from pprofile.ProfilesDictionary, to *Tables) {
	r.from, r.to = from, to
	n := LengthsOf(from)
	r.strings.reset(n.Strings)
	r.mappings.reset(n.Mappings)
	r.locations.reset(n.Locations)
	r.functions.reset(n.Functions)
	r.links.reset(n.Links)
	r.attributes.reset(n.Attributes)
	r.singles.reset(n.Attributes)
	r.stacks.reset(n.Stacks)
	r.rebased.reset(n.Mappings)
	r.bases, r.view = r.bases[:0], nil
}

// Forget makes r refer to no dictionary and no tables, until Reset or Find.
func (r *Remap) Forget() { r.from, r.to, r.view = pprofile.ProfilesDictionary{}, nil, nil }

// Retained is about the memory that r holds on to, in bytes.
func (r *Remap) Retained() int {
	n := cap(r.stack) + cap(r.set) + cap(r.location.Attributes) + cap(r.mapping.Attributes) + 6*cap(r.location.Lines) + 4*cap(r.bases)
	for _, m := range []*memo{
		&r.strings, &r.mappings, &r.locations, &r.functions, &r.links, &r.attributes, &r.stacks, &r.singles,
		&r.rebased, &r.basedStacks, &r.basedLocations,
	} {
		n += cap(m.to) + cap(m.used) + cap(m.wanted)
	}
	return 4*n + cap(r.value) + cap(r.key)
}

// String returns the index in the tables of string i.
func (r *Remap) String(i int32) int32 {
	to, ok := r.strings.get(i)
	if !ok {
		to = r.to.String(r.from.StringTable().At(int(i)))
		r.strings.set(i, to)
	}
	return to
}

// Function returns the index in the tables of function i.
func (r *Remap) Function(i int32) int32 {
	to, ok := r.functions.get(i)
	if !ok {
		f := r.from.FunctionTable().At(int(i))
		to = r.to.Function(Function{
			Name:       r.String(f.NameStrindex()),
			SystemName: r.String(f.SystemNameStrindex()),
			Filename:   r.String(f.FilenameStrindex()),
			StartLine:  f.StartLine(),
		})
		r.functions.set(i, to)
	}
	return to
}

// Mapping returns the index in the tables of mapping i.
func (r *Remap) Mapping(i int32) int32 {
	to, ok := r.mappings.get(i)
	if !ok {
		m := r.from.MappingTable().At(int(i))
		to = r.mappingAt(m, m.MemoryStart(), m.MemoryLimit())
		r.mappings.set(i, to)
	}
	return to
}

// mappingAt interns m with other addresses.
func (r *Remap) mappingAt(m pprofile.Mapping, start, limit uint64) int32 {
	r.mapping.MemoryStart, r.mapping.MemoryLimit = start, limit
	r.mapping.FileOffset = m.FileOffset()
	r.mapping.Filename = r.String(m.FilenameStrindex())
	r.mapping.Attributes = r.appendAttributes(r.mapping.Attributes[:0], m.AttributeIndices())
	return r.to.Mapping(r.mapping)
}

// Location returns the index in the tables of location i.
func (r *Remap) Location(i int32) int32 {
	to, ok := r.locations.get(i)
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
		r.locations.set(i, to)
	}
	return to
}

// Link returns the index in the tables of link i. A link without both ids is no
// link, 0.
func (r *Remap) Link(i int32) int32 {
	to, ok := r.links.get(i)
	if !ok {
		l := r.from.LinkTable().At(int(i))
		to = 0
		if r.isLink(l) {
			to = r.to.Link(l.TraceID(), l.SpanID())
		}
		r.links.set(i, to)
	}
	return to
}

func (r *Remap) isLink(l pprofile.Link) bool {
	return r.keepPartialLinks || !l.TraceID().IsEmpty() && !l.SpanID().IsEmpty()
}

// Attribute returns the index in the tables of attribute i.
func (r *Remap) Attribute(i int32) int32 {
	to, ok := r.attributes.get(i)
	if !ok {
		a := r.from.AttributeTable().At(int(i))
		key, unit := r.String(a.KeyStrindex()), r.String(a.UnitStrindex())
		r.value = AppendPdata(r.value[:0], a.Value())
		to = r.to.Attribute(key, unit, r.value)
		r.attributes.set(i, to)
	}
	return to
}

// Stack returns the index in the tables of stack i.
func (r *Remap) Stack(i int32) int32 {
	to, ok := r.stacks.get(i)
	if !ok {
		s := r.from.StackTable().At(int(i)).LocationIndices()
		r.stack = r.stack[:0]
		for j := range s.Len() {
			l := s.At(j)
			location, ok := r.locations.get(l)
			if !ok {
				location = r.Location(l)
			}
			r.stack = append(r.stack, location)
		}
		to = r.to.Stack(r.stack)
		r.stacks.set(i, to)
	}
	return to
}

// AttributeSet returns the number of a set of attribute indices: see
// Tables.AttributeSet.
func (r *Remap) AttributeSet(indices pcommon.Int32Slice) int32 {
	if indices.Len() == 0 {
		return 0
	}
	single := indices.Len() == 1
	if single {
		if to, ok := r.singles.get(indices.At(0)); ok {
			return to
		}
	}
	r.set = r.appendAttributes(r.set[:0], indices)
	to := r.to.AttributeSet(r.set)
	if single {
		r.singles.set(indices.At(0), to)
	}
	return to
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
