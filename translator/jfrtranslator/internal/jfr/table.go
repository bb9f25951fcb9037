// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// Key identifies an entry of a Table. An array would not be passed in registers, which took a quarter more time.
type Key struct{ Low, High uint64 }

// KeySize is the size of a key in bytes.
const KeySize = 16

// KeyOf returns a key that is these bytes and their number, with 0 as its last byte, if they are at most 14. It reads
// the bytes that follow them, so that there is no key at the end of the chunk.
func KeyOf(content []byte) (k Key, ok bool) {
	n := len(content)
	if n > KeySize-2 || cap(content) < KeySize {
		return k, false
	}
	content = content[:KeySize]
	k = Key{binary.LittleEndian.Uint64(content), binary.LittleEndian.Uint64(content[8:])}
	if n < 8 {
		k.Low &= 1<<(8*n) - 1
	}
	k.High = k.High&(1<<(8*max(n, 8)-64)-1) | uint64(n)<<48
	return k, true
}

// Value is what a Table has: a constant of the chunk, a number, or both.
type Value struct {
	At, End int32 // where the constant is
	number  int32 // plus one
}

// Number returns the number of a value, if it has one.
func (v *Value) Number() (number int32, numbered bool) { return v.number - 1, v.number > 0 }

// SetNumber gives a value a number, which is 0 or more.
func (v *Value) SetNumber(number int32) { v.number = number + 1 }

// Table has values by key, several times as fast as a map: open addressing, linear probing.
type Table struct {
	entries []entry // by hash; the values of free ones are zero
	used    int
}

type entry struct {
	key Key
	Value
}

const (
	minEntries = 64
	entrySize  = int(unsafe.Sizeof(entry{}))
)

// secrets key the hashes, so that no recording can be made to collide.
var secrets = Key{rand.Uint64(), rand.Uint64()}

// find returns the entry with a key, or the free one for it.
func (t *Table) find(k Key) *entry {
	hi, lo := bits.Mul64(k.Low^secrets.Low, k.High^secrets.High)
	for mask, at := len(t.entries)-1, int(hi^lo); ; at++ {
		if e := &t.entries[at&mask]; e.key == k || e.Value == (Value{}) {
			return e
		}
	}
}

// Find returns the value of a key, or nil. It is valid until the next call of Put.
func (t *Table) Find(k Key) *Value {
	if t.used > 0 {
		if e := t.find(k); e.Value != (Value{}) {
			return &e.Value
		}
	}
	return nil
}

// Put is Find, but adds a value if there is none, which the caller sets. If there is no memory for it, m.Err is set and
// the value is not in the table.
func (t *Table) Put(m *Memory, k Key) *Value {
	if 2*t.used >= len(t.entries) && !t.grow(m) {
		return new(Value)
	}
	e := t.find(k)
	if e.Value == (Value{}) {
		e.key = k
		t.used++
	}
	return &e.Value
}

func (t *Table) grow(m *Memory) bool {
	old := t.entries
	size := max(minEntries, 2*len(old))
	if !m.Take(entrySize * size) {
		return false
	}
	m.Take(-entrySize * cap(old))
	t.entries = make([]entry, size)
	for i := range old {
		if e := &old[i]; e.Value != (Value{}) {
			*t.find(e.key) = *e
		}
	}
	return true
}

// Reset removes all entries. It keeps the memory, of which it clears little more than was used: the
// next chunk usually has about as many.
func (t *Table) Reset() {
	if t.used == 0 {
		return
	}
	for len(t.entries) > max(minEntries, 8*t.used) {
		t.entries = t.entries[:len(t.entries)/2]
	}
	clear(t.entries)
	t.used = 0
}
