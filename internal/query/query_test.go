// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
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
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// epoch is the start of time in these tests, in seconds.
const epoch = 1_700_000_000

func at(second int) time.Time { return time.Unix(epoch+int64(second), 0) }

func nano(second int) uint64 { return uint64(at(second).UnixNano()) }

// profileOf describes a Profile with one sample.
type profileOf struct {
	pod, typ, sampleType, unit string
	start, duration            int // seconds
	value                      int64
	temporality                string
	link                       string
	label                      string
	timestamps                 []int // seconds
}

// payload builds the profiles, which are of the service checkout unless pod is "".
func payload(t *testing.T, profiles ...profileOf) pprofile.Profiles {
	t.Helper()
	var expanded []expand.Profile
	for _, p := range profiles {
		e := expand.Profile{
			Scope: expand.Entity{Attributes: []expand.Attribute{{Key: attrkey.ProfileType, Value: p.typ}}},
			Type:  p.sampleType, Unit: p.unit, Time: nano(p.start), Duration: uint64(p.duration) * 1e9,
		}
		if p.pod != "" {
			e.Resource.Attributes = []expand.Attribute{{Key: "k8s.pod.name", Value: p.pod}, {Key: "service.name", Value: "checkout"}}
		}
		if p.temporality != "" {
			e.Attributes = []expand.Attribute{{Key: attrkey.Temporality, Value: p.temporality}}
		}
		sample := &expand.Sample{
			Stack: []*expand.Frame{{Lines: []expand.Line{{Function: "main"}}}},
			Sum:   big.NewInt(p.value), Link: p.link,
		}
		if p.label != "" {
			sample.Attributes = []expand.Attribute{{Key: "thread", Value: p.label}}
		}
		for _, second := range p.timestamps {
			e.Shape = expand.ShapeBoth
			sample.Points = append(sample.Points, expand.Point{Timestamp: nano(second), Value: p.value})
		}
		e.Samples = append(e.Samples, sample)
		expanded = append(expanded, e)
	}
	return profiletest.Build(t, expanded...)
}

// source has a file with a record for each payload.
func source(t testing.TB, payloads ...pprofile.Profiles) *query.Source {
	t.Helper()
	var content []byte
	for _, pd := range payloads {
		content = append(content, profiletest.Prefixed(profiletest.Proto(t, pd))...)
	}
	path := profiletest.WriteFile(t, "profiles", content)
	return &query.Source{
		Files:   []archive.File{{Path: path, Size: int64(len(content))}},
		Options: archive.Options{MaxMemory: 1 << 30},
		Failed:  func(err error) error { return err },
	}
}

// sums returns the sums of the selection by sample type, of all resources, and checks that List
// says the same.
func sums(t *testing.T, s *query.Source, sel query.Selection) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for _, total := range []bool{false, true} {
		result, err := s.Merge(t.Context(), &sel, total)
		if err != nil {
			require.ErrorIs(t, err, query.ErrEmpty)
			return nil
		}
		profiletest.RequireConforms(t, result.Profiles)
		expanded := profiletest.Expand(t, result.Profiles)
		merged := map[string]int64{}
		for _, p := range expanded {
			for _, sample := range p.Samples {
				merged[p.Type] += sample.Sum.Int64()
			}
		}
		if total {
			assert.Equal(t, got, merged, "the total is that of all resources")
		}
		got = merged
	}
	rows, err := s.List(t.Context(), &sel)
	require.NoError(t, err)
	listed := map[string]int64{}
	for _, row := range rows {
		listed[row.SampleType] += row.Sum
	}
	assert.Equal(t, got, listed, "List")
	return got
}

func cpu(start int, value int64) profileOf {
	return profileOf{pod: "a", typ: "cpu", sampleType: "cpu", unit: "nanoseconds", start: start, duration: 10, value: value}
}

func heap(pod string, start int, value int64) profileOf {
	return profileOf{pod: pod, typ: "heap", sampleType: "inuse_space", unit: "bytes", start: start, value: value}
}

func TestProfilesAreSelectedByStart(t *testing.T) {
	s := source(t, payload(t, cpu(0, 1), cpu(10, 2)), payload(t, cpu(20, 4), cpu(30, 8)))
	assert.Equal(t, map[string]int64{"cpu": 6}, sums(t, s, query.Selection{From: at(10), To: at(30)}), "[from, to)")
	assert.Equal(t, map[string]int64{"cpu": 15}, sums(t, s, query.Selection{}))
	assert.Nil(t, sums(t, s, query.Selection{From: at(31)}))
	for cut := range 40 { // adjacent ranges add up
		before, after := sums(t, s, query.Selection{To: at(cut)}), sums(t, s, query.Selection{From: at(cut)})
		assert.EqualValues(t, 15, before["cpu"]+after["cpu"])
	}
}

func TestSamplesAreSelectedByTimestamp(t *testing.T) {
	p := cpu(0, 1)
	p.timestamps = []int{0, 3, 5, 9}
	s := source(t, payload(t, p, cpu(0, 10)))
	assert.Equal(t, map[string]int64{"cpu": 2}, sums(t, s, query.Selection{From: at(3), To: at(9)}),
		"the Profile without timestamps starts before the range")
	for cut := range 12 {
		before, after := sums(t, s, query.Selection{To: at(cut)}), sums(t, s, query.Selection{From: at(cut)})
		assert.EqualValues(t, 14, before["cpu"]+after["cpu"])
	}
	result, err := s.Merge(t.Context(), &query.Selection{From: at(3), To: at(9)}, false)
	require.NoError(t, err)
	merged := result.Profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	assert.Equal(t, nano(3), uint64(merged.Time()), "the Profile covers the range only")
	assert.Equal(t, uint64(6e9), merged.DurationNano())
}

// In a pprof each timestamp is a sample of its own. Nothing that shows a total shows them.
func TestATotalHasNoTimestamps(t *testing.T) {
	p := cpu(0, 3)
	p.timestamps = []int{0, 3, 5, 9}
	s := source(t, payload(t, p), payload(t, p))
	assert.Equal(t, map[string]int64{"cpu": 24}, sums(t, s, query.Selection{}))
	total, err := pprofOf(t, s, query.Selection{})
	require.NoError(t, err)
	require.Len(t, total.Sample, 1)
	assert.Equal(t, []int64{24}, total.Sample[0].Value)
	each, err := s.Merge(t.Context(), &query.Selection{}, false)
	require.NoError(t, err)
	kept, err := each.Pprof(t.Context())
	require.NoError(t, err)
	assert.Len(t, kept.Sample, 8)
}

func TestIntervalsAreSummed(t *testing.T) {
	other := cpu(10, 4)
	other.pod = "b"
	s := source(t, payload(t, cpu(0, 1)), payload(t, cpu(10, 2), other))
	assert.Equal(t, map[string]int64{"cpu": 7}, sums(t, s, query.Selection{}))
	result, err := s.Merge(t.Context(), &query.Selection{}, false)
	require.NoError(t, err)
	assert.Equal(t, 2, result.Profiles.ResourceProfiles().Len())
	snapshots, _ := result.Snapshots()
	assert.False(t, snapshots)
	p, err := result.Pprof(t.Context())
	require.NoError(t, err)
	assert.Equal(t, at(0).UnixNano(), p.TimeNanos)
	assert.Equal(t, int64(20e9), p.DurationNanos, "the range, not the sum of the durations of two pods")
}

func TestTheLastSnapshotOfEachResourceCounts(t *testing.T) {
	s := source(t, payload(t, heap("a", 0, 1), heap("b", 0, 10)), payload(t, heap("a", 20, 2)), payload(t, heap("a", 10, 4), heap("b", 30, 20)))
	assert.Equal(t, map[string]int64{"inuse_space": 22}, sums(t, s, query.Selection{}))
	assert.Equal(t, map[string]int64{"inuse_space": 14}, sums(t, s, query.Selection{To: at(20)}))
	result, err := s.Merge(t.Context(), &query.Selection{}, true)
	require.NoError(t, err)
	assert.Equal(t, 3, result.Superseded)
	snapshots, _ := result.Snapshots()
	assert.True(t, snapshots)
}

func TestTheLastSnapshotCountsAcrossVersionsOfTheScope(t *testing.T) {
	before, after := payload(t, heap("a", 0, 100)), payload(t, heap("a", 60, 110))
	for version, pd := range map[string]pprofile.Profiles{"1.0.0": before, "1.1.0": after} {
		scope := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope()
		scope.SetName("example.com/receiver")
		scope.SetVersion(version)
	}
	assert.Equal(t, map[string]int64{"inuse_space": 110}, sums(t, source(t, before, after), query.Selection{}))
}

func TestOfCumulativeProfilesTheLastOneCounts(t *testing.T) {
	allocations := func(start int, value int64) profileOf {
		return profileOf{pod: "a", typ: "heap", sampleType: "alloc_space", unit: "bytes", start: start, duration: 5, value: value, temporality: "cumulative"}
	}
	s := source(t, payload(t, allocations(0, 100)), payload(t, allocations(10, 130)))
	assert.Equal(t, map[string]int64{"alloc_space": 130}, sums(t, s, query.Selection{}))
	result, err := s.Merge(t.Context(), &query.Selection{}, true)
	require.NoError(t, err)
	_, cumulative := result.Snapshots()
	assert.Equal(t, []string{"alloc_space"}, cumulative)
	compared, err := query.Compare(t.Context(), s, &query.Selection{}, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Values of alloc_space count since the start of each process",
		"Only the last snapshot of each resource counts; earlier Profiles skipped: 1"}, compared.Notes)
}

func TestTemporalityIsThatOfTheProcessor(t *testing.T) {
	for name, test := range map[string]struct {
		profile  profileOf
		snapshot bool
	}{
		"with a duration":           {profileOf{sampleType: "alloc_space", duration: 10}, false},
		"without a duration":        {profileOf{sampleType: "alloc_space"}, true},
		"cpu without a duration":    {profileOf{sampleType: "cpu"}, false},
		"wall without a duration":   {profileOf{sampleType: "wall"}, false},
		"a state":                   {profileOf{sampleType: "goroutine", duration: 10}, true},
		"delta without a duration":  {profileOf{sampleType: "inuse_space", temporality: "delta"}, false},
		"instant with a duration":   {profileOf{sampleType: "cpu", temporality: "instant", duration: 10}, true},
		"cumulative":                {profileOf{sampleType: "contentions", temporality: "cumulative", duration: 10}, true},
		"an unknown word: as unset": {profileOf{sampleType: "contentions", temporality: "?", duration: 10}, false},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := test.profile, test.profile
			first.value, second.value, second.start = 1, 2, 20
			want := int64(3)
			if test.snapshot {
				want = 2
			}
			assert.Equal(t, map[string]int64{first.sampleType: want}, sums(t, source(t, payload(t, first), payload(t, second)), query.Selection{}))
		})
	}
}

func TestSelectionByService(t *testing.T) {
	other := cpu(0, 2)
	other.pod = ""
	s := source(t, payload(t, cpu(0, 1), other))
	assert.Equal(t, map[string]int64{"cpu": 1}, sums(t, s, query.Selection{Services: []string{"checkout"}}))
	assert.Equal(t, map[string]int64{"cpu": 2}, sums(t, s, query.Selection{Services: []string{""}}))
	assert.Equal(t, map[string]int64{"cpu": 3}, sums(t, s, query.Selection{Services: []string{"checkout", ""}}))
}

func TestSelectionByType(t *testing.T) {
	mutex := profileOf{pod: "a", typ: "mutex", sampleType: "delay", unit: "nanoseconds", duration: 10, value: 1}
	block := mutex
	block.typ, block.value = "block", 2
	contentions := mutex
	contentions.sampleType, contentions.unit, contentions.value = "contentions", "count", 4
	s := source(t, payload(t, mutex, contentions, block))
	for want, types := range map[string][]string{
		"map[contentions:4 delay:1]": {"mutex"},
		"map[delay:3]":               {"delay"},
		"map[delay:1]":               {"mutex:delay"},
		"map[contentions:4 delay:2]": {"block", "contentions"},
		"map[]":                      {"cpu"},
	} {
		assert.Equal(t, want, fmt.Sprint(sums(t, s, query.Selection{Types: types})))
	}
}

func TestProfileTypeIsDerivedFromSampleTypes(t *testing.T) {
	unnamed := func(sampleType string, value int64) profileOf {
		return profileOf{sampleType: sampleType, unit: "count", duration: 10, value: value}
	}
	pprof := payload(t, unnamed("samples", 1), unnamed("cpu", 2))
	other := payload(t, unnamed("contentions", 4)) // of a mutex or a block profile
	named := payload(t, cpu(0, 8))
	for _, pd := range []pprofile.Profiles{pprof, other} {
		pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Remove(attrkey.ProfileType)
	}
	s := source(t, pprof, other, named)
	assert.Equal(t, map[string]int64{"samples": 1, "cpu": 10}, sums(t, s, query.Selection{Types: []string{"cpu"}}), "all sample types of a CPU profile")
	assert.Equal(t, map[string]int64{"samples": 1}, sums(t, s, query.Selection{Types: []string{"cpu:samples"}}))
	rows, err := s.List(t.Context(), &query.Selection{})
	require.NoError(t, err)
	types := map[string]string{}
	for _, row := range rows {
		types[row.SampleType] = row.Type
	}
	assert.Equal(t, map[string]string{"samples": "cpu", "cpu": "cpu", "contentions": ""}, types)
	p, err := pprofOf(t, s, query.Selection{Types: []string{"cpu:cpu"}})
	require.NoError(t, err, "with and without the attribute, these are one profile type")
	assert.Equal(t, map[string]int64{"cpu/count": 2, "cpu/nanoseconds": 8}, profiletest.Sums(p))
}

// The ID that a log or an exemplar has of a profile finds that alone, in each encoding, until something merges it.
func TestSelectionByProfileID(t *testing.T) {
	one, two := payload(t, cpu(0, 1)), payload(t, cpu(0, 2), cpu(0, 4))
	ids := [][16]byte{{0x7c, 0x9e, 0x66, 0x79, 0x74, 0x25, 0x40, 0xde, 0x94, 0x4b, 0xe0, 0x7f, 0xc1, 0xf9, 0x0a, 0xe7}, {2}}
	for i, pd := range []pprofile.Profiles{one, two} {
		for p := range sampletypes.ProfilesOf(pd) {
			p.SetProfileID(ids[i])
		}
	}
	line := profiletest.JSON(t, one)
	inJSON := source(t)
	inJSON.Files = []archive.File{{Path: profiletest.WriteFile(t, "profiles.json", line), Size: int64(len(line))}}
	for name, s := range map[string]*query.Source{"protobuf": source(t, two, one), "JSON": inJSON} {
		for _, text := range []string{"7c9e6679742540de944be07fc1f90ae7", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "7C9E6679-7425-40DE-944B-E07FC1F90AE7"} {
			sel := query.Selection{}
			require.NoError(t, sel.Set("profile_id", text))
			assert.Equal(t, map[string]int64{"cpu": 1}, sums(t, s, sel), "%s of %s", text, name)
		}
	}
	s := source(t, two, one)
	assert.Equal(t, map[string]int64{"cpu": 7}, sums(t, s, query.Selection{ProfileIDs: []pprofile.ProfileID{ids[0], ids[1]}}))
	assert.Equal(t, map[string]int64{"cpu": 6}, sums(t, s, query.Selection{ProfileIDs: append(make([]pprofile.ProfileID, 20), ids[1])}))
	assert.Nil(t, sums(t, s, query.Selection{ProfileIDs: []pprofile.ProfileID{{3}}}))
	rows, err := s.List(t.Context(), &query.Selection{ProfileIDs: []pprofile.ProfileID{ids[1]}})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	assert.EqualValues(t, 6, rows[0].Sum)
	merged, err := s.Merge(t.Context(), &query.Selection{}, false)
	require.NoError(t, err)
	assert.Nil(t, sums(t, source(t, merged.Profiles), query.Selection{ProfileIDs: []pprofile.ProfileID{ids[0]}}), "merged")
	for _, text := range []string{"", "7c9e", "00000000000000000000000000000000", "7c9e6679742540de-944b-e07f-c1f9-0ae7", "7c9e6679-7425-40de-944b-e07fc1f90ae"} {
		sel := query.Selection{}
		require.ErrorContains(t, sel.Set("profile_id", text), "UUID", text)
	}
}

func TestSelectionByTraceAndSpan(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	linked, other := cpu(0, 1), cpu(0, 2)
	linked.link, other.link = trace+"/"+span, trace+"/1111111111111111"
	s := source(t, payload(t, linked, other, cpu(0, 4)))
	traceID := pcommon.TraceID{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36}
	spanID := pcommon.SpanID{0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}
	assert.Equal(t, map[string]int64{"cpu": 3}, sums(t, s, query.Selection{TraceIDs: []pcommon.TraceID{traceID}}))
	assert.Equal(t, map[string]int64{"cpu": 1}, sums(t, s, query.Selection{TraceIDs: []pcommon.TraceID{traceID}, SpanIDs: []pcommon.SpanID{spanID}}))
	assert.Nil(t, sums(t, s, query.Selection{TraceIDs: []pcommon.TraceID{{1}}}))

	// A payload without the trace is not decoded: it may even be damaged.
	damaged := payload(t, cpu(0, 8))
	damaged.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).SetStackIndex(99)
	assert.Equal(t, map[string]int64{"cpu": 3}, sums(t, source(t, damaged, payload(t, linked, other)), query.Selection{TraceIDs: []pcommon.TraceID{traceID}}))

	// Recordings of JVMs have IDs as integers.
	c := jfrwriter.New()
	c.Class("jdk.ThreadPark", jfrwriter.StartTime, jfrwriter.Duration, jfrwriter.Thread, jfrwriter.Stack,
		jfrwriter.Long("spanId"), jfrwriter.Long("traceIdHi"), jfrwriter.Long("traceIdLo"))
	c.Event("jdk.ThreadPark", 1000, 5, 0, 0, 0x00f067aa0ba902b7, 0x4bf92f3577b34da6, uint64(0xa3ce929d0e0e4736))
	path := profiletest.WriteFile(t, "recording.jfr", c.Bytes())
	recording := source(t)
	recording.Files = []archive.File{{Path: path, Size: int64(len(c.Bytes()))}}
	assert.Equal(t, map[string]int64{"contentions": 1, "delay": 5}, sums(t, recording, query.Selection{TraceIDs: []pcommon.TraceID{traceID}}))
	assert.Nil(t, sums(t, recording, query.Selection{TraceIDs: []pcommon.TraceID{{1}}}))

	// OTLP/JSON may have upper-case digits.
	line := profiletest.JSON(t, payload(t, linked))
	line = bytes.ReplaceAll(line, []byte(trace), []byte(strings.ToUpper(trace)))
	path = profiletest.WriteFile(t, "profiles.json", line)
	recording.Files = []archive.File{{Path: path, Size: int64(len(line))}}
	assert.Equal(t, map[string]int64{"cpu": 1}, sums(t, recording, query.Selection{TraceIDs: []pcommon.TraceID{traceID}}))

	// Labels of profilers that know one ID only.
	for key, value := range map[string]string{"span_id": span, "span id": "67667974448284343", "local root span id": "67667974448284343", "profile_id": span} {
		labelled := payload(t, cpu(0, 1), cpu(0, 2))
		dict := labelled.Dictionary()
		dict.StringTable().Append(key)
		attribute := dict.AttributeTable().AppendEmpty()
		attribute.SetKeyStrindex(int32(dict.StringTable().Len() - 1))
		attribute.Value().SetStr(value)
		profiles := labelled.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
		profiles.At(1).Samples().At(0).AttributeIndices().Append(int32(dict.AttributeTable().Len() - 1))
		assert.Equal(t, map[string]int64{"cpu": 2}, sums(t, source(t, labelled), query.Selection{SpanIDs: []pcommon.SpanID{spanID}}), key)
	}
}

func TestSelectionBySpanMatchesNothingWithoutLinksAndAttributes(t *testing.T) {
	pd := payload(t, cpu(0, 1))
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).AttributeIndices().FromRaw(nil)
	pd.Dictionary().LinkTable().RemoveIf(func(pprofile.Link) bool { return true })
	pd.Dictionary().AttributeTable().RemoveIf(func(pprofile.KeyValueAndUnit) bool { return true })
	assert.Nil(t, sums(t, source(t, pd), query.Selection{SpanIDs: []pcommon.SpanID{{1}}}))
}

func TestSelectionByAttributeOfTheProfile(t *testing.T) {
	delta := cpu(0, 8)
	delta.temporality = "delta"
	assert.Equal(t, map[string]int64{"cpu": 8}, sums(t, source(t, payload(t, delta, cpu(0, 1))),
		query.Selection{Labels: []*labels.Matcher{labels.Equal(attrkey.Temporality, "delta")}}))
}

// pprofOf is the pprof of all that is selected.
func pprofOf(t *testing.T, s *query.Source, sel query.Selection) (*profile.Profile, error) {
	t.Helper()
	result, err := s.Merge(t.Context(), &sel, true)
	require.NoError(t, err)
	return result.Pprof(t.Context())
}

func TestPprofNamesProfileTypesOfWhichToSelectOne(t *testing.T) {
	wall, many := cpu(1, 2), make([]profileOf, 100)
	wall.typ = "wall"
	for i := range many {
		many[i] = cpu(0, 1)
		many[i].typ = fmt.Sprintf("type_%02d", i)
	}
	for want, profiles := range map[string][]profileOf{
		"the selection has several profile types: cpu; heap":        {cpu(0, 1), heap("a", 0, 2)},
		"the selection has several profile types: cpu:cpu; wall":    {cpu(0, 1), wall}, // a profile type may be the sample type of another
		"the selection has several profile types: type_00; type_01": many,
		"type_19; and 80 more": many,
	} {
		_, err := pprofOf(t, source(t, payload(t, profiles...)), query.Selection{})
		var types *query.TypesError
		require.ErrorAs(t, err, &types)
		require.Equal(t, "type", types.Parameter)
		require.ErrorContains(t, err, want)
	}
}

func TestPprofNamesPeriodTypesThatDiffer(t *testing.T) {
	one, other := payload(t, cpu(0, 1)), payload(t, cpu(1, 2))
	period := other.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).PeriodType()
	period.SetTypeStrindex(int32(other.Dictionary().StringTable().Len()))
	other.Dictionary().StringTable().Append("wall")
	for _, test := range [][2]string{
		{"checkout", "the selection has several period types: process_cpu:cpu:nanoseconds::; process_cpu:cpu:nanoseconds:wall:"},
		{"java", "the selection has several period types, in these services: checkout; java"},
	} {
		service, want := test[0], test[1]
		for i, text := range other.Dictionary().StringTable().All() {
			if text == "checkout" {
				other.Dictionary().StringTable().SetAt(i, service)
			}
		}
		s := source(t, one, other)
		_, err := pprofOf(t, s, query.Selection{})
		require.EqualError(t, err, want)
		if types, ok := errors.AsType[*query.TypesError](err); ok {
			assert.Len(t, types.Choices, 2)
			for _, choice := range types.Choices {
				sel := query.Selection{Types: []string{choice}}
				if types.Parameter == "service" {
					sel = query.Selection{Services: []string{choice}}
				}
				_, err := pprofOf(t, s, sel)
				require.NoError(t, err, choice)
			}
		}
	}
}

// TestLabelsSelect: the value of a sample counts before that of its Profile and its resource.
func TestLabelsSelect(t *testing.T) {
	one, other, labelled, third := cpu(0, 1), cpu(1, 2), cpu(2, 4), cpu(3, 8)
	one.pod, other.pod, labelled.pod, labelled.label, third.pod = "a", "b", "a", "worker", "c"
	s := indexed(t, segment.Proto, payload(t, one), payload(t, other, labelled), payload(t, third))
	for selector, want := range map[string]int64{
		"{}": 15, `{k8s_pod_name="a"}`: 5, `{k8s_pod_name="a",service_name="other"}`: 0, `{k8s.pod.name!="a"}`: 10, `{k8s_pod_name=~"a|b"}`: 7, `{k8s_pod_name="c"}`: 8, `{k8s_pod_name=""}`: 0, `{thread="worker"}`: 4,
		`{thread=""}`: 11, `{thread!~".+",k8s_pod_name="a"}`: 1, `{service_name="checkout"}`: 15, `{service_name!="checkout"}`: 0, `{none="x"}`: 0,
		`{__profile_type__="process_cpu:cpu:nanoseconds::"}`: 15, `{__profile_type__="process_cpu:cpu:nanoseconds:cpu:nanoseconds"}`: 0,
		`{__name__="process_cpu",__type__="cpu",__unit__="nanoseconds",thread=~"w.*"}`: 4,
	} {
		matchers, err := labels.ParseSelector(selector)
		require.NoError(t, err)
		sel := query.Selection{Labels: matchers}
		assert.Equal(t, want, sums(t, s.Source, sel)["cpu"], selector)
		rows, err := s.List(t.Context(), &sel)
		require.NoError(t, err)
		for _, row := range rows {
			assert.Equal(t, want, row.Sum, selector)
		}
		assert.Equal(t, want != 0, len(rows) == 1, selector)
		requireSameRows(t, s, sel)
	}
}

// manyTypes has Profiles of n sample types, each in a scope and with a stack and a time of its own if apart is true.
func manyTypes(t *testing.T, n int, apart bool) pprofile.Profiles {
	t.Helper()
	expanded := make([]expand.Profile, n)
	for i := range expanded {
		e := expand.Profile{Type: fmt.Sprintf("type_%04d", i), Unit: "count", Time: nano(0), Duration: 1e9}
		e.Scope.Attributes = []expand.Attribute{{Key: attrkey.ProfileType, Value: "many"}}
		function := "main"
		if apart {
			e.Scope.Name = e.Type
			e.Time += uint64(i)
			function = e.Type
		}
		e.Samples = []*expand.Sample{{Stack: []*expand.Frame{{Lines: []expand.Line{{Function: function}}}}, Sum: big.NewInt(1)}}
		expanded[i] = e
	}
	return profiletest.Build(t, expanded...)
}

func TestPprofHasALimitOfSampleTypes_V9(t *testing.T) {
	of := func(pd pprofile.Profiles) (*query.Comparison, error) {
		return query.Compare(t.Context(), source(t, pd), &query.Selection{}, nil, nil)
	}
	for _, apart := range []bool{false, true} {
		compared, err := of(manyTypes(t, 1024, apart))
		require.NoError(t, err)
		assert.Len(t, compared.New.Pprof.SampleType, 1024)
		_, err = of(manyTypes(t, 1025, apart))
		require.EqualError(t, err, "the selection has 1025 sample types, and a pprof at most 1024: select some by type, such as type_0000, type_0001 or type_0002")
	}
	s, base := source(t, manyTypes(t, 1024, false)), source(t, payload(t, cpu(0, 1)))
	compared, err := query.Compare(t.Context(), s, &query.Selection{}, base, &query.Selection{})
	require.NoError(t, err)
	_, err = compared.Pprof(false)
	require.ErrorContains(t, err, "the selection has 1025 sample types", "of both together")
}

// TestPprofHasALimitOfValues: each sample has a value of each sample type, so the values grow with the product.
func TestPprofHasALimitOfValues_V9(t *testing.T) {
	const types, value = 400, 8
	for _, test := range []struct {
		name      string
		apart     bool
		withBase  bool
		maxMemory int64
		fits      bool
	}{
		{"a sample of all", false, false, 4 << 20, true},
		{"a sample each", true, false, 16 << 20, true},
		{"a sample each, in little memory", true, false, 4*value*types*types - 1, false},
		{"a sample each, and those of a base", true, true, 2*4*value*types*types - 1, false},
		{"a sample each, and room for a base", true, true, 2 * 4 * value * types * types, true},
	} {
		s := source(t, manyTypes(t, types, test.apart))
		s.Options.MaxMemory = test.maxMemory
		var base *query.Selection
		if test.withBase {
			base = &query.Selection{}
		}
		compared, err := query.Compare(t.Context(), s, &query.Selection{}, s, base)
		if err == nil {
			_, err = compared.Pprof(false)
		}
		if test.fits {
			require.NoError(t, err, test.name)
		} else {
			require.ErrorContains(t, err, "a pprof has a value for each of its samples and sample types", test.name)
		}
	}
}

// Times are unsigned, and those after the year 2262 are no early ones.
func TestLateTimesAreSelected(t *testing.T) {
	late := payload(t, cpu(0, 2))
	late.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).SetTime(math.MaxUint64)
	s := source(t, payload(t, cpu(0, 1)), late)
	assert.Equal(t, map[string]int64{"cpu": 2}, sums(t, s, query.Selection{From: at(10)}))
	assert.Equal(t, map[string]int64{"cpu": 1}, sums(t, s, query.Selection{To: at(10)}))
	assert.Equal(t, map[string]int64{"cpu": 3}, sums(t, s, query.Selection{From: time.Unix(-1, 0)}))
}

func TestPprofUnitesDeltasAndSnapshots(t *testing.T) {
	allocated := profileOf{pod: "a", typ: "heap", sampleType: "alloc_space", unit: "bytes", duration: 10, temporality: "delta"}
	var payloads []pprofile.Profiles
	for i := range 3 {
		allocated.start, allocated.value = 10*i, 5
		payloads = append(payloads, payload(t, allocated, heap("a", 10*i, int64(i+1))))
	}
	p, err := pprofOf(t, source(t, payloads...), query.Selection{})
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"alloc_space/bytes": 15, "inuse_space/bytes": 3}, profiletest.Sums(p))
}

func times(factor float64) func(*profile.ValueType) float64 {
	return func(*profile.ValueType) float64 { return factor }
}

func TestDifferenceScalesTheBase(t *testing.T) {
	s := source(t, payload(t, cpu(0, 100)), payload(t, cpu(10, 30)))
	first, err := pprofOf(t, s, query.Selection{To: at(10)})
	require.NoError(t, err)
	second, err := pprofOf(t, s, query.Selection{From: at(10)})
	require.NoError(t, err)
	difference, err := query.Difference(second, first, times(0.5), math.MaxInt64, false)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"cpu/nanoseconds": -20}, profiletest.Sums(difference))
	assert.Equal(t, second.TimeNanos, difference.TimeNanos)
	apart, err := query.Difference(second, first, times(0.5), math.MaxInt64, true)
	require.NoError(t, err)
	assert.True(t, apart.Sample[len(apart.Sample)-1].DiffBaseSample())
	assert.Greater(t, len(apart.Sample), len(difference.Sample))
	none, err := query.Difference(first, first, times(1), math.MaxInt64, false)
	require.NoError(t, err)
	assert.Empty(t, none.Sample)
}

const overflowMessage = "the sum of cpu/nanoseconds does not fit into 64 bits; select less, by service, type or time"

// pprofOfValues has a sample of the function main for each value.
func pprofOfValues(values ...int64) *profile.Profile {
	f := &profile.Function{ID: 1, Name: "main"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Location:   []*profile.Location{l}, Function: []*profile.Function{f},
	}
	for _, v := range values {
		p.Sample = append(p.Sample, &profile.Sample{Location: p.Location, Value: []int64{v}})
	}
	return p
}

func TestMergeRejectsSumsThatOverflow(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64
	for _, values := range [][]int64{
		{most, most}, {most, 1}, {most, most, 2}, {least, least}, {least, -1}, {most, -1}, {most, 2, -3}, {least, most}, {least, most, 1},
		{1 << 62, 1 << 62}, {1 << 62, 1<<62 - 1}, {-1 << 62, -1 << 62}, {1 << 32, most - 1<<32},
	} {
		sum, fits := new(big.Int), true
		var profiles []profileOf
		for _, v := range values {
			fits = sum.Add(sum, big.NewInt(v)).IsInt64() && fits
			profiles = append(profiles, cpu(0, v))
		}
		result, err := source(t, payload(t, profiles...)).Merge(t.Context(), &query.Selection{}, true)
		if !fits {
			assert.EqualError(t, err, "a sum does not fit into 64 bits; select less, by service, type or time", values)
			continue
		}
		require.NoError(t, err, values)
		p, err := result.Pprof(t.Context())
		require.NoError(t, err, values)
		require.NoError(t, p.CheckValid())
		assert.Equal(t, sum.Int64(), profiletest.Sums(p)["cpu/nanoseconds"], values)
	}
}

func TestDifferenceIsExactOrRejected(t *testing.T) {
	for _, test := range []struct {
		value, base int64
		factor      float64
		want        int64 // 0 for an error
	}{
		{1<<61 + 1, 1 << 61, 1, 1},
		{0, math.MaxInt64, 1, -math.MaxInt64},
		{1, math.MaxInt64, 1, 0},
		{-1, math.MaxInt64, 1, 0},
		{math.MaxInt64, -1, 1, 0},
		{1, math.MinInt64, 1, 0},
		{1, 1 << 60, 4, 1 - 1<<62},
		{1, 1 << 60, 8, 0},
		{1, -1 << 60, 8, 0},
	} {
		difference, err := query.Difference(pprofOfValues(test.value), pprofOfValues(test.base), times(test.factor), math.MaxInt64, false)
		if test.want == 0 {
			assert.EqualError(t, err, overflowMessage, test)
			continue
		}
		require.NoError(t, err, test)
		assert.Equal(t, test.want, profiletest.Sums(difference)["cpu/nanoseconds"], test)
	}
	none, err := query.Difference(pprofOfValues(1<<61), pprofOfValues(1<<61), times(1), math.MaxInt64, false)
	require.NoError(t, err)
	assert.Empty(t, none.Sample)

	twice := pprofOfValues(math.MaxInt64)
	twice.SampleType = append(twice.SampleType, twice.SampleType[0])
	twice.Sample[0].Value = []int64{math.MaxInt64, 1}
	_, err = query.Difference(twice, pprofOfValues(1), times(1), math.MaxInt64, false)
	assert.EqualError(t, err, overflowMessage, "a pprof that has a sample type twice")
}

func TestMergeIsBounded_V2(t *testing.T) {
	var payloads []pprofile.Profiles
	for seed := range uint64(60) {
		payloads = append(payloads, profiletest.GenerateProfiles(profiletest.NewRand(seed)))
	}
	s := source(t, payloads...)
	s.Options.MaxMemory = 1 << 20
	_, err := s.Merge(t.Context(), &query.Selection{}, false)
	assert.ErrorContains(t, err, "the selection takes more than 0 MiB of memory, a quarter of the memory limit; select less, by service, type or time")
}

func TestFailedRecordsAreLeftOut_V1(t *testing.T) {
	broken := payload(t, cpu(0, 1))
	broken.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).SetStackIndex(99)
	s := source(t, payload(t, cpu(0, 1)), broken, payload(t, cpu(10, 2)))
	var failed []error
	s.Failed = func(err error) error { failed = append(failed, err); return nil }
	p, err := pprofOf(t, s, query.Selection{})
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"cpu/nanoseconds": 3}, profiletest.Sums(p))
	require.Len(t, failed, 1)
	assert.ErrorContains(t, failed[0], "record 2 at byte")
}

// TestAPanicReachesTheCaller_A11: one in a goroutine of the query would end the process, and the server of the caller recovers.
func TestAPanicReachesTheCaller_A11(t *testing.T) {
	s := source(t, profiletest.OneOfEach())
	s.Change = func(pprofile.Profiles) { panic("out of the blue") }
	defer func() { assert.Contains(t, recover(), "out of the blue\n\ngoroutine") }()
	_, _ = s.Merge(t.Context(), &query.Selection{}, false)
	t.Error("no panic")
}
