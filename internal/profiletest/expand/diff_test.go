// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// TestDiffFindsEveryChange changes one part at a time.
func TestDiffFindsEveryChange(t *testing.T) {
	for name, test := range map[string]struct {
		change func(e []expand.Profile) []expand.Profile
		says   string
	}{
		"missing sample": {func(e []expand.Profile) []expand.Profile { e[0].Samples = e[0].Samples[1:]; return e }, "missing sample of 10"},
		"extra sample": {func(e []expand.Profile) []expand.Profile {
			e[0].Samples = append(e[0].Samples, &expand.Sample{Sum: big.NewInt(4)})
			return e
		}, "extra sample of 4"},
		"sum":              {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Sum.SetInt64(11); return e }, "wrong sum: want 10, got 11"},
		"points":           {func(e []expand.Profile) []expand.Profile { e[1].Samples[0].Points[0].Timestamp = 7; return e }, "wrong points: want [1@1001 2@1002], got [1@7 2@1002]"},
		"missing profile":  {func(e []expand.Profile) []expand.Profile { return e[1:] }, "missing profile of 2 samples"},
		"extra profile":    {func(e []expand.Profile) []expand.Profile { return append(e, e[0]) }, "extra profile of 2 samples"},
		"link":             {func(e []expand.Profile) []expand.Profile { e[0].Samples[1].Link = ""; return e }, "link 0102"},
		"attribute":        {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Attributes[0].Value = "1"; return e }, `"thread"="1"`},
		"attribute's unit": {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Attributes[0].Unit = "x"; return e }, `"thread"=1 "x"`},
		"order of frames":  {func(e []expand.Profile) []expand.Profile { slices.Reverse(e[0].Samples[0].Stack); return e }, "missing sample of 10"},
		"address":          {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Stack[0].Address++; return e }, "0x1101"},
		"line":             {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Stack[0].Lines[0].Line++; return e }, `"a.go":8`},
		"column":           {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Stack[0].Lines[0].Column++; return e }, `"a.go":7:1`},
		"start line":       {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Stack[0].Lines[0].StartLine++; return e }, "(start 1)"},
		"function":         {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Stack[0].Lines[0].Function = "x"; return e }, `"x"`},
		"system name": {func(e []expand.Profile) []expand.Profile {
			e[0].Samples[0].Stack[0].Lines[0].SystemName = "x"
			return e
		}, `"leaf"/"x"`},
		"file":    {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Stack[0].Lines[0].Filename = "x"; return e }, `"x":7`},
		"mapping": {func(e []expand.Profile) []expand.Profile { e[0].Samples[0].Stack[0].Mapping.Offset = 1; return e }, "+0x1"},
		"build id": {func(e []expand.Profile) []expand.Profile {
			e[0].Samples[0].Stack[0].Mapping.Attributes[0].Value = "d"
			return e
		}, `"build"="d"`},
		"type":     {func(e []expand.Profile) []expand.Profile { e[0].Type = "x"; return e }, `"x"/"nanoseconds"`},
		"period":   {func(e []expand.Profile) []expand.Profile { e[0].Period = 8; return e }, `8 time`},
		"time":     {func(e []expand.Profile) []expand.Profile { e[0].Time++; return e }, "1001+100"},
		"resource": {func(e []expand.Profile) []expand.Profile { e[0].Resource.Attributes = nil; return e }, "extra profile"},
		"scope":    {func(e []expand.Profile) []expand.Profile { e[0].Scope.Name = "x"; return e }, "extra profile"},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := expandSmall(t), test.change(expandSmall(t))
			diff := expand.Diff(want, got)
			if !strings.Contains(diff, test.says) {
				t.Errorf("diff is\n%s\nwant one that says %s", diff, test.says)
			}
		})
	}
}

func expandSmall(t *testing.T) []expand.Profile {
	t.Helper()
	e, err := expand.Profiles(profiletest.Small(t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDiffIgnoresOrder(t *testing.T) {
	got := expandSmall(t)
	slices.Reverse(got)
	slices.Reverse(got[0].Samples)
	if diff := expand.Diff(expandSmall(t), got); diff != "" {
		t.Error(diff)
	}
}

func TestDiffIsBounded(t *testing.T) {
	e := expand.Profile{Shape: expand.ShapeValues}
	for i := range 1000 {
		s := &expand.Sample{Sum: big.NewInt(int64(i))}
		for range 50 {
			s.Stack = append(s.Stack, &expand.Frame{Address: uint64(i), Lines: []expand.Line{{Function: strings.Repeat("long", 100)}}})
		}
		e.Samples = append(e.Samples, s)
	}
	diff := expand.Diff([]expand.Profile{e}, nil)
	if len(diff) == 0 || len(diff) > 8192+100 {
		t.Errorf("a missing profile gives %d bytes", len(diff))
	}
	diff = expand.Diff([]expand.Profile{e}, []expand.Profile{{Shape: expand.ShapeValues}})
	if len(diff) > 8192+100 || !strings.Contains(diff, "and 997 more") {
		t.Errorf("1000 missing samples give %d bytes:\n%s", len(diff), diff)
	}
}

func TestNormalizeZeroSamples(t *testing.T) {
	sample := func(address uint64, value int64) *expand.Sample {
		return &expand.Sample{Stack: []*expand.Frame{{Address: address}}, Sum: big.NewInt(value)}
	}
	profiles := []expand.Profile{
		{Type: "a", Samples: []*expand.Sample{sample(1, 0), sample(2, 5), sample(3, 0)}},
		{Type: "b", Samples: []*expand.Sample{sample(1, 0), sample(2, 0), sample(3, -1)}},
		{Type: "a", Scope: expand.Entity{Name: "other"}, Samples: []*expand.Sample{sample(2, 0)}},
	}
	got := expand.Normalize(profiles, expand.Options{IgnoreZeroSamples: true})
	want := []expand.Profile{
		{Type: "a", Samples: []*expand.Sample{sample(2, 5)}},
		{Type: "b", Samples: []*expand.Sample{sample(3, -1)}},
		{Type: "a", Scope: expand.Entity{Name: "other"}},
	}
	if diff := expand.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(profiles[0].Samples) != 3 {
		t.Error("the argument was changed")
	}
}

func TestNormalizeMerges(t *testing.T) {
	sample := func(value int64, points ...expand.Point) *expand.Sample {
		return &expand.Sample{Sum: big.NewInt(value), Points: points}
	}
	profiles := []expand.Profile{
		{Type: "a", Time: 200, Duration: 10, ProfileID: "01", Shape: expand.ShapeValues, Samples: []*expand.Sample{sample(1)}},
		{Type: "a", Time: 100, Duration: 50, Shape: expand.ShapeBoth, Samples: []*expand.Sample{sample(2, expand.Point{Timestamp: 9, Value: 2})}},
		{Type: "a", Time: 0, Duration: 5, Samples: []*expand.Sample{sample(4, expand.Point{Timestamp: 8, Value: 4})}},
		{Type: "a", Period: 1, Samples: []*expand.Sample{sample(8)}},
	}
	got := expand.Normalize(profiles, expand.Options{Merge: true})
	want := []expand.Profile{
		{Type: "a", Time: 100, Duration: 110, Samples: []*expand.Sample{sample(7, expand.Point{Timestamp: 8, Value: 4}, expand.Point{Timestamp: 9, Value: 2})}},
		{Type: "a", Period: 1, Samples: []*expand.Sample{sample(8)}},
	}
	if diff := expand.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if profiles[0].Samples[0].Sum.Int64() != 1 {
		t.Error("the argument was changed")
	}
}

func TestNormalizeLabels(t *testing.T) {
	of := func(attributes ...expand.Attribute) []expand.Profile {
		return []expand.Profile{{Samples: []*expand.Sample{{Attributes: expand.AttributeSet(attributes), Sum: big.NewInt(1)}}}}
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
		diff := expand.Diff(expand.Normalize(of(test.a), expand.Options{Labels: true}), expand.Normalize(of(test.b), expand.Options{Labels: true}))
		if (diff == "") != test.equal {
			t.Errorf("%s: want equal %t, diff %q", name, test.equal, diff)
		}
	}
	none := expand.Normalize(of(label(int64(0), "")), expand.Options{Labels: true})
	if diff := expand.Diff(of(), none); diff != "" {
		t.Errorf("a zero without unit: %s", diff)
	}
}

func TestNormalizeBuildID(t *testing.T) {
	of := func(key, value string) []expand.Profile {
		frame := &expand.Frame{Mapping: expand.Mapping{Start: 1, Attributes: []expand.Attribute{{Key: key, Value: value}}}}
		return []expand.Profile{{Samples: []*expand.Sample{{Stack: []*expand.Frame{frame}, Sum: big.NewInt(1)}}}}
	}
	o := expand.Options{Labels: true}
	if diff := expand.Diff(expand.Normalize(of("process.executable.build_id.go", "a"), o), expand.Normalize(of("process.executable.build_id.htlhash", "a"), o)); diff != "" {
		t.Error(diff)
	}
	if diff := expand.Diff(expand.Normalize(of("process.executable.build_id.go", "a"), o), expand.Normalize(of("process.executable.build_id.go", "b"), o)); diff == "" {
		t.Error("two build ids are equal")
	}
}

// TestCorpusBuilds takes each real pprof through Build: written out, built and
// expanded it is the same, and it conforms.
func TestCorpusBuilds(t *testing.T) {
	for _, file := range profiletest.Corpus(t) {
		t.Run(file.Name, func(t *testing.T) {
			if full, _ := profiletest.Soak(t); !full && len(file.Data) > 64<<10 {
				t.Skip("it takes long; SOAK is not set")
			}
			p, err := profile.ParseData(file.Data)
			if err != nil {
				t.Fatal(err)
			}
			want := expand.Pprof(p)
			pd, err := expand.Build(want)
			if err != nil {
				t.Fatal(err)
			}
			profiletest.RequireConforms(t, pd)
			got, err := expand.Profiles(pd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := expand.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
			if diff := expand.DiffPprof(p, pd); diff != "" {
				t.Fatal(diff)
			}
			requireTotals(t, p, want)
		})
	}
}

// requireTotals compares the sums of all samples, a type at a time, with the
// plain addition of the pprof's values.
func requireTotals(t *testing.T, p *profile.Profile, expanded []expand.Profile) {
	t.Helper()
	want, got := map[string]*big.Int{}, map[string]*big.Int{}
	add := func(to map[string]*big.Int, sampleType, unit string, n *big.Int) {
		key := sampleType + "/" + unit
		if to[key] == nil {
			to[key] = new(big.Int)
		}
		to[key].Add(to[key], n)
	}
	for _, s := range p.Sample {
		for column, t := range p.SampleType {
			add(want, t.Type, t.Unit, big.NewInt(s.Value[column]))
		}
	}
	for _, e := range expanded {
		for _, s := range e.Samples {
			add(got, e.Type, e.Unit, s.Sum)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the samples add up to %v, want %v", got, want)
	}
}

// An attribute of a location is not one of its mapping.
func TestFrameTellsWhoseAttributesItHas(t *testing.T) {
	of := []expand.Attribute{{Key: "a", Value: "1"}}
	location := expand.Frame{Address: 1, Mapping: expand.Mapping{File: "/bin/a"}, Attributes: of}
	mapping := expand.Frame{Address: 1, Mapping: expand.Mapping{File: "/bin/a", Attributes: of}}
	if location.String() == mapping.String() {
		t.Errorf("both are %s", &location)
	}
}
