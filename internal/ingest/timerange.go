// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// TimeRange is the time that a request states for its profiles. Either end may be 0,
// unknown.
type TimeRange struct{ Start, End pcommon.Timestamp }

// endOf1970: a time before this is unknown.
const endOf1970 = pcommon.Timestamp(365 * 24 * time.Hour)

// fillTimes sets the time and the duration that the payload lacks, and keeps those that it
// has. Its Profiles, at least one, share both, as those of a pprof do. The request states the duration of
// deltas only. fillTimes returns how many timestamps of samples are outside the result.
func (p *Payload) fillTimes(profiles pprofile.ProfilesSlice, types []string) (outside int) {
	first, last := timestamps(profiles)
	start, duration := profiles.At(0).Time(), profiles.At(0).DurationNano()
	if start < endOf1970 {
		start = p.missingTime(first, duration)
	}
	if duration == 0 {
		if r := p.TimeRange; r.Start >= endOf1970 && r.End > r.Start && p.hasDelta(types) {
			duration = uint64(r.End - r.Start)
		}
		if last > 0 {
			duration = max(duration, uint64(last+1-min(start, first)))
		}
	}
	end := start + pcommon.Timestamp(duration)
	for _, profile := range profiles.All() {
		profile.SetTime(start)
		profile.SetDurationNano(duration)
		for _, sample := range profile.Samples().All() {
			for _, at := range sample.TimestampsUnixNano().All() {
				if at := pcommon.Timestamp(at); at < start || at >= end {
					outside++
				}
			}
		}
	}
	return outside
}

// missingTime is the time of a payload without one. first is its first timestamp, 0 if
// there is none.
func (p *Payload) missingTime(first pcommon.Timestamp, duration uint64) pcommon.Timestamp {
	start := p.TimeRange.Start
	if start < endOf1970 && p.TimeRange.End >= endOf1970 {
		start = before(p.TimeRange.End, duration)
	}
	switch {
	case first > 0 && (start < endOf1970 || first < start):
		return first
	case start >= endOf1970:
		return start
	case p.Modified >= endOf1970:
		return p.Modified
	}
	return before(pcommon.NewTimestampFromTime(p.Arrived), duration)
}

// before is the time this many nanoseconds before end, or end if that is in 1970 or earlier.
func before(end pcommon.Timestamp, nanoseconds uint64) pcommon.Timestamp {
	if end < endOf1970 || uint64(end-endOf1970) < nanoseconds {
		return end
	}
	return end - pcommon.Timestamp(nanoseconds)
}

// hasDelta reports whether the request states that a sample type is a delta.
func (p *Payload) hasDelta(types []string) bool {
	return p.Temporality != nil && slices.ContainsFunc(types, func(sampleType string) bool { return p.Temporality(sampleType) == sampletypes.Delta })
}

// timestamps returns the first and the last timestamp of samples after 1970, 0 if there is
// none.
func timestamps(profiles pprofile.ProfilesSlice) (first, last pcommon.Timestamp) {
	for _, profile := range profiles.All() {
		for _, sample := range profile.Samples().All() {
			for _, at := range sample.TimestampsUnixNano().All() {
				if at := pcommon.Timestamp(at); at >= endOf1970 {
					if first == 0 || at < first {
						first = at
					}
					last = max(last, at)
				}
			}
		}
	}
	return first, last
}
