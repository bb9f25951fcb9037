// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"slices"
	"sync/atomic"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// View is what Tables held at one time. It does not change, and may be used while Tables
// grow. It shares their memory.
type View struct {
	strings, mappings, locations, functions, links, attributes viewed[byte]
	stacks, sets                                               viewed[int32]
}

type viewed[E byte | int32] struct {
	entries[E]
	slots []uint64 // those of the index, which also get entries that are added later
}

// View returns a View of t, which must not be reset.
func (t *Tables) View() *View {
	return &View{
		strings: viewOf(&t.strings), mappings: viewOf(&t.mappings), locations: viewOf(&t.locations),
		functions: viewOf(&t.functions), links: viewOf(&t.links), attributes: viewOf(&t.attributes),
		sets: viewOf(&t.sets), stacks: viewOf(&t.stacks),
	}
}

func viewOf[E byte | int32](t *table[E]) viewed[E] { return viewed[E]{t.entries, t.index.slots} }

// find returns the number of an entry plus one, or 0 if it is not there. It first looks at
// next: payloads have their entries in about the order of earlier ones.
func (v *viewed[E]) find(entry []E, next int32) int32 {
	if int(next) < len(v.ends) && bytes.Equal(raw(v.at(next)), raw(entry)) {
		return next + 1
	}
	hash, mask := hashOf(entry), uint32(len(v.slots)-1)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := atomic.LoadUint64(&v.slots[at])
		if s == 0 {
			return 0
		}
		if uint32(s>>32) == hash {
			if n := int32(uint32(s) - 1); int(n) < len(v.ends) && bytes.Equal(raw(v.at(n)), raw(entry)) {
				return n + 1
			}
		}
	}
}

// Find is Reset for the tables that SetTables sets later, and looks up all entries of from in a
// View of these. It does nothing else without a View. from need not have passed Check: Find returns
// false if Check rejects it.
func (r *Remap) Find(from pprofile.ProfilesDictionary, in *View) bool {
	r.Reset(from, nil)
	r.view, r.nextSet = in, 0
	r.strings.findAll()
	r.attributes.findAll()
	r.singles.findAll()
	r.mappings.findAll()
	r.functions.findAll()
	r.locations.findAll()
	r.links.findAll()
	r.stacks.findAll()
	if in == nil {
		return true
	}
	r.findStrings(from.StringTable())
	r.findLinks(from.LinkTable())
	return r.findAttributes(from.AttributeTable()) && r.findMappings(from.MappingTable()) &&
		r.findFunctions(from.FunctionTable()) && r.findLocations(from.LocationTable()) && r.findStacks(from.StackTable())
}

// findAll makes m one whose entries are all set at once, without memo.set.
func (m *memo) findAll() {
	m.whole = true
	if len(m.to) == 0 {
		m.to = append(m.to, 1) // index 0 of an empty table
	}
}

// found returns what is known of an index, as memo.to has it. ok is false if it is outside
// the table.
func (m *memo) found(i int32) (to int32, ok bool) {
	if uint32(i) >= uint32(len(m.to)) {
		return 0, false
	}
	return m.to[i], true
}

func (r *Remap) findStrings(table pcommon.StringSlice) {
	to, next := r.strings.to, int32(0)
	view := &r.view.strings
	for i := range table.Len() {
		s := table.At(i)
		if n := int(next); n < len(view.ends) && string(view.at(next)) == s {
			next++
			to[i] = next
			continue
		}
		if n := view.find(unsafe.Slice(unsafe.StringData(s), len(s)), next); n > 0 { //nolint:gosec // read only
			to[i], next = n, n
		}
	}
}

func (r *Remap) findLinks(table pprofile.LinkSlice) {
	to, next := r.links.to, int32(0)
	for i := range table.Len() {
		l := table.At(i)
		if !r.isLink(l) {
			to[i] = 1
			continue
		}
		r.key = appendLink(r.key[:0], l.TraceID(), l.SpanID())
		if n := r.view.links.find(r.key, next); n > 0 {
			to[i], next = n, n
		}
	}
}

func (r *Remap) findAttributes(table pprofile.KeyValueAndUnitSlice) bool {
	to, next := r.attributes.to, int32(0)
	for i := range table.Len() {
		a := table.At(i)
		key, ok1 := r.strings.found(a.KeyStrindex())
		unit, ok2 := r.strings.found(a.UnitStrindex())
		if !ok1 || !ok2 || !Bounded(a.Value()) {
			return false
		}
		if key == 0 || unit == 0 {
			continue
		}
		r.key = appendIndex(appendIndex(r.key[:0], key-1), unit-1)
		if v := a.Value(); v.Type() == pcommon.ValueTypeStr { // if it is found, it is valid
			r.key = append(Value(r.key), tagString).AppendKey(v.Str())
		} else {
			r.key = AppendPdata(r.key, v)
		}
		if n := r.view.attributes.find(r.key, next); n > 0 {
			to[i], next = n, n
		}
	}
	return true
}

func (r *Remap) findMappings(table pprofile.MappingSlice) bool {
	to, next := r.mappings.to, int32(0)
	for i := range table.Len() {
		m := table.At(i)
		file, ok := r.strings.found(m.FilenameStrindex())
		attributes, known, inside := r.findSet(m.AttributeIndices())
		if !ok || !inside {
			return false
		}
		if file == 0 || !known {
			continue
		}
		r.mapping.MemoryStart, r.mapping.MemoryLimit, r.mapping.FileOffset = m.MemoryStart(), m.MemoryLimit(), m.FileOffset()
		r.mapping.Filename = file - 1
		r.mapping.Attributes = append(r.mapping.Attributes[:0], attributes...)
		r.key = r.mapping.appendKey(r.key[:0])
		if n := r.view.mappings.find(r.key, next); n > 0 {
			to[i], next = n, n
		}
	}
	return true
}

func (r *Remap) findFunctions(table pprofile.FunctionSlice) bool {
	to, next := r.functions.to, int32(0)
	for i := range table.Len() {
		f := table.At(i)
		name, ok1 := r.strings.found(f.NameStrindex())
		system, ok2 := r.strings.found(f.SystemNameStrindex())
		file, ok3 := r.strings.found(f.FilenameStrindex())
		if !ok1 || !ok2 || !ok3 {
			return false
		}
		if name == 0 || system == 0 || file == 0 {
			continue
		}
		function := Function{Name: name - 1, SystemName: system - 1, Filename: file - 1, StartLine: f.StartLine()}
		r.key = function.appendKey(r.key[:0])
		if n := r.view.functions.find(r.key, next); n > 0 {
			to[i], next = n, n
		}
	}
	return true
}

// findLocations leaves out locations whose mapping may be rebased.
func (r *Remap) findLocations(table pprofile.LocationSlice) bool {
	to, next := r.locations.to, int32(0)
	location := &r.location
	for i := range table.Len() {
		l := table.At(i)
		mapping, ok := r.mappings.found(l.MappingIndex())
		attributes, known, inside := r.findSet(l.AttributeIndices())
		if !ok || !inside {
			return false
		}
		known = known && mapping > 0 && !r.Coarsening.RebaseMappings
		lines := l.Lines()
		location.Lines = location.Lines[:0]
		for j := range lines.Len() {
			line := lines.At(j)
			function, ok := r.functions.found(line.FunctionIndex())
			if !ok {
				return false
			}
			known = known && function > 0
			location.Lines = append(location.Lines, r.line(Line{Function: function - 1, Line: line.Line(), Column: line.Column()}))
		}
		if !known {
			continue
		}
		location.Mapping, location.Address = mapping-1, 0
		if r.isExact(l) {
			location.Address = l.Address()
		}
		location.Attributes = append(location.Attributes[:0], attributes...)
		r.key = location.appendKey(r.key[:0])
		if n := r.view.locations.find(r.key, next); n > 0 {
			to[i], next = n, n
		}
	}
	return true
}

func (r *Remap) findStacks(table pprofile.StackSlice) bool {
	to, next := r.stacks.to, int32(0)
	locations := r.locations.to
	for i := range table.Len() {
		indices := table.At(i).LocationIndices()
		n := indices.Len()
		r.stack = slices.Grow(r.stack[:0], n)[:n]
		stack, all := r.stack, int32(0) // all is negative if one is not found
		for j := range stack {
			l := indices.At(j)
			if uint32(l) >= uint32(len(locations)) {
				return false
			}
			stack[j] = locations[l] - 1
			all |= stack[j]
		}
		if all < 0 {
			continue
		}
		if n := r.view.stacks.find(stack, next); n > 0 {
			to[i], next = n, n
		}
	}
	return true
}

// want returns whether i was not known and not wanted.
func (m *memo) want(i int32) bool {
	if m.to[i] != 0 {
		return false
	}
	m.to[i] = wanted
	m.wanted = append(m.wanted, i)
	return true
}

// WantStack marks for InternWanted what Find has not found of a stack.
func (r *Remap) WantStack(i int32) {
	if !r.stacks.want(i) {
		return
	}
	for _, i := range r.from.StackTable().At(int(i)).LocationIndices().All() {
		if !r.locations.want(i) {
			continue
		}
		l := r.from.LocationTable().At(int(i))
		r.WantAttributes(l.AttributeIndices())
		if i := l.MappingIndex(); !r.Coarsening.RebaseMappings && r.mappings.want(i) {
			m := r.from.MappingTable().At(int(i))
			r.strings.want(m.FilenameStrindex())
			r.WantAttributes(m.AttributeIndices())
		}
		for _, line := range l.Lines().All() {
			if i := line.FunctionIndex(); r.functions.want(i) {
				f := r.from.FunctionTable().At(int(i))
				r.strings.want(f.NameStrindex())
				r.strings.want(f.SystemNameStrindex())
				r.strings.want(f.FilenameStrindex())
			}
		}
	}
}

// WantAttributes is WantStack for the attributes with these indices.
func (r *Remap) WantAttributes(indices pcommon.Int32Slice) {
	for i := range indices.Len() {
		if a := indices.At(i); r.attributes.want(a) {
			attribute := r.from.AttributeTable().At(int(a))
			r.strings.want(attribute.KeyStrindex())
			r.strings.want(attribute.UnitStrindex())
		}
	}
}

// SortWanted prepares InternWanted.
func (r *Remap) SortWanted() {
	r.wantedBytes, r.wantedLocations = 0, 0
	for _, i := range r.strings.wanted {
		r.wantedBytes += len(r.from.StringTable().At(int(i)))
	}
	for _, i := range r.stacks.wanted {
		r.wantedLocations += r.from.StackTable().At(int(i)).LocationIndices().Len()
	}
	for _, m := range []*memo{&r.strings, &r.attributes, &r.mappings, &r.functions, &r.locations, &r.stacks} {
		slices.Sort(m.wanted)
	}
}

// InternWanted interns what is wanted in the order in which the source has it. Find is quick for
// payloads that have it in the same order.
func (r *Remap) InternWanted() {
	t := r.to
	t.strings.reserve(len(r.strings.wanted), r.wantedBytes)
	t.attributes.reserve(len(r.attributes.wanted), 0)
	t.mappings.reserve(len(r.mappings.wanted), 0)
	t.functions.reserve(len(r.functions.wanted), 0)
	t.locations.reserve(len(r.locations.wanted), 0)
	t.stacks.reserve(len(r.stacks.wanted), r.wantedLocations)
	for _, i := range r.strings.wanted {
		r.String(i)
	}
	for _, i := range r.attributes.wanted {
		r.Attribute(i)
	}
	for _, i := range r.mappings.wanted {
		r.Mapping(i)
	}
	for _, i := range r.functions.wanted {
		r.Function(i)
	}
	for _, i := range r.locations.wanted {
		r.Location(i)
	}
	for _, i := range r.stacks.wanted {
		r.Stack(i)
	}
}

// findSet returns the attributes with these indices as a sorted set, in memory that the next
// call overwrites. known is false if an attribute is not found, inside if an index is outside
// the table.
func (r *Remap) findSet(indices pcommon.Int32Slice) (attributes []int32, known, inside bool) {
	n := indices.Len()
	if n == 0 {
		return nil, true, true
	}
	r.set, known = r.set[:0], true
	for i := range n {
		a, ok := r.attributes.found(indices.At(i))
		if !ok {
			return nil, false, false
		}
		known = known && a > 0
		if a > 1 {
			r.set = append(r.set, a-1)
		}
	}
	return set(r.set), known, true
}

// SetTables sets the tables of which Find has got a View.
func (r *Remap) SetTables(to *Tables) { r.to = to }

// HasString reports whether i is an index of the string table.
func (r *Remap) HasString(i int32) bool {
	_, ok := r.strings.found(i)
	return ok
}

// FindStack returns the index in the tables of stack i, or -1 if Find has not found it. ok is
// false if i is outside the stack table.
func (r *Remap) FindStack(i int32) (to int32, ok bool) {
	to, ok = r.stacks.found(i)
	return to - 1, ok
}

// FindLink is FindStack for a link.
func (r *Remap) FindLink(i int32) (to int32, ok bool) {
	to, ok = r.links.found(i)
	return to - 1, ok
}

// FindSet is FindStack for a set of attribute indices. The result is its number.
func (r *Remap) FindSet(indices pcommon.Int32Slice) (to int32, ok bool) {
	if indices.Len() == 0 {
		return 0, true
	}
	single := indices.Len() == 1
	if single {
		if to, ok = r.singles.found(indices.At(0)); !ok || to > 0 {
			return to - 1, ok
		}
	}
	attributes, known, ok := r.findSet(indices)
	if !known || !ok {
		return -1, ok
	}
	to = 0
	if len(attributes) > 0 {
		if to = r.view.sets.find(attributes, r.nextSet) - 1; to < 0 {
			return -1, true
		}
		r.nextSet = to + 1
	}
	if single {
		r.singles.set(indices.At(0), to)
	}
	return to, true
}
