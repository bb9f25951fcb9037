// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// program is what all processes of one program have in common.
type program struct {
	mappings  []profile.Mapping // from 0 on
	locations []programLocation
	samples   []programSample
}

type programLocation struct {
	mapping  int
	distance uint64 // from the start of its mapping
	functions,
	line int // the number of lines, and the number of the first
	folded bool
}

type programSample struct {
	locations []int
	label     string
	values    []int64
}

// pprof is what a process sends whose mappings start at these addresses.
func (p *program) pprof(starts []uint64) *profile.Profile {
	out := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType:    &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		TimeNanos:     1_700_000_000_000_000_000,
		DurationNanos: 10_000_000_000, Period: 10_000_000,
	}
	for i := range p.mappings {
		m := p.mappings[i]
		m.ID, m.Start, m.Limit = uint64(i+1), starts[i], starts[i]+m.Limit
		out.Mapping = append(out.Mapping, &m)
	}
	for i := range 8 {
		out.Function = append(out.Function, &profile.Function{ID: uint64(i + 1), Name: fmt.Sprint("f", i), Filename: "f.c", StartLine: int64(i)})
	}
	for i, l := range p.locations {
		m := out.Mapping[l.mapping]
		location := &profile.Location{ID: uint64(i + 1), Mapping: m, Address: m.Start + l.distance, IsFolded: l.folded}
		for n := range l.functions {
			location.Line = append(location.Line, profile.Line{Function: out.Function[(l.line+n)%8], Line: int64(l.line + n)})
		}
		out.Location = append(out.Location, location)
	}
	for _, s := range p.samples {
		sample := &profile.Sample{Value: s.values}
		for _, l := range s.locations {
			sample.Location = append(sample.Location, out.Location[l])
		}
		if s.label != "" {
			sample.Label = map[string][]string{"label": {s.label}}
		}
		out.Sample = append(out.Sample, sample)
	}
	return out
}

// randomProgram has mappings with and without build ID, and locations that google/pprof and Window identify alike.
func randomProgram(r *rand.Rand) *program {
	p := &program{mappings: []profile.Mapping{
		{File: "/app/server", BuildID: []string{"", "0123abcd"}[r.IntN(2)]},
		{File: "/lib/libc.so.6", BuildID: "c0ffee"},
		{File: "/lib/libc.so.6", BuildID: "c0ffee", Offset: 0x20000},
		{File: "[vdso]", BuildID: "dd"},
		{File: "", BuildID: "0000000000000000000a/0000000000000000000b"}, // Go's
		{File: "/lib/libm.so.6", HasFunctions: r.IntN(2) == 0, HasFilenames: true},
	}}
	for i := range p.mappings {
		p.mappings[i].Limit = uint64(1+r.IntN(64))*0x1000 - r.Uint64N(2)*0x123
	}
	for i := range 1 + r.IntN(60) {
		m := r.IntN(len(p.mappings))
		if i == 0 {
			m = 0
		}
		l := programLocation{
			mapping: m, distance: r.Uint64N(p.mappings[m].Limit), functions: r.IntN(4), line: r.IntN(20), folded: r.IntN(8) == 0,
		}
		if p.mappings[m].BuildID == "" {
			l.functions = max(1, l.functions)
		}
		p.locations = append(p.locations, l)
	}
	return p
}

// run gives p the samples of another process. The first one is in the first mapping, which google/pprof always keeps.
func (p *program) run(r *rand.Rand) *program {
	p.samples = nil
	for range 1 + r.IntN(40) {
		s := programSample{label: []string{"", "a", "b"}[r.IntN(3)], values: []int64{1 + r.Int64N(100), 1 + r.Int64N(1e9)}}
		if len(p.samples) == 0 {
			s.locations = append(s.locations, 0)
		}
		for range r.IntN(8) {
			s.locations = append(s.locations, r.IntN(len(p.locations)))
		}
		p.samples = append(p.samples, s)
	}
	return p
}

// loaded returns random addresses of mappings.
func loaded(r *rand.Rand, mappings int) (starts []uint64) {
	for range mappings {
		starts = append(starts, 0x5500_0000_0000+r.Uint64N(1<<32)<<12)
	}
	return starts
}

// mergedByBoth merges pprofs by google/pprof and by a window.
func mergedByBoth(t *testing.T, options *Options, pprofs ...*profile.Profile) (google *profile.Profile, ours pprofile.Profiles) {
	t.Helper()
	var payloads []pprofile.Profiles
	for _, p := range pprofs {
		payloads = append(payloads, profiletest.Build(t, expand.Pprof(p)...))
	}
	google, err := profile.Merge(pprofs)
	require.NoError(t, err)
	return google, merged(t, options, payloads...)
}

func requireSameSize(t *testing.T, google *profile.Profile, ours pprofile.Profiles) {
	t.Helper()
	const zero = 1
	require.Equal(t, len(google.Mapping), ours.Dictionary().MappingTable().Len()-zero, "mappings")
	require.Equal(t, len(google.Location), ours.Dictionary().LocationTable().Len()-zero, "locations")
	require.Equal(t, 2, ours.ProfileCount())
	for _, p := range ours.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		require.Equal(t, len(google.Sample), p.Samples().Len(), "samples")
	}
}

// Ten processes of one position-independent program are one program, as for google/pprof.
func TestProcessesOfOneProgramMerge(t *testing.T) {
	p := &program{mappings: []profile.Mapping{{Limit: 0x100000, Offset: 0x1000, File: "/app/server", BuildID: "0123abcd"}}}
	for i := range 100 {
		p.locations = append(p.locations, programLocation{distance: uint64(i) * 0x1001})
		p.samples = append(p.samples, programSample{locations: []int{i, 0}, values: []int64{1, 10}})
	}
	var processes []*profile.Profile
	for i := range uint64(10) {
		processes = append(processes, p.pprof([]uint64{0x5500_0000_0000 + (i*7%10)<<30}))
	}
	google, ours := mergedByBoth(t, defaultOptions(), processes...)
	requireSameSize(t, google, ours)
	require.Equal(t, 1+1, ours.Dictionary().MappingTable().Len())
	require.Equal(t, 1+100, ours.Dictionary().LocationTable().Len())
	require.Empty(t, expand.DiffPprof(google, withoutDuration(google, ours)), "the addresses of the first one")
}

// withoutDuration gives the Profiles of pd the duration of p: google/pprof adds durations up.
func withoutDuration(p *profile.Profile, pd pprofile.Profiles) pprofile.Profiles {
	for _, to := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		to.SetTime(pcommon.Timestamp(p.TimeNanos))
		to.SetDurationNano(uint64(p.DurationNanos))
	}
	return pd
}

// The rule is stricter than that of google/pprof where two processes may have other code at the same distance.
func TestMergeDiffersFromGoogle(t *testing.T) {
	const build, page = "0123abcd", 0x1000
	at := func(m profile.Mapping, distance uint64, lines int) *program {
		m.Limit = 16 * page
		return &program{
			mappings:  []profile.Mapping{m},
			locations: []programLocation{{distance: distance, functions: lines}},
			samples:   []programSample{{locations: []int{0}, values: []int64{1, 10}}},
		}
	}
	for name, test := range map[string]struct {
		program                       *program
		other                         func(m *profile.Mapping)
		noAddress                     bool
		googleLocations, ourLocations int
	}{
		"a build ID and an address":       {program: at(profile.Mapping{BuildID: build}, 5, 0), googleLocations: 1, ourLocations: 1},
		"a file and lines":                {program: at(profile.Mapping{File: "/app"}, 5, 1), googleLocations: 1, ourLocations: 1},
		"a file without lines":            {program: at(profile.Mapping{File: "/app"}, 5, 0), googleLocations: 1, ourLocations: 2},
		"neither file nor build ID":       {program: at(profile.Mapping{}, 5, 1), googleLocations: 1, ourLocations: 2},
		"a relative path":                 {program: at(profile.Mapping{File: "app"}, 5, 1), googleLocations: 1, ourLocations: 2},
		"anonymous memory":                {program: at(profile.Mapping{File: "//anon"}, 5, 1), googleLocations: 1, ourLocations: 2},
		"a name in brackets":              {program: at(profile.Mapping{File: "[anon:jit]"}, 5, 1), googleLocations: 1, ourLocations: 2},
		"brackets and a build ID":         {program: at(profile.Mapping{File: "[vdso]", BuildID: build}, 5, 0), googleLocations: 1, ourLocations: 1},
		"a device":                        {program: at(profile.Mapping{File: "/dev/zero"}, 5, 1), googleLocations: 1, ourLocations: 2},
		"shared memory":                   {program: at(profile.Mapping{File: "/SYSV00000000"}, 5, 1), googleLocations: 1, ourLocations: 2},
		"a memfd":                         {program: at(profile.Mapping{File: "/memfd:doublemapper"}, 5, 1), googleLocations: 1, ourLocations: 2},
		"a deleted file":                  {program: at(profile.Mapping{File: "/app (deleted)"}, 5, 1), googleLocations: 1, ourLocations: 2},
		"a deleted file with a build ID":  {program: at(profile.Mapping{File: "/app (deleted)", BuildID: build}, 5, 0), googleLocations: 1, ourLocations: 1},
		"code of a just-in-time compiler": {program: at(profile.Mapping{File: "/tmp/perf-12.map"}, 5, 1), googleLocations: 1, ourLocations: 2},
		"a program with a name like that": {program: at(profile.Mapping{File: "/tmp/perf-top.map"}, 5, 1), googleLocations: 1, ourLocations: 1},
		"an address outside":              {program: at(profile.Mapping{BuildID: build}, 16*page, 0), googleLocations: 1, ourLocations: 2},
		"no address":                      {program: at(profile.Mapping{BuildID: build}, 5, 0), noAddress: true, googleLocations: 2, ourLocations: 1},
		"another flag": {
			program: at(profile.Mapping{BuildID: build}, 5, 0), other: func(m *profile.Mapping) { m.HasFunctions = true },
			googleLocations: 1, ourLocations: 2,
		},
		"another file with the same build ID": {
			program: at(profile.Mapping{File: "/a", BuildID: build}, 5, 0), other: func(m *profile.Mapping) { m.File = "/b" },
			googleLocations: 1, ourLocations: 1,
		},
		"another build ID of the same file": {
			program: at(profile.Mapping{File: "/a", BuildID: build}, 5, 0), other: func(m *profile.Mapping) { m.BuildID = "77" },
			googleLocations: 2, ourLocations: 2,
		},
		"another offset": {
			program: at(profile.Mapping{BuildID: build}, 5, 0), other: func(m *profile.Mapping) { m.Offset = page },
			googleLocations: 2, ourLocations: 2,
		},
		"another size within the page": {
			program: at(profile.Mapping{BuildID: build}, 5, 0), other: func(m *profile.Mapping) { m.Limit -= 0x123 },
			googleLocations: 1, ourLocations: 1,
		},
		"another size": {
			program: at(profile.Mapping{BuildID: build}, 5, 0), other: func(m *profile.Mapping) { m.Limit -= page },
			googleLocations: 2, ourLocations: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := test.program.pprof([]uint64{0x5500_0000_0000}), test.program.pprof([]uint64{0x5600_0000_0000})
			if test.noAddress {
				a.Location[0].Address, b.Location[0].Address = 0, 0
			}
			if test.other != nil {
				test.other(b.Mapping[0])
			}
			google, ours := mergedByBoth(t, defaultOptions(), a, b)
			require.Len(t, google.Location, test.googleLocations)
			require.Equal(t, test.ourLocations, ours.Dictionary().LocationTable().Len()-1)
			require.Equal(t, test.ourLocations, ours.Dictionary().MappingTable().Len()-1)
		})
	}
}

// A location is in its mapping also if the first mapping was shorter, and the name of the file does not depend on the order.
func TestImageHasTheLongestSizeAndTheLeastName(t *testing.T) {
	long := &program{
		mappings:  []profile.Mapping{{Limit: 0x2000, File: "/b", BuildID: "0123abcd"}},
		locations: []programLocation{{distance: 0x1fff}},
		samples:   []programSample{{locations: []int{0}, values: []int64{1, 10}}},
	}
	short := *long
	short.mappings = []profile.Mapping{{Limit: 0x1001, File: "/a", BuildID: "0123abcd"}}
	short.locations = []programLocation{{distance: 1}}
	for _, starts := range [][2]uint64{{0x10000, 0x50000}, {0x50000, 0x10000}, {0x10000, 1<<64 - 0x4000}, {1<<64 - 0x4000, 0x10000}} {
		for _, shortFirst := range []bool{false, true} {
			processes := []*profile.Profile{long.pprof(starts[:1]), short.pprof(starts[:1])}
			if shortFirst {
				processes = []*profile.Profile{short.pprof(starts[:1]), long.pprof(starts[1:])}
			}
			_, ours := mergedByBoth(t, defaultOptions(), processes...)
			m := ours.Dictionary().MappingTable().At(1)
			require.Equal(t, starts[0], m.MemoryStart())
			require.Equal(t, starts[0]+0x2000, m.MemoryLimit())
			require.Equal(t, "/a", ours.Dictionary().StringTable().At(int(m.FilenameStrindex())))
			var addresses []uint64
			for _, l := range ours.Dictionary().LocationTable().All() {
				addresses = append(addresses, l.Address())
			}
			require.ElementsMatch(t, []uint64{0, starts[0] + 1, starts[0] + 0x1fff}, addresses)
		}
	}
}

// Which process comes first decides addresses only: everything else, the order and the profile IDs among it, is equal.
func TestOrderOfProcessesDecidesAddressesOnly(t *testing.T) {
	seed := profiletest.Seed(t)
	for round := range uint64(profiletest.Rounds(t, 50, 5000)) {
		r := rand.New(rand.NewPCG(seed, round))
		p := randomProgram(r)
		var payloads []pprofile.Profiles
		for range 2 + r.IntN(5) {
			payloads = append(payloads, profiletest.Build(t, expand.Pprof(p.run(r).pprof(loaded(r, len(p.mappings))))...))
		}
		options := defaultOptions()
		options.Granularity = dictionary.Granularity(r.IntN(3))
		want := profiletest.ProtoOfCopy(t, unloaded(merged(t, options, payloads...)))
		r.Shuffle(len(payloads), func(i, j int) { payloads[i], payloads[j] = payloads[j], payloads[i] })
		got := profiletest.ProtoOfCopy(t, unloaded(merged(t, options, payloads...)))
		require.True(t, bytes.Equal(want, got), "seed %d, round %d", seed, round)
	}
}

// unloaded replaces all addresses by distances from the start of their mapping.
func unloaded(pd pprofile.Profiles) pprofile.Profiles {
	mappings := pd.Dictionary().MappingTable()
	for _, l := range pd.Dictionary().LocationTable().All() {
		if l.Address() != 0 {
			l.SetAddress(l.Address() - mappings.At(int(l.MappingIndex())).MemoryStart())
		}
	}
	for _, m := range mappings.All() {
		m.SetMemoryLimit(m.MemoryLimit() - m.MemoryStart())
		m.SetMemoryStart(0)
	}
	return pd
}

// Granularity applies first: without addresses, functions of all processes are one location.
func TestGranularityAppliesBeforeLoadAddresses(t *testing.T) {
	for _, by := range []dictionary.Granularity{dictionary.ByLine, dictionary.ByFunction} {
		p := &program{
			mappings:  []profile.Mapping{{Limit: 0x2000, File: "/app"}},
			locations: []programLocation{{distance: 1, functions: 1}, {distance: 2, functions: 1}, {distance: 3000, functions: 1}, {distance: 8, functions: 1, line: 1}},
			samples:   []programSample{{locations: []int{0, 1, 2, 3}, values: []int64{1, 10}}},
		}
		options := defaultOptions()
		options.Granularity = by
		_, ours := mergedByBoth(t, options, p.pprof([]uint64{0x10000}), p.pprof([]uint64{0x20000}))
		require.Equal(t, 1+2, ours.Dictionary().LocationTable().Len())
		require.Equal(t, 1+1, ours.Dictionary().MappingTable().Len())
		for _, l := range ours.Dictionary().LocationTable().All() {
			require.Zero(t, l.Address())
		}
	}
}

// Random programs in several processes become as many mappings, locations and samples as google/pprof makes, with the same
// values and addresses.
func TestMergeEqualsGoogle(t *testing.T) {
	seed := profiletest.Seed(t)
	for round := range uint64(profiletest.Rounds(t, 150, 20_000)) {
		r := rand.New(rand.NewPCG(seed, round))
		p := randomProgram(r)
		var processes []*profile.Profile
		for range 2 + r.IntN(5) {
			processes = append(processes, p.run(r).pprof(loaded(r, len(p.mappings))))
		}
		google, ours := mergedByBoth(t, defaultOptions(), processes...)
		requireSameSize(t, google, ours)
		require.Empty(t, expand.DiffPprof(google, withoutDuration(google, ours)), "seed %d, round %d", seed, round)
	}
}
