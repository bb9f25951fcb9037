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

// find returns the number of an entry, or absent. It first looks at next: see memo.
func (v *viewed) find(entry []byte, next *int32) int32 {
	if n := *next; int(n) < len(v.ends) && string(v.at(n)) == string(entry) {
		*next = n + 1
		return n
	}
	if len(v.slots) == 0 {
		return absent
	}
	hash, mask := hashOf(entry), uint32(len(v.slots)-1)
	for at := hash & mask; ; at = (at + 1) & mask {
		s := atomic.LoadUint64(&v.slots[at])
		if s == 0 {
			return absent
		}
		if uint32(s>>32) == hash {
			if n := int32(uint32(s) - 1); int(n) < len(v.ends) && string(v.at(n)) == string(entry) {
				*next = n + 1
				return n
			}
		}
	}
}
