// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

func TestSlotOf(t *testing.T) {
	const s = uint64(time.Second)
	for _, test := range []struct {
		name                    string
		start, duration, window uint64
		want                    slot
	}{
		{"no slots", 100 * s, s, 0, slot{}},
		{"no time", 0, 5 * s, 10 * s, slot{}},
		{"in a slot", 101 * s, 5 * s, 10 * s, slot{10 * s, 10}},
		{"the end decides", 108 * s, 2 * s, 10 * s, slot{10 * s, 11}},
		{"no duration", 109 * s, 0, 10 * s, slot{10 * s, 10}},
		{"as long as a slot", 100 * s, 10 * s, 10 * s, slot{10 * s, 11}},
		{"longer than a slot", 100 * s, 10*s + 1, 10 * s, slot{20 * s, 5}},
		{"an hour", 3600 * s, 3600 * s, 10 * s, slot{5120 * s, 1}},
		{"the end of the clock", math.MaxUint64, 0, 10 * s, slot{10 * s, math.MaxUint64 / (10 * s)}},
		{"an end after that of the clock", math.MaxUint64 - 1, 5, 10 * s, slot{10 * s, math.MaxUint64 / (10 * s)}},
		{"the longest duration", 1, math.MaxUint64, 10 * s, slot{math.MaxUint64, 1}},
		{"a duration that just fits", 1, 1 << 63, 1, slot{1 << 63, 1}},
		{"a duration that does not fit", 1, 1<<63 + 1, 1, slot{math.MaxUint64, 0}},
	} {
		p := payloadtest.Only(t, payloadtest.Interval(test.start, test.duration, 1))
		require.Equal(t, test.want, slotOf(p, &Options{SlotLength: time.Duration(test.window)}), test.name)
	}
}

// slotted returns the options of a processor with this window.
func slotted(window time.Duration) *Options {
	options := defaultOptions()
	options.SlotLength = window
	return options
}

// ranges are the intervals of the Profiles of pd, in order, with their sums.
func ranges(pd pprofile.Profiles) (all []string) {
	for p := range sampletypes.ProfilesOf(pd) {
		sum := int64(0)
		for _, s := range p.Samples().All() {
			sum += s.Values().At(0)
		}
		start := time.Duration(p.Time())
		all = append(all, fmt.Sprintf("%v-%v: %d", start, start+time.Duration(p.DurationNano()), sum))
	}
	return all
}

func between(start, end time.Duration, value int64) pprofile.Profiles {
	return payloadtest.Interval(uint64(start), uint64(end-start), value)
}

// What a collector that catches up receives at once keeps its intervals, in any order.
func TestSlotsKeepIntervals_P15(t *testing.T) {
	const windows, each = 24, 3
	r := rand.New(rand.NewPCG(1, 1))
	var payloads []pprofile.Profiles
	var want []string
	for i := range windows {
		start := time.Hour + time.Duration(i)*time.Second
		for n := range each {
			payloads = append(payloads, between(start+time.Duration(n), start+999*time.Millisecond, int64(i+1)))
		}
		want = append(want, fmt.Sprintf("%v-%v: %d", start, start+999*time.Millisecond, each*(i+1)))
	}
	r.Shuffle(len(payloads), func(i, j int) { payloads[i], payloads[j] = payloads[j], payloads[i] })
	w := NewWindow(slotted(time.Second))
	for _, pd := range payloads {
		require.NoError(t, add(w, pd))
	}
	require.Equal(t, windows, w.Slots())
	out := w.Emit("")
	profiletest.RequireConforms(t, out)
	require.Equal(t, want, ranges(out))
	require.Equal(t, windows, out.ResourceProfiles().At(0).ScopeProfiles().Len(), "siblings of one interval are a ScopeProfiles")

	options := slotted(time.Second)
	options.SlotLength = 0
	require.Len(t, ranges(merged(t, options, payloads...)), 1)
}

func TestLatestSnapshotOfEachSlot_P14(t *testing.T) {
	options := slotted(10 * time.Second)
	options.Snapshots = SnapshotsLatest
	options.DropResourceAttributes = []string{"service.instance.id"}
	var payloads []pprofile.Profiles
	for i := range 30 {
		at := time.Hour + time.Duration(i)*time.Second
		for n, instance := range []string{"a", "b"} {
			start := at - time.Duration(n)*5*time.Second // b starts earlier
			pd := payloadtest.With(between(start, at, int64(i)+int64(100*n)+1), "service.instance.id", instance)
			pd.Dictionary().StringTable().SetAt(1, "inuse_objects") // the sample type
			payloads = append(payloads, pd)
		}
	}
	require.Equal(t, []string{"1h0m9s-1h0m9s: 120", "1h0m19s-1h0m19s: 140", "1h0m29s-1h0m29s: 160"},
		ranges(merged(t, options, payloads...)), "of each resource the last one of each slot")
	options.Snapshots = SnapshotsSum
	require.Len(t, ranges(merged(t, options, payloads...)), 3)
	options.Snapshots = SnapshotsKeep
	w := NewWindow(options)
	for _, pd := range payloads {
		require.NoError(t, add(w, pd))
	}
	require.Zero(t, w.Slots(), "snapshots that do not merge have no slots")
	out := w.Emit("")
	require.Len(t, ranges(out), 60)
	require.Equal(t, 30, out.ResourceProfiles().At(0).ScopeProfiles().Len(), "those of each payload are apart")
}

// All Profiles of a ScopeProfiles list equal identities in one order: with zeros kept, siblings of a pprof can be paired
// by their index.
func TestSiblingsHaveOneOrder(t *testing.T) {
	identities := func(p pprofile.Profile) (all []string) {
		for _, s := range p.Samples().All() {
			all = append(all, fmt.Sprint(s.StackIndex(), s.AttributeIndices().AsRaw(), s.LinkIndex()))
		}
		return all
	}
	options := slotted(10 * time.Second)
	options.DropZeroSamples = false
	series := 0
	for _, file := range profiletest.Corpus(t) {
		if len(file.Data) > 256<<10 {
			continue
		}
		for _, sp := range merged(t, options, unmarshalPprof(t, file.Data)).ResourceProfiles().At(0).ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				require.Equal(t, identities(sp.Profiles().At(0)), identities(p), file.Name)
				series++
			}
		}
	}
	require.Greater(t, series, 40)
}
