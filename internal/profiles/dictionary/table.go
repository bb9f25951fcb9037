// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"unsafe"
)

// table holds distinct entries. It numbers them from 0 in the order in which they are added.
type table struct {
	entries
	index index
	// next is the likely number of the next entry: payloads have entries in about the order of earlier ones.
	// Looking there first makes the addition of a profile that is not new 3 times as fast.
	next int32
}

// entries are numbered from 0. Each is a run of bytes.
type entries struct {
	content []byte   // all entries, one after the other
	ends    []uint32 // where each entry ends in content
}

// What a table has room for: as int32 and uint32 can number. They are variables for tests.
var (
	maxEntries = math.MaxInt32
	maxContent = math.MaxUint32
)

// at returns entry i.
func (t *entries) at(i int32) []byte {
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.content[start:t.ends[i]]
}

func (t *entries) len() int { return len(t.ends) }

// keys are all entries, in order.
func (t *entries) keys() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		start := uint32(0)
		for _, end := range t.ends {
			if !yield(t.content[start:end]) {
				return
			}
			start = end
		}
	}
}

// bytesOf returns the memory of indices.
func bytesOf(indices []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(indices))), 4*len(indices)) //nolint:gosec // read only
}

// indicesAt returns entry i of a table whose entries are all indices.
func (t *entries) indicesAt(i int32) []int32 {
	b := t.at(i)
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4) //nolint:gosec // aligned: all before are of 4 bytes each
}

// likely returns the number of an entry if it is where it probably is.
func (t *table) likely(entry []byte) (n int32, ok bool) {
	if n := t.next; int(n) < t.len() && bytes.Equal(t.at(n), entry) {
		t.next++
		return n, true
	}
	return 0, false
}

// intern returns the number of an entry, of which it keeps a copy if it is new. If the table is full, intern returns -1. Ask
// likely first.
func (t *table) intern(entry []byte) (n int32, added bool) {
	hash := hashOf(entry)
	n, slot := t.index.Find(hash, func(n int32) bool { return bytes.Equal(t.at(n), entry) })
	if n < 0 {
		if t.len() >= maxEntries || len(t.content)+len(entry) > maxContent {
			return -1, false
		}
		n, added = t.append(entry), true
		t.index.Insert(slot, hash, n)
	}
	if n != 0 { // the zero value may come anywhere
		t.next = n + 1
	}
	return n, added
}

// append adds an entry, which the index does not know.
func (t *entries) append(entry []byte) (n int32) {
	n = int32(t.len())
	if size := len(t.content); len(entry) > cap(t.content)-size {
		t.content = append(t.content, entry...)
	} else if len(entry) > 0 { // without the write barrier of append
		t.content = t.content[:size+len(entry)]
		copy(t.content[size:], entry)
	}
	t.ends = append(t.ends, uint32(len(t.content)))
	return n
}

// size is the length of all entries.
func (t *table) size() int {
	if len(t.ends) == 0 {
		return 0
	}
	return int(t.ends[len(t.ends)-1])
}

// reset removes all entries and keeps the memory.
func (t *table) reset() {
	t.content, t.ends = t.content[:0], t.ends[:0]
	t.index.Reset()
	t.next = 0
}

// grow makes room for n more entries with content of this length.
func (t *table) grow(n, content int) {
	t.ends, t.content = slices.Grow(t.ends, n), slices.Grow(t.content, content)
	t.index.Grow(n)
}

// retained is the memory that t holds on to, in bytes.
func (t *table) retained() int {
	return cap(t.content) + 4*cap(t.ends) + t.index.Retained()
}
