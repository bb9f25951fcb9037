// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"math/bits"
	"math/rand/v2"
)

// idTable leads from the ids of one kind of entry to their numbers, in the order
// of the message. Ids mostly are small and dense: then it is an array. Sparse
// ones go into a hash table keyed by secret, so that no input makes them collide.
type idTable struct {
	dense  []int32 // by id: the number plus one
	sparse []int32 // open addressing: the number plus one
	ids    []uint64
	shift  uint
}

var secret = rand.Uint64() | 1

// reset prepares for ids, of which it keeps the slice. It returns false and the
// number of the first id that is there twice.
func (t *idTable) reset(ids []uint64) (repeat int, ok bool) {
	t.ids, t.dense, t.sparse = ids, t.dense[:0], t.sparse[:0]
	largest := uint64(0)
	for _, id := range ids {
		largest = max(largest, id)
	}
	if largest <= uint64(2*len(ids)+16) {
		t.dense = zeroed(t.dense, int(largest)+1)
		for n, id := range ids {
			if t.dense[id] != 0 {
				return n, false
			}
			t.dense[id] = int32(n + 1)
		}
		return 0, true
	}
	size := uint(bits.Len(uint(len(ids)) * 3 / 2))
	t.shift = 64 - size
	t.sparse = zeroed(t.sparse, 1<<size)
	for n, id := range ids {
		at := (id * secret) >> t.shift
		for ; t.sparse[at] != 0; at = (at + 1) & uint64(len(t.sparse)-1) {
			if ids[t.sparse[at]-1] == id {
				return n, false
			}
		}
		t.sparse[at] = int32(n + 1)
	}
	return 0, true
}

// number returns the number of id, or -1.
func (t *idTable) number(id uint64) int32 {
	if id < uint64(len(t.dense)) {
		return t.dense[id] - 1
	}
	if len(t.sparse) == 0 {
		return -1
	}
	for at := (id * secret) >> t.shift; t.sparse[at] != 0; at = (at + 1) & uint64(len(t.sparse)-1) {
		if n := t.sparse[at] - 1; t.ids[n] == id {
			return n
		}
	}
	return -1
}

func zeroed[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	s = s[:n]
	clear(s)
	return s
}
