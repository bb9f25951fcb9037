// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// The slow way to divide a payload: a copy for each part, from which a Selection removes the rest.

func slowPart(t *testing.T, pd pprofile.Profiles, sel *Selection) []contents.Summary {
	t.Helper()
	part := pprofile.NewProfiles()
	pd.CopyTo(part)
	require.NoError(t, sel.filter(t.Context(), part))
	summaries, err := contents.Summarize(part)
	for i := range summaries {
		summaries[i].Rows = nil // those of a part of the time are not known
	}
	require.NoError(t, err)
	return summaries
}

// slowGroup removes the samples that have other values of labels, and then Profiles without samples if samples tell groups apart.
func slowGroup(pd pprofile.Profiles, by, values []string) (part pprofile.Profiles) {
	part = pprofile.NewProfiles()
	pd.CopyTo(part)
	apart := false
	for i, a := range pd.Dictionary().AttributeTable().All() {
		key := dictionary.ValidString(pd.Dictionary().StringTable(), a.KeyStrindex())
		apart = apart || i > 0 && slices.ContainsFunc(by, func(name string) bool { return labels.Is(key, name) })
	}
	part.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		if !apart {
			return !slices.Equal(values, slowValues(pd, rp, pprofile.NewProfile(), pprofile.NewSample(), by))
		}
		for _, sp := range rp.ScopeProfiles().All() {
			sp.Profiles().RemoveIf(func(p pprofile.Profile) bool {
				p.Samples().RemoveIf(func(s pprofile.Sample) bool { return !slices.Equal(values, slowValues(pd, rp, p, s, by)) })
				return p.Samples().Len() == 0
			})
		}
		return false
	})
	return part
}

func slowValues(pd pprofile.Profiles, rp pprofile.ResourceProfiles, p pprofile.Profile, s pprofile.Sample, by []string) (values []string) {
	for _, name := range by {
		value := func() string {
			for _, i := range slices.Concat(s.AttributeIndices().AsRaw(), p.AttributeIndices().AsRaw()) {
				a := pd.Dictionary().AttributeTable().At(int(i))
				if i > 0 && labels.Is(dictionary.ValidString(pd.Dictionary().StringTable(), a.KeyStrindex()), name) {
					return a.Value().AsString()
				}
			}
			return labels.Find(rp.Resource().Attributes(), name)
		}
		values = append(values, value())
	}
	return values
}

var divisionStart = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// mixed returns a random payload whose samples name spans and labels in all ways, and have timestamps in the steps.
func mixed(r *rand.Rand, steps Steps) pprofile.Profiles {
	pd := profiletest.GenerateProfiles(r)
	dict := pd.Dictionary()
	text := func(s string) int32 {
		dict.StringTable().Append(s)
		return int32(dict.StringTable().Len() - 1)
	}
	var attributes []int32
	add := func(key string, set func(pcommon.Value)) {
		a := dict.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(text(key))
		set(a.Value())
		attributes = append(attributes, int32(dict.AttributeTable().Len()-1))
	}
	id := func() pcommon.SpanID { return pcommon.SpanID{7: byte(1 + r.IntN(9)), 6: 0x10} }
	for range 4 {
		span := id()
		texts := []string{hex.EncodeToString(span[:]), strings.ToUpper(hex.EncodeToString(span[:])), fmt.Sprint(0x1000 + int(span[7])), "1234567890123456", "00" + fmt.Sprint(span[7]), "none"}
		add(spanAttributes[r.IntN(len(spanAttributes))], func(v pcommon.Value) { v.SetStr(texts[r.IntN(len(texts))]) })
	}
	if r.IntN(2) == 0 {
		for _, key := range []string{"thread", "k8s.pod.name", "k8s_pod_name"} {
			add(key, func(v pcommon.Value) { v.SetStr([]string{"a", "b", ""}[r.IntN(3)]) })
			add(key, func(v pcommon.Value) { v.SetInt(int64(r.IntN(2))) })
		}
	}
	for range 5 {
		link := dict.LinkTable().AppendEmpty()
		link.SetSpanID(id())
		link.SetTraceID(pcommon.TraceID{1})
	}
	length := int64(steps.To().Sub(steps.From))
	moment := func() uint64 { return uint64(steps.From.UnixNano() + r.Int64N(length)) }
	for _, rp := range pd.ResourceProfiles().All() {
		if r.IntN(2) == 0 {
			rp.Resource().Attributes().PutStr([]string{"thread", "k8s.pod.name", "k8s_pod_name"}[r.IntN(3)], "a")
		}
	}
	for p := range sampletypes.ProfilesOf(pd) {
		p.SetTime(pcommon.Timestamp(moment()))
		if r.IntN(8) == 0 {
			p.SetTime(0)
		}
		p.SetDurationNano(uint64(r.Int64N(length / 2)))
		if r.IntN(4) == 0 {
			p.AttributeIndices().Append(attributes[r.IntN(len(attributes))])
		}
		stamped := r.IntN(2) == 0
		for _, s := range p.Samples().All() {
			s.SetLinkIndex(int32(r.IntN(dict.LinkTable().Len())))
			for range r.IntN(3) {
				s.AttributeIndices().Append(attributes[r.IntN(len(attributes))])
			}
			s.TimestampsUnixNano().FromRaw(nil)
			for range r.IntN(6) {
				if stamped {
					s.TimestampsUnixNano().Append(moment())
				}
			}
			s.Values().FromRaw(nil)
			for range max(1, s.TimestampsUnixNano().Len()) * r.IntN(2) {
				s.Values().Append([]int64{1, 5, -3, math.MaxInt64}[r.IntN(4)])
			}
		}
	}
	return pd
}

func divisionSteps(r *rand.Rand) Steps {
	return Steps{From: divisionStart, Length: time.Duration(1+r.IntN(200)) * time.Second, Count: 1 + r.IntN(12)}
}

// A sample is of the spans by which a Selection finds it.
func TestSpansAreThoseThatASelectionFinds(t *testing.T) {
	r := profiletest.NewRand(profiletest.Seed(t))
	found := 0
	for range profiletest.Rounds(t, 150, 2000) {
		pd := mixed(r, divisionSteps(r))
		counts, names := map[pcommon.SpanID]int{}, SpansOf(pd)
		for p := range sampletypes.ProfilesOf(pd) {
			for _, sample := range p.Samples().All() {
				ids := names.Append(nil, p, sample)
				slices.SortFunc(ids, func(a, b pcommon.SpanID) int { return slices.Compare(a[:], b[:]) })
				for _, id := range slices.Compact(ids) {
					counts[id]++
				}
			}
		}
		for id, want := range counts {
			part := pprofile.NewProfiles()
			pd.CopyTo(part)
			require.NoError(t, (&Selection{SpanIDs: []pcommon.SpanID{id}}).filter(t.Context(), part))
			require.Equal(t, want, part.SampleCount())
			found++
		}
	}
	assert.Greater(t, found, 1000)
}

func TestStepsOfGroupsAreThoseOfASlowComputation(t *testing.T) {
	r := profiletest.NewRand(profiletest.Seed(t))
	visited := 0
	for range profiletest.Rounds(t, 150, 2000) {
		steps := divisionSteps(r)
		pd := mixed(r, steps)
		by := [][]string{nil, {"thread"}, {"k8s_pod_name", "thread"}, {"thread", "k8s.pod.name", "none"}}[r.IntN(4)]
		require.NoError(t, (&Selection{From: steps.From, To: steps.To()}).filter(t.Context(), pd))
		whole := r.IntN(3) == 0 // of all time
		divided := &steps
		if whole {
			divided = nil
		}
		type place struct {
			step   int
			values string
		}
		got, combinations := map[place][]contents.Summary{}, map[string][]string{}
		d := newDivision(pd, by, divided, math.MaxInt64)
		require.NoError(t, eachPart(pd, math.MaxInt, d.partsOf, func(part int, of *contents.Summary) error {
			values := d.groups.values[part/d.steps.Count]
			at := place{part % d.steps.Count, strings.Join(values, "/")}
			got[at] = append(got[at], *of)
			return nil
		}))
		for _, rp := range pd.ResourceProfiles().All() {
			combine := func(p pprofile.Profile, s pprofile.Sample) {
				values := slowValues(pd, rp, p, s, by)
				combinations[strings.Join(values, "/")] = values
			}
			combine(pprofile.NewProfile(), pprofile.NewSample())
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					for _, s := range p.Samples().All() {
						combine(p, s)
					}
				}
			}
		}
		want := map[place][]contents.Summary{}
		for joined, values := range combinations {
			group := slowGroup(pd, by, values)
			if whole {
				summaries, err := contents.Summarize(group) // with the rows of processes
				if require.NoError(t, err); len(summaries) > 0 {
					want[place{0, joined}] = summaries
				}
				continue
			}
			for step := range steps.Count {
				from := steps.From.Add(time.Duration(step) * steps.Length)
				if summaries := slowPart(t, group, &Selection{From: from, To: from.Add(steps.Length)}); len(summaries) > 0 {
					want[place{step, joined}] = summaries
				}
			}
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)), "%v", by)
		for at := range want {
			require.Equal(t, want[at], got[at], "%v %v", by, at)
			visited += len(want[at])
		}
	}
	assert.Greater(t, visited, 1000)
}

// TestAPartOfAnIntervalIsNoSnapshot: snapshots have no duration, and only the last one counts.
func TestAPartOfAnIntervalIsNoSnapshot(t *testing.T) {
	pd := manySpans(3)
	p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	p.SetDurationNano(uint64(time.Second)) // the last timestamps are after its end
	parts := slowPart(t, pd, &Selection{From: divisionStart.Add(2 * time.Second)})
	require.Len(t, parts, 1)
	assert.Zero(t, parts[0].Snapshot)
	assert.Equal(t, int64(1), parts[0].Sum)
	p.SetDurationNano(0)
	assert.NotZero(t, slowPart(t, pd, &Selection{From: divisionStart.Add(2 * time.Second)})[0].Snapshot)
}

// heaps has so many resources, each with snapshots of two sample types and functions of its own.
func heaps(t testing.TB, resources int) pprofile.Profiles {
	t.Helper()
	var profiles []expand.Profile
	for i := range resources {
		for _, sampleType := range []string{"inuse_space", "inuse_objects"} {
			p := expand.Profile{Type: sampleType, Unit: "count", Time: uint64(divisionStart.UnixNano())}
			p.Resource.Attributes = []expand.Attribute{{Key: "service.instance.id", Value: fmt.Sprint(i)}}
			p.Scope.Attributes = []expand.Attribute{{Key: attrkey.ProfileType, Value: "heap"}}
			for j := range 10 {
				stack := []*expand.Frame{{Lines: []expand.Line{{Function: fmt.Sprint("f", i, "/", j)}}}, {Lines: []expand.Line{{Function: "main"}}}}
				p.Samples = append(p.Samples, &expand.Sample{Stack: stack, Sum: big.NewInt(int64(i + j))})
			}
			profiles = append(profiles, p)
		}
	}
	return profiletest.Build(t, profiles...)
}

// TestPprofsOfResourcesAreThoseOfEachAlone, also if one pass has no room for the values of all.
func TestPprofsOfResourcesAreThoseOfEachAlone(t *testing.T) {
	const resources, values = 20, 20
	for maxMemory, order := range map[int64][]int{1 << 30: {0, 1, 2, 3}, 3 * values * 8 * windowShare: {0, 1, 2, 3}} {
		pd := heaps(t, resources)
		result := &Result{Profiles: pd, maxMemory: maxMemory}
		got := map[int]string{}
		var visited []int
		require.NoError(t, result.eachResource(t.Context(), func(resource int, p *profile.Profile) error {
			require.NotContains(t, got, resource)
			got[resource] = p.String()
			visited = append(visited, resource)
			return nil
		}))
		require.Len(t, got, resources)
		assert.Equal(t, order, visited[:len(order)])
		for i, rp := range pd.ResourceProfiles().All() {
			only := pprofile.NewProfiles()
			pd.Dictionary().CopyTo(only.Dictionary())
			rp.CopyTo(only.ResourceProfiles().AppendEmpty())
			p, err := (&Result{Profiles: only, maxMemory: maxMemory}).Pprof(t.Context())
			require.NoError(t, err)
			require.Equal(t, p.String(), got[i])
		}
	}
	small := &Result{Profiles: heaps(t, 2), maxMemory: (values - 1) * 8 * windowShare}
	require.ErrorContains(t, small.eachResource(t.Context(), nil), "a pprof has a value for each of its samples and sample types")
}

// TestDivisionIsBounded_V2: a timestamp takes 8 bytes, and is a sum if its step is its own.
func TestDivisionIsBounded_V2(t *testing.T) {
	pd := manySpans(1)
	p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	p.SetDurationNano(5000e9) // else it is a snapshot, which steps do not divide
	sample := p.Samples().At(0)
	sample.Values().FromRaw(nil)
	sample.TimestampsUnixNano().FromRaw(nil)
	steps := Steps{From: divisionStart, Length: time.Second, Count: 5000}
	for i := range steps.Count {
		sample.TimestampsUnixNano().Append(uint64(divisionStart.Add(time.Duration(i) * time.Second).UnixNano()))
	}
	path := profiletest.WriteFile(t, "record.pb", profiletest.Proto(t, pd))
	s := &Source{Files: []archive.File{{Path: path}}, Options: archive.Options{MaxMemory: 1 << 20}, Failed: func(err error) error { return err }}
	err := s.EachStep(t.Context(), &Selection{From: steps.From, To: steps.To()}, steps, []string{"thread"}, func(int, *Times) error { return nil })
	require.ErrorContains(t, err, "the sums of a record take more than 0 MiB of memory, a quarter of the memory limit; select less")

	pd = manySpans(1000)
	d := newDivision(pd, []string{"thread"}, nil, 1000)
	require.NoError(t, eachPart(pd, math.MaxInt, d.partsOf, func(int, *contents.Summary) error { return nil }))
	require.ErrorIs(t, d.groups.err, errManyGroups)
	assert.Len(t, d.groups.values, 5)
}

// manySpans has a sample for each of n spans, each with a label and a timestamp of its own.
func manySpans(n int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	dict := pd.Dictionary()
	dict.StringTable().Append("", "thread", "service.name")
	dict.LinkTable().AppendEmpty()
	dict.AttributeTable().AppendEmpty()
	dict.StackTable().AppendEmpty()
	dict.LocationTable().AppendEmpty()
	dict.FunctionTable().AppendEmpty()
	dict.MappingTable().AppendEmpty()
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("service.name", "checkout")
	p := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SetTime(pcommon.NewTimestampFromTime(divisionStart))
	for i := range n {
		link := dict.LinkTable().AppendEmpty()
		link.SetTraceID(pcommon.TraceID{1})
		link.SetSpanID(pcommon.SpanID{byte(i), byte(i >> 8), byte(i >> 16), 1})
		a := dict.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(1)
		a.Value().SetInt(int64(i))
		s := p.Samples().AppendEmpty()
		s.SetLinkIndex(int32(i + 1))
		s.AttributeIndices().Append(int32(i + 1))
		s.Values().Append(1)
		s.TimestampsUnixNano().Append(uint64(divisionStart.Add(time.Duration(i) * time.Second).UnixNano()))
	}
	return pd
}

// BenchmarkDivision divides a payload with a sample for each span, step and group: ten times as many take about ten times as long.
func BenchmarkDivision(b *testing.B) {
	none := func(int, *contents.Summary) error { return nil }
	for _, n := range []int{800, 8000, 80_000} {
		pd := manySpans(n)
		steps := Steps{From: divisionStart, Length: time.Second, Count: n}
		b.Run(fmt.Sprintf("steps/%d", n), func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, eachPart(pd, n, newDivision(pd, nil, &steps, math.MaxInt64).partsOf, none))
			}
		})
		b.Run(fmt.Sprintf("groups/%d", n), func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, eachPart(pd, n, newDivision(pd, []string{"thread"}, nil, math.MaxInt64).partsOf, none))
			}
		})
	}
}

// BenchmarkResources makes a pprof of each resource.
func BenchmarkResources(b *testing.B) {
	for _, n := range []int{200, 2000} {
		result := &Result{Profiles: heaps(b, n), maxMemory: 1 << 40}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, result.eachResource(b.Context(), func(int, *profile.Profile) error { return nil }))
			}
		})
	}
}
