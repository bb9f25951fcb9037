// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// sample is a sample without its values: its identity and its timestamp.
type sample struct {
	stack, set, link int32
	time             uint64
	timed            bool
}

// valueMatrix sums values: a row for each identity, a column for each sample type.
type valueMatrix struct {
	identities dictionary.Samples // by row
	values     []uint64           // row by row: int64 in truth
	// kept is the number of values that remain if zeros are omitted: those that are not
	// 0, or once were not, and one of each row of zeros.
	kept      int
	saturated int // values that a sum has no room for: it stays at the largest or least int64
}

func (m *valueMatrix) reset() {
	m.identities.Reset()
	m.values, m.kept, m.saturated = nil, 0, 0
}

// add adds values to the row of the sample's identity.
func (m *valueMatrix) add(s *sample, values []uint64) {
	start := int(m.identities.Number(s.stack, s.set, s.link)) * len(values)
	if start == len(m.values) { // a new row
		before := m.kept
		for _, v := range values {
			m.values = append(m.values, v)
			if v != 0 {
				m.kept++
			}
		}
		m.kept = max(m.kept, before+1)
		return
	}
	sums := m.values[start:][:len(values)]
	for i, v := range values {
		if sums[i] == 0 && v != 0 {
			m.kept++
		}
		sum := uint64(sampletypes.AddSaturated(int64(sums[i]), int64(v)))
		if sum != sums[i]+v {
			m.saturated++
		}
		sums[i] = sum
	}
}

// eventList holds the samples with a timestamp, in order. Those of one identity are a row.
type eventList struct {
	identities dictionary.Samples // by row
	counts     []int32            // by row: its events
	rows       []int32            // by event: its row
	times      []uint64           // by event
	values     []int64            // by event, then sample type
}

func (l *eventList) reset() {
	l.identities.Reset()
	l.counts, l.rows, l.times, l.values = l.counts[:0], l.rows[:0], l.times[:0], l.values[:0]
}

func (l *eventList) add(s *sample, values []uint64) {
	row := l.identities.Number(s.stack, s.set, s.link)
	if int(row) == len(l.counts) {
		l.counts = append(l.counts, 0)
	}
	l.counts[row]++
	l.rows = append(l.rows, row)
	l.times = append(l.times, s.time)
	for _, v := range values {
		l.values = append(l.values, int64(v))
	}
}
