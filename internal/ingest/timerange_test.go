// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// timed is a pprof of two sample types with this time and duration and a sample for each
// timestamp, where 0 is none.
func timed(t *testing.T, at, duration int64, timestamps ...int64) []byte {
	t.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_space", Unit: "bytes"}},
		TimeNanos:  at, DurationNanos: duration,
	}
	for _, timestamp := range timestamps {
		s := &profile.Sample{Value: []int64{1, 2}}
		if timestamp != 0 {
			s.NumLabel = map[string][]int64{"end_timestamp_ns": {timestamp}}
		}
		p.Sample = append(p.Sample, s)
	}
	return profiletest.Pprof(t, p)
}

// What a payload lacks is filled in from the first source that has it, for all its Profiles
// alike. What it has stays.
func TestMissingTimesAreFilledIn(t *testing.T) {
	const (
		s        = int64(time.Second)
		own      = int64(1.5e18)
		first    = int64(1.6e18)
		last     = first + 7*s
		modified = int64(1.7e18)
		arrived  = int64(1.75e18)
		from     = int64(1.55e18)
		until    = from + 15*s
	)
	request := TimeRange{Start: pcommon.Timestamp(from), End: pcommon.Timestamp(until)}
	for _, row := range []struct {
		name               string
		at, duration       int64
		timestamps         []int64
		given              TimeRange
		temporality        TemporalityFunc
		modified           int64
		wantAt, wantLength int64
		outside            int
	}{
		{name: "all there", at: own, duration: 2 * s, given: request, temporality: HeapTemporality, modified: modified, wantAt: own, wantLength: 2 * s},
		{name: "all there, with timestamps", at: first, duration: 8 * s, timestamps: []int64{first, last, 0}, given: request, wantAt: first, wantLength: 8 * s},
		{name: "timestamps truly outside", at: own, duration: s, timestamps: []int64{first, own - 1, own, own + s - 1, own + s, 0}, wantAt: own, wantLength: s, outside: 2 * 3},
		{name: "the request", given: request, timestamps: []int64{0}, modified: modified, wantAt: from},
		{name: "the request, of deltas", given: request, temporality: Always(sampletypes.Delta), wantAt: from, wantLength: 15 * s},
		{name: "the request, of deltas with a time", at: own, given: request, temporality: Always(sampletypes.Delta), wantAt: own, wantLength: 15 * s},
		{name: "the request, of deltas with a duration", duration: 3 * s, given: request, temporality: Always(sampletypes.Delta), wantAt: from, wantLength: 3 * s},
		{name: "the request's end", duration: 3 * s, given: TimeRange{End: pcommon.Timestamp(until)}, wantAt: until - 3*s, wantLength: 3 * s},
		{name: "the request, before the timestamps", given: request, timestamps: []int64{last, first}, wantAt: from, wantLength: last + 1 - from},
		{name: "the request, after a timestamp", given: request, timestamps: []int64{from - s, from}, wantAt: from - s, wantLength: s + 1},
		{name: "the request, in 1970", given: TimeRange{Start: 5, End: 6}, modified: modified, wantAt: modified},
		{name: "timestamps", timestamps: []int64{last, 0, first}, modified: modified, wantAt: first, wantLength: last - first + 1},
		{name: "timestamps, with a duration", duration: 8 * s, timestamps: []int64{last, first}, wantAt: first, wantLength: 8 * s},
		{name: "timestamps, with a short duration", duration: s, timestamps: []int64{last, first}, wantAt: first, wantLength: s, outside: 2},
		{name: "timestamps, with the time of the first", at: first, timestamps: []int64{last, first}, wantAt: first, wantLength: last - first + 1},
		{name: "timestamps, with an earlier time", at: own, timestamps: []int64{last, first}, wantAt: own, wantLength: last + 1 - own},
		{name: "timestamps, with a later time", at: last + s, timestamps: []int64{last, first}, wantAt: last + s, wantLength: last + 1 - first, outside: 4},
		{name: "timestamps, one in 1970", timestamps: []int64{5, first, last}, wantAt: first, wantLength: last - first + 1, outside: 2},
		{name: "timestamps in 1970", timestamps: []int64{5}, modified: modified, wantAt: modified, outside: 2},
		{name: "the file", duration: 3 * s, modified: modified, wantAt: modified, wantLength: 3 * s},
		{name: "the file, in 1970", modified: 1, wantAt: arrived},
		{name: "arrival", wantAt: arrived},
		{name: "arrival, with a duration", duration: 3 * s, wantAt: arrived - 3*s, wantLength: 3 * s},
		{name: "arrival, with a duration since 1970", duration: arrived, wantAt: arrived, wantLength: arrived},
		{name: "a time in 1970", at: 5, wantAt: arrived},
	} {
		t.Run(row.name, func(t *testing.T) {
			translated, err := newTestIngester(t, consumertest.NewNop()).NewBatch(budget.New(64<<20).Lease(0)).TranslateOne(t.Context(), Payload{
				Data: timed(t, row.at, row.duration, append(row.timestamps, 0)...), Resource: pcommon.NewMap(),
				TimeRange: row.given, Temporality: row.temporality, Modified: pcommon.Timestamp(row.modified), Arrived: time.Unix(0, arrived),
			})
			require.NoError(t, err)
			for p := range sampletypes.ProfilesOf(translated.Profiles) {
				assert.EqualValues(t, row.wantAt, p.Time(), "time")
				assert.EqualValues(t, row.wantLength, p.DurationNano(), "duration")
			}
			assert.Equal(t, row.outside, translated.outside)
		})
	}
}
