// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand_test

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

func expandSmall(t *testing.T) []expand.Profile {
	t.Helper()
	e := profiletest.Expand(t, profiletest.Small(t))
	return e
}

func TestExpandSmall(t *testing.T) {
	got := expandSmall(t)
	require.Len(t, got, 2)
	mapping := expand.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/app", Attributes: []expand.Attribute{{Key: "build", Value: "abc"}}}
	leaf := &expand.Frame{Address: 0x1100, Mapping: mapping, Lines: []expand.Line{{Function: "leaf", Filename: "a.go", Line: 7}}}
	root := &expand.Frame{Address: 0x1200, Mapping: mapping, Lines: []expand.Line{{Function: "root", Filename: "a.go", Line: 9}}}
	assert.Equal(t, expand.Profile{
		Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: "checkout"}}},
		Scope:    expand.Entity{Name: "test", Attributes: []expand.Attribute{{Key: "kind", Value: "cpu"}}},
		Type:     "cpu", Unit: "nanoseconds", Time: 1000, Duration: 100, Shape: expand.ShapeValues,
		Samples: []*expand.Sample{
			{Stack: []*expand.Frame{leaf, root}, Attributes: []expand.Attribute{{Key: "thread", Value: int64(1)}}, Sum: big.NewInt(10)},
			{Stack: []*expand.Frame{root}, Attributes: []expand.Attribute{{Key: "thread", Value: "1"}}, Sum: big.NewInt(5), Link: "0102030405060708090a0b0c0d0e0f10/0102030405060708"},
		},
	}, got[0])
	assert.Equal(t, []expand.Point{{Timestamp: 1001, Value: 1}, {Timestamp: 1002, Value: 2}}, got[1].Samples[0].Points)
	assert.Equal(t, int64(3), got[1].Samples[0].Sum.Int64())
}

// Indices that differ can lead to equal values. A timestamp without a value counts 1.
func TestExpandSumsEqualIdentities(t *testing.T) {
	pd := profiletest.Small(t)
	stacks := pd.Dictionary().StackTable()
	stacks.At(1).CopyTo(stacks.AppendEmpty())
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	extra := profiles.At(0).Samples().AppendEmpty()
	profiles.At(0).Samples().At(0).CopyTo(extra)
	extra.SetStackIndex(int32(stacks.Len() - 1))
	extra.Values().SetAt(0, math.MaxInt64)
	profiles.At(1).Samples().At(0).Values().FromRaw(nil)
	got := profiletest.Expand(t, pd)
	assert.Len(t, got[0].Samples, 2)
	assert.Equal(t, "9223372036854775817", got[0].Samples[0].Sum.String(), "MaxInt64 + 10")
	assert.Equal(t, []expand.Point{{Timestamp: 1001, Value: 1}, {Timestamp: 1002, Value: 1}}, got[1].Samples[0].Points)
	assert.Equal(t, int64(2), got[1].Samples[0].Sum.Int64())
}

// pdata reads the value of this attribute as empty.
func TestExpandResolvesHiddenReferences(t *testing.T) {
	message, err := conformance.Marshal(profiletest.Small(t))
	require.NoError(t, err)
	data := &profilespb.ProfilesData{}
	require.NoError(t, proto.Unmarshal(message, data))
	data.Dictionary.AttributeTable[2].Value.Value = &commonpb.AnyValue_StringValueStrindex{StringValueStrindex: 1}
	message, err = proto.Marshal(data)
	require.NoError(t, err)
	pd := profiletest.Unmarshal(t, message)
	got := profiletest.Expand(t, pd)
	assert.Equal(t, data.Dictionary.StringTable[1], got[0].Samples[0].Attributes[0].Value)
}

// Profiles is the inverse of Build, on everything generated.
func TestBuildExpand(t *testing.T) {
	shapes := map[expand.Shape]int{}
	for seed := range uint64(profiletest.Rounds(t, 100, 3000)) {
		want := profiletest.GenerateExpanded(profiletest.NewRand(seed))
		pd := profiletest.Build(t, want...)
		got := profiletest.Expand(t, pd)
		require.Empty(t, expand.Diff(want, got), "seed %d", seed)
		for i := range want {
			shapes[got[i].Shape]++
			require.Equal(t, want[i].Header(), got[i].Header(), "seed %d: profile %d has another place", seed, i)
		}
	}
	assert.Len(t, shapes, 4)
}

// Each row states a part of the sample that the rules of the translation make of a label, a mapping or a line.
func TestExpandPprof(t *testing.T) {
	const trace, span = "0102030405060708090a0b0c0d0e0f10", "0102030405060708"
	goID := strings.Repeat("aB3_-aB3_-aB3_-aB3_-/", 4)[:83]
	label := func(key string, values ...any) func(*profile.Profile, *profile.Sample) {
		return func(_ *profile.Profile, s *profile.Sample) {
			for _, v := range values {
				switch v := v.(type) {
				case string:
					s.Label[key] = append(s.Label[key], v)
				case int:
					s.NumLabel[key] = append(s.NumLabel[key], int64(v))
				}
			}
		}
	}
	for name, test := range map[string]struct {
		edit func(p *profile.Profile, s *profile.Sample)
		want any // an attribute of the sample or of its mapping, or a text in its identity
	}{
		"string":      {label("k", "v"), expand.Attribute{Key: "k", Value: "v"}},
		"two strings": {label("k", "v", "u"), expand.Attribute{Key: "k", Value: []any{"v", "u"}}},
		"number 0":    {label("k", 0), expand.Attribute{Key: "k", Value: int64(0)}},
		"one unit": {func(_ *profile.Profile, s *profile.Sample) {
			s.NumLabel["k"], s.NumUnit["k"] = []int64{7, 8}, []string{"bytes", "bytes"}
		}, expand.Attribute{Key: "k", Value: []any{int64(7), int64(8)}, Unit: "bytes"}},
		"two units, and a string": {func(_ *profile.Profile, s *profile.Sample) {
			s.Label["k"], s.NumLabel["k"], s.NumUnit["k"] = []string{"v"}, []int64{7, 8}, []string{"bytes", ""}
		}, expand.Attribute{Key: "k", Value: []any{"v", expand.KeyValues{{Key: "value", Value: int64(7)}, {Key: "unit", Value: "bytes"}}, expand.KeyValues{{Key: "value", Value: int64(8)}}}}},
		"link": {func(_ *profile.Profile, s *profile.Sample) {
			s.Label["trace_id"], s.Label["span_id"] = []string{trace}, []string{span}
		}, `attributes [] link "` + trace + "/" + span + `"`},
		"trace without span":  {label("trace_id", trace), expand.Attribute{Key: "trace_id", Value: trace}},
		"trace in upper case": {label("trace_id", strings.ToUpper(trace)), expand.Attribute{Key: "trace_id", Value: strings.ToUpper(trace)}},
		"negative timestamp":  {label("end_timestamp_ns", -1), expand.Attribute{Key: "end_timestamp_ns", Value: int64(-1)}},
		"not UTF-8":           {label("k\xff", "\xff"), expand.Attribute{Key: "k\uFFFD", Value: "\uFFFD"}},
		"GNU build id":        {func(p *profile.Profile, _ *profile.Sample) { p.Mapping[0].BuildID = "a/b/c/d" }, expand.Attribute{Key: "process.executable.build_id.gnu", Value: "a/b/c/d"}},
		"Go build id":         {func(p *profile.Profile, _ *profile.Sample) { p.Mapping[0].BuildID = goID }, expand.Attribute{Key: "process.executable.build_id.go", Value: goID}},
		"flag":                {func(p *profile.Profile, _ *profile.Sample) { p.Mapping[0].HasInlineFrames = true }, expand.Attribute{Key: "pprof.mapping.has_inline_frames", Value: true}},
		"folded":              {func(p *profile.Profile, _ *profile.Sample) { p.Location[0].IsFolded = true }, `attributes ["pprof.location.is_folded"=bool(true) ""]`},
		"empty mapping":       {func(p *profile.Profile, _ *profile.Sample) { *p.Mapping[0] = profile.Mapping{ID: 1} }, "in (" + expand.Mapping{}.String() + ")"},
		"lines": {func(p *profile.Profile, _ *profile.Sample) {
			p.Location[0].Line = append(p.Location[0].Line, profile.Line{Function: &profile.Function{ID: 2, Name: "g", SystemName: "h", Filename: "g.x"}, Line: 1})
		}, `0x1234 ["f"/"_f"@"f.x":3:4(start 2) "g"/"h"@"g.x":1:0(start 0)] in (0x1000-0x2000+0x10 "/bin/f" [])`},
	} {
		fn := &profile.Function{ID: 1, Name: "f", SystemName: "_f", Filename: "f.x", StartLine: 2}
		m := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x2000, Offset: 0x10, File: "/bin/f"}
		l := &profile.Location{ID: 1, Address: 0x1234, Mapping: m, Line: []profile.Line{{Function: fn, Line: 3, Column: 4}}}
		s := &profile.Sample{Location: []*profile.Location{l}, Value: []int64{1}, Label: map[string][]string{}, NumLabel: map[string][]int64{}, NumUnit: map[string][]string{}}
		p := &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "cpu", Unit: "count"}},
			Mapping:    []*profile.Mapping{m}, Function: []*profile.Function{fn}, Location: []*profile.Location{l}, Sample: []*profile.Sample{s},
		}
		test.edit(p, s)
		got := expand.Pprof(p)[0].Samples[0]
		if want, ok := test.want.(expand.Attribute); ok {
			assert.Contains(t, slices.Concat(got.Attributes, got.Stack[0].Mapping.Attributes), want, name)
		} else {
			assert.Contains(t, got.Identity(), test.want, name)
		}
		assert.Equal(t, int64(1), got.Sum.Int64(), name)
	}
}

// The default sample type is first. Samples with timestamps are a Profile of their own.
func TestExpandPprofOfSeveralTypesAndShapes(t *testing.T) {
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "a", Unit: "count"}, {Type: "b", Unit: "bytes"}},
		PeriodType:    &profile.ValueType{Type: "cpu", Unit: "ns"},
		TimeNanos:     -4,
		DurationNanos: 5, Period: 6, Comments: []string{"x"}, DropFrames: "d",
		Sample: []*profile.Sample{
			{Value: []int64{1, 2}},
			{Value: []int64{50, 7}, NumLabel: map[string][]int64{"end_timestamp_ns": {5}}},
			{Value: []int64{30, 7}, NumLabel: map[string][]int64{"end_timestamp_ns": {3}}},
		},
	}
	got := expand.Pprof(p)
	require.Len(t, got, 4)
	assert.Equal(t, []any{int64(1), int64(0)}, got[0].Scope.Attributes[0].Value)
	assert.Equal(t, "b", got[0].Type)
	assert.Equal(t, int64(2), got[0].Samples[0].Sum.Int64())
	timed := got[3]
	assert.Equal(t, expand.ShapeBoth, timed.Shape)
	assert.Equal(t, []expand.Point{{Timestamp: 3, Value: 30}, {Timestamp: 5, Value: 50}}, timed.Samples[0].Points)
	timed.Samples = nil
	assert.Equal(t, expand.Profile{
		Type: "a", Unit: "count", PeriodType: "cpu", PeriodUnit: "ns", Period: 6, Duration: 5, Shape: expand.ShapeBoth,
		Attributes: []expand.Attribute{{Key: "pprof.profile.comment", Value: []any{"x"}}, {Key: "pprof.profile.drop_frames", Value: "d"}},
		Scope:      got[0].Scope,
	}, timed)
	p.DefaultSampleType = "a"
	assert.Equal(t, "a", expand.Pprof(p)[0].Type)
	assert.Empty(t, expand.Pprof(&profile.Profile{}))
}

// TestDiffFindsEveryChange changes one part at a time.
func TestDiffFindsEveryChange(t *testing.T) {
	type sample = *expand.Sample
	ofSample := func(change func(s sample)) func(e []expand.Profile) {
		return func(e []expand.Profile) { change(e[0].Samples[0]) }
	}
	for says, change := range map[string]func(e []expand.Profile){
		"missing sample of 10":           func(e []expand.Profile) { e[0].Samples = e[0].Samples[1:] },
		"extra sample of 4":              func(e []expand.Profile) { e[0].Samples = append(e[0].Samples, &expand.Sample{Sum: big.NewInt(4)}) },
		"wrong sum: want 10, got 11":     ofSample(func(s sample) { s.Sum.SetInt64(11) }),
		"wrong points: want [{1001 1} {": func(e []expand.Profile) { e[1].Samples[0].Points[0].Timestamp = 7 },
		`link ""`:                        func(e []expand.Profile) { e[0].Samples[1].Link = "" },
		`"thread"=string("1")`:           ofSample(func(s sample) { s.Attributes[0].Value = "1" }),
		`"thread"=int64(1) "x"`:          ofSample(func(s sample) { s.Attributes[0].Unit = "x" }),
		"extra sample of 10":             ofSample(func(s sample) { slices.Reverse(s.Stack) }),
		"0x1101":                         ofSample(func(s sample) { s.Stack[0].Address++ }),
		`"a.go":8`:                       ofSample(func(s sample) { s.Stack[0].Lines[0].Line++ }),
		`"a.go":7:1`:                     ofSample(func(s sample) { s.Stack[0].Lines[0].Column++ }),
		"(start 1)":                      ofSample(func(s sample) { s.Stack[0].Lines[0].StartLine++ }),
		`"f"/""`:                         ofSample(func(s sample) { s.Stack[0].Lines[0].Function = "f" }),
		`"leaf"/"f"`:                     ofSample(func(s sample) { s.Stack[0].Lines[0].SystemName = "f" }),
		`"x.go":7`:                       ofSample(func(s sample) { s.Stack[0].Lines[0].Filename = "x.go" }),
		"+0x1":                           ofSample(func(s sample) { s.Stack[0].Mapping.Offset = 1 }),
		`"build"=string("d")`:            ofSample(func(s sample) { s.Stack[0].Mapping.Attributes[0].Value = "d" }),
		`attributes ["of"=<nil>(<nil>)`:  ofSample(func(s sample) { s.Stack[0].Attributes = []expand.Attribute{{Key: "of"}} }),
		`"x"/"nanoseconds"`:              func(e []expand.Profile) { e[0].Type = "x" },
		"8 time":                         func(e []expand.Profile) { e[0].Period = 8 },
		"1001+100":                       func(e []expand.Profile) { e[0].Time++ },
		`resource "" "" "" []`:           func(e []expand.Profile) { e[0].Resource.Attributes = nil },
		`scope "x"`:                      func(e []expand.Profile) { e[0].Scope.Name = "x" },
	} {
		got := expandSmall(t)
		change(got)
		assert.Contains(t, expand.Diff(expandSmall(t), got), says)
	}
	assert.Contains(t, expand.Diff(expandSmall(t), expandSmall(t)[1:]), "missing profile of 2 samples")
	reversed := expandSmall(t)
	slices.Reverse(reversed)
	slices.Reverse(reversed[0].Samples)
	assert.Empty(t, expand.Diff(expandSmall(t), reversed), "the order does not count")
}

func TestNormalizeMerges(t *testing.T) {
	sample := func(value int64, points ...expand.Point) *expand.Sample {
		return &expand.Sample{Sum: big.NewInt(value), Points: points}
	}
	profiles := []expand.Profile{
		{Type: "a", Time: 200, Duration: 10, ProfileID: "01", Shape: expand.ShapeValues, Samples: []*expand.Sample{sample(1)}},
		{Type: "a", Time: 100, Duration: 50, Shape: expand.ShapeBoth, Samples: []*expand.Sample{sample(2, expand.Point{Timestamp: 9, Value: 2})}},
		{Type: "a", Time: 0, Duration: 5, Samples: []*expand.Sample{sample(4, expand.Point{Timestamp: 8, Value: 4})}},
		{Type: "a", Period: 1, Samples: []*expand.Sample{sample(0)}},
	}
	got := expand.Normalize(profiles, expand.Options{Merge: true, IgnoreZeroSamples: true})
	want := []expand.Profile{
		{Type: "a", Time: 100, Duration: 110, Samples: []*expand.Sample{sample(7, expand.Point{Timestamp: 8, Value: 4}, expand.Point{Timestamp: 9, Value: 2})}},
		{Type: "a", Period: 1},
	}
	assert.Empty(t, expand.Diff(want, got))
	assert.Equal(t, int64(1), profiles[0].Samples[0].Sum.Int64(), "the argument is not changed")
}

func TestNormalizeLabels(t *testing.T) {
	normalized := func(attributes ...expand.Attribute) []expand.Profile {
		samples := []*expand.Sample{{Attributes: expand.AttributeSet(attributes), Sum: big.NewInt(1)}}
		return expand.Normalize([]expand.Profile{{Samples: samples}}, expand.Options{Labels: true})
	}
	pair := func(value int64, unit string) expand.KeyValues {
		return expand.KeyValues{{Key: "value", Value: value}, {Key: "unit", Value: unit}}
	}
	label := func(value any, unit string) expand.Attribute {
		return expand.Attribute{Key: "k", Value: value, Unit: unit}
	}
	for name, test := range map[string]struct {
		a, b  expand.Attribute
		equal bool
	}{
		"unit of a string":            {label("v", "bytes"), label("v", ""), true},
		"number and list of one":      {label(int64(1), "u"), label([]any{int64(1)}, "u"), true},
		"unit inside and outside":     {label([]any{int64(1), int64(2)}, "u"), label([]any{pair(1, "u"), pair(2, "u")}, ""), true},
		"missing and empty unit":      {label([]any{expand.KeyValues{{Key: "value", Value: int64(1)}}}, ""), label([]any{pair(1, "")}, ""), true},
		"a zero among others":         {label([]any{int64(1), int64(0)}, ""), label(int64(1), ""), true},
		"other unit":                  {label(int64(1), "u"), label(int64(1), "v"), false},
		"zero with a unit":            {label([]any{int64(1), int64(0)}, "u"), label(int64(1), "u"), false},
		"order of strings":            {label([]any{"a", "b"}, ""), label([]any{"b", "a"}, ""), false},
		"number and string":           {label(int64(1), ""), label("1", ""), false},
		"no label: bool":              {label(true, ""), label("true", ""), false},
		"no label: list of something": {label([]any{expand.KeyValues{{Key: "other", Value: int64(1)}}}, ""), label(int64(1), ""), false},
	} {
		assert.Equal(t, test.equal, expand.Diff(normalized(test.a), normalized(test.b)) == "", name)
	}
	assert.Empty(t, expand.Diff(normalized(), normalized(label(int64(0), ""))), "a zero without unit")
}
