// Copyright The otelcol-profiles Authors
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
	numbers
	keys []byte   // all keys, one after the other
	ends []uint32 // where each key ends in keys
	// part, if it is there, tells the part of a key.
	part func(key []byte) int32
}

func (t *table) key(i int32) []byte {
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.keys[start:t.ends[i]]
}

func hashOf(key []byte) uint32 { return uint32(maphash.Bytes(seed, key)) }

const maxArena = 1<<32 - 1

// room is limit, or the present length if there is no room for so many more bytes.
func (t *table) room(limit, more int) int {
	if t.size()+more > maxArena {
		return t.len()
	}
	return limit
}

// intern returns the number of key, which is copied and added if it is new, in a
// table without parts. With no room left (limit entries, or 4 GiB of keys) it
// answers -1.
func (t *table) intern(key []byte, limit int) int32 {
	n, added := t.number(noPart, t.room(limit, len(key)),
		func() uint32 { return hashOf(key) },
		func(n int32) bool { return bytes.Equal(t.key(n), key) })
	if added {
		t.keys = append(t.keys, key...)
		t.ends = append(t.ends, uint32(len(t.keys)))
	}
	return n
}

// internLast is intern for the key that has been appended to keys, where it stays
// if it is new. It is told the part of the key.
func (t *table) internLast(part int32, limit int) int32 {
	start := t.size()
	key := t.keys[start:]
	n, added := t.number(part, t.room(limit, len(key)),
		func() uint32 { return hashOf(key) },
		func(n int32) bool { return bytes.Equal(t.key(n), key) })
	if added {
		t.ends = append(t.ends, uint32(len(t.keys)))
	} else {
		t.keys = t.keys[:start]
	}
	return n
}

// size is the length of all keys.
func (t *table) size() int {
	if len(t.ends) == 0 {
		return 0
	}
	return int(t.ends[len(t.ends)-1])
}

// truncate forgets the keys from number n on.
func (t *table) truncate(n int) {
	for i := t.len() - 1; i >= n; i-- {
		key, part := t.key(int32(i)), int32(noPart)
		if t.part != nil {
			part = t.part(key)
		}
		t.removeLast(part, func() uint32 { return hashOf(key) })
		t.ends = t.ends[:i]
	}
	t.keys = t.keys[:t.size()]
}

// reset forgets all keys and keeps the memory.
func (t *table) reset() {
	t.numbers.reset()
	t.keys, t.ends = t.keys[:0], t.ends[:0]
}

// grow makes room for so many more keys at once, and their bytes.
func (t *table) grow(n, size int) {
	t.keys = roomy(t.keys, size)
	t.ends = roomy(t.ends, n)
	t.numbers.grow(n, t.part != nil)
}

// retained is the size, in bytes, of what the table holds on to.
func (t *table) retained() int {
	return cap(t.keys) + 4*cap(t.ends) + t.numbers.retained()
}
