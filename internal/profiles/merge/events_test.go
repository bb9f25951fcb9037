// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// timestamped is a payload of n Profiles that do not merge, each with one timestamp of a
// stack of its own.
func timestamped(t *testing.T, n int) pprofile.Profiles {
	t.Helper()
	profiles := make([]expand.Profile, n)
	for i := range profiles {
		sample := &expand.Sample{Stack: []*expand.Frame{{Address: uint64(i + 1)}}, Sum: big.NewInt(1), Points: []expand.Point{{Timestamp: 1, Value: 1}}}
		profiles[i] = expand.Profile{Type: "cpu", Period: int64(i + 1), Time: 1, Duration: 1, Shape: expand.ShapeBoth, Samples: []*expand.Sample{sample}}
	}
	return profiletest.Build(t, profiles...)
}

// What many Profiles with timestamps cost grows with their number and not with its square.
func TestManyTimestampedProfiles(t *testing.T) {
	cost := func(n int) uint64 {
		w := NewWindow(defaultOptions())
		require.NoError(t, add(w, timestamped(t, n)))
		var pd pprofile.Profiles
		allocated := profiletest.AllocatedBy(func() { pd = w.Emit("") })
		require.Equal(t, n, pd.SampleCount())
		require.Equal(t, n, pd.ProfileCount())
		return allocated
	}
	require.Less(t, cost(8000), 12*cost(1000))
}

// timed is a payload of a process: an interval of each shape, of a type of its own.
func timed(t *testing.T, process string, shapes ...expand.Shape) pprofile.Profiles {
	t.Helper()
	var profiles []expand.Profile
	for _, shape := range shapes {
		sample := &expand.Sample{Stack: []*expand.Frame{{Address: 1}}, Sum: big.NewInt(2)}
		if shape != expand.ShapeValues {
			sample.Points = []expand.Point{{Timestamp: 1100, Value: 1}, {Timestamp: 1200, Value: 1}}
		}
		p := expand.Profile{Type: fmt.Sprint("type-", shape), Unit: "count", Time: 1000, Duration: 500, Shape: shape, Samples: []*expand.Sample{sample}}
		p.Resource.Attributes = []expand.Attribute{{Key: "service.instance.id", Value: process}, {Key: "service.name", Value: "checkout"}}
		profiles = append(profiles, p)
	}
	return profiletest.Build(t, profiles...)
}

var allShapes = []expand.Shape{expand.ShapeValues, expand.ShapeTimestamps, expand.ShapeBoth}

// Profiles of two processes with timestamps stay apart in a gateway that drops what tells them apart: thread 1 of both is not one
// thread. Without timestamps, they merge.
func TestProfilesWithTimestampsKeepTheirResource(t *testing.T) {
	options := defaultOptions()
	options.DropResourceAttributes = []string{"service.instance.id"}
	for _, drop := range []bool{false, true} {
		options.DropTimestamps = drop
		w := NewWindow(options)
		for _, process := range []string{"a", "b"} {
			require.NoError(t, add(w, timed(t, process, allShapes...)))
		}
		instances, sums := map[string][]any{}, map[string]int64{}
		for _, p := range profiletest.Expand(t, w.Emit("")) {
			instances[p.Type] = append(instances[p.Type], expand.Value(p.Resource.Attributes, "service.instance.id"))
			for _, s := range p.Samples {
				sums[p.Type] += s.Sum.Int64()
			}
		}
		merged, kept := []any{nil}, []any{"a", "b"}
		if drop {
			kept = merged
		}
		require.Equal(t, map[string][]any{"type-values only": merged, "type-timestamps only": kept, "type-values and timestamps": kept}, instances)
		require.Equal(t, map[string]int64{"type-values only": 4, "type-timestamps only": 4, "type-values and timestamps": 4}, sums)
	}
}

// A Profile whose timestamps were dropped says so, also after it was merged again and with others that say nothing.
func TestDroppedTimestampsAreStated(t *testing.T) {
	stated := func(pd pprofile.Profiles) map[string]any {
		all := map[string]any{}
		for _, p := range profiletest.Expand(t, pd) {
			require.NotContains(t, all, p.Type, "Profiles of one type merge")
			all[p.Type] = expand.Value(p.Attributes, attrkey.TimestampsDropped)
		}
		return all
	}
	options := defaultOptions()
	for _, slots := range []bool{false, true} {
		if slots {
			options = compacting(150)
		}
		options.DropTimestamps = true
		w := NewWindow(options)
		require.NoError(t, add(w, timed(t, "a", allShapes...)))
		out := w.Emit("")
		if slots { // in each slot that has a timestamp
			said := 0
			for p := range sampletypes.ProfilesOf(out) {
				for _, i := range p.AttributeIndices().All() {
					key := out.Dictionary().AttributeTable().At(int(i)).KeyStrindex()
					if out.Dictionary().StringTable().At(int(key)) == attrkey.TimestampsDropped {
						said++
					}
				}
			}
			require.Equal(t, 4, said, "two timestamps each of two Profiles")
			continue
		}
		require.Equal(t, map[string]any{"type-values only": nil, "type-timestamps only": true, "type-values and timestamps": true}, stated(out))
		options.DropTimestamps = false
		for _, others := range []pprofile.Profiles{timed(t, "a", expand.ShapeValues), out} {
			again := NewWindow(options)
			require.NoError(t, add(again, others))
			require.NoError(t, add(again, out))
			require.NoError(t, add(again, others))
			require.Equal(t, map[string]any{"type-values only": nil, "type-timestamps only": true, "type-values and timestamps": true}, stated(again.Emit("")))
		}
	}
}

// One sample with 10^6 timestamps in any order, far ahead and before its Profile: it is merged and compacted in memory that the
// window counts, and no timestamp is lost.
func TestHostileTimestampsAreBounded_J7(t *testing.T) {
	const count = 1_000_000
	pd := timed(t, "a", expand.ShapeBoth)
	s := payloadtest.First(pd).Samples().At(0)
	r := rand.New(rand.NewPCG(1, 2))
	times, values := make([]uint64, count), make([]int64, count)
	for i := range times {
		times[i], values[i] = r.Uint64()>>r.IntN(64), 1
	}
	s.TimestampsUnixNano().FromRaw(times)
	s.Values().FromRaw(values)
	for _, slots := range []bool{false, true} {
		options := defaultOptions()
		if slots {
			options = compacting(10)
		}
		w := NewWindow(options)
		held := profiletest.AllocatedBy(func() { require.NoError(t, add(w, pd)) })
		require.Less(t, held, uint64(8*w.Size()), "what grows allocates several times as much as it holds")
		require.Less(t, w.Size(), 100*count)
		got := 0
		out := w.Emit("")
		require.LessOrEqual(t, out.ProfileCount(), 2*maxParts)
		for p := range sampletypes.ProfilesOf(out) {
			for _, s := range p.Samples().All() {
				got += s.TimestampsUnixNano().Len()
			}
		}
		require.Equal(t, count, got)
	}
}
