// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func isAllocated(sampleType string) bool { return strings.HasPrefix(sampleType, "alloc_") }

func heapSeries() *Series { return Cumulative(isAllocated, 1<<18) }

var (
	allocTypes = []string{"alloc_objects", "alloc_space"}
	inuseTypes = []string{"inuse_objects", "inuse_space"}
)

// advance gives a series the next profile, as a scrape does whose parts are
// accepted.
func (s *Series) advance(t *testing.T, payload []byte, at time.Time) Step {
	t.Helper()
	step, err := s.Next(payload, at)
	require.NoError(t, err)
	s.Accept(step)
	return step
}

func TestRestartsAreDetected(t *testing.T) {
	grown := func(change func(p *profile.Profile)) *profile.Profile {
		p := profiletest.HeapPprof(10, 1000, 2, 200)
		change(p)
		return p
	}
	for name, test := range map[string]struct {
		next      *profile.Profile
		restarted bool
	}{
		"more":            {grown(func(p *profile.Profile) { p.Sample[0].Value[0]++ }), false},
		"equal":           {profiletest.HeapPprof(10, 1000, 2, 200), false},
		"less in use":     {profiletest.HeapPprof(10, 1000, 0, 0), false},
		"less":            {grown(func(p *profile.Profile) { p.Sample[0].Value[1]-- }), true},
		"a stack is gone": {grown(func(p *profile.Profile) { p.Sample = nil }), true},
		"moved in memory": {grown(func(p *profile.Profile) { p.Mapping[0].Start += 0x1000; p.Mapping[0].Limit += 0x1000 }), true},
		"mapping grew":    {grown(func(p *profile.Profile) { p.Mapping[0].Limit += 0x1000 }), false},
		"another binary":  {grown(func(p *profile.Profile) { p.Mapping[0].BuildID = "aa" }), true},
		"one more mapping": {grown(func(p *profile.Profile) {
			p.Mapping = append(p.Mapping, &profile.Mapping{ID: 2, Start: 1 << 40, Limit: 2 << 40, File: "/lib/x"})
		}), false},
		"other sample types": {grown(func(p *profile.Profile) { p.SampleType[0].Type = "alloc_others" }), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := heapSeries()
			s.advance(t, plain(t, profiletest.HeapPprof(10, 1000, 2, 200)), time.Now())
			step := s.advance(t, plain(t, test.next), time.Now())
			assert.Equal(t, test.restarted, step.Restarted)
			parts := 2
			if test.restarted {
				parts = 1
			}
			require.Len(t, step.Parts, parts)
			assert.Equal(t, sums(test.next, inuseTypes...), sums(parsed(t, step.Parts[0].Payload), inuseTypes...))
			if test.restarted {
				step = s.advance(t, plain(t, test.next), time.Now())
				assert.False(t, step.Restarted, "the new process is the one to compare with")
			}
		})
	}
}

// What pprof calls the default stays the default where it is, and in differences
// it is the last, as pprof has it.
func TestPartsHaveADefault(t *testing.T) {
	s := heapSeries()
	s.advance(t, plain(t, profiletest.HeapPprof(1, 100, 1, 100)), time.Now())
	step := s.advance(t, plain(t, profiletest.HeapPprof(2, 200, 1, 100)), time.Now())
	assert.Equal(t, "inuse_space", parsed(t, step.Parts[0].Payload).DefaultSampleType)
	assert.Empty(t, parsed(t, step.Parts[1].Payload).DefaultSampleType)
}

// A target that answers with what happened since it was last asked has no first
// difference: nobody knows how far back that goes.
func TestSinceLast(t *testing.T) {
	s := SinceLast(isAllocated)
	at := time.Now()
	first := s.advance(t, plain(t, profiletest.HeapPprof(10, 1000, 2, 200)), at)
	require.Len(t, first.Parts, 1)
	assert.False(t, first.Parts[0].Difference)
	p := profiletest.HeapPprof(3, 300, 0, 0)
	p.TimeNanos += 60e9
	second := s.advance(t, plain(t, p), at.Add(time.Minute))
	require.Len(t, second.Parts, 2)
	assert.False(t, second.Parts[0].Difference)
	assert.True(t, second.Parts[1].Difference)
	got := parsed(t, second.Parts[1].Payload)
	assert.Equal(t, sums(p, allocTypes...), sums(got, allocTypes...), "as it is")
	assert.Equal(t, time.Minute.Nanoseconds(), got.DurationNanos)
}

// What is deferred, and what did not arrive, is in the next difference where values
// count from the start. Where the target tells everything once, it is not, and the
// interval says so.
func TestDeferredAndLost(t *testing.T) {
	const minute = int64(time.Minute)
	taken := func(n int64) []byte {
		p := profiletest.HeapPprof(10*n, 1000*n, 1, 100)
		p.TimeNanos += n * minute
		return plain(t, p)
	}
	at := func(n int64) time.Time { return time.Unix(1_700_000_000, n*minute) }
	deferred := func(s *Series) {
		step, err := s.Next(taken(2), at(2))
		require.NoError(t, err)
		s.Defer(step)
	}
	lost := func(s *Series) { s.Lost(at(2)) }
	for name, test := range map[string]struct {
		series         *Series
		between        func(s *Series)
		objects, since int64
	}{
		"cumulative, deferred": {heapSeries(), deferred, 20, 1},
		"cumulative, lost":     {heapSeries(), lost, 20, 1},
		"since last, deferred": {SinceLast(isAllocated), deferred, 30, 2},
		"since last, lost":     {SinceLast(isAllocated), lost, 30, 2},
	} {
		t.Run(name, func(t *testing.T) {
			test.series.Lost(at(0)) // before the first it is nothing
			require.Len(t, test.series.advance(t, taken(1), at(1)).Parts, 1)
			test.between(test.series)
			step := test.series.advance(t, taken(3), at(3))
			require.Len(t, step.Parts, 2)
			got := parsed(t, step.Parts[1].Payload)
			assert.Equal(t, test.objects, got.Sample[0].Value[0])
			assert.Equal(t, at(test.since).UnixNano(), got.TimeNanos)
			assert.Equal(t, at(3).UnixNano(), got.TimeNanos+got.DurationNanos)
		})
	}
}

// What is not accepted, and what is wrong, changes nothing.
func TestStepsThatAreNotTaken(t *testing.T) {
	s := heapSeries()
	s.advance(t, plain(t, profiletest.HeapPprof(10, 1000, 2, 200)), time.Now())
	_, err := s.Next(plain(t, profiletest.HeapPprof(20, 2000, 2, 200)), time.Now())
	require.NoError(t, err)
	_, err = s.Next([]byte("no pprof"), time.Now())
	require.ErrorContains(t, err, "pprof: ")
	none := profiletest.HeapPprof(0, 0, 0, 0)
	none.SampleType, none.Sample, none.DefaultSampleType = none.SampleType[2:], nil, ""
	step := s.advance(t, plain(t, none), time.Now())
	assert.Equal(t, []Part{{Payload: plain(t, none)}}, step.Parts, "nothing of it counts")
	step = s.advance(t, plain(t, profiletest.HeapPprof(30, 3000, 2, 200)), time.Now())
	require.Len(t, step.Parts, 2)
	assert.EqualValues(t, 20, parsed(t, step.Parts[1].Payload).Sample[0].Value[0])
}

// Where nothing counts, payloads are not looked into.
func TestNothingCounts(t *testing.T) {
	var s Series
	payload := []byte("whatever it is")
	assert.Equal(t, []Part{{Payload: payload}}, s.advance(t, payload, time.Now()).Parts)
	assert.Zero(t, s.Memory(len(payload)))
	assert.NotZero(t, heapSeries().Memory(len(payload)))
}

func TestWrongCounters(t *testing.T) {
	negative := profiletest.HeapPprof(-1, 0, 0, 0)
	overflowing := profiletest.HeapPprof(math.MaxInt64, 0, 0, 0)
	overflowing.Sample = append(overflowing.Sample, overflowing.Sample[0])
	for want, p := range map[string]*profile.Profile{"alloc_objects is -1": negative, "does not fit into 64 bits": overflowing} {
		_, err := heapSeries().Next(plain(t, p), time.Now())
		assert.ErrorContains(t, err, want)
	}
}

// size is the memory that a reading keeps, in bytes, but for what is small.
func (r *reading) size() int {
	return 16*cap(r.ids) + 8*cap(r.values) + 16*cap(r.mappings)
}

// What is kept is bounded, and what the README says.
func TestKeptReading(t *testing.T) {
	p := profiletest.HeapPprof(1, 1, 0, 0)
	many := func(n int) []byte {
		p.Sample = p.Sample[:1]
		for i := range n {
			sample := *p.Sample[0]
			sample.NumLabel = map[string][]int64{"bytes": {int64(i)}}
			p.Sample = append(p.Sample, &sample)
		}
		return plain(t, p)
	}
	s := heapSeries()
	s.advance(t, many(5000), time.Now())
	assert.LessOrEqual(t, s.last.size(), 40*5001, "bytes of 5001 stacks")

	s = heapSeries()
	s.maxStacks = 100
	_, err := s.Next(many(s.maxStacks-1), time.Now())
	require.NoError(t, err)
	_, err = s.Next(many(s.maxStacks), time.Now())
	var limit *pproftranslator.LimitError
	require.ErrorAs(t, err, &limit)
	assert.EqualValues(t, s.maxStacks, limit.Limit)
}
