// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// model says, on written-out profiles, what a window is to hold. It is slow and has
// nothing in common with the window.
type model struct {
	settings mergeSettings
	added    []modelProfile
}

type modelProfile struct {
	profiletest.Expanded // as it came
	payload              int
}

func (m *model) add(payload int, all []profiletest.Expanded) {
	for _, e := range all {
		m.added = append(m.added, modelProfile{e, payload})
	}
}

func (m *model) isReading(e *profiletest.Expanded) bool {
	for _, a := range e.Attributes {
		if a.Key == attrTemporality {
			switch a.Value {
			case "delta":
				return false
			case "cumulative", "instant":
				return true
			}
		}
	}
	return e.Duration == 0 || m.settings.snapshotTypes[e.Type]
}

// header is what must be equal for two Profiles to be the same reading.
func header(e profiletest.Expanded) string {
	all := []any{e.Resource, e.Scope, e.Type, e.Unit, e.PeriodType, e.PeriodUnit, e.Period, e.Attributes}
	return fmt.Sprintf("%q %#v", all, all) // neither of these alone tells all values apart
}

// flush returns what is to come out, of all partitions together.
func (m *model) flush() []profiletest.Expanded {
	type last struct {
		time    uint64
		payload int
	}
	latest := map[string]last{}
	if m.settings.snapshots == snapshotsLatest {
		for _, e := range m.added {
			if m.isReading(&e.Expanded) && e.PayloadFormat == "" {
				key, l := header(e.Expanded), last{e.Time, e.payload}
				if old, ok := latest[key]; !ok || l.time > old.time || l.time == old.time && l.payload > old.payload {
					latest[key] = l
				}
			}
		}
	}
	var out []profiletest.Expanded
	for _, e := range m.added {
		if l, ok := latest[header(e.Expanded)]; ok && m.isReading(&e.Expanded) && e.PayloadFormat == "" &&
			l != (last{e.Time, e.payload}) {
			continue
		}
		out = append(out, m.view(e.Expanded, false))
	}
	m.added = nil
	return m.normalize(out)
}

// view is what is left of e once everything is left out that the settings say. Of what
// has come out it leaves all but load addresses and the times of readings.
func (m *model) view(e profiletest.Expanded, out bool) profiletest.Expanded {
	s := m.settings
	if out {
		s.dropResourceAttributes, s.dropSampleAttributes, s.dropTimestamps = nil, nil, false
	}
	if e.PayloadFormat != "" { // its samples stay as they are
		s.dropSampleAttributes, s.dropTimestamps = nil, false
	}
	if m.isReading(&e) {
		time := "latest"
		switch s.snapshots {
		case snapshotsKeep:
			time = fmt.Sprint(e.Time, e.Duration)
		case snapshotsSum:
			time = ""
		}
		if time != "" {
			e.Attributes = append(slices.Clone(e.Attributes), profiletest.Attribute{Key: "~reading", Value: time})
			e.Time, e.Duration = 0, 0
		}
	}
	e.Resource.Attributes = without(e.Resource.Attributes, s.dropResourceAttributes)
	frames := map[*profiletest.Frame]*profiletest.Frame{}
	samples := e.Samples
	e.Samples = nil
	for _, from := range samples {
		to := &profiletest.Sample{
			Attributes: without(from.Attributes, s.dropSampleAttributes), Link: from.Link,
			Sum: new(big.Int).Set(from.Sum), Points: from.Points,
		}
		if s.dropTimestamps {
			to.Points = nil
		}
		for _, f := range from.Stack {
			if frames[f] == nil {
				frames[f] = m.frame(*f, out)
			}
			to.Stack = append(to.Stack, frames[f])
		}
		e.Samples = append(e.Samples, to)
	}
	return e
}

func without(attributes []profiletest.Attribute, dropped map[string]bool) []profiletest.Attribute {
	return slices.DeleteFunc(slices.Clone(attributes), func(a profiletest.Attribute) bool { return dropped[a.Key] })
}

func (m *model) frame(f profiletest.Frame, out bool) *profiletest.Frame {
	c := m.settings.coarsening
	coarse := c.Granularity != dictionary.ByAddress && len(f.Lines) > 0
	start, limit := f.Mapping.Start, f.Mapping.Limit
	if c.RebaseMappings && f.Mapping.File != "" && !strings.HasPrefix(f.Mapping.File, "[") && limit > start &&
		(coarse || start <= f.Address && f.Address <= limit) {
		f.Mapping.Start, f.Mapping.Limit = 0, (limit-start+0xfff)&^0xfff
		if !out || !coarse {
			f.Address -= start
		}
	}
	if out {
		return &f
	}
	if coarse {
		f.Address = 0
	}
	f.Lines = slices.Clone(f.Lines)
	for i := range f.Lines {
		if c.Granularity != dictionary.ByAddress {
			f.Lines[i].Column = 0
		}
		if c.Granularity == dictionary.ByFunction {
			f.Lines[i].Line = 0
		}
	}
	return &f
}

func (m *model) normalize(all []profiletest.Expanded) []profiletest.Expanded {
	return profiletest.Normalize(all, profiletest.Options{
		Merge: true, IgnoreProfileID: true, IgnoreZeroSamples: m.settings.dropZeroSamples,
	})
}

// requireSame compares the partitions that came out with what was to.
func (m *model) requireSame(t *testing.T, want []profiletest.Expanded, partitions map[string]pprofile.Profiles) {
	t.Helper()
	var got []profiletest.Expanded
	for key, pd := range partitions {
		violations, _ := profiletest.Conformance(pd)
		hasOriginal := false
		eachProfile(pd, func(p pprofile.Profile) { hasOriginal = hasOriginal || p.OriginalPayloadFormat() != "" })
		require.Empty(t, slices.DeleteFunc(violations, func(v string) bool {
			// Samples that stay as they are may have become equal by their locations.
			return hasOriginal && strings.HasPrefix(v, "sample identity")
		}))
		for _, rp := range pd.ResourceProfiles().All() {
			require.Equal(t, key, m.settings.partitionOf(rp.Resource().Attributes()))
		}
		expanded, err := profiletest.Expand(pd)
		require.NoError(t, err)
		for _, e := range expanded {
			got = append(got, m.view(e, true))
		}
	}
	require.Empty(t, profiletest.Diff(want, m.normalize(got)))
}

func randomSettings(r *rand.Rand) mergeSettings {
	some := func(keys ...string) map[string]bool {
		set := map[string]bool{}
		for _, key := range keys {
			if r.IntN(3) == 0 {
				set[key] = true
			}
		}
		return set
	}
	s := mergeSettings{
		snapshots:       []string{snapshotsKeep, snapshotsLatest, snapshotsSum}[r.IntN(3)],
		snapshotTypes:   map[string]bool{"alloc_space": true},
		dropTimestamps:  r.IntN(3) == 0,
		dropZeroSamples: r.IntN(2) == 0,
		coarsening: dictionary.Coarsening{
			Granularity:    dictionary.Granularity(r.IntN(3)),
			RebaseMappings: r.IntN(2) == 0,
		},
		dropSampleAttributes:   some("key-0", "key-1", "key-2"),
		dropResourceAttributes: some("key-0", "key-1", "service.name"),
	}
	for _, key := range []string{"service.name", "key-0"} {
		if r.IntN(3) == 0 && !s.dropResourceAttributes[key] {
			s.splitBy = append(s.splitBy, key)
		}
	}
	return s
}

// moved gives the mappings of all frames another load address. With outside, some frames
// have an address outside their mapping.
func moved(all []profiletest.Expanded, by uint64, outside bool) []profiletest.Expanded {
	for _, e := range all {
		for _, s := range e.Samples {
			for _, f := range s.Stack {
				if f.Mapping.Start != 0 {
					if outside && f.Address%0x3000 == 0 {
						f.Address = 0x10
					}
					f.Mapping.Start += by
					f.Mapping.Limit += by
					f.Address += by
				}
			}
		}
	}
	return all
}

// alike makes resources differ in their service alone, and scopes not at all.
func alike(all []profiletest.Expanded) []profiletest.Expanded {
	for i := range all {
		all[i].Scope = profiletest.Entity{}
		all[i].Resource.SchemaURL = ""
		all[i].Resource.Attributes = slices.DeleteFunc(all[i].Resource.Attributes, func(a profiletest.Attribute) bool {
			return a.Key != "service.name"
		})
	}
	return all
}

// Random sequences of additions and flushes, under all settings.
func TestP2_WindowAgainstNaiveModel(t *testing.T) {
	seed, added := profiletest.Seed(t), 0
	for round := range uint64(profiletest.Rounds(t, 150, 100_000)) {
		r := rand.New(rand.NewPCG(seed, round))
		settings := randomSettings(r)
		naive := model{settings: settings}
		w := newWindow(settings)
		var im importer
		payload := 0
		for range 2 + r.IntN(4) {
			if r.IntN(4) > 0 {
				// Few seeds, so that the same things come again.
				expanded := moved(profiletest.GenerateExpanded(profiletest.NewRand(seed+round*3+r.Uint64N(3))), r.Uint64N(3)<<12, round%3 == 0)
				if round%2 == 0 {
					expanded = alike(expanded)
				}
				pd, err := profiletest.Build(expanded)
				require.NoError(t, err)
				require.NoErrorf(t, im.add(w, pd), "round %d", round)
				payload++
				naive.add(payload, expanded)
				im.release()
				continue
			}
			e, partitions := newEmitter(w), map[string]pprofile.Profiles{}
			for key := range w.partitions {
				partitions[key] = e.partition(key)
			}
			if naive.requireSame(t, naive.flush(), partitions); t.Failed() {
				t.Fatalf("round %d, %+v", round, settings)
			}
			w = newWindow(settings)
		}
		e, partitions := newEmitter(w), map[string]pprofile.Profiles{}
		for key := range w.partitions {
			partitions[key] = e.partition(key)
		}
		if naive.requireSame(t, naive.flush(), partitions); t.Failed() {
			t.Fatalf("round %d, %+v", round, settings)
		}
		added += payload
	}
	profiletest.Injected(t, fmt.Sprintf("%d random payloads", added))
}

// Rebased mappings begin at the least address that was seen, in any order; what is no
// file, and what is outside its mapping, stays where it is.
func TestRebaseMappings(t *testing.T) {
	loaded := func(file string, start, address uint64) pprofile.Profiles {
		pd, err := profiletest.Build([]profiletest.Expanded{{
			Type: "cpu", Unit: "nanoseconds", Time: 1, Duration: 1, Samples: []*profiletest.Sample{{
				Stack: []*profiletest.Frame{{Address: address, Mapping: profiletest.Mapping{
					Start: start, Limit: start + 0x1000, File: file,
				}}},
				Sum: big.NewInt(1),
			}},
		}})
		require.NoError(t, err)
		return pd
	}
	settings := defaultSettings()
	settings.coarsening.RebaseMappings = true
	payloads := []pprofile.Profiles{
		loaded("/bin/a", 0x5000, 0x5010), loaded("/bin/a", 0x3000, 0x3010), loaded("/bin/a", 0x7000, 0x7010),
		loaded("/bin/a", 0x7000, 0x10), loaded("[heap]", 0x5000, 0x5010), loaded("[heap]", 0x3000, 0x3010),
		loaded("/bin/b", math.MaxUint64-0x1000, math.MaxUint64),
		loaded("/bin/a", 0x3000, 0x20),
	}
	out := merged(t, settings, payloads...)
	slices.Reverse(payloads)
	require.Equal(t, marshal(t, out), marshal(t, merged(t, settings, payloads...)))
	expanded, err := profiletest.Expand(out)
	require.NoError(t, err)
	got := map[string]string{}
	for _, s := range expanded[0].Samples {
		got[s.Stack[0].String()] = s.Sum.String()
	}
	require.Equal(t, map[string]string{
		`0x3010 in (0x3000-0x4000+0x0 "/bin/a")`:                                     "3",
		`0x20 in (0x3000-0x4000+0x0 "/bin/a")`:                                       "1",
		`0x10 in (0x7000-0x8000+0x0 "/bin/a")`:                                       "1",
		`0x5010 in (0x5000-0x6000+0x0 "[heap]")`:                                     "1",
		`0x3010 in (0x3000-0x4000+0x0 "[heap]")`:                                     "1",
		`0xffffffffffffffff in (0xffffffffffffefff-0xffffffffffffffff+0x0 "/bin/b")`: "1",
	}, got)
}
