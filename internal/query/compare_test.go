// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// usage is what a pod does in an interval or snapshot: values of functions that main.main calls.
type usage struct {
	pod, track      string
	start, duration int // seconds; a snapshot without a duration
	functions       map[string]int64
}

func (u *usage) payload(t *testing.T) pprofile.Profiles {
	t.Helper()
	p := expand.Profile{
		Scope: expand.Entity{Attributes: []expand.Attribute{{Key: "profile.type", Value: "cpu"}}}, Type: "cpu", Unit: "nanoseconds",
		Time: nano(u.start), Duration: uint64(u.duration) * 1e9, PeriodType: "cpu", PeriodUnit: "nanoseconds", Period: 1e7,
		Resource: expand.Entity{Attributes: []expand.Attribute{
			{Key: "k8s.pod.name", Value: u.pod}, {Key: "service.name", Value: "checkout"}, {Key: "track", Value: u.track},
		}},
	}
	if u.duration == 0 {
		p.Scope.Attributes, p.Type, p.Unit = []expand.Attribute{{Key: "profile.type", Value: "heap"}}, "inuse_space", "bytes"
		p.PeriodType, p.PeriodUnit, p.Period = "space", "bytes", 512<<10
	}
	for name, value := range u.functions {
		p.Samples = append(p.Samples, &expand.Sample{
			Stack: []*expand.Frame{{Lines: []expand.Line{{Function: name}}}, {Lines: []expand.Line{{Function: "main.main"}}}}, Sum: big.NewInt(value),
		})
	}
	return profiletest.Build(t, p)
}

// rollout is half an hour of three stable pods of 0.4 cores that are profiled for 10 s a minute, never at once, and then of five of 0.42, with
// a canary pod of 0.6 cores that is profiled for 30 s a minute. Each has a heap: of 100 MiB, the canary 160. A pod of the first half hour
// ends in its middle, and another one takes its place.
func rollout(t *testing.T) (payloads []pprofile.Profiles) {
	t.Helper()
	const mib = 1 << 20
	for minute := range 60 {
		pods, cores := 3, 0.4
		if minute >= 30 {
			pods, cores = 5, 0.42
		}
		add := func(u usage, cores float64, heap int64) {
			value := int64(1e9 * cores * float64(u.duration))
			u.functions = map[string]int64{"main.encode": value / 2, "main.idle": value / 2}
			if u.track == "canary" {
				u.functions = map[string]int64{"main.encode": value / 4 * 3, "main.idle": value / 4}
			}
			payloads = append(payloads, u.payload(t))
			u.duration, u.functions = 0, map[string]int64{"main.cache": heap * mib}
			payloads = append(payloads, u.payload(t))
		}
		for pod := range pods {
			name := fmt.Sprint("stable-", pod)
			if pod == 0 && minute < 15 {
				name = "stable-old"
			}
			add(usage{pod: name, track: "stable", start: 60*minute + 10*pod, duration: 10}, cores, 100)
		}
		if minute >= 30 {
			add(usage{pod: "canary-0", track: "canary", start: 60*minute + 20, duration: 30}, 0.6, 160)
		}
	}
	return payloads
}

func selecting(t *testing.T, typ string, from, to int, label string) *query.Selection {
	t.Helper()
	sel := &query.Selection{Types: []string{typ}, From: at(60 * from), To: at(60 * to)}
	if label != "" {
		require.NoError(t, sel.Set("label", label))
	}
	return sel
}

// windowed merges what ends in the same window, as a gateway does that drops the name of the pod, and as compaction with its slots.
func windowed(t *testing.T, payloads []pprofile.Profiles, window time.Duration, slots bool) (merged []pprofile.Profiles) {
	t.Helper()
	options := &merge.Options{
		Snapshots: merge.SnapshotsKeep, SnapshotSampleTypes: sampletypes.SnapshotSampleTypes, DropZeroSamples: true,
		DropResourceAttributes: []string{"k8s.pod.name"}, SlotLength: window, SlotByStart: slots,
	}
	windows := map[int64]*merge.Window{}
	for _, pd := range payloads {
		p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		at := (int64(p.Time()) + int64(p.DurationNano())) / int64(window)
		if windows[at] == nil {
			windows[at] = merge.NewWindow(options)
		}
		checked, err := merge.Check(pd, options)
		require.NoError(t, err)
		require.NoError(t, windows[at].Add(checked))
	}
	for _, at := range slices.Sorted(maps.Keys(windows)) {
		merged = append(merged, windows[at].Emit(""))
	}
	return merged
}

// TestCompareComparesRatesAndLevels_T3 with the truth of a rollout: from an index and from a file, behind a gateway, and after compaction.
func TestCompareComparesRatesAndLevels_T3(t *testing.T) {
	s := indexed(t, segment.Proto, rollout(t)...)
	for name, source := range map[string]*query.Source{
		"indexed": s.Source, "plain": s.plain,
		"windows of 5 s":  indexed(t, segment.Proto, windowed(t, rollout(t), 5*time.Second, false)...).Source,
		"windows of 60 s": indexed(t, segment.Proto, windowed(t, rollout(t), time.Minute, false)...).Source,
		"compacted":       indexed(t, segment.Proto, windowed(t, windowed(t, rollout(t), 5*time.Second, false), 10*time.Minute, true)...).Source,
	} {
		compare := func(sel, base *query.Selection) *query.ComparedType {
			c, err := query.Compare(t.Context(), source, sel, source, base)
			require.NoError(t, err, name)
			require.Equal(t, len(base.Labels) > 0 && !labels.Same(sel.Labels[0], base.Labels[0]), c.PerProcess, name)
			return c.Shown()
		}
		// One half hour and another one: the rate of the series, however many processes there are.
		got := compare(selecting(t, "cpu", 30, 60, "track=stable"), selecting(t, "cpu", 0, 30, "track=stable"))
		assert.Equal(t, query.Rates, got.Basis, name)
		assert.InEpsilon(t, 2.1, got.New.Value()/1e9, 0.05, name)
		assert.InEpsilon(t, 1.2, got.Base.Value()/1e9, 0.05, name)
		change, ok := got.Change()
		require.True(t, ok, name)
		assert.InDelta(t, 0.75, change, 0.05, name)
		assert.InEpsilon(t, got.New.Rate, got.New.Value(), 1e-9, name)
		assert.InEpsilon(t, 1./6, got.New.Coverage(), 0.1, name)
		assert.Equal(t, []int{5, 4}, []int{got.New.Processes, got.Base.Processes}, name)
		if name != "compacted" { // the first record begins before the range
			assert.InEpsilon(t, 30*5*10*0.42*100, got.New.Samples, 0.01, "one each 10 ms")
		}
		assert.InEpsilon(t, 1/math.Sqrt(got.New.Samples), got.New.RelativeError(), 1e-9)
		assert.False(t, got.Noise(), name)

		// A canary and the stable version, which differ in number and in how long they are profiled: one process on average.
		got = compare(selecting(t, "cpu", 30, 60, "track=canary"), selecting(t, "cpu", 30, 60, "track=stable"))
		assert.InEpsilon(t, 0.6, got.New.Value()/1e9, 0.05, name)
		assert.InEpsilon(t, 0.42, got.Base.Value()/1e9, 0.05, name)
		assert.InEpsilon(t, 0.5, got.New.Coverage(), 0.05, name)

		// Of snapshots, living processes count.
		got = compare(selecting(t, "heap", 30, 60, "track=stable"), selecting(t, "heap", 0, 30, "track=stable"))
		assert.Equal(t, query.Levels, got.Basis, name)
		assert.InDelta(t, 500<<20, got.New.Value(), 0, name)
		assert.InDelta(t, 300<<20, got.Base.Value(), 0, "the pod that has ended does not count")
		assert.InDelta(t, 1000, got.New.Samples, 0, "one each 512 KiB")
		got = compare(selecting(t, "heap", 30, 60, "track=canary"), selecting(t, "heap", 30, 60, "track=stable"))
		assert.InDelta(t, 160<<20, got.New.Value(), 0, name)
		assert.InDelta(t, 100<<20, got.Base.Value(), 1, name)
	}
}

func TestFunctionsAreComparedAsTheirSeries(t *testing.T) {
	s := source(t, rollout(t)...)
	c, err := query.Compare(t.Context(), s, selecting(t, "cpu", 30, 60, "track=canary"), s, selecting(t, "cpu", 30, 60, "track=stable"))
	require.NoError(t, err)
	functions := c.Functions(c.Shown())
	names := []string{}
	for _, f := range functions {
		names = append(names, f.Function)
		want := map[string][2]float64{"main.encode": {0.45, 0.21}, "main.idle": {0.15, 0.21}, "main.main": {0.6, 0.42}}[f.Function]
		assert.InEpsilon(t, want[0], f.New.Total/1e9, 0.05, f.Function)
		assert.InEpsilon(t, want[1], f.Base.Total/1e9, 0.05, f.Function)
		assert.InDelta(t, 0.01, f.TotalError/1e9, 0.01, f.Function)
		assert.False(t, f.Noise, f.Function)
	}
	assert.Equal(t, []string{"main.encode", "main.main", "main.idle"}, names)
	assert.Zero(t, functions[1].New.Self, "main.main calls others")

	// The difference as a pprof is that of the same rates, in values of the selection.
	p, err := c.Pprof(false)
	require.NoError(t, err)
	sum := float64(profiletest.Sums(p)["cpu/nanoseconds"])
	assert.InEpsilon(t, 0.18/0.6*30*30*0.6e9, sum, 0.05)
	apart, err := c.Pprof(true)
	require.NoError(t, err)
	assert.InDelta(t, sum, profiletest.Sums(apart)["cpu/nanoseconds"], 10, "of rounding")
}

func TestChangesOfFewSamplesAreNoise(t *testing.T) {
	few := func(start int, samples int64) usage {
		return usage{pod: "a", start: start, duration: 10, functions: map[string]int64{"main.rare": samples * 1e7, "main.often": 400e7}}
	}
	before, after := few(0, 3), few(3600, 9)
	s := source(t, before.payload(t), after.payload(t))
	c, err := query.Compare(t.Context(), s, &query.Selection{From: at(3600)}, s, &query.Selection{To: at(60)})
	require.NoError(t, err)
	functions := c.Functions(c.Shown())
	for _, f := range functions {
		assert.True(t, f.Noise, "%+v", f)
	}
	assert.True(t, c.Shown().Noise())
	change, _ := c.Shown().Change()
	assert.InEpsilon(t, 6./403, change, 1e-6)
}

// TestValuesAreComparedWithoutARate: profiles without a duration have none, and a comparison says so.
func TestValuesAreComparedWithoutARate(t *testing.T) {
	of := func(start int, value int64) pprofile.Profiles {
		return payload(t, profileOf{pod: "a", typ: "cpu", sampleType: "cpu", unit: "nanoseconds", start: start, value: value, temporality: "delta"})
	}
	s := source(t, of(0, 100), of(600, 300), of(660, 100))
	c, err := query.Compare(t.Context(), s, &query.Selection{From: at(600)}, s, &query.Selection{To: at(600)})
	require.NoError(t, err)
	got := c.Shown()
	assert.Equal(t, query.Values, got.Basis)
	assert.Equal(t, []float64{400, 100}, []float64{got.New.Value(), got.Base.Value()})
	assert.Contains(t, c.Notes, "The profiles state no duration, so there is no rate: values are compared")
}

func TestEachSideIsReadOnce(t *testing.T) {
	s := source(t, rollout(t)...)
	reads := map[string]int{}
	s.Change = func(pd pprofile.Profiles) {
		for _, rp := range pd.ResourceProfiles().All() {
			reads[fmt.Sprint(rp.Resource().Attributes().AsRaw(), rp.ScopeProfiles().At(0).Profiles().At(0).Time())]++
		}
	}
	_, err := query.Compare(t.Context(), s, selecting(t, "cpu", 30, 60, ""), s, selecting(t, "cpu", 0, 30, ""))
	require.NoError(t, err)
	for record, n := range reads {
		assert.LessOrEqual(t, n, 2, record) // around its range, a side reads records without an index, too
	}
}

func TestWithReplacesWhatTheBaseRestricts(t *testing.T) {
	sel := selecting(t, "cpu", 30, 60, "track=canary")
	require.NoError(t, sel.Set("label", "region=eu"))
	sel.Services = []string{"checkout"}
	by := &query.Selection{}
	require.NoError(t, by.Set("label", "track=stable"))
	base := sel.With(by)
	assert.Equal(t, []string{"checkout"}, base.Services)
	assert.Equal(t, sel.From, base.From)
	assert.Equal(t, []string{"region", "track"}, []string{base.Labels[0].Name, base.Labels[1].Name})
	assert.True(t, base.Labels[1].Matches(t.Context(), "stable"))
	assert.Len(t, sel.Labels, 2)
	assert.Equal(t, "track", sel.Labels[0].Name, "the selection stays")
	base = sel.With(&query.Selection{Services: []string{"cart"}, To: at(60)})
	assert.Equal(t, []string{"cart"}, base.Services)
	assert.True(t, base.From.IsZero())
	assert.Len(t, base.Labels, 2)
}
