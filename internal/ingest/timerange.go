// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// TimeRange is the time that a sender states for its profiles. Either end may be 0,
// unknown.
type TimeRange struct{ Start, End pcommon.Timestamp }

// endOf1970: a profile from before this has no time set.
const endOf1970 = pcommon.Timestamp(365 * 24 * time.Hour)

// fill sets the times that the payload lacks: the start of a Profile from 1970, and
// both ends of a delta without a duration. It reports whether it set any.
func (r TimeRange) fill(profiles pprofile.ProfilesSlice, types []string, temporality TemporalityFunc) (filled bool) {
	if r.Start == 0 {
		return false
	}
	for i, profile := range profiles.All() {
		isDelta := temporality != nil && temporality(types[i]) == TemporalityDelta
		switch {
		case isDelta && profile.DurationNano() == 0 && r.End > r.Start:
			profile.SetTime(r.Start)
			profile.SetDurationNano(uint64(r.End - r.Start))
			filled = true
		case profile.Time() < endOf1970:
			profile.SetTime(r.Start)
			filled = true
		}
	}
	return filled
}
