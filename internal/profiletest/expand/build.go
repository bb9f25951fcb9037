// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Build is the inverse of [Profiles]: it makes OTLP profiles of written-out ones,
// in order, with a dictionary that holds each entry once, in order of first
// use. Profiles that follow each other share a resource, and a scope, if these
// are equal. A sample of [ShapeValues] (or of a profile without shape) gets its
// sum as the one value, one of the other shapes its points.
//
// A sum that int64 does not hold, a link or profile id that is not hex of the
// right size, and an attribute value of another type than [Attribute] lists are
// errors.
func Build(profiles []Profile) (pprofile.Profiles, error) {
	b := newBuilder()
	var (
		rp              pprofile.ResourceProfiles
		sp              pprofile.ScopeProfiles
		resource, scope string
	)
	for i, e := range profiles {
		if i == 0 || e.Resource.String() != resource {
			rp = b.pd.ResourceProfiles().AppendEmpty()
			rp.SetSchemaUrl(e.Resource.SchemaURL)
			rp.Resource().SetDroppedAttributesCount(e.Resource.DroppedAttributes)
			b.putAttributes(rp.Resource().Attributes(), e.Resource.Attributes)
			resource, scope = e.Resource.String(), ""
		}
		if e.Scope.String() != scope {
			sp = rp.ScopeProfiles().AppendEmpty()
			sp.SetSchemaUrl(e.Scope.SchemaURL)
			sp.Scope().SetName(e.Scope.Name)
			sp.Scope().SetVersion(e.Scope.Version)
			sp.Scope().SetDroppedAttributesCount(e.Scope.DroppedAttributes)
			b.putAttributes(sp.Scope().Attributes(), e.Scope.Attributes)
			scope = e.Scope.String()
		}
		b.profile(sp.Profiles().AppendEmpty(), e)
		if b.err != nil {
			return pprofile.Profiles{}, fmt.Errorf("profile %d: %w", i, b.err)
		}
	}
	return b.pd, nil
}

// builder finds entries by their text: slow, and obviously right.
type builder struct {
	pd      pprofile.Profiles
	dict    pprofile.ProfilesDictionary
	indices map[string]int32 // by table and text
	frames  map[*Frame]int32 // frames written out before
	err     error
}

func newBuilder() *builder {
	b := &builder{pd: pprofile.NewProfiles(), indices: map[string]int32{}, frames: map[*Frame]int32{}}
	b.dict = b.pd.Dictionary()
	b.dict.StringTable().Append("")
	b.dict.MappingTable().AppendEmpty()
	b.dict.LocationTable().AppendEmpty()
	b.dict.FunctionTable().AppendEmpty()
	b.dict.LinkTable().AppendEmpty()
	b.dict.AttributeTable().AppendEmpty()
	b.dict.StackTable().AppendEmpty()
	return b
}

// intern returns the index of text in table, calling add, which returns the
// index of a new entry, where there is none.
func (b *builder) intern(table, text string, add func() int32) int32 {
	key := table + " " + text
	index, ok := b.indices[key]
	if !ok {
		index = add()
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
	return b.intern("string", s, func() int32 {
		b.dict.StringTable().Append(s)
		return int32(b.dict.StringTable().Len() - 1)
	})
}

func (b *builder) profile(p pprofile.Profile, e Profile) {
	p.SampleType().SetTypeStrindex(b.str(e.Type))
	p.SampleType().SetUnitStrindex(b.str(e.Unit))
	p.PeriodType().SetTypeStrindex(b.str(e.PeriodType))
	p.PeriodType().SetUnitStrindex(b.str(e.PeriodUnit))
	p.SetPeriod(e.Period)
	p.SetTime(pcommon.Timestamp(e.Time))
	p.SetDurationNano(e.Duration)
	var id pprofile.ProfileID
	b.hex(id[:], e.ProfileID, "profile id")
	p.SetProfileID(id)
	p.AttributeIndices().FromRaw(b.attributes(e.Attributes))
	p.SetDroppedAttributesCount(e.DroppedAttributes)
	p.SetOriginalPayloadFormat(e.PayloadFormat)
	p.OriginalPayload().FromRaw([]byte(e.Payload))
	for _, s := range e.Samples {
		b.sample(p.Samples().AppendEmpty(), e.Shape, s)
	}
}

func (b *builder) sample(out pprofile.Sample, shape Shape, s *Sample) {
	out.SetStackIndex(b.stack(s.Stack))
	out.AttributeIndices().FromRaw(b.attributes(s.Attributes))
	out.SetLinkIndex(b.link(s.Link))
	if shape == ShapeValues || shape == ShapeNone {
		if !s.Sum.IsInt64() {
			b.fail("sum %s is beyond int64", s.Sum)
			return
		}
		out.Values().Append(s.Sum.Int64())
		return
	}
	for _, p := range s.Points {
		out.TimestampsUnixNano().Append(p.Timestamp)
		if shape == ShapeBoth {
			out.Values().Append(p.Value)
		}
	}
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
	return b.intern("stack", fmt.Sprint(locations), func() int32 {
		b.dict.StackTable().AppendEmpty().LocationIndices().FromRaw(locations)
		return int32(b.dict.StackTable().Len() - 1)
	})
}

func (b *builder) location(f *Frame) int32 {
	text := f.String()
	if text == (&Frame{}).String() {
		return 0
	}
	return b.intern("location", text, func() int32 {
		mapping := b.mapping(f.Mapping)
		functions := make([]int32, len(f.Lines))
		for i, line := range f.Lines {
			functions[i] = b.function(line)
		}
		attributes := b.attributes(f.Attributes)
		l := b.dict.LocationTable().AppendEmpty()
		l.SetMappingIndex(mapping)
		l.SetAddress(f.Address)
		l.AttributeIndices().FromRaw(attributes)
		for i, line := range f.Lines {
			out := l.Lines().AppendEmpty()
			out.SetFunctionIndex(functions[i])
			out.SetLine(line.Line)
			out.SetColumn(line.Column)
		}
		return int32(b.dict.LocationTable().Len() - 1)
	})
}

func (b *builder) mapping(m Mapping) int32 {
	if m.isZero() {
		return 0
	}
	return b.intern("mapping", m.String(), func() int32 {
		attributes := b.attributes(m.Attributes)
		out := b.dict.MappingTable().AppendEmpty()
		out.SetMemoryStart(m.Start)
		out.SetMemoryLimit(m.Limit)
		out.SetFileOffset(m.Offset)
		out.SetFilenameStrindex(b.str(m.File))
		out.AttributeIndices().FromRaw(attributes)
		return int32(b.dict.MappingTable().Len() - 1)
	})
}

// function ignores the place in the function that line is.
func (b *builder) function(line Line) int32 {
	if line.Function == "" && line.SystemName == "" && line.Filename == "" && line.StartLine == 0 {
		return 0
	}
	text := fmt.Sprintf("%q %q %q %d", line.Function, line.SystemName, line.Filename, line.StartLine)
	return b.intern("function", text, func() int32 {
		f := b.dict.FunctionTable().AppendEmpty()
		f.SetNameStrindex(b.str(line.Function))
		f.SetSystemNameStrindex(b.str(line.SystemName))
		f.SetFilenameStrindex(b.str(line.Filename))
		f.SetStartLine(line.StartLine)
		return int32(b.dict.FunctionTable().Len() - 1)
	})
}

func (b *builder) link(link string) int32 {
	if link == "" {
		return 0
	}
	return b.intern("link", link, func() int32 {
		trace, span, _ := strings.Cut(link, "/")
		var (
			traceID pcommon.TraceID
			spanID  pcommon.SpanID
		)
		b.hex(traceID[:], trace, "trace id")
		b.hex(spanID[:], span, "span id")
		out := b.dict.LinkTable().AppendEmpty()
		out.SetTraceID(traceID)
		out.SetSpanID(spanID)
		return int32(b.dict.LinkTable().Len() - 1)
	})
}

// hex fills dst from digits, which may be none.
func (b *builder) hex(dst []byte, digits, what string) {
	if digits == "" {
		return
	}
	decoded, err := hex.DecodeString(digits)
	if err != nil || len(decoded) != len(dst) {
		b.fail("%s %s is not %d hex digits", what, strconv.Quote(digits), 2*len(dst))
		return
	}
	copy(dst, decoded)
}

func (b *builder) attributes(attributes []Attribute) []int32 {
	var out []int32
	for _, a := range attributes {
		out = append(out, b.intern("attribute", a.String(), func() int32 {
			entry := b.dict.AttributeTable().AppendEmpty()
			entry.SetKeyStrindex(b.str(a.Key))
			entry.SetUnitStrindex(b.str(a.Unit))
			b.putValue(entry.Value(), a.Value)
			return int32(b.dict.AttributeTable().Len() - 1)
		}))
	}
	return out
}

func (b *builder) putAttributes(out pcommon.Map, attributes []Attribute) {
	for _, a := range attributes {
		b.putValue(out.PutEmpty(a.Key), a.Value)
	}
}

func (b *builder) putValue(out pcommon.Value, v any) {
	switch v := v.(type) {
	case nil:
	case string:
		out.SetStr(v)
	case bool:
		out.SetBool(v)
	case int64:
		out.SetInt(v)
	case float64:
		out.SetDouble(v)
	case []byte:
		out.SetEmptyBytes().FromRaw(v)
	case []any:
		slice := out.SetEmptySlice()
		for _, e := range v {
			b.putValue(slice.AppendEmpty(), e)
		}
	case KeyValues:
		m := out.SetEmptyMap()
		for _, kv := range v {
			b.putValue(m.PutEmpty(kv.Key), kv.Value)
		}
	default:
		b.fail("an attribute value cannot be a %T", v)
	}
}
