// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "sync/atomic"

// index maps hashes to the numbers of entries that are kept elsewhere: open addressing,
// linear probing.
type index struct {
	// A slot holds the hash of an entry above its number plus one; 0 is free.
	slots []uint64
	used  int
}

// minSlots leaves a slot free when insert makes more of them: a View may still search those that were full.
const minSlots = 8

// find returns the number of the entry with this hash for which equals returns true, or
// -1 and the slot where it belongs.
func (x *index) find(hash uint32, equals func(number int32) bool) (number int32, slot uint32) {
	if len(x.slots) == 0 {
		x.slots = make([]uint64, minSlots)
	}
	for at := home(hash, x.slots); ; at = after(at, x.slots) {
		s := x.slots[at]
		if s == 0 {
			return -1, at
		}
		if uint32(s>>32) == hash {
			if n := int32(uint32(s) - 1); equals(n) {
				return n, at
			}
		}
	}
}

// home is the slot where a search for hash starts: of n slots, the one that hash is in as a share of 2^32.
func home(hash uint32, slots []uint64) uint32 { return uint32(uint64(hash) * uint64(len(slots)) >> 32) }

// after is the slot that a search looks at after slot at.
func after(at uint32, slots []uint64) uint32 {
	if at++; int(at) < len(slots) {
		return at
	}
	return 0
}

// insert puts the newest entry, with this number, into the slot that find gave.
func (x *index) insert(slot, hash uint32, number int32) {
	atomic.StoreUint64(&x.slots[slot], uint64(hash)<<32|uint64(uint32(number)+1)) // a View may be reading
	if x.used++; x.used*4 > len(x.slots)*3 {
		x.resize(len(x.slots)*2, int(number)+1)
	}
}

// remove frees the slot of the newest entry. No other probe passes it.
func (x *index) remove(slot uint32) {
	atomic.StoreUint64(&x.slots[slot], 0)
	x.used--
}

// grow makes room for more entries, besides those that are numbered so far. It takes less memory than insert.
func (x *index) grow(more, entries int) {
	if size := (x.used+more)*4/3 + 1; size > len(x.slots) {
		x.resize(max(size, len(x.slots)*3/2, minSlots), entries)
	}
}

// resize inserts all entries again in the order of their numbers, so that no probe
// passes the slot of the newest. It uses the memory it has if that is enough.
func (x *index) resize(size, entries int) {
	ordered := make([]uint64, entries)
	for _, s := range x.slots {
		if s != 0 {
			ordered[uint32(s)-1] = s
		}
	}
	if cap(x.slots) < size {
		x.slots = make([]uint64, size)
	} else {
		x.slots = x.slots[:size]
		clear(x.slots)
	}
	for _, s := range ordered {
		if s == 0 {
			continue
		}
		at := home(uint32(s>>32), x.slots)
		for x.slots[at] != 0 {
			at = after(at, x.slots)
		}
		x.slots[at] = s
	}
}

// reset removes all entries. It keeps the memory and starts with few slots, so that
// the next reset clears no more slots than were used.
func (x *index) reset() {
	x.slots = x.slots[:min(len(x.slots), minSlots)]
	clear(x.slots)
	x.used = 0
}

// retained is the memory that x holds on to, in bytes, or will after it has grown next, when an entry takes two
// slots. So the size of a window does not jump when its indexes grow.
func (x *index) retained() int { return 8 * max(cap(x.slots), 2*x.used) }
