// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"encoding/hex"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

// Build is the inverse of [Profiles]: it makes OTLP profiles of written-out ones,
// in order, with a dictionary that holds each entry once, in order of first
// use. Profiles that follow each other share a resource, and a scope, if these
// are equal. A sample of [ShapeValues] (or of a profile without shape) gets its
// sum as the one value, one of the other shapes its points.
//
// A sum that int64 does not hold, a link or profile id that is not hex of the
// right size, an attribute value of another type than [Attribute] lists, and a string that
// is not UTF-8 are errors.
func Build(profiles []Profile) (pprofile.Profiles, error) {
	b := &builder{indices: map[string]int32{}, frames: map[*Frame]int32{}, dict: &profilespb.ProfilesDictionary{
		StringTable: []string{""}, MappingTable: []*profilespb.Mapping{{}}, LocationTable: []*profilespb.Location{{}},
		FunctionTable: []*profilespb.Function{{}}, LinkTable: []*profilespb.Link{{}},
		AttributeTable: []*profilespb.KeyValueAndUnit{{}}, StackTable: []*profilespb.Stack{{}},
	}}
	data := &profilespb.ProfilesData{Dictionary: b.dict}
	var (
		rp              *profilespb.ResourceProfiles
		sp              *profilespb.ScopeProfiles
		resource, scope string
	)
	for i, e := range profiles {
		if i == 0 || e.Resource.String() != resource {
			rp = &profilespb.ResourceProfiles{SchemaUrl: e.Resource.SchemaURL, Resource: &resourcepb.Resource{
				Attributes: b.keyValues(e.Resource.Attributes), DroppedAttributesCount: e.Resource.DroppedAttributes,
			}}
			data.ResourceProfiles = append(data.ResourceProfiles, rp)
			resource, scope = e.Resource.String(), ""
		}
		if e.Scope.String() != scope {
			sp = &profilespb.ScopeProfiles{SchemaUrl: e.Scope.SchemaURL, Scope: &commonpb.InstrumentationScope{
				Name: e.Scope.Name, Version: e.Scope.Version,
				Attributes: b.keyValues(e.Scope.Attributes), DroppedAttributesCount: e.Scope.DroppedAttributes,
			}}
			rp.ScopeProfiles = append(rp.ScopeProfiles, sp)
			scope = e.Scope.String()
		}
		sp.Profiles = append(sp.Profiles, b.profile(e))
		if b.err != nil {
			return pprofile.Profiles{}, fmt.Errorf("profile %d: %w", i, b.err)
		}
	}
	message, err := proto.Marshal(data)
	if err != nil {
		return pprofile.Profiles{}, err
	}
	return (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(message)
}

// builder finds entries by their text: slow, and obviously right.
type builder struct {
	dict    *profilespb.ProfilesDictionary
	indices map[string]int32 // by table and text
	frames  map[*Frame]int32 // frames written out before
	err     error
}

// intern returns the index of text in a table, and appends the entry that create returns if there is none.
func intern[E any](b *builder, table *[]E, text string, create func() E) int32 {
	key := fmt.Sprintf("%p %s", table, text)
	index, ok := b.indices[key]
	if !ok {
		entry := create()
		index = int32(len(*table))
		*table = append(*table, entry)
		b.indices[key] = index
	}
	return index
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *builder) str(s string) int32 {
	if s == "" {
		return 0
	}
	return intern(b, &b.dict.StringTable, s, func() string { return s })
}

func (b *builder) valueType(typ, unit string) *profilespb.ValueType {
	return &profilespb.ValueType{TypeStrindex: b.str(typ), UnitStrindex: b.str(unit)}
}

func (b *builder) profile(e Profile) *profilespb.Profile {
	p := &profilespb.Profile{
		SampleType: b.valueType(e.Type, e.Unit), PeriodType: b.valueType(e.PeriodType, e.PeriodUnit), Period: e.Period,
		TimeUnixNano: e.Time, DurationNano: e.Duration, ProfileId: b.hex(16, e.ProfileID, "profile id"),
		AttributeIndices: b.attributes(e.Attributes), DroppedAttributesCount: e.DroppedAttributes,
		OriginalPayloadFormat: e.PayloadFormat, OriginalPayload: []byte(e.Payload),
	}
	for _, s := range e.Samples {
		p.Samples = append(p.Samples, b.sample(e.Shape, s))
	}
	return p
}

func (b *builder) sample(shape Shape, s *Sample) *profilespb.Sample {
	out := &profilespb.Sample{StackIndex: b.stack(s.Stack), AttributeIndices: b.attributes(s.Attributes), LinkIndex: b.link(s.Link)}
	if shape == ShapeValues || shape == ShapeNone {
		if !s.Sum.IsInt64() {
			b.fail("sum %s is beyond int64", s.Sum)
		}
		out.Values = []int64{s.Sum.Int64()}
		return out
	}
	for _, p := range s.Points {
		out.TimestampsUnixNano = append(out.TimestampsUnixNano, p.Timestamp)
		if shape == ShapeBoth {
			out.Values = append(out.Values, p.Value)
		}
	}
	return out
}

func (b *builder) stack(frames []*Frame) int32 {
	if len(frames) == 0 {
		return 0
	}
	locations := make([]int32, len(frames))
	for i, f := range frames {
		index, ok := b.frames[f]
		if !ok {
			index = b.location(f)
			b.frames[f] = index
		}
		locations[i] = index
	}
	return intern(b, &b.dict.StackTable, fmt.Sprint(locations), func() *profilespb.Stack {
		return &profilespb.Stack{LocationIndices: locations}
	})
}

func (b *builder) location(f *Frame) int32 {
	text := f.String()
	if text == (&Frame{}).String() {
		return 0
	}
	return intern(b, &b.dict.LocationTable, text, func() *profilespb.Location {
		l := &profilespb.Location{MappingIndex: b.mapping(f.Mapping), Address: f.Address}
		for _, line := range f.Lines {
			l.Lines = append(l.Lines, &profilespb.Line{FunctionIndex: b.function(line), Line: line.Line, Column: line.Column})
		}
		l.AttributeIndices = b.attributes(f.Attributes)
		return l
	})
}

func (b *builder) mapping(m Mapping) int32 {
	if m.isZero() {
		return 0
	}
	return intern(b, &b.dict.MappingTable, m.String(), func() *profilespb.Mapping {
		return &profilespb.Mapping{
			AttributeIndices: b.attributes(m.Attributes), FilenameStrindex: b.str(m.File),
			MemoryStart: m.Start, MemoryLimit: m.Limit, FileOffset: m.Offset,
		}
	})
}

// function ignores the place in the function that line is.
func (b *builder) function(line Line) int32 {
	if line.Function == "" && line.SystemName == "" && line.Filename == "" && line.StartLine == 0 {
		return 0
	}
	text := fmt.Sprintf("%q %q %q %d", line.Function, line.SystemName, line.Filename, line.StartLine)
	return intern(b, &b.dict.FunctionTable, text, func() *profilespb.Function {
		return &profilespb.Function{
			NameStrindex: b.str(line.Function), SystemNameStrindex: b.str(line.SystemName),
			FilenameStrindex: b.str(line.Filename), StartLine: line.StartLine,
		}
	})
}

func (b *builder) link(link string) int32 {
	if link == "" {
		return 0
	}
	return intern(b, &b.dict.LinkTable, link, func() *profilespb.Link {
		trace, span, _ := strings.Cut(link, "/")
		return &profilespb.Link{TraceId: b.hex(16, trace, "trace id"), SpanId: b.hex(8, span, "span id")}
	})
}

// hex returns an id of so many bytes from digits, which may be none.
func (b *builder) hex(size int, digits, what string) []byte {
	id, err := hex.DecodeString(digits)
	if digits != "" && (err != nil || len(id) != size) {
		b.fail("%s %q is not %d hex digits", what, digits, 2*size)
	}
	return id
}

func (b *builder) attributes(attributes []Attribute) (indices []int32) {
	for _, a := range attributes {
		indices = append(indices, intern(b, &b.dict.AttributeTable, a.String(), func() *profilespb.KeyValueAndUnit {
			return &profilespb.KeyValueAndUnit{KeyStrindex: b.str(a.Key), UnitStrindex: b.str(a.Unit), Value: b.value(a.Value)}
		}))
	}
	return indices
}

func (b *builder) keyValues(attributes []Attribute) (out []*commonpb.KeyValue) {
	for _, a := range attributes {
		out = append(out, &commonpb.KeyValue{Key: a.Key, Value: b.value(a.Value)})
	}
	return out
}

func (b *builder) value(v any) *commonpb.AnyValue {
	switch v := v.(type) {
	case nil:
		return &commonpb.AnyValue{}
	case string:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
	case int64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v}}
	case float64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}
	case []byte:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: v}}
	case []any:
		list := &commonpb.ArrayValue{}
		for _, e := range v {
			list.Values = append(list.Values, b.value(e))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	case KeyValues:
		list := &commonpb.KeyValueList{}
		for _, kv := range v {
			list.Values = append(list.Values, &commonpb.KeyValue{Key: kv.Key, Value: b.value(kv.Value)})
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: list}}
	default:
		b.fail("an attribute value cannot be a %T", v)
		return nil
	}
}
