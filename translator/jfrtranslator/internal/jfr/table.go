// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// Key identifies an entry of a Table. An array would not be passed in registers, which took a quarter more time.
type Key struct{ Low, High uint64 }

// Value is what a Table has: a constant of the chunk, a number, or both.
type Value struct {
	At     int32 // where the constant is
	number int32 // plus one; of a constant without a number, minus its size
}

// Number returns the number of a value, if it has one.
func (v *Value) Number() (number int32, numbered bool) { return v.number - 1, v.number > 0 }

// SetNumber gives a value a number, which is 0 or more.
func (v *Value) SetNumber(number int32) { v.number = number + 1 }

// End returns where a constant without a number ends.
func (v *Value) End() int { return int(v.At - v.number) }

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

// Put is Find, but adds a value if there is none, which the caller sets.
func (t *Table) Put(m *Memory, k Key) (*Value, error) {
	if 2*t.used >= len(t.entries) {
		if err := t.grow(m); err != nil {
			return nil, err
		}
	}
	e := t.find(k)
	if e.Value == (Value{}) {
		e.key = k
		t.used++
	}
	return &e.Value, nil
}

func (t *Table) grow(m *Memory) error {
	size := max(minEntries, 2*len(t.entries))
	if err := m.Take(entrySize * size); err != nil {
		return err
	}
	m.Used -= entrySize * cap(t.entries)
	old := t.entries
	t.entries = make([]entry, size)
	for i := range old {
		if e := &old[i]; e.Value != (Value{}) {
			*t.find(e.key) = *e
		}
	}
	return nil
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
