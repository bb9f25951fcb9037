// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package rate

import "time"

// Reading is what people read of a series over a range.
type Reading struct {
	Summary

	// Snapshots: the value is the Sum of the newest snapshots of Living processes, the latest of which is of the time At, in nanoseconds since
	// the epoch. At is 0 if none states a time; then the Sum is 0.
	Snapshots bool
	Sum       int64
	Living    int
	At        uint64
}

// Read returns what people read of the time from one nanosecond to another.
func (s *Series) Read(from, to uint64) Reading {
	r := Reading{Summary: s.Summary(from, to), Snapshots: s.Snapshots}
	if s.Snapshots {
		r.Sum, r.Living, r.At = s.Living(from, to)
	}
	return r
}

// HasValue reports whether there is a rate, or of snapshots a sum. Profiles without a duration have none.
func (r *Reading) HasValue() bool {
	if r.Snapshots {
		return r.At > 0
	}
	return r.Data > 0
}

// Value is the rate of the series, or the sum of the living snapshots.
func (r *Reading) Value() float64 {
	if r.Snapshots {
		return float64(r.Sum)
	}
	return r.Rate
}

// ValuePerProcess is that of one process on average.
func (r *Reading) ValuePerProcess() float64 {
	if !r.Snapshots {
		return r.PerProcess
	}
	return float64(r.Sum) / float64(max(1, r.Living))
}

// Age is how long before a time the latest snapshot was.
func (r *Reading) Age(before time.Time) time.Duration {
	return before.Sub(time.Unix(int64(r.At/1e9), int64(r.At%1e9)))
}
