// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"math/bits"
	"math/rand/v2"
)

// IDTable finds positions by id. IDs usually are small and dense, and an array is faster than
// anything else. The others are found by a hash, several times as fast as in a map.
type IDTable struct {
	ids    []uint64 // of the owner, by position
	dense  []int32  // by id: the position plus one
	sparse []int32  // by hash: the position plus one
	shift  int      // of a hash
}

// hashFactor keys the hashes, so that no recording can be made to collide.
var hashFactor = rand.Uint64() | 1

func (t *IDTable) hash(id uint64) int {
	hi, lo := bits.Mul64(id, hashFactor)
	return int((hi ^ lo) * hashFactor >> t.shift)
}

// build makes the table of ids, which are in the order of their positions. Of equal ids
// the last one counts.
func (t *IDTable) build(m *Memory, ids []uint64) (err error) {
	limit, size, others := uint64(4*len(ids)+64), 0, 0
	for _, id := range ids {
		if id < limit {
			size = max(size, int(id)+1)
		} else {
			others++
		}
	}
	if t.ids = ids; others > 0 {
		others = 1 << bits.Len(uint(2*others)) // at most half full
		t.shift = 64 - bits.TrailingZeros(uint(others))
	}
	if t.dense, err = Zeroed(m, t.dense, size); err != nil {
		return err
	}
	if t.sparse, err = Zeroed(m, t.sparse, others); err != nil {
		return err
	}
	for position, id := range ids {
		if id < limit {
			t.dense[id] = int32(position) + 1
		} else {
			t.sparse[t.slot(id)] = int32(position) + 1
		}
	}
	return nil
}

// slot returns the slot of an id in sparse, or the free one for it.
func (t *IDTable) slot(id uint64) int {
	slot := t.hash(id)
	for t.sparse[slot] != 0 && t.ids[t.sparse[slot]-1] != id {
		slot = (slot + 1) & (len(t.sparse) - 1)
	}
	return slot
}

// Find returns the position of id, or -1.
func (t *IDTable) Find(id uint64) int32 {
	if id < uint64(len(t.dense)) {
		return t.dense[id] - 1
	}
	if len(t.sparse) == 0 {
		return -1
	}
	return t.sparse[t.slot(id)] - 1
}
