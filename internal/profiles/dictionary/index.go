// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// index finds the numbers of entries that are kept elsewhere by their hashes: open addressing, linear
// probing. The zero value has none.
type index struct {
	// A slot holds the hash of an entry above its number plus one; 0 is free.
	slots []uint64
	used  int
}

const minSlots = 8

// Find returns the number of the entry with this hash for which equals returns true, or
// -1 and the slot where it belongs.
func (x *index) Find(hash uint32, equals func(number int32) bool) (number int32, slot uint32) {
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

// Insert puts the entry with this number into the slot that Find returned.
func (x *index) Insert(slot, hash uint32, number int32) {
	x.slots[slot] = uint64(hash)<<32 | uint64(uint32(number)+1)
	if x.used++; x.used*4 > len(x.slots)*3 {
		x.resize(len(x.slots) * 3 / 2)
	}
}

// Grow makes room for more entries. It takes less memory than Insert.
func (x *index) Grow(more int) {
	if size := (x.used+more)*3/2 + 1; size > len(x.slots) {
		x.resize(max(size, len(x.slots)*3/2, minSlots))
	}
}

// resize uses the memory that x has if that is enough.
func (x *index) resize(size int) {
	old := x.slots
	if size <= cap(old) {
		old = slices.Clone(old)
	}
	x.slots = slices.Grow(x.slots[:0], size)[:size]
	clear(x.slots)
	for _, s := range old {
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

// Reset removes all entries. It keeps the memory and starts with few slots, so that
// the next Reset clears no more slots than were used.
func (x *index) Reset() {
	x.slots = x.slots[:min(len(x.slots), minSlots)]
	clear(x.slots)
	x.used = 0
}

// Retained is the memory that x holds on to, in bytes, or will after it has grown next, when an entry takes two
// slots. So the size of a window does not jump when its indexes grow.
func (x *index) Retained() int { return 8 * max(cap(x.slots), 2*x.used) }

// seed keys the hashes of all tables, so that no input can be made to collide.
var seed = maphash.MakeSeed()

// fold mixes a and b into h by a 128-bit multiplication, keyed as seed keys hashOf.
func fold(h, a, b uint64) uint64 {
	hi, lo := bits.Mul64(h^a^secrets[0], b^secrets[1])
	return hi ^ lo
}

var secrets = [2]uint64{rand.Uint64(), rand.Uint64()}

func hashOf(entry []byte) uint32 { return uint32(maphash.Bytes(seed, entry)) }
