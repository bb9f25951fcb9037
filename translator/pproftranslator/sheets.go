// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import "math"

// sheet is a matrix of values: a row a sample identity, a column a sample type.
type sheet struct {
	rows    []int32 // by sample number: the row plus one
	samples []int32 // by row
	values  []int64
	// kept are the values that stay where zeros are left out: those that are not 0, or
	// once were not, and one of each row of zeros.
	kept int
}

// grow makes room for so many rows and values.
func (s *sheet) grow(rows, values int) {
	s.rows, s.samples, s.values = emptied(s.rows, rows), emptied(s.samples, rows), emptied(s.values, values)
}

func (s *sheet) reset() {
	s.rows, s.samples, s.values, s.kept = s.rows[:0], s.samples[:0], s.values[:0], 0
}

func (s *sheet) retained() int { return 4*cap(s.rows) + 4*cap(s.samples) + 8*cap(s.values) }

// add adds values to the row of sample. It changes nothing and returns false
// where a sum would overflow.
func (s *sheet) add(sample int32, values []uint64) bool {
	if int(sample) >= len(s.rows) {
		s.rows = grown(s.rows, int(sample)+1)
	}
	row := s.rows[sample]
	if row == 0 {
		s.samples = append(s.samples, sample)
		s.rows[sample] = int32(len(s.samples))
		before := s.kept
		for _, v := range values {
			s.values = append(s.values, int64(v))
			if v != 0 {
				s.kept++
			}
		}
		s.kept = max(s.kept, before+1)
		return true
	}
	sums := s.values[int(row-1)*len(values):][:len(values)]
	for i, v := range values {
		if v := int64(v); v > 0 && sums[i] > math.MaxInt64-v || v < 0 && sums[i] < math.MinInt64-v {
			return false
		}
	}
	for i, v := range values {
		if sums[i] == 0 && v != 0 {
			s.kept++
		}
		sums[i] += int64(v)
	}
	return true
}

// timeline holds the samples with a timestamp, in order.
type timeline struct {
	rows    []int32 // by sample number: the row plus one
	samples []int32 // by row
	counts  []int32 // by row: its events
	events  []int32 // by event: its row
	times   []uint64
	values  []int64 // by event, then sample type
}

func (t *timeline) reset() {
	t.rows, t.samples, t.counts = t.rows[:0], t.samples[:0], t.counts[:0]
	t.events, t.times, t.values = t.events[:0], t.times[:0], t.values[:0]
}

func (t *timeline) retained() int {
	return 4*(cap(t.rows)+cap(t.samples)+cap(t.counts)+cap(t.events)) + 8*(cap(t.times)+cap(t.values))
}

func (t *timeline) add(sample int32, time uint64, values []uint64) {
	if int(sample) >= len(t.rows) {
		t.rows = grown(t.rows, int(sample)+1)
	}
	row := t.rows[sample]
	if row == 0 {
		t.samples = append(t.samples, sample)
		t.counts = append(t.counts, 0)
		row = int32(len(t.samples))
		t.rows[sample] = row
	}
	t.counts[row-1]++
	t.events = append(t.events, row-1)
	t.times = append(t.times, time)
	for _, v := range values {
		t.values = append(t.values, int64(v))
	}
}

// isZero tells whether all values of a row are 0.
func isZero(row []int64) bool {
	for _, v := range row {
		if v != 0 {
			return false
		}
	}
	return true
}
