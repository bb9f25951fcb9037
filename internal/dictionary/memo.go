// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

// memo holds the known numbers of the entries of one table.
type memo struct {
	// By source index: the index in the tables plus one, 0 if it is not known, absent+1 or wanted+1.
	to     []int32
	used   []int32 // the source indices that are known, unless whole is set
	whole  bool    // all are known
	absent []int32 // the source indices of those that the View lacks, in the order of the look-ups
	// outside is set when an index outside the table is asked for, or checked.
	outside bool
	search  search
	// How many are wanted, and about their length in bytes.
	wants, content int
}

// Indices in the tables of entries that a View lacks. Those that are wanted are to be interned.
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
	m.used, m.absent, m.whole, m.outside, m.wants, m.content = m.used[:0], m.absent[:0], false, false, 0, 0
	m.search.next, m.search.missed = 0, false
	if cap(m.to) < n {
		m.to = make([]int32, n)
	}
	m.to = m.to[:n]
}

func (m *memo) check(i int32) { m.outside = m.outside || i != 0 && uint32(i) >= uint32(len(m.to)) }

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

// index returns the index for i, which visit returns if it is not known.
func (m *memo) index(i int32, r *Remap, visit func(r *Remap, i int32) int32) int32 {
	to, ok := m.get(i)
	if !ok {
		to = visit(r, i)
		m.set(i, to)
	}
	return to
}

func (m *memo) set(i, to int32) {
	m.to[i] = to + 1
	if !m.whole {
		m.used = append(m.used, i)
	}
	if to == absent {
		m.absent = append(m.absent, i)
	}
}

// want marks i if it is absent.
func (m *memo) want(i int32) {
	if int(i) < len(m.to) && m.to[i] == absent+1 {
		m.to[i] = wanted + 1
		m.wants++
	}
}

// wanted is an iterator over the wanted entries.
func (m *memo) wanted(yield func(i int32) bool) {
	for _, i := range m.absent {
		if m.to[i] == wanted+1 && !yield(i) {
			return
		}
	}
}

// retained is about the memory that m holds on to, in words of 4 bytes.
func (m *memo) retained() int {
	return cap(m.to) + cap(m.used) + cap(m.absent) + 4*cap(m.search.delayed) + cap(m.search.keys)/4
}
