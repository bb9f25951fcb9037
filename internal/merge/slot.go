// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// slot is the span of the Unix clock in which a Profile ends or, with Options.SlotByStart, starts: from number*length for
// length nanoseconds. It is zero for a Profile without a time, and without slots.
type slot struct{ length, number uint64 }

// slotOf returns the slot of p. Its length is the least of window, twice window, four times
// window and so on that is not less than the duration of p. It saturates, as does the end of p.
func slotOf(p pprofile.Profile, options *Options) slot {
	window, start, duration := uint64(options.SlotLength), uint64(p.Time()), p.DurationNano()
	if window == 0 || start == 0 {
		return slot{}
	}
	if options.SlotByStart {
		return slot{window, start / window}
	}
	length := window
	for length < duration {
		if length > math.MaxUint64/2 {
			length = math.MaxUint64
			break
		}
		length *= 2
	}
	return slot{length, endOf(start, duration) / length}
}

// start is the first nanosecond of s since the epoch.
func (s slot) start() uint64 { return s.number * s.length }

// endOf is start plus duration, saturating.
func endOf(start, duration uint64) uint64 {
	if end := start + duration; end >= start {
		return end
	}
	return math.MaxUint64
}
