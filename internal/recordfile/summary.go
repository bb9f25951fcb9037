// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import "math"

// Key says which Profiles are added up.
type Key struct {
	Service    string `json:"service,omitempty"`
	Type       string `json:"type,omitempty"` // the scope attribute profile.type
	SampleType string `json:"sample_type,omitempty"`
	Unit       string `json:"unit,omitempty"`
	// Snapshot is 0 for Profiles of intervals, which are summed over time. Otherwise it identifies
	// snapshots (or cumulative Profiles) of the same thing, of which the latest counts: it is a hash of
	// the resource, the scope without its version and all fields of the Profile but time, duration and ID.
	Snapshot uint64 `json:"snapshot,omitempty"`
}

// Summary is a total of the Profiles of one Key.
type Summary struct {
	Key
	Total
}

// Total sums some Profiles.
type Total struct {
	// Timestamps: samples have timestamps.
	Timestamps bool `json:"timestamps,omitempty"`
	// Start is the earliest start of a Profile or timestamp of a sample, Latest the latest one, and
	// End the latest end. They are in nanoseconds since the epoch, 0 if no time is stated.
	Start  uint64 `json:"start,omitempty"`
	Latest uint64 `json:"latest,omitempty"`
	End    uint64 `json:"end,omitempty"`

	Profiles int `json:"profiles"`
	// Samples and Sum are those of the latest snapshot only.
	Samples int   `json:"samples"`
	Sum     int64 `json:"sum"` // saturated, as AddSaturated adds
}

// Add adds the summary of later Profiles of the same Key. Of snapshots that are equally late, the one added last
// counts.
func (s *Summary) Add(other *Summary) { s.add(other, false) }

// AddSibling adds the summary of another Profile of the same payload and Key: equally late snapshots are
// parts of one.
func (s *Summary) AddSibling(other *Summary) { s.add(other, true) }

func (s *Summary) add(other *Summary, siblings bool) {
	switch {
	case s.Snapshot == 0, siblings && s.Latest == other.Latest:
		s.Samples += other.Samples
		s.Sum = AddSaturated(s.Sum, other.Sum)
	case other.Latest >= s.Latest:
		s.Samples, s.Sum = other.Samples, other.Sum
	}
	s.Timestamps = s.Timestamps || other.Timestamps
	s.Start, s.Latest, s.End = min(s.Start, other.Start), max(s.Latest, other.Latest), max(s.End, other.End)
	s.Profiles += other.Profiles
}

// valid reports whether Profiles can have such a summary.
func (s *Summary) valid() bool {
	return s.Start <= s.Latest && s.Latest <= s.End && s.Profiles > 0 && s.Samples >= 0
}

// AddSaturated adds two sums. One beyond int64 becomes the largest or least int64.
func AddSaturated(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// Saturated reports whether a sum may be beyond int64.
func Saturated(sum int64) bool { return sum == math.MaxInt64 || sum == math.MinInt64 }
