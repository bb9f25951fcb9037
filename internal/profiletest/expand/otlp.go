// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
)

// Profiles writes pd out, one element a Profile, in order. It reads the marshalled
// form of a copy, so that string references that pdata hides are resolved too;
// pd is not changed. Strings that are not UTF-8 are repaired, each bad byte
// becoming \xff. An index outside of its table is an error.
func Profiles(pd pprofile.Profiles) ([]Profile, error) {
	message, err := conformance.Marshal(pd)
	if err != nil {
		return nil, fmt.Errorf("pdata cannot marshal the profiles: %w", err)
	}
	return Bytes(message)
}

// Bytes is [Profiles] for a marshalled message, as it is found in a file or
// on the wire.
func Bytes(message []byte) ([]Profile, error) {
	data, _, err := conformance.Unmarshal(message)
	if err != nil {
		return nil, fmt.Errorf("protobuf-go cannot read the profiles: %w", err)
	}
	x := &expander{
		dict:       data.GetDictionary(),
		attributes: map[int32]Attribute{},
		frames:     map[int32]*Frame{},
		in:         newInterner(),
	}
	var out []Profile
	for _, rp := range data.GetResourceProfiles() {
		resource := Entity{
			SchemaURL:         rp.GetSchemaUrl(),
			Attributes:        AttributeSet(x.keyValues(rp.GetResource().GetAttributes())),
			DroppedAttributes: rp.GetResource().GetDroppedAttributesCount(),
		}
		for _, sp := range rp.GetScopeProfiles() {
			scope := Entity{
				Name:              sp.GetScope().GetName(),
				Version:           sp.GetScope().GetVersion(),
				SchemaURL:         sp.GetSchemaUrl(),
				Attributes:        AttributeSet(x.keyValues(sp.GetScope().GetAttributes())),
				DroppedAttributes: sp.GetScope().GetDroppedAttributesCount(),
			}
			for _, p := range sp.GetProfiles() {
				e := x.profile(p)
				e.Resource, e.Scope = resource, scope
				out = append(out, e)
			}
		}
	}
	if x.err != nil {
		return nil, x.err
	}
	return out, nil
}

// expander resolves indices. The first index outside of its table is kept in
// err, and the zero value is used in its place.
type expander struct {
	dict       *profilespb.ProfilesDictionary
	attributes map[int32]Attribute
	frames     map[int32]*Frame
	in         *interner
	err        error
}

// at returns table[index]. Index 0 means "not set" and needs no entry.
func at[E any](x *expander, name string, table []E, index int32) E {
	var zero E
	if index >= 0 && int(index) < len(table) {
		return table[index]
	}
	if index != 0 && x.err == nil {
		x.err = fmt.Errorf("index %d is outside of %s, which has %d entries", index, name, len(table))
	}
	return zero
}

func (x *expander) str(index int32) string {
	return at(x, "string_table", x.dict.GetStringTable(), index)
}

func (x *expander) profile(p *profilespb.Profile) Profile {
	e := Profile{
		Type:              x.str(p.GetSampleType().GetTypeStrindex()),
		Unit:              x.str(p.GetSampleType().GetUnitStrindex()),
		PeriodType:        x.str(p.GetPeriodType().GetTypeStrindex()),
		PeriodUnit:        x.str(p.GetPeriodType().GetUnitStrindex()),
		Period:            p.GetPeriod(),
		Time:              p.GetTimeUnixNano(),
		Duration:          p.GetDurationNano(),
		Attributes:        withoutTable(x.attributeIndices(p.GetAttributeIndices())),
		DroppedAttributes: p.GetDroppedAttributesCount(),
		PayloadFormat:     p.GetOriginalPayloadFormat(),
		Payload:           string(p.GetOriginalPayload()),
	}
	if len(bytes.Trim(p.GetProfileId(), "\x00")) > 0 {
		e.ProfileID = hex.EncodeToString(p.GetProfileId())
	}
	set := newSampleSet(x.in)
	for i, s := range p.GetSamples() {
		if i == 0 {
			e.Shape = shapeOfCounts(len(s.GetValues()), len(s.GetTimestampsUnixNano()))
		}
		set.add(x.sample(s))
	}
	e.Samples = set.samples()
	return e
}

func (x *expander) sample(s *profilespb.Sample) *Sample {
	out := &Sample{Attributes: x.attributeIndices(s.GetAttributeIndices()), Sum: new(big.Int)}
	stack := at(x, "stack_table", x.dict.GetStackTable(), s.GetStackIndex())
	for _, index := range stack.GetLocationIndices() {
		out.Stack = append(out.Stack, x.frame(index))
	}
	if s.GetLinkIndex() != 0 {
		link := at(x, "link_table", x.dict.GetLinkTable(), s.GetLinkIndex())
		out.Link = hex.EncodeToString(link.GetTraceId()) + "/" + hex.EncodeToString(link.GetSpanId())
	}
	values, timestamps := s.GetValues(), s.GetTimestampsUnixNano()
	if len(values) > 0 && len(timestamps) > 0 && len(values) != len(timestamps) && x.err == nil {
		x.err = fmt.Errorf("a sample has %d values and %d timestamps", len(values), len(timestamps))
	}
	for _, v := range values {
		out.Sum.Add(out.Sum, big.NewInt(v))
	}
	for i, ts := range timestamps {
		point := Point{Timestamp: ts, Value: 1}
		if i < len(values) {
			point.Value = values[i]
		}
		if len(values) == 0 {
			out.Sum.Add(out.Sum, big.NewInt(1))
		}
		out.Points = append(out.Points, point)
	}
	return out
}

func (x *expander) frame(index int32) *Frame {
	if f, ok := x.frames[index]; ok {
		return f
	}
	l := at(x, "location_table", x.dict.GetLocationTable(), index)
	m := at(x, "mapping_table", x.dict.GetMappingTable(), l.GetMappingIndex())
	f := &Frame{
		Address:    l.GetAddress(),
		Attributes: x.attributeIndices(l.GetAttributeIndices()),
		Mapping: Mapping{
			Start:      m.GetMemoryStart(),
			Limit:      m.GetMemoryLimit(),
			Offset:     m.GetFileOffset(),
			File:       x.str(m.GetFilenameStrindex()),
			Attributes: x.attributeIndices(m.GetAttributeIndices()),
		},
	}
	for _, line := range l.GetLines() {
		fn := at(x, "function_table", x.dict.GetFunctionTable(), line.GetFunctionIndex())
		f.Lines = append(f.Lines, Line{
			Function:   x.str(fn.GetNameStrindex()),
			SystemName: x.str(fn.GetSystemNameStrindex()),
			Filename:   x.str(fn.GetFilenameStrindex()),
			StartLine:  fn.GetStartLine(),
			Line:       line.GetLine(),
			Column:     line.GetColumn(),
		})
	}
	x.frames[index] = f
	return f
}

// attributeIndices resolves a set of attributes; index 0 means none.
func (x *expander) attributeIndices(indices []int32) []Attribute {
	var out []Attribute
	for _, index := range indices {
		if index == 0 {
			continue
		}
		a, ok := x.attributes[index]
		if !ok {
			entry := at(x, "attribute_table", x.dict.GetAttributeTable(), index)
			a = Attribute{Key: x.str(entry.GetKeyStrindex()), Value: x.value(entry.GetValue()), Unit: x.str(entry.GetUnitStrindex())}
			x.attributes[index] = a
		}
		out = append(out, a)
	}
	return AttributeSet(out)
}

func (x *expander) keyValues(kvs []*commonpb.KeyValue) []Attribute {
	var out []Attribute
	for _, kv := range kvs {
		out = append(out, Attribute{Key: x.key(kv), Value: x.value(kv.GetValue())})
	}
	return out
}

func (x *expander) key(kv *commonpb.KeyValue) string {
	if kv.GetKey() != "" {
		return kv.GetKey()
	}
	return x.str(kv.GetKeyStrindex())
}

func (x *expander) value(v *commonpb.AnyValue) any {
	switch v := v.GetValue().(type) {
	case nil:
		return nil
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_StringValueStrindex:
		return x.str(v.StringValueStrindex)
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue
	case *commonpb.AnyValue_IntValue:
		return v.IntValue
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonpb.AnyValue_BytesValue:
		return v.BytesValue
	case *commonpb.AnyValue_ArrayValue:
		out := []any{}
		for _, e := range v.ArrayValue.GetValues() {
			out = append(out, x.value(e))
		}
		return out
	case *commonpb.AnyValue_KvlistValue:
		out := KeyValues{}
		for _, kv := range v.KvlistValue.GetValues() {
			out = append(out, KeyValue{Key: x.key(kv), Value: x.value(kv.GetValue())})
		}
		return out
	default:
		if x.err == nil {
			x.err = fmt.Errorf("an attribute value is a %s, which is not known", strings.TrimPrefix(fmt.Sprintf("%T", v), "*"))
		}
		return nil
	}
}

// withoutTable removes the table of processes of a Profile, which is no part of what it is, and depends on how it was merged.
func withoutTable(attributes []Attribute) []Attribute {
	return slices.DeleteFunc(attributes, func(a Attribute) bool { return a.Key == attrkey.Processes })
}
