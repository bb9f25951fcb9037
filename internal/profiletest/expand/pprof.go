// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
)

// Labels that are a link or a timestamp.
const (
	LabelTraceID   = "trace_id"
	LabelSpanID    = "span_id"
	LabelTimestamp = "end_timestamp_ns"
)

const (
	keyFrameType      = "profile.frame.type"
	keyBuildIDGNU     = "process.executable.build_id.gnu"
	keyBuildIDGo      = "process.executable.build_id.go"
	keyBuildIDHTLHash = "process.executable.build_id.htlhash"
)

var goBuildID = regexp.MustCompile(`^[0-9A-Za-z_-]{20}/[0-9A-Za-z_-]{20}(/[0-9A-Za-z_-]{20}/[0-9A-Za-z_-]{20})?$`)

// Pprof writes p out as a faithful translation to OTLP would look: one
// element for each sample type, the default type first (default_sample_type, or
// the last), followed by one more where samples with and without timestamps are
// mixed, which are two shapes.
//
//   - A label with one value is an attribute: a string, or an int with the unit.
//     One with several values is an array, strings first; where the units of the
//     numbers differ, they are lists of {value, unit}, or {value} without one.
//   - String labels trace_id and span_id of one value each, of 32 and 16
//     lower-case hex digits that are not all 0, are the link.
//   - A label end_timestamp_ns of one number above 0 and no string is the
//     timestamp, if its unit is nanoseconds or none.
//   - A wholly empty mapping is none. The build id is the attribute
//     process.executable.build_id.go if it is one of Go's (two or four hashes of
//     20 characters, with slashes between), else .gnu.
//     has_* and is_folded are attributes where they are true.
//   - Locations have no profile.frame.type.
//   - Times and durations below 0 are 0. Comments, drop_frames, keep_frames and
//     doc_url are attributes of the profile; the order of types and the default
//     are attributes of the scope. The resource is empty.
//   - Strings that are not UTF-8 are repaired, each bad byte becoming \xff.
func Pprof(p *profile.Profile) []Profile {
	x := &pprofExpander{frames: map[*profile.Location]*Frame{}, in: newInterner()}
	order := sampleTypeOrder(p)
	common := pprofHeader(p, order)
	samples := make([]pprofSample, len(p.Sample))
	for i, s := range p.Sample {
		samples[i] = x.sample(s)
	}
	var out []Profile
	for _, t := range order {
		e := common
		e.Type, e.Unit = valid(p.SampleType[t].Type), valid(p.SampleType[t].Unit)
		plain, timed := newSampleSet(x.in), newSampleSet(x.in)
		for i, s := range samples {
			value := p.Sample[i].Value[t]
			one := &Sample{Stack: s.stack, Attributes: s.attributes, Link: s.link, Sum: big.NewInt(value)}
			if s.timestamp == 0 {
				plain.add(one)
				continue
			}
			one.Points = []Point{{Timestamp: s.timestamp, Value: value}}
			timed.add(one)
		}
		if len(plain.list) > 0 || len(timed.list) == 0 {
			e.Samples, e.Shape = plain.samples(), shapeOfCounts(len(plain.list), 0)
			out = append(out, e)
		}
		if len(timed.list) > 0 {
			e.Samples, e.Shape = timed.samples(), ShapeBoth
			out = append(out, e)
		}
	}
	return out
}

// sampleTypeOrder returns the indices of the sample types, the default first.
func sampleTypeOrder(p *profile.Profile) []int {
	if len(p.SampleType) == 0 {
		return nil
	}
	first := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return p.DefaultSampleType != "" && t.Type == p.DefaultSampleType })
	if first < 0 {
		first = len(p.SampleType) - 1
	}
	order := []int{first}
	for i := range p.SampleType {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

type pprofExpander struct {
	frames map[*profile.Location]*Frame
	in     *interner
}

// pprofSample has the fields that the samples of all types share.
type pprofSample struct {
	stack      []*Frame
	attributes []Attribute
	link       string
	timestamp  uint64 // 0 if none
}

// pprofHeader returns the fields that the Profiles of all sample types share.
func pprofHeader(p *profile.Profile, order []int) Profile {
	e := Profile{
		Period:   p.Period,
		Time:     uint64(max(p.TimeNanos, 0)),
		Duration: uint64(max(p.DurationNanos, 0)),
	}
	if p.PeriodType != nil {
		e.PeriodType, e.PeriodUnit = valid(p.PeriodType.Type), valid(p.PeriodType.Unit)
	}
	var attributes []Attribute
	if len(p.Comments) > 0 {
		comments := []any{}
		for _, c := range p.Comments {
			comments = append(comments, valid(c))
		}
		attributes = append(attributes, Attribute{Key: "pprof.profile.comment", Value: comments})
	}
	attributes = appendString(attributes, "pprof.profile.drop_frames", p.DropFrames)
	attributes = appendString(attributes, "pprof.profile.keep_frames", p.KeepFrames)
	attributes = appendString(attributes, "pprof.profile.doc_url", p.DocURL)
	e.Attributes = AttributeSet(attributes)

	types := []any{}
	for _, t := range order {
		types = append(types, int64(t))
	}
	e.Scope.Attributes = AttributeSet(appendString(
		[]Attribute{{Key: "pprof.scope.sample_type_order", Value: types}},
		"pprof.scope.default_sample_type", p.DefaultSampleType))
	return e
}

func appendString(attributes []Attribute, key, value string) []Attribute {
	if value == "" {
		return attributes
	}
	return append(attributes, Attribute{Key: key, Value: valid(value)})
}

func valid(s string) string {
	return conformance.Repaired(s)
}

func (x *pprofExpander) sample(s *profile.Sample) pprofSample {
	var out pprofSample
	for _, l := range s.Location {
		out.stack = append(out.stack, x.frame(l))
	}
	taken := map[string]bool{}
	if trace, ok := hexLabel(s, LabelTraceID, 32); ok {
		if span, ok := hexLabel(s, LabelSpanID, 16); ok {
			out.link = trace + "/" + span
			taken[LabelTraceID], taken[LabelSpanID] = true, true
		}
	}
	if n := s.NumLabel[LabelTimestamp]; len(n) == 1 && n[0] > 0 && len(s.Label[LabelTimestamp]) == 0 && inNanoseconds(s.NumUnit[LabelTimestamp]) {
		out.timestamp = uint64(n[0])
		taken[LabelTimestamp] = true
	}
	var attributes []Attribute
	for key := range s.Label {
		if !taken[key] {
			attributes = append(attributes, labelAttribute(s, key))
		}
	}
	for key := range s.NumLabel {
		if _, both := s.Label[key]; !both && !taken[key] {
			attributes = append(attributes, labelAttribute(s, key))
		}
	}
	out.attributes = AttributeSet(attributes)
	return out
}

func inNanoseconds(units []string) bool {
	return len(units) == 0 || units[0] == "" || units[0] == "nanoseconds"
}

// hexLabel returns the value of a label if it is one string of size lower-case
// hex digits that are not all 0.
func hexLabel(s *profile.Sample, key string, size int) (string, bool) {
	values := s.Label[key]
	if len(values) != 1 || len(s.NumLabel[key]) != 0 || len(values[0]) != size {
		return "", false
	}
	if strings.Trim(values[0], "0123456789abcdef") != "" || strings.Trim(values[0], "0") == "" {
		return "", false
	}
	return values[0], true
}

// labelAttribute gives all values of one label as one attribute.
func labelAttribute(s *profile.Sample, key string) Attribute {
	a := Attribute{Key: valid(key)}
	numbers, units := s.NumLabel[key], make([]string, len(s.NumLabel[key]))
	for i := range min(len(units), len(s.NumUnit[key])) {
		units[i] = valid(s.NumUnit[key][i])
	}
	mixed := slices.ContainsFunc(units, func(unit string) bool { return unit != units[0] })
	if len(units) > 0 && !mixed {
		a.Unit = units[0]
	}
	values := []any{}
	for _, v := range s.Label[key] {
		values = append(values, valid(v))
	}
	for i, n := range numbers {
		switch {
		case !mixed:
			values = append(values, n)
		case units[i] == "":
			values = append(values, KeyValues{{Key: "value", Value: n}})
		default:
			values = append(values, KeyValues{{Key: "value", Value: n}, {Key: "unit", Value: units[i]}})
		}
	}
	if len(values) == 1 {
		a.Value = values[0]
	} else {
		a.Value = values
	}
	return a
}

func (x *pprofExpander) frame(l *profile.Location) *Frame {
	if f, ok := x.frames[l]; ok {
		return f
	}
	f := &Frame{Address: l.Address, Mapping: expandMapping(l.Mapping)}
	if l.IsFolded {
		f.Attributes = []Attribute{{Key: "pprof.location.is_folded", Value: true}}
	}
	for _, line := range l.Line {
		out := Line{Line: line.Line, Column: line.Column}
		if fn := line.Function; fn != nil {
			out.Function, out.SystemName, out.Filename = valid(fn.Name), valid(fn.SystemName), valid(fn.Filename)
			out.StartLine = fn.StartLine
		}
		f.Lines = append(f.Lines, out)
	}
	x.frames[l] = f
	return f
}

func expandMapping(m *profile.Mapping) Mapping {
	if m == nil {
		return Mapping{}
	}
	var attributes []Attribute
	buildIDKey := keyBuildIDGNU
	if goBuildID.MatchString(m.BuildID) {
		buildIDKey = keyBuildIDGo
	}
	attributes = appendString(attributes, buildIDKey, m.BuildID)
	for _, flag := range []struct {
		key string
		set bool
	}{
		{"pprof.mapping.has_functions", m.HasFunctions},
		{"pprof.mapping.has_filenames", m.HasFilenames},
		{"pprof.mapping.has_line_numbers", m.HasLineNumbers},
		{"pprof.mapping.has_inline_frames", m.HasInlineFrames},
	} {
		if flag.set {
			attributes = append(attributes, Attribute{Key: flag.key, Value: true})
		}
	}
	return Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: valid(m.File), Attributes: AttributeSet(attributes)}
}
