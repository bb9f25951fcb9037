// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

func expandSmall(t *testing.T) []expand.Profile {
	t.Helper()
	e := profiletest.Expand(t, profiletest.Small(t))
	return e
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
		`"process.executable.build_id.gnu"=string("d")`: ofSample(func(s sample) { s.Stack[0].Mapping.Attributes[0].Value = "d" }),
		`attributes ["of"=<nil>(<nil>)`:                 ofSample(func(s sample) { s.Stack[0].Attributes = []expand.Attribute{{Key: "of"}} }),
		`"x"/"nanoseconds"`:                             func(e []expand.Profile) { e[0].Type = "x" },
		"8 time":                                        func(e []expand.Profile) { e[0].Period = 8 },
		"1001+100":                                      func(e []expand.Profile) { e[0].Time++ },
		`resource "" "" "" []`:                          func(e []expand.Profile) { e[0].Resource.Attributes = nil },
		`scope "x"`:                                     func(e []expand.Profile) { e[0].Scope.Name = "x" },
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
