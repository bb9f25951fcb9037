// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// contestant is one of the ways to do the same.
type contestant struct {
	prepare func() // not timed; may be nil
	run     func()
	share   int // of the time of a run is reported, 1/share; 0 is all
}

// takeTurns returns the median time of each contestant, in µs. They take turns, so
// that what else the machine does meets all alike; a turn is several runs, so that
// what one leaves in the caches and to the garbage collector meets few of the next.
func takeTurns(contestants ...contestant) []float64 {
	const (
		least, most, enough = 5, 50, 2 * time.Second // rounds
		runs, turnTime      = 8, 60 * time.Millisecond
	)
	times := make([][]time.Duration, len(contestants))
	begin := time.Now()
	for round := 0; round < least || round < most && time.Since(begin) < enough; round++ {
		for i, c := range contestants {
			turn := time.Now()
			for run := 0; run < runs && time.Since(turn) < turnTime; run++ {
				if c.prepare != nil {
					c.prepare()
				}
				before := time.Now()
				c.run()
				times[i] = append(times[i], time.Since(before)/time.Duration(max(c.share, 1)))
			}
		}
	}
	medians := make([]float64, len(contestants))
	for i, t := range times {
		slices.Sort(t)
		medians[i] = float64(t[len(t)/2].Nanoseconds()) / 1000
	}
	return medians
}

// BenchmarkMerge adds a profile to a window that contains it, against google/pprof merging ten.
func BenchmarkMerge(b *testing.B) {
	const (
		least = 1 << 10  // bytes of pprof, from which a profile is shown
		large = 64 << 10 // from which one addition is long enough to be timed
	)
	options := defaultOptions()
	options.Snapshots = SnapshotsSum // as google/pprof does
	for _, of := range append(benchmarks(b), small(b)...) {
		data := of.messages[0]
		if len(of.messages) > 1 || len(data) < least {
			continue
		}
		repeat := max(1, large/len(data))
		pd := unmarshalPprof(b, data)
		parsed, err := profile.ParseUncompressed(data)
		require.NoError(b, err)
		w, copies := NewWindow(options), slices.Repeat([]*profile.Profile{parsed}, 10)
		held := func() {
			for range repeat {
				require.NoError(b, add(w, pd))
			}
		}
		google := func() {
			_, err := profile.Merge(copies)
			require.NoError(b, err)
		}
		held()
		times := takeTurns(contestant{run: held, share: repeat}, contestant{run: google, share: len(copies)})
		report(b, "profile="+of.name, "pprof-B", float64(len(data)), "samples", float64(len(parsed.Sample)),
			"held-µs", times[0], "google-µs", times[1], "held/google", times[0]/times[1],
			"held-allocs", testing.AllocsPerRun(3, held)/float64(repeat))
	}
}

// withLocations returns a profile with n locations that no other seed has, twenty
// a stack.
func withLocations(seed uint64, n int) *profile.Profile {
	mapping := &profile.Mapping{ID: 1, Start: 1 << 22, Limit: 1 << 60, File: "/usr/local/bin/checkout"}
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Mapping:       []*profile.Mapping{mapping},
		DurationNanos: int64(10 * time.Second),
	}
	for i := range n {
		if i%20 == 0 {
			p.Sample = append(p.Sample, &profile.Sample{Value: []int64{1}})
		}
		l := &profile.Location{ID: uint64(i + 1), Mapping: mapping, Address: mapping.Start + seed<<20 + uint64(i)}
		p.Location = append(p.Location, l)
		last := p.Sample[len(p.Sample)-1]
		last.Location = append(last.Location, l)
	}
	return p
}

// millionLocations returns a window of 10^6 locations, and a function that returns a small profile with others each time.
func millionLocations(tb testing.TB) (million *Window, small func() pprofile.Profiles) {
	tb.Helper()
	seed := uint64(0)
	next := func(locations int) pprofile.Profiles {
		seed++
		return unmarshalPprof(tb, profiletest.Pprof(tb, withLocations(seed, locations)))
	}
	million = NewWindow(defaultOptions())
	for range 10 {
		require.NoError(tb, add(million, next(100_000)))
	}
	return million, func() pprofile.Profiles { return next(100) }
}

// BenchmarkMergeMillion adds a small profile to a window that holds a lot.
func BenchmarkMergeMillion(b *testing.B) {
	million, small := millionLocations(b)
	var pd pprofile.Profiles
	var w *Window
	next := func() { pd = small() }
	addTo := func(w **Window) func() { return func() { require.NoError(b, add(*w, pd)) } }
	rows := []struct {
		name                         string
		prepareEmpty, prepareMillion func()
	}{
		{"new to it", func() { next(); w = NewWindow(defaultOptions()) }, next},
		{"held by it", nil, nil},
	}
	for _, row := range rows {
		if row.prepareEmpty == nil {
			next()
			w = NewWindow(defaultOptions())
			addTo(&w)()
			addTo(&million)()
		}
		times := takeTurns(contestant{prepare: row.prepareEmpty, run: addTo(&w)}, contestant{prepare: row.prepareMillion, run: addTo(&million)})
		report(b, "small profile="+row.name, "locations", 1e6, "window-B", float64(million.Size()),
			"empty-µs", times[0], "million-µs", times[1], "million/empty", times[1]/times[0])
	}
}
