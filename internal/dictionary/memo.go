// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "sync/atomic"

// memo holds what is known of the entries of one table.
type memo struct {
	// By source index: the index in the tables plus one, 0 if it is not known, absent+1 or wanted+1.
	to     []int32
	used   []int32 // the source indices that are known, unless whole is set
	whole  bool    // all are known
	absent []int32 // those that the View has not, if whole is set
	wants  int     // how many of them are wanted
	// outside is set when an index outside the table is asked for.
	outside bool
	next    int32 // the likely index of the next entry: payloads have entries in about the order of earlier ones
	missed  bool  // the last search was in vain
	delayed []delayed
	keys    []byte // of delayed
}

// Indices in the tables of entries that a View has not. Those that are wanted are to be interned.
const (
	absent = -2
	wanted = -3
	later  = -4 // see viewed.find
)

// reset makes m one for a table of n entries. It takes time for the known entries only.
func (m *memo) reset(n int) {
	if m.whole {
		clear(m.to)
	}
	for _, i := range m.used {
		m.to[i] = 0
	}
	m.used, m.absent, m.wants, m.whole, m.outside, m.next, m.missed = m.used[:0], m.absent[:0], 0, false, false, 0, false
	if cap(m.to) < n {
		m.to = make([]int32, n)
	}
	m.to = m.to[:n]
}

// get returns the index for i if it is known, or if there is nothing at i: index 0 of
// an empty table.
func (m *memo) get(i int32) (to int32, ok bool) {
	if uint32(i) >= uint32(len(m.to)) {
		m.outside = m.outside || i != 0
		return 0, true
	}
	to = m.to[i]
	return to - 1, to != 0
}

// index returns the index for i, which find returns if it is not known.
func (m *memo) index(i int32, r *Remap, find func(r *Remap, i int32) int32) int32 {
	to, ok := m.get(i)
	if !ok {
		to = find(r, i)
		m.set(i, to)
	}
	return to
}

func (m *memo) set(i, to int32) {
	m.to[i] = to + 1
	if !m.whole {
		m.used = append(m.used, i)
	}
	if to < 0 {
		m.absent = append(m.absent, i)
	}
}

// findAll sets the index of each entry to what find returns.
func (m *memo) findAll(r *Remap, in *viewed, find func(r *Remap, i int32) int32) {
	m.whole = true
	for i := range m.to {
		to := find(r, int32(i))
		m.to[i] = to + 1
		switch {
		case to >= 0:
		case to == later:
			m.to[i] = 0
			m.delayed[len(m.delayed)-1].index = int32(i)
			if len(m.delayed) == together {
				m.findDelayed(in)
			}
		default:
			m.absent = append(m.absent, int32(i))
		}
	}
	m.findDelayed(in)
}

// want marks i if it is absent.
func (m *memo) want(i int32) {
	if int(i) < len(m.to) && m.to[i] == absent+1 {
		m.to[i] = wanted + 1
		m.wants++
	}
}

func (m *memo) isWanted(i int32) bool { return m.to[i] == wanted+1 }

func (m *memo) wanted(yield func(i int32) bool) {
	for _, i := range m.absent {
		if m.isWanted(i) && !yield(i) {
			return
		}
	}
}

// internAbsent makes what is absent unknown and, if all is set, calls intern with what is wanted.
// content is about the length of that in bytes.
func (m *memo) internAbsent(table *table, content int, all bool, intern func(i int32) int32) {
	if all {
		table.reserve(m.wants, content)
	}
	for _, i := range m.absent {
		want := all && m.isWanted(i)
		if m.to[i] = 0; want {
			intern(i)
		}
	}
}

// retained is about the memory that m holds on to, in words of 4 bytes.
func (m *memo) retained() int {
	return cap(m.to) + cap(m.used) + cap(m.absent) + 4*cap(m.delayed) + cap(m.keys)/4
}

// delayed is an entry that findDelayed looks up.
type delayed struct {
	index int32 // in the source
	hash  uint32
	end   int // of its key in memo.keys
}

func (m *memo) findDelayed(v *viewed) {
	mask := uint32(len(v.slots) - 1)
	for _, d := range m.delayed {
		atomic.LoadUint64(&v.slots[d.hash&mask]) // into the cache
	}
	start := 0
	for _, d := range m.delayed {
		m.set(d.index, v.search(d.hash, m.keys[start:d.end], m))
		start = d.end
	}
	m.delayed, m.keys = m.delayed[:0], m.keys[:0]
}
