// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"hash/maphash"
)

// seed keys the hashes of all tables, so that no input can be made to collide.
var seed = maphash.MakeSeed()

// table is a set of byte strings, each known by the order it was added in.
type table struct {
	keys  []byte   // all keys, one after the other
	ends  []uint32 // where each key ends in keys
	index index
	// part, if it is there, tells of a key an index that few others have in the same
	// place, or -1. The first key of each part is in firsts (its number plus one) and
	// not in index: as indices grow by one, that is where it was last, in the cache.
	part   func(key []byte) int32
	firsts []int32
}

func (t *table) len() int { return len(t.ends) }

func (t *table) key(i int32) []byte {
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.keys[start:t.ends[i]]
}

func hashOf(key []byte) uint32 { return uint32(maphash.Bytes(seed, key)) }

// find returns the number of key, or -1 and the slot where it belongs.
func (t *table) find(key []byte, hash uint32) (number int32, slot uint32) {
	return t.index.find(hash, func(n int32) bool { return bytes.Equal(t.key(n), key) })
}

// intern returns the number of key, which is copied and added if it is new, in a
// table without parts. With no room left (limit entries, or 4 GiB of keys) it
// answers -1.
func (t *table) intern(key []byte, limit int) int32 {
	hash := hashOf(key)
	n, slot := t.find(key, hash)
	if n >= 0 {
		return n
	}
	start := len(t.keys)
	t.keys = append(t.keys, key...)
	if n = t.add(start, limit); n >= 0 {
		t.index.insert(slot, hash, n)
	}
	return n
}

// internLast is intern for the key that has been appended to keys, where it stays
// if it is new. It is told the part of the key.
func (t *table) internLast(part int32, limit int) int32 {
	start := t.size()
	key := t.keys[start:]
	if part >= 0 {
		if int(part) >= len(t.firsts) {
			t.firsts = append(t.firsts, make([]int32, int(part)+1-len(t.firsts))...)
		}
		n := t.firsts[part] - 1
		if n < 0 {
			if n = t.add(start, limit); n >= 0 {
				t.firsts[part] = n + 1
			}
			return n
		}
		if bytes.Equal(t.key(n), key) {
			t.keys = t.keys[:start]
			return n
		}
	}
	hash := hashOf(key)
	n, slot := t.find(key, hash)
	if n >= 0 {
		t.keys = t.keys[:start]
		return n
	}
	if n = t.add(start, limit); n >= 0 {
		t.index.insert(slot, hash, n)
	}
	return n
}

// add makes a key of what stands in keys from start on.
func (t *table) add(start, limit int) int32 {
	if len(t.ends) >= limit || len(t.keys) > maxArena {
		t.keys = t.keys[:start]
		return -1
	}
	t.ends = append(t.ends, uint32(len(t.keys)))
	return int32(len(t.ends) - 1)
}

// size is the length of all keys.
func (t *table) size() int {
	if len(t.ends) == 0 {
		return 0
	}
	return int(t.ends[len(t.ends)-1])
}

const maxArena = 1<<32 - 1

// truncate forgets the keys from number n on. The last key never displaced an
// earlier one, so that freeing its slot leaves every other probe intact.
func (t *table) truncate(n int) {
	for i := len(t.ends) - 1; i >= n; i-- {
		key := t.key(int32(i))
		if part := t.partOf(key); part >= 0 && t.firsts[part] == int32(i+1) {
			t.firsts[part] = 0
		} else {
			_, slot := t.find(key, hashOf(key))
			t.index.remove(slot)
		}
		t.ends = t.ends[:i]
	}
	t.keys = t.keys[:t.size()]
}

func (t *table) partOf(key []byte) int32 {
	if t.part == nil {
		return -1
	}
	return t.part(key)
}

// reset forgets all keys and keeps the memory.
func (t *table) reset() {
	t.index.reset()
	t.keys, t.ends, t.firsts = t.keys[:0], t.ends[:0], t.firsts[:0]
}

// grow makes room for so many more keys at once, and their bytes.
func (t *table) grow(n, size int) {
	t.keys = roomy(t.keys, size)
	t.ends = roomy(t.ends, n)
	if t.part != nil {
		t.firsts = roomy(t.firsts, n)
		n /= 2 // as many are the first of their part
	}
	t.index.grow(n, len(t.ends))
}

// roomy is s with room for exactly n more elements, or what it has beyond that.
func roomy[E any](s []E, n int) []E {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(make([]E, 0, len(s)+n), s...)
}

// retained is the size, in bytes, of what the table holds on to.
func (t *table) retained() int {
	return cap(t.keys) + 4*cap(t.ends) + t.index.retained() + 4*cap(t.firsts)
}
