// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

func TestExpandSmall(t *testing.T) {
	got, err := expand.Profiles(profiletest.Small(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 {
		t.Fatalf("got %d profiles, want 2", len(got))
	}
	e := got[0]
	if e.Type != "cpu" || e.Unit != "nanoseconds" || e.Time != 1000 || e.Duration != 100 || e.Shape != expand.ShapeValues {
		t.Errorf("header is %s", e.Header())
	}
	if want := `"" "" "" {"service.name"="checkout"} dropped 0`; e.Resource.String() != want {
		t.Errorf("resource is %s, want %s", e.Resource, want)
	}
	if want := `"test" "" "" {"kind"="cpu"} dropped 0`; e.Scope.String() != want {
		t.Errorf("scope is %s, want %s", e.Scope, want)
	}
	want := `0x1100 "leaf"/""@"a.go":7 in (0x1000-0x9000+0x0 "/bin/app" {"build"="abc"})
0x1200 "root"/""@"a.go":9 in (0x1000-0x9000+0x0 "/bin/app" {"build"="abc"})
attributes {"thread"=1}`
	if identity := e.Samples[0].Identity(); identity != want {
		t.Errorf("identity is\n%s\nwant\n%s", identity, want)
	}
	if s := e.Samples[1]; s.Link != "0102030405060708090a0b0c0d0e0f10/0102030405060708" || s.Sum.Int64() != 5 || s.Attributes[0].Value != "1" {
		t.Errorf("second sample is %s of %s", s.Identity(), s.Sum)
	}
	if s := got[1].Samples[0]; s.Sum.Int64() != 3 || fmt.Sprint(s.Points) != "[{1001 1} {1002 2}]" {
		t.Errorf("timed sample is %v of %s", s.Points, s.Sum)
	}
}

// TestExpandSumsEqualIdentities has samples whose indices differ and whose
// values are equal, and timestamps without values.
func TestExpandSumsEqualIdentities(t *testing.T) {
	pd := profiletest.Small(t)
	twin := pd.Dictionary().StackTable().AppendEmpty()
	pd.Dictionary().StackTable().At(1).CopyTo(twin)
	extra := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
	sampleAt(pd, 0, 0).CopyTo(extra)
	extra.SetStackIndex(int32(pd.Dictionary().StackTable().Len() - 1))
	extra.Values().SetAt(0, math.MaxInt64)
	sampleAt(pd, 1, 0).Values().FromRaw(nil)
	got, err := expand.Profiles(pd)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got[0].Samples); n != 2 {
		t.Errorf("got %d samples, want 2", n)
	}
	if sum := got[0].Samples[0].Sum.String(); sum != "9223372036854775817" {
		t.Errorf("sum is %s, want MaxInt64 + 10", sum)
	}
	if s := got[1].Samples[0]; s.Sum.Int64() != 2 || fmt.Sprint(s.Points) != "[{1001 1} {1002 1}]" {
		t.Errorf("two timestamps without values are %v of %s", s.Points, s.Sum)
	}
}

// TestExpandResolvesHiddenReferences has an attribute value that pdata reads as
// empty.
func TestExpandResolvesHiddenReferences(t *testing.T) {
	message, err := conformance.Marshal(profiletest.Small(t))
	if err != nil {
		t.Fatal(err)
	}
	data := &profilespb.ProfilesData{}
	if err := proto.Unmarshal(message, data); err != nil {
		t.Fatal(err)
	}
	data.Dictionary.AttributeTable[2].Value.Value = &commonpb.AnyValue_StringValueStrindex{StringValueStrindex: 1}
	if message, err = proto.Marshal(data); err != nil {
		t.Fatal(err)
	}
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(message)
	if err != nil {
		t.Fatal(err)
	}
	got, err := expand.Profiles(pd)
	if err != nil {
		t.Fatal(err)
	}
	if value, want := got[0].Samples[0].Attributes[0].Value, data.Dictionary.StringTable[1]; value != want {
		t.Errorf("value is %v, want %q", value, want)
	}
}

func TestExpandRepairsStrings(t *testing.T) {
	pd := profiletest.Small(t)
	index := pd.Dictionary().FunctionTable().At(1).NameStrindex()
	pd.Dictionary().StringTable().SetAt(int(index), "a\xff\xfeb")
	got, err := expand.Profiles(pd)
	if err != nil {
		t.Fatal(err)
	}
	if name := got[0].Samples[0].Stack[0].Lines[0].Function; name != "a\uFFFDb" {
		t.Errorf("name is %q", name)
	}
	if pd.Dictionary().StringTable().At(int(index)) != "a\xff\xfeb" {
		t.Error("the argument was changed")
	}
}

// TestBuildExpand: Profiles is the inverse of Build, on everything generated.
func TestBuildExpand(t *testing.T) {
	shapes := map[expand.Shape]int{}
	for seed := range uint64(profiletest.Rounds(t, 100, 3000)) {
		want := profiletest.GenerateExpanded(profiletest.NewRand(seed))
		pd, err := expand.Build(want)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := expand.Profiles(pd)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := expand.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		for i := range want {
			shapes[got[i].Shape]++
			if got[i].Header() != want[i].Header() {
				t.Fatalf("seed %d: profile %d has another place", seed, i)
			}
		}
	}
	if len(shapes) != 4 {
		t.Errorf("generated shapes are %v, want all four", shapes)
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(e *expand.Profile)
		says  string
	}{
		"sum":        {func(e *expand.Profile) { e.Samples[0].Sum.Lsh(e.Samples[0].Sum, 70) }, "beyond int64"},
		"link":       {func(e *expand.Profile) { e.Samples[0].Link = "12/34" }, `trace id "12" is not 32 hex digits`},
		"profile id": {func(e *expand.Profile) { e.ProfileID = "zz" }, `profile id "zz"`},
		"value": {func(e *expand.Profile) {
			e.Attributes = []expand.Attribute{{Key: "a", Value: []any{[]any{int64(1)}, nil}}}
			e.Period = 1
		}, ""},
	} {
		e, err := expand.Profiles(profiletest.Small(t))
		if err != nil {
			t.Fatal(err)
		}
		test.spoil(&e[0])
		_, err = expand.Build(e)
		if test.says == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error is %v, want one that says %q", name, err, test.says)
		}
	}
}

// pprofOf is a pprof of one sample type and one sample of value 1.
func pprofOf(edit func(p *profile.Profile, s *profile.Sample)) *profile.Profile {
	fn := &profile.Function{ID: 1, Name: "f", SystemName: "_f", Filename: "f.x", StartLine: 2}
	m := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x2000, Offset: 0x10, File: "/bin/f"}
	l := &profile.Location{ID: 1, Address: 0x1234, Mapping: m, Line: []profile.Line{{Function: fn, Line: 3, Column: 4}}}
	s := &profile.Sample{Location: []*profile.Location{l}, Value: []int64{1}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "count"}},
		Mapping:    []*profile.Mapping{m},
		Function:   []*profile.Function{fn},
		Location:   []*profile.Location{l},
		Sample:     []*profile.Sample{s},
	}
	edit(p, s)
	return p
}

// TestExpandPprof holds each rule of the translation against what is written
// here by hand.
func TestExpandPprof(t *testing.T) {
	const frame = `0x1234 "f"/"_f"@"f.x":3:4(start 2) in (0x1000-0x2000+0x10 "/bin/f")`
	// with is frame with attributes of its mapping.
	with := func(attributes string) string { return strings.TrimSuffix(frame, ")") + " " + attributes + ")" }
	num := func(key string, values ...int64) func(*profile.Profile, *profile.Sample) {
		return func(_ *profile.Profile, s *profile.Sample) { s.NumLabel = map[string][]int64{key: values} }
	}
	str := func(labels map[string][]string) func(*profile.Profile, *profile.Sample) {
		return func(_ *profile.Profile, s *profile.Sample) { s.Label = labels }
	}
	goID := strings.Repeat("aB3_-aB3_-aB3_-aB3_-/", 4)[:83]
	const trace, span = "0102030405060708090a0b0c0d0e0f10", "0102030405060708"
	for _, test := range []struct {
		name string
		edit func(p *profile.Profile, s *profile.Sample)
		want string // identity
	}{
		{"plain", func(*profile.Profile, *profile.Sample) {}, frame + "\nattributes {}"},
		{"no stack", func(_ *profile.Profile, s *profile.Sample) { s.Location = nil }, "attributes {}"},
		{"string label", str(map[string][]string{"k": {"v"}}), frame + "\nattributes {\"k\"=\"v\"}"},
		{"string label of two values", str(map[string][]string{"k": {"v", "u"}}), frame + "\nattributes {\"k\"=[\"v\", \"u\"]}"},
		{"numeric label", num("k", 7), frame + "\nattributes {\"k\"=7}"},
		{"numeric label 0", num("k", 0), frame + "\nattributes {\"k\"=0}"},
		{"numeric label with unit", func(_ *profile.Profile, s *profile.Sample) {
			s.NumLabel, s.NumUnit = map[string][]int64{"k": {7}}, map[string][]string{"k": {"bytes"}}
		}, frame + "\nattributes {\"k\"=7 \"bytes\"}"},
		{"two numbers of one unit", func(_ *profile.Profile, s *profile.Sample) {
			s.NumLabel, s.NumUnit = map[string][]int64{"k": {7, 8}}, map[string][]string{"k": {"bytes", "bytes"}}
		}, frame + "\nattributes {\"k\"=[7, 8] \"bytes\"}"},
		{"two numbers of two units, and a string", func(_ *profile.Profile, s *profile.Sample) {
			s.Label = map[string][]string{"k": {"v"}}
			s.NumLabel, s.NumUnit = map[string][]int64{"k": {7, 8}}, map[string][]string{"k": {"bytes", ""}}
		}, frame + "\nattributes {\"k\"=[\"v\", {\"unit\"=\"bytes\", \"value\"=7}, {\"value\"=8}]}"},
		{"link", str(map[string][]string{"trace_id": {trace}, "span_id": {span}}), frame + "\nattributes {} link " + trace + "/" + span},
		{"trace without span", str(map[string][]string{"trace_id": {trace}}), frame + "\nattributes {\"trace_id\"=\"" + trace + "\"}"},
		{"trace in upper case", str(map[string][]string{"trace_id": {strings.ToUpper(trace)}, "span_id": {span}}),
			frame + "\nattributes {\"span_id\"=\"" + span + "\", \"trace_id\"=\"" + strings.ToUpper(trace) + "\"}"},
		{"span of zeros", str(map[string][]string{"trace_id": {trace}, "span_id": {"0000000000000000"}}),
			frame + "\nattributes {\"span_id\"=\"0000000000000000\", \"trace_id\"=\"" + trace + "\"}"},
		{"two spans", str(map[string][]string{"trace_id": {trace}, "span_id": {span, span}}),
			frame + "\nattributes {\"span_id\"=[\"" + span + "\", \"" + span + "\"], \"trace_id\"=\"" + trace + "\"}"},
		{"negative timestamp", num("end_timestamp_ns", -1), frame + "\nattributes {\"end_timestamp_ns\"=-1}"},
		{"two timestamps", num("end_timestamp_ns", 1, 2), frame + "\nattributes {\"end_timestamp_ns\"=[1, 2]}"},
		{"folded", func(p *profile.Profile, _ *profile.Sample) { p.Location[0].IsFolded = true },
			frame + " {\"pprof.location.is_folded\"=true}\nattributes {}"},
		{"empty mapping", func(p *profile.Profile, _ *profile.Sample) { *p.Mapping[0] = profile.Mapping{ID: 1} },
			`0x1234 "f"/"_f"@"f.x":3:4(start 2)` + "\nattributes {}"},
		{"no mapping", func(p *profile.Profile, _ *profile.Sample) { p.Location[0].Mapping = nil },
			`0x1234 "f"/"_f"@"f.x":3:4(start 2)` + "\nattributes {}"},
		{"empty function", func(p *profile.Profile, _ *profile.Sample) { *p.Function[0] = profile.Function{ID: 1} },
			`0x1234 ""@"":3:4 in (0x1000-0x2000+0x10 "/bin/f")` + "\nattributes {}"},
		{"GNU build id and flags", func(p *profile.Profile, _ *profile.Sample) {
			p.Mapping[0].BuildID, p.Mapping[0].HasFunctions, p.Mapping[0].HasInlineFrames = "ab", true, true
		}, with(`{"pprof.mapping.has_functions"=true, "pprof.mapping.has_inline_frames"=true, "process.executable.build_id.gnu"="ab"}`) + "\nattributes {}"},
		{"Go build id and flags", func(p *profile.Profile, _ *profile.Sample) {
			p.Mapping[0].BuildID, p.Mapping[0].HasFilenames, p.Mapping[0].HasLineNumbers = goID, true, true
		}, with(`{"pprof.mapping.has_filenames"=true, "pprof.mapping.has_line_numbers"=true, "process.executable.build_id.go"="`+goID+`"}`) + "\nattributes {}"},
		{"a build id with slashes that is not Go's", func(p *profile.Profile, _ *profile.Sample) { p.Mapping[0].BuildID = "a/b/c/d" },
			with(`{"process.executable.build_id.gnu"="a/b/c/d"}`) + "\nattributes {}"},
		{"inlined lines keep their order", func(p *profile.Profile, _ *profile.Sample) {
			other := &profile.Function{ID: 2, Name: "g", SystemName: "g", Filename: "g.x"}
			p.Location[0].Line = append(p.Location[0].Line, profile.Line{Function: other, Line: 1})
		}, `0x1234 "f"/"_f"@"f.x":3:4(start 2) < "g"@"g.x":1 in (0x1000-0x2000+0x10 "/bin/f")` + "\nattributes {}"},
		{"not UTF-8", func(p *profile.Profile, s *profile.Sample) {
			p.Function[0].Name = "f\xff"
			s.Label = map[string][]string{"k\xff": {"\xff"}}
		}, strings.Replace(frame, `"f"`, "\"f\uFFFD\"", 1) + "\nattributes {\"k\uFFFD\"=\"\uFFFD\"}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := expand.Pprof(pprofOf(test.edit))
			if len(got) != 1 || len(got[0].Samples) != 1 {
				t.Fatalf("got %+v, want one profile of one sample", got)
			}
			s := got[0].Samples[0]
			if s.Identity() != test.want {
				t.Errorf("identity is\n%s\nwant\n%s", s.Identity(), test.want)
			}
			if got[0].Shape != expand.ShapeValues || s.Sum.Int64() != 1 || len(s.Points) != 0 {
				t.Errorf("got %s, sum %s, points %v", got[0].Shape, s.Sum, s.Points)
			}
		})
	}
}

func TestExpandPprofTimestamps(t *testing.T) {
	got := expand.Pprof(pprofOf(func(p *profile.Profile, s *profile.Sample) {
		for _, ts := range []int64{5, 3} {
			p.Sample = append(p.Sample, &profile.Sample{Location: s.Location, Value: []int64{ts * 10}, NumLabel: map[string][]int64{"end_timestamp_ns": {ts}}})
		}
	}))
	if len(got) != 2 || got[0].Shape != expand.ShapeValues || got[1].Shape != expand.ShapeBoth {
		t.Fatalf("got %d profiles, want one of each shape", len(got))
	}
	if s := got[1].Samples; len(s) != 1 || s[0].Sum.Int64() != 80 || fmt.Sprint(s[0].Points) != "[{3 30} {5 50}]" {
		t.Errorf("got %v", s)
	}
}

func TestExpandPprofHeader(t *testing.T) {
	p := pprofOf(func(p *profile.Profile, s *profile.Sample) {
		p.SampleType = []*profile.ValueType{{Type: "a", Unit: "count"}, {Type: "b", Unit: "bytes"}, {Type: "c"}}
		s.Value = []int64{1, 2, 3}
		p.TimeNanos, p.DurationNanos, p.Period = -4, 5, 6
		p.PeriodType = &profile.ValueType{Type: "cpu", Unit: "ns"}
		p.Comments, p.DropFrames, p.KeepFrames, p.DocURL = []string{"x", "y"}, "d", "k", "u"
	})
	types := func(profiles []expand.Profile) (out string) {
		for _, e := range profiles {
			out += fmt.Sprintf("%s/%s=%s ", e.Type, e.Unit, e.Samples[0].Sum)
		}
		return out
	}
	got := expand.Pprof(p)
	if want := "c/=3 a/count=1 b/bytes=2 "; types(got) != want {
		t.Errorf("got %s, want %s", types(got), want)
	}
	want := `"c"/"" period "cpu"/"ns" 6 time 0+5 attributes {"pprof.profile.comment"=["x", "y"], "pprof.profile.doc_url"="u", ` +
		`"pprof.profile.drop_frames"="d", "pprof.profile.keep_frames"="k"} dropped 0, values only
    resource "" "" "" {} dropped 0
    scope "" "" "" {"pprof.scope.sample_type_order"=[2, 0, 1]} dropped 0`
	if header := got[0].Header(); header != want {
		t.Errorf("header is\n%s\nwant\n%s", header, want)
	}
	p.DefaultSampleType = "b"
	got = expand.Pprof(p)
	if want := "b/bytes=2 a/count=1 c/=3 "; types(got) != want {
		t.Errorf("got %s, want %s", types(got), want)
	}
	if want := `"" "" "" {"pprof.scope.default_sample_type"="b", "pprof.scope.sample_type_order"=[1, 0, 2]} dropped 0`; got[0].Scope.String() != want {
		t.Errorf("scope is %s, want %s", got[0].Scope, want)
	}
	if got := expand.Pprof(&profile.Profile{}); len(got) != 0 {
		t.Errorf("no sample type gives %d profiles", len(got))
	}
}

func firstScope(pd pprofile.Profiles) pprofile.ScopeProfiles {
	return pd.ResourceProfiles().At(0).ScopeProfiles().At(0)
}

func sampleAt(pd pprofile.Profiles, profile, sample int) pprofile.Sample {
	return firstScope(pd).Profiles().At(profile).Samples().At(sample)
}
