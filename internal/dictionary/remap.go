// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"slices"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Remap translates the indices of one dictionary into those of Tables. It visits an entry when
// it is first asked for, so that unused entries are left out. The dictionary is only read.
//
// After Reset the methods intern entries; the dictionary must have passed Check. After Find they look
// entries up in a View, and return a negative number for one that is not there; after Intern they
// add those.
//
// Index 0 of an empty table is the zero value; an index into a table whose first entry
// is not a zero value means the entry that is there.
type Remap struct {
	// Coarsening says which fields of locations are left out; set it before Reset.
	Coarsening Coarsening
	// KeepPartialLinks keeps links that have only one of the two ids.
	KeepPartialLinks bool

	from pprofile.ProfilesDictionary
	to   *Tables // nil: look up in view
	view *View

	perTable[memo]      // that of sets is by attribute, and knows the set of it alone
	unbounded      bool // an attribute value is

	rebased                     memo // of mappings
	bases                       []Base
	basedStacks, basedLocations memo // those that AppendBases has looked at since BeginBases

	// The entry that is being read.
	ofLocation Location
	ofMapping  Mapping
	ofStack    []int32
	ofSet      []int32
	value      Value
	key        []byte
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
	r.stacks.reset(n.Stacks)
	r.sets.reset(n.Attributes)
	r.rebased.reset(n.Mappings)
	r.bases, r.view, r.unbounded = r.bases[:0], nil, false
}

// emptyView has nothing, not even zero values.
var emptyView View

// Find makes r look up the entries of from in a View, until Intern. A nil View has none. from need
// not have passed Check.
func (r *Remap) Find(from pprofile.ProfilesDictionary, in *View) {
	r.Reset(from, nil)
	if r.view = in; in == nil {
		r.view = &emptyView
	}
}

// visits are the methods that look up or intern an entry of the source.
var visits = perTable[func(r *Remap, i int32) int32]{
	strings: (*Remap).string, attributes: (*Remap).attribute, mappings: (*Remap).mapping, functions: (*Remap).function,
	locations: (*Remap).location, links: (*Remap).link, stacks: (*Remap).stack,
}

// FindAll looks up all entries, which is quicker than one after the other when most are asked for: they
// are likely to be where View has others of their payload.
func (r *Remap) FindAll() {
	tables, visits := r.view.all(), visits.all()
	for i, m := range r.all() {
		if visit := *visits[i]; visit != nil {
			tables[i].findAll(m, r, visit)
		}
	}
}

// IsValid returns whether Check accepts the dictionary and the indices that were looked up since Find.
func (r *Remap) IsValid() bool {
	valid := !r.unbounded
	for _, m := range r.all() {
		valid = valid && !m.outside
	}
	if valid && !r.stacks.whole {
		return checkDictionary(r.from) == nil
	}
	return valid
}

// Check is for a sample of which nothing is looked up: see IsValid.
func (r *Remap) Check(s pprofile.Sample) {
	r.stacks.check(s.StackIndex())
	r.links.check(s.LinkIndex())
	for i, attributes := 0, s.AttributeIndices(); i < attributes.Len(); i++ {
		r.attributes.check(attributes.At(i))
	}
}

// Want marks for Intern the entries of a sample that the View lacks. See Sample for drop.
func (r *Remap) Want(s pprofile.Sample, drop []bool) {
	r.stacks.want(s.StackIndex())
	r.wantAttributes(s.AttributeIndices(), drop)
}

// WantProfile marks the entries that the header of a Profile refers to.
func (r *Remap) WantProfile(p pprofile.Profile) {
	for _, t := range [...]pprofile.ValueType{p.SampleType(), p.PeriodType()} {
		r.strings.want(t.TypeStrindex())
		r.strings.want(t.UnitStrindex())
	}
	r.wantAttributes(p.AttributeIndices(), nil)
}

func (r *Remap) wantAttributes(indices pcommon.Int32Slice, drop []bool) {
	for i := range indices.Len() {
		if a := indices.At(i); !isDropped(drop, a) {
			r.attributes.want(a)
		}
	}
}

func isDropped(drop []bool, i int32) bool { return uint32(i) < uint32(len(drop)) && drop[i] }

// WantParts marks the parts of all marked entries that the View lacks.
func (r *Remap) WantParts() {
	for i := range r.stacks.wanted {
		locations := r.from.StackTable().At(int(i)).LocationIndices()
		r.stacks.content += 4 * locations.Len()
		for _, l := range locations.All() {
			r.locations.want(l)
		}
	}
	for i := range r.locations.wanted {
		l := r.from.LocationTable().At(int(i))
		r.wantAttributes(l.AttributeIndices(), nil)
		if !r.Coarsening.RebaseMappings {
			r.mappings.want(l.MappingIndex())
		}
		for _, line := range l.Lines().All() {
			r.functions.want(line.FunctionIndex())
		}
	}
	for i := range r.mappings.wanted {
		m := r.from.MappingTable().At(int(i))
		r.strings.want(m.FilenameStrindex())
		r.wantAttributes(m.AttributeIndices(), nil)
	}
	for i := range r.functions.wanted {
		f := r.from.FunctionTable().At(int(i))
		r.strings.want(f.NameStrindex())
		r.strings.want(f.SystemNameStrindex())
		r.strings.want(f.FilenameStrindex())
	}
	for i := range r.attributes.wanted {
		a := r.from.AttributeTable().At(int(i))
		r.strings.want(a.KeyStrindex())
		r.strings.want(a.UnitStrindex())
	}
	for i := range r.strings.wanted {
		r.strings.content += len(r.from.StringTable().At(int(i)))
	}
}

// Intern makes r intern the entries that Find's View lacks, in to, of which it is a View. If all is set it
// interns the wanted entries at once, in the order in which the source has it: see search.next.
func (r *Remap) Intern(to *Tables, all bool) {
	r.to = to
	tables, visits := to.all(), visits.all()
	for i, m := range r.all() {
		if all {
			tables[i].grow(m.wants, m.content, 0)
		}
		for _, j := range m.absent {
			isWanted := m.to[j] == wanted+1
			if m.to[j] = 0; all && isWanted {
				m.index(j, r, *visits[i])
			}
		}
	}
}

// Forget makes r refer to no dictionary and no tables, until Reset or Find.
func (r *Remap) Forget() { r.from, r.to, r.view = pprofile.ProfilesDictionary{}, nil, nil }

// Retained is about the memory that r holds on to, in bytes.
func (r *Remap) Retained() int {
	n := cap(r.ofStack) + cap(r.ofSet) + cap(r.ofLocation.Attributes) + cap(r.ofMapping.Attributes) + 6*cap(r.ofLocation.Lines) + 4*cap(r.bases)
	for _, m := range r.all() {
		n += m.retained()
	}
	n += r.rebased.retained() + r.basedStacks.retained() + r.basedLocations.retained()
	return 4*n + cap(r.value) + cap(r.key)
}

// String returns the index in the tables of string i.
func (r *Remap) String(i int32) int32 { return r.strings.index(i, r, (*Remap).string) }

func (r *Remap) string(i int32) int32 {
	s := r.from.StringTable().At(int(i))
	if r.to != nil {
		return r.to.String(s)
	}
	return r.view.strings.find(unsafe.Slice(unsafe.StringData(s), len(s)), &r.strings) //nolint:gosec // read only
}

// Function returns the index in the tables of function i.
func (r *Remap) Function(i int32) int32 { return r.functions.index(i, r, (*Remap).function) }

func (r *Remap) function(i int32) int32 {
	from := r.from.FunctionTable().At(int(i))
	f := Function{Name: from.NameStrindex(), SystemName: from.SystemNameStrindex(), Filename: from.FilenameStrindex(), StartLine: from.StartLine()}
	for _, i := range [...]*int32{&f.Name, &f.SystemName, &f.Filename} {
		to, ok := r.strings.get(*i)
		if !ok {
			to = r.String(*i)
		}
		*i = to
	}
	if r.to != nil {
		return r.to.Function(f)
	}
	if f.Name|f.SystemName|f.Filename < 0 {
		return absent
	}
	r.key = f.AppendKey(r.key[:0])
	return r.view.functions.find(r.key, &r.functions)
}

// Mapping returns the index in the tables of mapping i.
func (r *Remap) Mapping(i int32) int32 { return r.mappings.index(i, r, (*Remap).mapping) }

func (r *Remap) mapping(i int32) int32 {
	m := r.from.MappingTable().At(int(i))
	return r.mappingAt(m, m.MemoryStart(), m.MemoryLimit())
}

// mappingAt returns the index in the tables of a mapping with other addresses.
func (r *Remap) mappingAt(from pprofile.Mapping, start, limit uint64) int32 {
	m := &r.ofMapping
	m.MemoryStart, m.MemoryLimit, m.FileOffset = start, limit, from.FileOffset()
	m.Filename = r.String(from.FilenameStrindex())
	var found bool
	m.Attributes, found = r.appendAttributes(m.Attributes[:0], from.AttributeIndices())
	if r.to != nil {
		return r.to.Mapping(*m)
	}
	if m.Filename < 0 || !found {
		return absent
	}
	r.key = m.AppendKey(r.key[:0])
	return r.view.mappings.find(r.key, &r.mappings)
}

// Location returns the index in the tables of location i.
func (r *Remap) Location(i int32) int32 { return r.locations.index(i, r, (*Remap).location) }

func (r *Remap) location(i int32) int32 {
	from, l := r.from.LocationTable().At(int(i)), &r.ofLocation
	l.Mapping, l.Address = r.position(from)
	parts := l.Mapping // negative if one is absent
	l.Lines = l.Lines[:0]
	lines := from.Lines()
	for j := range lines.Len() {
		line := lines.At(j)
		function, ok := r.functions.get(line.FunctionIndex())
		if !ok {
			function = r.Function(line.FunctionIndex())
		}
		parts |= function
		l.Lines = append(l.Lines, r.line(Line{Function: function, Line: line.Line(), Column: line.Column()}))
	}
	found := true
	l.Attributes = l.Attributes[:0]
	if attributes := from.AttributeIndices(); attributes.Len() > 0 {
		l.Attributes, found = r.appendAttributes(l.Attributes, attributes)
	}
	if r.to != nil {
		return r.to.Location(*l)
	}
	if parts < 0 || !found {
		return absent
	}
	r.key = l.AppendKey(r.key[:0])
	return r.view.locations.find(r.key, &r.locations)
}

// Link returns the index in the tables of link i. A link without both ids is no
// link, 0.
func (r *Remap) Link(i int32) int32 { return r.links.index(i, r, (*Remap).link) }

func (r *Remap) link(i int32) int32 {
	l := r.from.LinkTable().At(int(i))
	if !r.KeepPartialLinks && (l.TraceID().IsEmpty() || l.SpanID().IsEmpty()) {
		return 0
	}
	if r.to != nil {
		return r.to.Link(l.TraceID(), l.SpanID())
	}
	r.key = AppendLink(r.key[:0], l.TraceID(), l.SpanID())
	return r.view.links.find(r.key, &r.links)
}

// Attribute returns the index in the tables of attribute i.
func (r *Remap) Attribute(i int32) int32 { return r.attributes.index(i, r, (*Remap).attribute) }

func (r *Remap) attribute(i int32) int32 {
	from := r.from.AttributeTable().At(int(i))
	a := Attribute{Key: r.String(from.KeyStrindex()), Unit: r.String(from.UnitStrindex())}
	if r.to == nil && !Bounded(from.Value()) {
		r.unbounded = true
		return absent
	}
	r.value = AppendPdata(r.value[:0], from.Value())
	a.Value = r.value
	if r.to != nil {
		return r.to.Attribute(a.Key, a.Unit, a.Value)
	}
	if a.Key|a.Unit < 0 {
		return absent
	}
	r.key = a.AppendKey(r.key[:0])
	return r.view.attributes.find(r.key, &r.attributes)
}

// Stack returns the index in the tables of stack i.
func (r *Remap) Stack(i int32) int32 { return r.stacks.index(i, r, (*Remap).stack) }

func (r *Remap) stack(i int32) int32 {
	from := r.from.StackTable().At(int(i)).LocationIndices()
	n, parts := from.Len(), int32(0) // parts is negative if one is absent
	stack := slices.Grow(r.ofStack[:0], n)[:n]
	for j := range stack {
		l := from.At(j)
		location, ok := r.locations.get(l)
		if !ok {
			location = r.Location(l)
		}
		stack[j] = location
		parts |= location
	}
	r.ofStack = stack
	if r.to != nil {
		return r.to.Stack(stack)
	}
	if parts < 0 {
		return absent
	}
	return r.view.stacks.find(bytesOf(stack), &r.stacks)
}

// Sample returns the identity of a sample, without the attributes for which drop is true, by index. Of no
// length, drop drops none.
func (r *Remap) Sample(s pprofile.Sample, drop []bool) (stack, set, link int32) {
	stack, ok := r.stacks.get(s.StackIndex())
	if !ok {
		stack = r.Stack(s.StackIndex())
	}
	if indices := s.AttributeIndices(); indices.Len() > 0 {
		set = r.attributeSet(indices, drop)
	}
	return stack, set, r.Link(s.LinkIndex())
}

// AttributeSet returns the number of a set of attribute indices: see
// Tables.AttributeSet.
func (r *Remap) AttributeSet(indices pcommon.Int32Slice) int32 { return r.attributeSet(indices, nil) }

func (r *Remap) attributeSet(indices pcommon.Int32Slice, drop []bool) int32 {
	n := indices.Len()
	if n == 0 {
		return 0
	}
	single := n == 1 && len(drop) == 0
	if single {
		if to, ok := r.sets.get(indices.At(0)); ok {
			return to
		}
	}
	r.ofSet = r.ofSet[:0]
	found := true
	for j := range n {
		i := indices.At(j)
		if isDropped(drop, i) { // it is not interned
			continue
		}
		if a := r.Attribute(i); a < 0 {
			found = false
		} else if a > 0 {
			r.ofSet = append(r.ofSet, a)
		}
	}
	to := int32(absent)
	switch {
	case r.to != nil:
		to = r.to.AttributeSet(r.ofSet)
	case !found:
	case len(r.ofSet) == 0:
		to = 0
	default:
		to = r.view.sets.find(bytesOf(set(r.ofSet)), &r.sets)
	}
	if single {
		r.sets.set(indices.At(0), to)
	}
	return to
}

// appendAttributes leaves out the zero value, which says nothing. The appended indices are a sorted set if
// all are found in a View.
func (r *Remap) appendAttributes(dst []int32, indices pcommon.Int32Slice) (all []int32, found bool) {
	for i := range indices.Len() {
		if a := r.Attribute(indices.At(i)); a != 0 {
			dst = append(dst, a)
		}
	}
	if r.to == nil {
		dst = set(dst)
		return dst, len(dst) == 0 || dst[0] >= 0
	}
	return dst, true
}
