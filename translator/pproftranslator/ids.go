// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// idTable leads from the ids of one kind of entry to their numbers, in the order
// they are added. Ids mostly are small and dense: then it is an array. Once one is
// not, all go into a hash table, keyed by secret so that no input makes them
// collide.
type idTable struct {
	expected int
	added    int
	dense    []int32 // by id: the number plus one
	sparse   []int32 // open addressing: the number plus one
	ids      []uint64
	shift    uint
}

var secret = rand.Uint64() | 1

// reset forgets all ids. At most the expected number may be added.
func (t *idTable) reset(expected int) {
	t.expected, t.added = expected, 0
	t.sparse, t.ids = t.sparse[:0], t.ids[:0]
	t.dense = zeroed(t.dense, expected+1)
}

func (t *idTable) retained() int { return 4*cap(t.dense) + 4*cap(t.sparse) + 8*cap(t.ids) }

var errReservedID = errors.New("it has the id 0, which is reserved")

// add gives id the next number.
func (t *idTable) add(id uint64) error {
	if id == 0 {
		return errReservedID
	}
	if t.number(id) >= 0 {
		return fmt.Errorf("it has the id %d, as an earlier one has", id)
	}
	t.added++
	if len(t.sparse) == 0 && id <= uint64(2*t.expected) {
		if id >= uint64(len(t.dense)) {
			t.dense = grown(t.dense, int(id)+1)
		}
		t.dense[id] = int32(t.added)
		return nil
	}
	if len(t.sparse) == 0 {
		t.becomeSparse()
	}
	t.insert(id, int32(t.added))
	return nil
}

func (t *idTable) becomeSparse() {
	size := uint(bits.Len(uint(t.expected) * 3 / 2))
	t.shift = 64 - size
	t.sparse = zeroed(t.sparse, 1<<size)
	t.ids = zeroed(t.ids, t.expected)
	for id, number := range t.dense {
		if number != 0 {
			t.insert(uint64(id), number)
		}
	}
	t.dense = t.dense[:0]
}

func (t *idTable) insert(id uint64, number int32) {
	t.ids[number-1] = id
	at := (id * secret) >> t.shift
	for t.sparse[at] != 0 {
		at = (at + 1) & uint64(len(t.sparse)-1)
	}
	t.sparse[at] = number
}

// number returns the number of id, or -1.
func (t *idTable) number(id uint64) int32 {
	if id < uint64(len(t.dense)) {
		return t.dense[id] - 1
	}
	return t.sparseNumber(id)
}

func (t *idTable) sparseNumber(id uint64) int32 {
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

// zeroed returns n zero elements, in the memory of s if it is enough.
func zeroed[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// emptied returns no elements, and room for n of them.
func emptied[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, 0, n)
	}
	return s[:0]
}

// roomFor returns s with room for all of count, which is exact: growing on the way
// takes several times as much.
func roomFor[E any](s []E, count func() int) []E {
	return append(make([]E, 0, max(count(), len(s)+1)), s...)
}

// grown returns s with n elements, the new ones zero.
func grown(s []int32, n int) []int32 {
	old := len(s)
	for cap(s) < n {
		s = append(s[:cap(s)], 0)
	}
	s = s[:n]
	clear(s[old:])
	return s
}
