// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// shape is which of values and timestamps samples have. A Profile that mixes them becomes
// several.
type shape uint8

const (
	shapeValues shape = iota
	shapeTimes
	shapeBoth
	shapes
)

// mergedProfile is a merged Profile.
type mergedProfile struct {
	key   profileKey
	place int // the lowest index in their ScopeProfiles that its sources had

	sources  int
	id       pprofile.ProfileID // of the only source
	start    uint64             // nanoseconds since the epoch, 0 for unknown
	end      uint64
	duration uint64 // the longest, for when no time is known
	covered  sampletypes.Spans
	dropped  uint32
	column   column
	events   []event

	size, samples int // that the window counts for it
}

// event is a timestamp of a sample and, for shapeBoth, its value.
type event struct {
	row   int32
	time  uint64
	value int64
}

// include merges the header of from.
func (p *mergedProfile) include(from pprofile.Profile, place int) {
	p.place = min(p.place, place)
	p.sources++
	p.id = from.ProfileID()
	p.duration = max(p.duration, from.DurationNano())
	if start := uint64(from.Time()); start != 0 {
		if p.start == 0 || start < p.start {
			p.start = start
		}
		end := endOf(start, from.DurationNano())
		p.end = max(p.end, end)
		p.covered.Add(start, end)
	}
	p.dropped += min(from.DroppedAttributesCount(), math.MaxUint32-p.dropped)
}

// length is the duration of the merged Profile: the time that its sources cover, so that its values divided by it are
// their rate. With timestamps, which must lie within it, it lasts to the last end.
func (p *mergedProfile) length() uint64 {
	switch {
	case p.start == 0:
		return p.duration
	case len(p.events) > 0:
		return p.end - p.start
	default:
		return p.covered.Length()
	}
}

// cover sets the time that p covers.
func (p *mergedProfile) cover(start, end uint64) {
	p.covered = sampletypes.Spans{}
	p.covered.Add(start, end)
}

func (p *mergedProfile) addTimes(row int32, values pcommon.Int64Slice, times pcommon.UInt64Slice) {
	for i := range times.Len() {
		e := event{row: row, time: times.At(i)}
		if values.Len() > 0 {
			e.value = values.At(i)
		}
		p.events = append(p.events, e)
	}
}

func (p *mergedProfile) retained() int {
	const eventSize = 24
	return p.column.Retained() + p.covered.Retained() + eventSize*cap(p.events)
}
