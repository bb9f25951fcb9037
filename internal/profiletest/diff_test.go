// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestDiffFindsEveryChange changes one part at a time.
func TestDiffFindsEveryChange(t *testing.T) {
	for name, test := range map[string]struct {
		change func(e []Expanded) []Expanded
		says   string
	}{
		"missing sample": {func(e []Expanded) []Expanded { e[0].Samples = e[0].Samples[1:]; return e }, "missing sample of 10"},
		"extra sample": {func(e []Expanded) []Expanded {
			e[0].Samples = append(e[0].Samples, &Sample{Sum: big.NewInt(4)})
			return e
		}, "extra sample of 4"},
		"sum":              {func(e []Expanded) []Expanded { e[0].Samples[0].Sum.SetInt64(11); return e }, "wrong sum: want 10, got 11"},
		"points":           {func(e []Expanded) []Expanded { e[1].Samples[0].Points[0].Timestamp = 7; return e }, "wrong points: want [1@1001 2@1002], got [1@7 2@1002]"},
		"missing profile":  {func(e []Expanded) []Expanded { return e[1:] }, "missing profile of 2 samples"},
		"extra profile":    {func(e []Expanded) []Expanded { return append(e, e[0]) }, "extra profile of 2 samples"},
		"link":             {func(e []Expanded) []Expanded { e[0].Samples[1].Link = ""; return e }, "link 0102"},
		"attribute":        {func(e []Expanded) []Expanded { e[0].Samples[0].Attributes[0].Value = "1"; return e }, `"thread"="1"`},
		"attribute's unit": {func(e []Expanded) []Expanded { e[0].Samples[0].Attributes[0].Unit = "x"; return e }, `"thread"=1 "x"`},
		"order of frames":  {func(e []Expanded) []Expanded { slices.Reverse(e[0].Samples[0].Stack); return e }, "missing sample of 10"},
		"address":          {func(e []Expanded) []Expanded { e[0].Samples[0].Stack[0].Address++; return e }, "0x1101"},
		"line":             {func(e []Expanded) []Expanded { e[0].Samples[0].Stack[0].Lines[0].Line++; return e }, `"a.go":8`},
		"column":           {func(e []Expanded) []Expanded { e[0].Samples[0].Stack[0].Lines[0].Column++; return e }, `"a.go":7:1`},
		"start line":       {func(e []Expanded) []Expanded { e[0].Samples[0].Stack[0].Lines[0].StartLine++; return e }, "(start 1)"},
		"function":         {func(e []Expanded) []Expanded { e[0].Samples[0].Stack[0].Lines[0].Function = "x"; return e }, `"x"`},
		"system name":      {func(e []Expanded) []Expanded { e[0].Samples[0].Stack[0].Lines[0].SystemName = "x"; return e }, `"leaf"/"x"`},
		"file":             {func(e []Expanded) []Expanded { e[0].Samples[0].Stack[0].Lines[0].Filename = "x"; return e }, `"x":7`},
		"mapping":          {func(e []Expanded) []Expanded { e[0].Samples[0].Stack[0].Mapping.Offset = 1; return e }, "+0x1"},
		"build id":         {func(e []Expanded) []Expanded { e[0].Samples[0].Stack[0].Mapping.Attributes[0].Value = "d"; return e }, `"build"="d"`},
		"type":             {func(e []Expanded) []Expanded { e[0].Type = "x"; return e }, `"x"/"nanoseconds"`},
		"period":           {func(e []Expanded) []Expanded { e[0].Period = 8; return e }, `8 time`},
		"time":             {func(e []Expanded) []Expanded { e[0].Time++; return e }, "1001+100"},
		"resource":         {func(e []Expanded) []Expanded { e[0].Resource.Attributes = nil; return e }, "extra profile"},
		"scope":            {func(e []Expanded) []Expanded { e[0].Scope.Name = "x"; return e }, "extra profile"},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := expandSmall(t), test.change(expandSmall(t))
			diff := Diff(want, got)
			if !strings.Contains(diff, test.says) {
				t.Errorf("diff is\n%s\nwant one that says %s", diff, test.says)
			}
		})
	}
}

func expandSmall(t *testing.T) []Expanded {
	t.Helper()
	e, err := Expand(Small(t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDiffIgnoresOrder(t *testing.T) {
	got := expandSmall(t)
	slices.Reverse(got)
	slices.Reverse(got[0].Samples)
	if diff := Diff(expandSmall(t), got); diff != "" {
		t.Error(diff)
	}
}

func TestDiffIsBounded(t *testing.T) {
	e := Expanded{Shape: ShapeValues}
	for i := range 1000 {
		s := &Sample{Sum: big.NewInt(int64(i))}
		for range 50 {
			s.Stack = append(s.Stack, &Frame{Address: uint64(i), Lines: []Line{{Function: strings.Repeat("long", 100)}}})
		}
		e.Samples = append(e.Samples, s)
	}
	diff := Diff([]Expanded{e}, nil)
	if len(diff) == 0 || len(diff) > diffBytes+100 {
		t.Errorf("a missing profile gives %d bytes", len(diff))
	}
	diff = Diff([]Expanded{e}, []Expanded{{Shape: ShapeValues}})
	if len(diff) > diffBytes+100 || !strings.Contains(diff, "and 997 more") {
		t.Errorf("1000 missing samples give %d bytes:\n%s", len(diff), diff)
	}
}

func TestNormalizeZeroSamples(t *testing.T) {
	sample := func(address uint64, value int64) *Sample {
		return &Sample{Stack: []*Frame{{Address: address}}, Sum: big.NewInt(value)}
	}
	profiles := []Expanded{
		{Type: "a", Samples: []*Sample{sample(1, 0), sample(2, 5), sample(3, 0)}},
		{Type: "b", Samples: []*Sample{sample(1, 0), sample(2, 0), sample(3, -1)}},
		{Type: "a", Scope: Entity{Name: "other"}, Samples: []*Sample{sample(2, 0)}},
	}
	got := Normalize(profiles, Options{IgnoreZeroSamples: true})
	want := []Expanded{
		{Type: "a", Samples: []*Sample{sample(2, 5)}},
		{Type: "b", Samples: []*Sample{sample(3, -1)}},
		{Type: "a", Scope: Entity{Name: "other"}},
	}
	if diff := Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(profiles[0].Samples) != 3 {
		t.Error("the argument was changed")
	}
}

func TestNormalizeMerges(t *testing.T) {
	sample := func(value int64, points ...Point) *Sample {
		return &Sample{Sum: big.NewInt(value), Points: points}
	}
	profiles := []Expanded{
		{Type: "a", Time: 200, Duration: 10, ProfileID: "01", Shape: ShapeValues, Samples: []*Sample{sample(1)}},
		{Type: "a", Time: 100, Duration: 50, Shape: ShapeBoth, Samples: []*Sample{sample(2, Point{9, 2})}},
		{Type: "a", Time: 0, Duration: 5, Samples: []*Sample{sample(4, Point{8, 4})}},
		{Type: "a", Period: 1, Samples: []*Sample{sample(8)}},
	}
	got := Normalize(profiles, Options{Merge: true})
	want := []Expanded{
		{Type: "a", Time: 100, Duration: 110, Samples: []*Sample{sample(7, Point{8, 4}, Point{9, 2})}},
		{Type: "a", Period: 1, Samples: []*Sample{sample(8)}},
	}
	if diff := Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if profiles[0].Samples[0].Sum.Int64() != 1 {
		t.Error("the argument was changed")
	}
}

func TestNormalizeLabels(t *testing.T) {
	of := func(attributes ...Attribute) []Expanded {
		return []Expanded{{Samples: []*Sample{{Attributes: attributeSet(attributes), Sum: big.NewInt(1)}}}}
	}
	pair := func(value int64, unit string) KeyValues { return KeyValues{{"value", value}, {"unit", unit}} }
	for name, test := range map[string]struct {
		a, b  Attribute
		equal bool
	}{
		"unit of a string":            {Attribute{"k", "v", "bytes"}, Attribute{"k", "v", ""}, true},
		"number and list of one":      {Attribute{"k", int64(1), "u"}, Attribute{"k", []any{int64(1)}, "u"}, true},
		"unit inside and outside":     {Attribute{"k", []any{int64(1), int64(2)}, "u"}, Attribute{"k", []any{pair(1, "u"), pair(2, "u")}, ""}, true},
		"missing and empty unit":      {Attribute{"k", []any{KeyValues{{"value", int64(1)}}}, ""}, Attribute{"k", []any{pair(1, "")}, ""}, true},
		"a zero among others":         {Attribute{"k", []any{int64(1), int64(0)}, ""}, Attribute{"k", int64(1), ""}, true},
		"other unit":                  {Attribute{"k", int64(1), "u"}, Attribute{"k", int64(1), "v"}, false},
		"zero with a unit":            {Attribute{"k", []any{int64(1), int64(0)}, "u"}, Attribute{"k", int64(1), "u"}, false},
		"order of strings":            {Attribute{"k", []any{"a", "b"}, ""}, Attribute{"k", []any{"b", "a"}, ""}, false},
		"number and string":           {Attribute{"k", int64(1), ""}, Attribute{"k", "1", ""}, false},
		"no label: bool":              {Attribute{"k", true, ""}, Attribute{"k", "true", ""}, false},
		"no label: list of something": {Attribute{"k", []any{KeyValues{{"other", int64(1)}}}, ""}, Attribute{"k", int64(1), ""}, false},
	} {
		diff := Diff(Normalize(of(test.a), Options{Labels: true}), Normalize(of(test.b), Options{Labels: true}))
		if (diff == "") != test.equal {
			t.Errorf("%s: want equal %t, diff %q", name, test.equal, diff)
		}
	}
	none := Normalize(of(Attribute{"k", int64(0), ""}), Options{Labels: true})
	if diff := Diff(of(), none); diff != "" {
		t.Errorf("a zero without unit: %s", diff)
	}
}

func TestNormalizeBuildID(t *testing.T) {
	of := func(key, value string) []Expanded {
		frame := &Frame{Mapping: Mapping{Start: 1, Attributes: []Attribute{{Key: key, Value: value}}}}
		return []Expanded{{Samples: []*Sample{{Stack: []*Frame{frame}, Sum: big.NewInt(1)}}}}
	}
	o := Options{AnyBuildID: true}
	if diff := Diff(Normalize(of(keyBuildIDGo, "a"), o), Normalize(of(keyBuildIDHTLHash, "a"), o)); diff != "" {
		t.Error(diff)
	}
	if diff := Diff(Normalize(of(keyBuildIDGo, "a"), o), Normalize(of(keyBuildIDGo, "b"), o)); diff == "" {
		t.Error("two build ids are equal")
	}
}

// TestCorpusBuilds takes each real pprof through Build: written out, built and
// expanded it is the same, and it conforms.
func TestCorpusBuilds(t *testing.T) {
	for _, file := range Corpus(t) {
		t.Run(file.Name, func(t *testing.T) {
			if full, _ := Soak(t); !full && len(file.Data) > 64<<10 {
				t.Skip("it takes long; SOAK is not set")
			}
			p, err := profile.ParseData(file.Data)
			if err != nil {
				t.Fatal(err)
			}
			want := ExpandPprof(p)
			pd, err := Build(want)
			if err != nil {
				t.Fatal(err)
			}
			RequireConforms(t, pd)
			got, err := Expand(pd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
			if diff := DiffPprof(p, pd); diff != "" {
				t.Fatal(diff)
			}
			requireTotals(t, p, want)
		})
	}
}

// requireTotals compares the sums of all samples, a type at a time, with the
// plain addition of the pprof's values.
func requireTotals(t *testing.T, p *profile.Profile, expanded []Expanded) {
	t.Helper()
	for i, column := range sampleTypeOrder(p) {
		want, got := new(big.Int), new(big.Int)
		for _, s := range p.Sample {
			want.Add(want, big.NewInt(s.Value[column]))
		}
		for _, s := range expanded[i].Samples {
			got.Add(got, s.Sum)
		}
		if got.Cmp(want) != 0 {
			t.Errorf("%s: the samples add up to %s, want %s", p.SampleType[column].Type, got, want)
		}
	}
}

// An attribute of a location is not one of its mapping.
func TestFrameTellsWhoseAttributesItHas(t *testing.T) {
	of := []Attribute{{Key: "a", Value: "1"}}
	location := Frame{Address: 1, Mapping: Mapping{File: "/bin/a"}, Attributes: of}
	mapping := Frame{Address: 1, Mapping: Mapping{File: "/bin/a", Attributes: of}}
	if location.String() == mapping.String() {
		t.Errorf("both are %s", &location)
	}
}
