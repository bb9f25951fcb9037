// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import "math"

// rowIndex numbers the identities that come up in a matrix or an event list.
type rowIndex struct {
	rows       []int32 // by identity: the row plus one
	identities []int32 // by row
}

func (x *rowIndex) reset() { x.rows, x.identities = x.rows[:0], x.identities[:0] }

func (x *rowIndex) retained() int { return sizeOf(x.rows) + sizeOf(x.identities) }

// row returns the row of identity, which may be new.
func (x *rowIndex) row(identity int32) (row int, isNew bool) {
	if n := int(identity) + 1 - len(x.rows); n > 0 {
		x.rows = append(x.rows, make([]int32, n)...)
	}
	if row := x.rows[identity]; row > 0 {
		return int(row) - 1, false
	}
	x.identities = append(x.identities, identity)
	x.rows[identity] = int32(len(x.identities))
	return len(x.identities) - 1, true
}

// valueMatrix sums values: a row for each identity, a column for each sample type.
type valueMatrix struct {
	rowIndex
	values []int64 // row by row
	// kept is the number of values that remain if zeros are omitted: those that are not
	// 0, or once were not, and one of each row of zeros.
	kept int
}

func (m *valueMatrix) grow(rows, values int) {
	m.rows, m.identities, m.values = emptied(m.rows, rows), emptied(m.identities, rows), emptied(m.values, values)
}

func (m *valueMatrix) reset() {
	m.rowIndex.reset()
	m.values, m.kept = m.values[:0], 0
}

// add adds values to the row of identity. If a sum would overflow, it changes nothing
// and returns false.
func (m *valueMatrix) add(identity int32, values []uint64) bool {
	row, isNew := m.row(identity)
	if isNew {
		before := m.kept
		for _, v := range values {
			m.values = append(m.values, int64(v))
			if v != 0 {
				m.kept++
			}
		}
		m.kept = max(m.kept, before+1)
		return true
	}
	sums := m.values[row*len(values):][:len(values)]
	for i, v := range values {
		if v := int64(v); v > 0 && sums[i] > math.MaxInt64-v || v < 0 && sums[i] < math.MinInt64-v {
			return false
		}
	}
	for i, v := range values {
		if sums[i] == 0 && v != 0 {
			m.kept++
		}
		sums[i] += int64(v)
	}
	return true
}

// eventList holds the samples with a timestamp, in order.
type eventList struct {
	rowIndex
	counts []int32 // by row: its events
	events []int32 // by event: its row
	times  []uint64
	values []int64 // by event, then sample type
}

func (l *eventList) reset() {
	l.rowIndex.reset()
	l.counts, l.events, l.times, l.values = l.counts[:0], l.events[:0], l.times[:0], l.values[:0]
}

func (l *eventList) add(identity int32, time uint64, values []uint64) {
	row, isNew := l.row(identity)
	if isNew {
		l.counts = append(l.counts, 0)
	}
	l.counts[row]++
	l.events = append(l.events, int32(row))
	l.times = append(l.times, time)
	for _, v := range values {
		l.values = append(l.values, int64(v))
	}
}
