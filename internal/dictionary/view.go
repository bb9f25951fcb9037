// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"sync/atomic"
)

// View is what Tables held at one time. It does not change, and may be used while Tables
// grow. It shares their memory.
type View struct {
	strings, mappings, locations, functions, links, attributes, stacks, sets viewed
}

type viewed struct {
	entries
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

func viewOf(t *table) viewed { return viewed{t.entries, t.index.slots} }

// find returns the number of an entry, absent, or later: then m has it for findDelayed. It first looks at
// the likely one.
func (v *viewed) find(entry []byte, m *memo) int32 {
	if n := m.next; int(n) < len(v.ends) && string(v.at(n)) == string(entry) {
		m.next++
		return n
	}
	if len(v.slots) == 0 {
		return absent
	}
	hash := hashOf(entry)
	if m.missed && m.whole && len(v.slots) >= largeIndex && len(entry) <= maxDelayed {
		m.keys = append(m.keys, entry...)
		m.delayed = append(m.delayed, delayed{hash: hash, end: len(m.keys)})
		return later
	}
	return v.search(hash, entry, m)
}

func (v *viewed) search(hash uint32, entry []byte, m *memo) int32 {
	mask := uint32(len(v.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := atomic.LoadUint64(&v.slots[at])
		if s == 0 {
			m.missed = true
			return absent
		}
		if uint32(s>>32) == hash {
			if n := int32(uint32(s) - 1); int(n) < len(v.ends) && string(v.at(n)) == string(entry) {
				m.next, m.missed = n+1, false
				return n
			}
		}
	}
}

// The index of a large table is not in the processor's cache. If an entry is not there, the next ones
// probably are not, either. They are looked up together, because the processor then waits for many slots at
// once: of a table of 10^6 entries this takes a third of the time.
const (
	largeIndex = 1 << 15 // slots
	together   = 64      // entries
	maxDelayed = 1 << 12 // bytes of an entry, which is copied
)
