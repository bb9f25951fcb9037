// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// sums is a profile by written-out stacks and labels, with the values of some
// sample types, summed; those that are all 0 left out.
func sums(p *profile.Profile, types ...string) map[string][]int64 {
	var columns []int
	for i, sampleType := range p.SampleType {
		if slices.Contains(types, sampleType.Type) {
			columns = append(columns, i)
		}
	}
	found := map[string][]int64{}
	for _, sample := range p.Sample {
		var key strings.Builder
		for _, location := range sample.Location {
			fmt.Fprintf(&key, "%x", location.Address)
			if location.Mapping != nil {
				fmt.Fprintf(&key, " of %s %s %x", location.Mapping.File, location.Mapping.BuildID, location.Mapping.Start)
			}
			for _, line := range location.Line {
				fmt.Fprintf(&key, " %q %q:%d:%d", line.Function.Name, line.Function.Filename, line.Line, line.Column)
			}
			key.WriteByte('\n')
		}
		fmt.Fprint(&key, sample.Label, sample.NumLabel, sample.NumUnit)
		values := found[key.String()]
		if values == nil {
			values = make([]int64, len(columns))
		}
		for i, column := range columns {
			values[i] += sample.Value[column]
		}
		found[key.String()] = values
	}
	maps.DeleteFunc(found, func(_ string, values []int64) bool {
		return !slices.ContainsFunc(values, func(n int64) bool { return n != 0 })
	})
	return found
}

// minus is what a has more than b.
func minus(a, b map[string][]int64) map[string][]int64 {
	difference := map[string][]int64{}
	for key, values := range a {
		values = slices.Clone(values)
		for i := range b[key] {
			values[i] -= b[key][i]
		}
		if slices.ContainsFunc(values, func(n int64) bool { return n != 0 }) {
			difference[key] = values
		}
	}
	return difference
}

func parsed(t *testing.T, payload []byte) *profile.Profile {
	t.Helper()
	p, err := profile.ParseData(payload)
	require.NoError(t, err)
	require.NoError(t, p.CheckValid())
	return p
}

func heapSeries() *comparer {
	return &comparer{kind: scrapeKinds[kindHeap], delta: true, most: maxKept}
}

var (
	allocTypes = []string{"alloc_objects", "alloc_space"}
	inuseTypes = []string{"inuse_objects", "inuse_space"}
)

// advance gives a series the next profile, as a scrape does whose parts are
// accepted.
func (s *comparer) advance(t *testing.T, payload []byte, at time.Time) comparison {
	t.Helper()
	result, err := s.compare(payload, at)
	require.NoError(t, err)
	if result.next != nil {
		s.last = result.next
	}
	return result
}

// checkHeaps requires that a series of heap profiles of one process comes out as
// its in-use values and the differences of its allocations.
func checkHeaps(t *testing.T, payloads [][]byte) {
	t.Helper()
	s := heapSeries()
	total := 0
	at := time.Unix(1_800_000_000, 0)
	for i, payload := range payloads {
		p := parsed(t, payload)
		result := s.advance(t, payload, at.Add(time.Duration(i)*time.Minute))
		require.False(t, result.restarted, "profile %d", i)
		reading := parsed(t, result.parts[0].payload)
		assert.Equal(t, sums(p, inuseTypes...), sums(reading, inuseTypes...), "profile %d", i)
		assert.Equal(t, p.TimeNanos, reading.TimeNanos)
		assert.Equal(t, p.PeriodType, reading.PeriodType)
		assert.Len(t, reading.SampleType, 2)
		if i == 0 {
			require.Len(t, result.parts, 1, "the first reading is no difference")
			continue
		}
		require.Len(t, result.parts, 2)
		before := parsed(t, payloads[i-1])
		difference := parsed(t, result.parts[1].payload)
		want := minus(sums(p, allocTypes...), sums(before, allocTypes...))
		assert.Equal(t, want, sums(difference, allocTypes...), "profile %d", i)
		assert.Len(t, difference.Sample, len(want), "one sample each")
		assert.Equal(t, before.TimeNanos, difference.TimeNanos, "it begins at the one before")
		assert.Equal(t, p.TimeNanos, difference.TimeNanos+difference.DurationNanos)
		assert.Len(t, difference.SampleType, 2)
		total += len(want)
	}
	assert.NotZero(t, total)
}

func TestDifferencesOfTheCorpus(t *testing.T) {
	var payloads [][]byte
	for _, file := range profiletest.Corpus(t) {
		if strings.Contains(file.Name, "go-heap-series") {
			plain, err := pproftranslator.Decompress(file.Data, 64<<20)
			require.NoError(t, err)
			payloads = append(payloads, plain)
		}
	}
	require.NotEmpty(t, payloads)
	checkHeaps(t, payloads)
}

var kept [][]byte // what TestDifferencesOfThisProcess allocates

func TestDifferencesOfThisProcess(t *testing.T) {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 64
	defer func() { runtime.MemProfileRate = rate }()
	var payloads [][]byte
	for i := range 3 {
		for range 100 {
			kept = append(kept, make([]byte, 1000+i))
		}
		runtime.GC()
		runtime.GC()
		var taken bytes.Buffer
		require.NoError(t, pprof.Lookup("heap").WriteTo(&taken, 0))
		plain, err := pproftranslator.Decompress(taken.Bytes(), 64<<20)
		require.NoError(t, err)
		payloads = append(payloads, plain)
	}
	kept = nil
	checkHeaps(t, payloads)
}

// grow makes random counters of a process grow, and begin.
func grow(r *rand.Rand, p *profile.Profile) {
	for _, sample := range p.Sample {
		for i := range sample.Value {
			if r.IntN(3) > 0 {
				sample.Value[i] += r.Int64N(1000)
			}
		}
	}
	p.TimeNanos += 1 + r.Int64N(1e12)
}

// Random profiles, with labels of all kinds and samples that are there several
// times, against sums over written-out samples.
func TestDifferencesOfRandomProfiles(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	profiles, rounds := 50, 0
	if full, _ := profiletest.Soak(t); full {
		profiles = 2000
	}
	for range profiles {
		p := profiletest.GeneratePprof(r)
		if len(p.SampleType) == 0 {
			continue
		}
		var counted, rest []string
		for i, sampleType := range p.SampleType {
			sampleType.Type = fmt.Sprintf("inuse_%d", i)
			if i == 0 || r.IntN(2) == 0 {
				sampleType.Type = fmt.Sprintf("alloc_%d", i)
				counted = append(counted, sampleType.Type)
			} else {
				rest = append(rest, sampleType.Type)
			}
		}
		p.DefaultSampleType = ""
		p.TimeNanos = 1_700_000_000_000_000_000
		for _, sample := range p.Sample {
			for i := range sample.Value {
				sample.Value[i] = r.Int64N(1000)
			}
		}
		s := heapSeries()
		s.advance(t, plain(t, p), time.Now())
		for range 4 {
			before := sums(parsed(t, plain(t, p)), counted...)
			grow(r, p)
			payload := plain(t, p)
			now := parsed(t, payload)
			result := s.advance(t, payload, time.Now())
			require.False(t, result.restarted)
			got := parsed(t, result.parts[len(result.parts)-1].payload)
			require.Equal(t, minus(sums(now, counted...), before), sums(got, counted...))
			if len(rest) > 0 {
				require.Equal(t, sums(now, rest...), sums(parsed(t, result.parts[0].payload), rest...))
			}
			for _, part := range result.parts {
				_, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(part.payload)
				require.NoError(t, err)
			}
			rounds++
		}
	}
	assert.NotZero(t, rounds)
}

func heapPprof(allocObjects, allocSpace, inuseObjects, inuseSpace int64) *profile.Profile {
	p := samplePprof("/bin/app", 0)
	p.SampleType = nil
	for _, name := range []string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"} {
		unit := "bytes"
		if strings.HasSuffix(name, "objects") {
			unit = "count"
		}
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: unit})
	}
	p.PeriodType = &profile.ValueType{Type: "space", Unit: "bytes"}
	p.Period = 524288
	p.DefaultSampleType = "inuse_space"
	p.DurationNanos = 0
	p.Sample[0].Value = []int64{allocObjects, allocSpace, inuseObjects, inuseSpace}
	return p
}

func TestRestartsAreDetected(t *testing.T) {
	grown := func(change func(p *profile.Profile)) *profile.Profile {
		p := heapPprof(10, 1000, 2, 200)
		change(p)
		return p
	}
	for name, test := range map[string]struct {
		next      *profile.Profile
		restarted bool
	}{
		"more":            {grown(func(p *profile.Profile) { p.Sample[0].Value[0]++ }), false},
		"equal":           {heapPprof(10, 1000, 2, 200), false},
		"less in use":     {heapPprof(10, 1000, 0, 0), false},
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
			s.advance(t, plain(t, heapPprof(10, 1000, 2, 200)), time.Now())
			result := s.advance(t, plain(t, test.next), time.Now())
			assert.Equal(t, test.restarted, result.restarted)
			parts := 2
			if test.restarted {
				parts = 1
			}
			require.Len(t, result.parts, parts)
			assert.Equal(t, sums(test.next, inuseTypes...), sums(parsed(t, result.parts[0].payload), inuseTypes...))
			if test.restarted {
				result = s.advance(t, plain(t, test.next), time.Now())
				assert.False(t, result.restarted, "the new process is the one to compare with")
			}
		})
	}
}

// What pprof calls the default stays the default where it is, and in differences
// it is the last, as pprof has it.
func TestPartsHaveADefault(t *testing.T) {
	s := heapSeries()
	s.advance(t, plain(t, heapPprof(1, 100, 1, 100)), time.Now())
	result := s.advance(t, plain(t, heapPprof(2, 200, 1, 100)), time.Now())
	assert.Equal(t, "inuse_space", parsed(t, result.parts[0].payload).DefaultSampleType)
	assert.Empty(t, parsed(t, result.parts[1].payload).DefaultSampleType)
}

func TestIntervals(t *testing.T) {
	at := time.Unix(2000, 0)
	for name, test := range map[string]struct {
		last, next      reading
		begin, duration int64
	}{
		"by the target's clock": {reading{time: 1000e9, at: at}, reading{time: 1060e9, at: at.Add(61 * time.Second)}, 1000e9, 60e9},
		"it stepped back":       {reading{time: 1000e9, at: at}, reading{time: 900e9, at: at.Add(61 * time.Second)}, 839e9, 61e9},
		"it tells no time":      {reading{at: at}, reading{at: at.Add(61 * time.Second)}, 2000e9, 61e9},
		"from 1970":             {reading{at: at}, reading{time: 5e9, at: at.Add(61 * time.Second)}, 1, 61e9},
	} {
		begin, duration := interval(&test.last, &test.next)
		assert.Equal(t, test.begin, begin, name)
		assert.Equal(t, test.duration, duration, name)
	}
}

// A target that answers with what happened since it was last asked has no first
// difference: nobody knows how far back that goes.
func TestSinceLast(t *testing.T) {
	s := &comparer{kind: scrapeKinds["delta_heap"], delta: true}
	at := time.Now()
	first := s.advance(t, plain(t, heapPprof(10, 1000, 2, 200)), at)
	require.Len(t, first.parts, 1)
	assert.Equal(t, temporalityInstant, first.parts[0].temporality("inuse_space"))
	p := heapPprof(3, 300, 0, 0)
	p.TimeNanos += 60e9
	second := s.advance(t, plain(t, p), at.Add(time.Minute))
	require.Len(t, second.parts, 2)
	got := parsed(t, second.parts[1].payload)
	assert.Equal(t, sums(p, allocTypes...), sums(got, allocTypes...), "as it is")
	assert.Equal(t, time.Minute.Nanoseconds(), got.DurationNanos)
	assert.Equal(t, temporalityDelta, second.parts[1].temporality("alloc_space"))
}

// Labels are a set, but the values of one are not: what the translator tells apart,
// differences tell apart.
func TestOrderOfLabels(t *testing.T) {
	labels := func(pairs ...string) identity {
		var sample []byte
		strings := []byte{0x32, 0} // string_table[0]
		for i, text := range pairs {
			strings = append(append(strings, 0x32, byte(len(text))), text...)
			if i%2 == 1 {
				sample = append(sample, 0x1a, 4, 8, byte(i), 16, byte(i+1))
			}
		}
		payload := append(append([]byte{0x12, byte(len(sample))}, sample...), strings...)
		view, err := viewPprof(payload)
		require.NoError(t, err)
		return view.samples[0]
	}
	assert.Equal(t, labels("a", "1", "b", "2"), labels("b", "2", "a", "1"))
	assert.Equal(t, labels("a", "1", "b", "2", "a", "3"), labels("a", "1", "a", "3", "b", "2"))
	assert.NotEqual(t, labels("a", "1", "a", "2"), labels("a", "2", "a", "1"))
	assert.NotEqual(t, labels("a", "1"), labels("a", "1", "a", "1"))
	assert.NotEqual(t, labels("a", "1"), labels("1", "a"))
}

func TestWithoutDelta(t *testing.T) {
	s := &comparer{kind: scrapeKinds[kindMutex]}
	payload := []byte("whatever it is")
	result := s.advance(t, payload, time.Now())
	require.Len(t, result.parts, 1)
	assert.Equal(t, payload, result.parts[0].payload)
	assert.Equal(t, temporalityCumulative, result.parts[0].temporality("delay"))
}

// Every prefix and every flipped bit: an error or a profile, and never a panic.
func TestHostileProfilesToCompare(t *testing.T) {
	good := plain(t, heapPprof(1, 100, 1, 100))
	s := heapSeries()
	s.advance(t, good, time.Now())
	for n := range good {
		_, _ = s.compare(good[:n], time.Now())
		for bit := range 8 {
			flipped := bytes.Clone(good)
			flipped[n] ^= 1 << bit
			_, _ = s.compare(flipped, time.Now())
		}
	}
}

func FuzzCompare(f *testing.F) {
	var buf bytes.Buffer
	if err := heapPprof(1, 100, 1, 100).WriteUncompressed(&buf); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes(), buf.Bytes())
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s := heapSeries()
		for _, payload := range [][]byte{a, b} {
			result, err := s.compare(payload, time.Unix(1, 0))
			if err != nil {
				return
			}
			s.last = result.next
			_, wholeErr := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(payload)
			for _, part := range result.parts {
				if _, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(part.payload); err != nil && wholeErr == nil {
					t.Fatalf("a part of what is valid is not: %v", err)
				}
			}
		}
	})
}

func TestWrongCounters(t *testing.T) {
	negative := heapPprof(-1, 0, 0, 0)
	overflowing := heapPprof(math.MaxInt64, 0, 0, 0)
	overflowing.Sample = append(overflowing.Sample, overflowing.Sample[0])
	for want, p := range map[string]*profile.Profile{"alloc_objects is -1": negative, "does not fit into 64 bits": overflowing} {
		_, err := heapSeries().compare(plain(t, p), time.Now())
		assert.ErrorContains(t, err, want)
	}
}

// What is kept is bounded, and what the README says.
func TestKeptReading(t *testing.T) {
	p := heapPprof(1, 1, 0, 0)
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
	s.most = 100
	_, err := s.compare(many(s.most-1), time.Now())
	require.NoError(t, err)
	_, err = s.compare(many(s.most), time.Now())
	var limit *pproftranslator.LimitError
	require.ErrorAs(t, err, &limit)
	assert.EqualValues(t, s.most, limit.Limit)
}
