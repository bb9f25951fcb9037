// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"math/bits"
	"math/rand/v2"
)

// Key is what a Table finds numbers by.
type Key [2]uint64

// Table has numbers by key, several times as fast as a map: open addressing, linear probing.
type Table struct {
	entries []entry
	slots   []int32 // by hash: the position of an entry plus one; 0 is free
}

type entry struct {
	key    Key
	number int32
}

const minSlots = 64

// secrets key the hashes, so that no recording can be made to collide.
var secrets = Key{rand.Uint64(), rand.Uint64()}

// find returns the slot of a key, or the free one for it.
func (t *Table) find(k Key) *int32 {
	hi, lo := bits.Mul64(k[0]^secrets[0], k[1]^secrets[1])
	for mask, at := len(t.slots)-1, int(hi^lo); ; at++ {
		if s := &t.slots[at&mask]; *s == 0 || t.entries[*s-1].key == k {
			return s
		}
	}
}

// Find returns the number of a key, or -1.
func (t *Table) Find(k Key) int32 {
	if len(t.entries) > 0 {
		if s := *t.find(k); s != 0 {
			return t.entries[s-1].number
		}
	}
	return -1
}

// Put sets the number of a key, unless it has one, which Put returns.
func (t *Table) Put(m *Memory, k Key, number int32) (_ int32, err error) {
	if n := len(t.entries); 2*n >= len(t.slots) {
		if t.slots, err = Zeroed(m, t.slots[:0], max(minSlots, 4*n)); err != nil {
			return 0, err
		}
		for i := range t.entries {
			*t.find(t.entries[i].key) = int32(i + 1)
		}
	}
	s := t.find(k)
	if *s == 0 {
		if t.entries, err = Room(m, t.entries, 1); err != nil {
			return 0, err
		}
		t.entries = append(t.entries, entry{k, number})
		*s = int32(len(t.entries))
	}
	return t.entries[*s-1].number, nil
}

// Reset removes all entries and keeps the memory.
func (t *Table) Reset() {
	t.entries = t.entries[:0]
	t.slots = t.slots[:min(len(t.slots), minSlots)]
	clear(t.slots)
}

// ids has numbers by id. Ids usually are small and dense, and an array is faster than anything
// else.
type ids struct {
	dense  []int32 // by id: the number plus one
	sparse Table   // the others
}

func (t *ids) find(id uint64) int32 {
	if id < uint64(len(t.dense)) && t.dense[id] != 0 {
		return t.dense[id] - 1
	}
	return t.sparse.Find(Key{id})
}

// put sets the number of an id, unless it has one, which put returns. number counts the ids before it.
func (t *ids) put(m *Memory, id uint64, number int32) (_ int32, err error) {
	if id >= 4*uint64(number)+minSlots {
		return t.sparse.Put(m, Key{id}, number)
	}
	if old := len(t.dense); int(id) >= old {
		size := max(int(id)+1, min(2*old, 4*int(number)+minSlots))
		if t.dense, err = Zeroed(m, t.dense, size-old); err != nil {
			return 0, err
		}
	}
	if t.dense[id] == 0 {
		t.dense[id] = number + 1
	}
	return t.dense[id] - 1, nil
}

func (t *ids) reset() {
	t.dense = t.dense[:0]
	t.sparse.Reset()
}
