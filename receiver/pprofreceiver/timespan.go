// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// timeSpan is the time that a request says its profiles are of. Either end may be
// 0, unknown.
type timeSpan struct{ from, until pcommon.Timestamp }

// endOf1970: a time before it is one that nobody has set.
const endOf1970 = pcommon.Timestamp(365 * 24 * time.Hour)

// fill gives Profiles the times that the payload left out, and no others: a time
// in 1970 becomes from, and a delta without a duration, which says nothing of its
// interval, takes both ends. It tells whether it gave any.
func (span timeSpan) fill(profiles pprofile.ProfilesSlice, types []string, of func(string) temporality) (filled bool) {
	if span.from == 0 {
		return false
	}
	for i, profile := range profiles.All() {
		isDelta := of != nil && of(types[i]) == temporalityDelta
		switch {
		case isDelta && profile.DurationNano() == 0 && span.until > span.from:
			profile.SetTime(span.from)
			profile.SetDurationNano(uint64(span.until - span.from))
			filled = true
		case profile.Time() < endOf1970:
			profile.SetTime(span.from)
			filled = true
		}
	}
	return filled
}

// parseTime reads a time since 1970 as Pyroscope's clients write it: by the number
// of digits in seconds (up to 10), milliseconds (13), microseconds (16) or
// nanoseconds (19). An empty text is 0, unknown.
func parseTime(text string) (pcommon.Timestamp, error) {
	unit := time.Duration(0)
	switch digits := len(text); {
	case digits == 0:
		return 0, nil
	case digits <= 10:
		unit = time.Second
	case digits == 13:
		unit = time.Millisecond
	case digits == 16:
		unit = time.Microsecond
	case digits == 19:
		unit = time.Nanosecond
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || unit == 0 || n > math.MaxInt64/uint64(unit) {
		return 0, errors.New("not a time, want seconds since 1970, or 13 digits of milliseconds, 16 of microseconds, 19 of nanoseconds")
	}
	return pcommon.Timestamp(n) * pcommon.Timestamp(unit), nil
}
