// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"sync/atomic"
)

// View has the content of Tables at one time. It does not change, and may be used while Tables
// grow. It shares their memory.
type View struct{ perTable[viewed] }

type viewed struct {
	entries
	slots []uint64 // those of the index, which also get entries that are added later
}

// View returns a View of t, which must not be reset.
func (t *Tables) View() *View {
	v := &View{}
	for i, table := range t.all() {
		*v.all()[i] = viewed{table.entries, table.index.slots}
	}
	return v
}

// Lengths returns the lengths of the tables, and the number of attribute sets.
func (v *View) Lengths() (lengths Lengths, sets int) {
	return Lengths{
		Strings: v.strings.len(), Mappings: v.mappings.len(), Locations: v.locations.len(), Functions: v.functions.len(),
		Links: v.links.len(), Attributes: v.attributes.len(), Stacks: v.stacks.len(),
	}, v.sets.len()
}

// String returns the bytes of a string.
func (v *View) String(i int32) []byte { return v.strings.at(i) }

// Mapping returns the key of a mapping.
func (v *View) Mapping(i int32) []byte { return v.mappings.at(i) }

// Location returns the key of a location.
func (v *View) Location(i int32) []byte { return v.locations.at(i) }

// Function returns the key of a function.
func (v *View) Function(i int32) []byte { return v.functions.at(i) }

// Link returns the key of a link.
func (v *View) Link(i int32) []byte { return v.links.at(i) }

// Attribute returns the key of an attribute.
func (v *View) Attribute(i int32) []byte { return v.attributes.at(i) }

// Stack returns the location indices of a stack.
func (v *View) Stack(i int32) []int32 { return v.stacks.indicesAt(i) }

// Set returns the attribute indices of a set.
func (v *View) Set(i int32) []int32 { return v.sets.indicesAt(i) }

// search is the state of a series of searches in one table of a View.
type search struct {
	next   int32 // the likely index of the next entry: payloads have entries in about the order of earlier ones
	missed bool  // the last search was in vain
	// While all entries of a source are searched for: the one that is, and those that are not yet.
	current int32
	delayed []delayed
	keys    []byte // of delayed
}

// delayed is an entry that findDelayed looks up.
type delayed struct {
	index int32 // in the source
	hash  uint32
	end   int // of its key in search.keys
}

// The index of a large table is not in the processor's cache. If an entry is not there, the next ones
// probably are not, either. They are looked up together, because the processor then waits for many slots at
// once: a profile that is new to a table of 10^6 entries takes two thirds of the time.
const (
	largeIndex = 1 << 15 // slots
	together   = 64      // entries
	maxDelayed = 1 << 12 // bytes of an entry, which is copied
)

// findAll sets the index of each entry to the result of visit.
func (v *viewed) findAll(m *memo, r *Remap, visit func(r *Remap, i int32) int32) {
	m.whole = true
	s := &m.search
	for i := range m.to {
		s.current = int32(i)
		to := visit(r, int32(i))
		switch {
		case to >= 0:
			m.to[i] = to + 1
		case to == absent:
			m.set(int32(i), to)
		case len(s.delayed) == together:
			v.findDelayed(m)
		}
	}
	v.findDelayed(m)
}

func (v *viewed) findDelayed(m *memo) {
	s := &m.search
	for _, d := range s.delayed {
		atomic.LoadUint64(&v.slots[home(d.hash, v.slots)]) // into the cache
	}
	start := 0
	for _, d := range s.delayed {
		m.set(d.index, v.search(d.hash, s.keys[start:d.end], s))
		start = d.end
	}
	s.delayed, s.keys = s.delayed[:0], s.keys[:0]
}

// find returns the number of an entry, absent, or later: then m has it for findDelayed. It first looks at the
// likely one.
func (v *viewed) find(entry []byte, m *memo) int32 {
	s := &m.search
	if n := s.next; int(n) < len(v.ends) && string(v.at(n)) == string(entry) {
		s.next++
		return n
	}
	if len(v.slots) == 0 {
		return absent
	}
	hash := hashOf(entry)
	if s.missed && m.whole && len(v.slots) >= largeIndex && len(entry) <= maxDelayed {
		s.keys = append(s.keys, entry...)
		s.delayed = append(s.delayed, delayed{s.current, hash, len(s.keys)})
		return later
	}
	return v.search(hash, entry, s)
}

func (v *viewed) search(hash uint32, entry []byte, s *search) int32 {
	for at := home(hash, v.slots); ; at = after(at, v.slots) {
		slot := atomic.LoadUint64(&v.slots[at])
		if slot == 0 {
			s.missed = true
			return absent
		}
		if uint32(slot>>32) == hash {
			if n := int32(uint32(slot) - 1); int(n) < len(v.ends) && string(v.at(n)) == string(entry) {
				s.next, s.missed = n+1, false
				return n
			}
		}
	}
}
