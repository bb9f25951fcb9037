// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// small is a payload of two profiles that uses each table with two entries or
// more besides index 0.
func small(tb testing.TB) pprofile.Profiles {
	tb.Helper()
	mapping := Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/app", Attributes: []Attribute{{Key: "build", Value: "abc"}}}
	leaf := &Frame{Address: 0x1100, Mapping: mapping, Lines: []Line{{Function: "leaf", Filename: "a.go", Line: 7}}}
	root := &Frame{Address: 0x1200, Mapping: mapping, Lines: []Line{{Function: "root", Filename: "a.go", Line: 9}}}
	header := Expanded{
		Resource: Entity{Attributes: []Attribute{{Key: "service.name", Value: "checkout"}}},
		Scope:    Entity{Name: "test", Attributes: []Attribute{{Key: "kind", Value: "cpu"}}},
		Type:     "cpu", Unit: "nanoseconds",
		Time: 1000, Duration: 100,
	}
	values, timed := header, header
	values.Shape = ShapeValues
	values.Samples = []*Sample{
		{Stack: []*Frame{leaf, root}, Attributes: []Attribute{{Key: "thread", Value: int64(1)}}, Sum: bigInt(10)},
		{Stack: []*Frame{root}, Attributes: []Attribute{{Key: "thread", Value: "1"}}, Sum: bigInt(5), Link: "0102030405060708090a0b0c0d0e0f10/0102030405060708"},
	}
	timed.Shape = ShapeBoth
	timed.Samples = []*Sample{
		{Stack: []*Frame{root}, Sum: bigInt(3), Points: []Point{{1001, 1}, {1002, 2}}},
		{Stack: []*Frame{leaf}, Sum: bigInt(3), Points: []Point{{1003, 3}}, Link: "0102030405060708090a0b0c0d0e0f10/0000000000000001"},
	}
	pd, err := Build([]Expanded{values, timed})
	if err != nil {
		tb.Fatal(err)
	}
	return pd
}

func firstScope(pd pprofile.Profiles) pprofile.ScopeProfiles {
	return pd.ResourceProfiles().At(0).ScopeProfiles().At(0)
}

func sampleAt(pd pprofile.Profiles, profile, sample int) pprofile.Sample {
	return firstScope(pd).Profiles().At(profile).Samples().At(sample)
}

func TestConformanceOfSound(t *testing.T) {
	empty := pprofile.NewProfiles()
	b := newBuilder()
	b.pd.MoveTo(empty)
	for name, pd := range map[string]pprofile.Profiles{"small": small(t), "nothing but zero values": empty} {
		violations, warnings := Conformance(pd)
		if len(violations)+len(warnings) > 0 {
			t.Errorf("%s: violations %q, warnings %q, want none", name, violations, warnings)
		}
	}
}

// TestConformanceOfFaults breaks one rule at a time, and wants it and no other
// reported.
func TestConformanceOfFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(pd pprofile.Profiles)
		rules []string // expected, in any order
		says  string   // part of one message
	}{
		{"no tables at all", func(pd pprofile.Profiles) { pprofile.NewProfiles().CopyTo(pd) }, []string{ruleZeroValue}, "string_table is empty"},
		{"string 0", func(pd pprofile.Profiles) {
			pd.Dictionary().StringTable().SetAt(0, "first")
			pd.Dictionary().StringTable().Append("")
			firstScope(pd).Profiles().At(0).PeriodType().SetTypeStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		}, []string{ruleZeroValue}, `string_table[0] is "first"`},
		{"mapping 0", func(pd pprofile.Profiles) { pd.Dictionary().MappingTable().At(0).SetMemoryStart(1) }, []string{ruleZeroValue}, "mapping_table[0]"},
		{"location 0", func(pd pprofile.Profiles) { pd.Dictionary().LocationTable().At(0).SetAddress(1) }, []string{ruleZeroValue}, "location_table[0]"},
		{"location 0 has a line", func(pd pprofile.Profiles) { pd.Dictionary().LocationTable().At(0).Lines().AppendEmpty() }, []string{ruleZeroValue}, "location_table[0]"},
		{"function 0", func(pd pprofile.Profiles) { pd.Dictionary().FunctionTable().At(0).SetStartLine(1) }, []string{ruleZeroValue}, "function_table[0]"},
		{"link 0", func(pd pprofile.Profiles) { pd.Dictionary().LinkTable().At(0).SetSpanID(pcommon.SpanID{1}) }, []string{ruleZeroValue}, "link_table[0]"},
		{"attribute 0", func(pd pprofile.Profiles) { pd.Dictionary().AttributeTable().At(0).Value().SetStr("") }, []string{ruleZeroValue}, "attribute_table[0]"},
		{"stack 0", func(pd pprofile.Profiles) { pd.Dictionary().StackTable().At(0).LocationIndices().Append(2, 2) }, []string{ruleZeroValue}, "stack_table[0]"},

		{"sample type", func(pd pprofile.Profiles) { firstScope(pd).Profiles().At(0).SampleType().SetTypeStrindex(99) }, []string{ruleRange}, "sample_type.type_strindex is 99"},
		{"period unit", func(pd pprofile.Profiles) { firstScope(pd).Profiles().At(0).PeriodType().SetUnitStrindex(-1) }, []string{ruleRange}, "period_type.unit_strindex is -1"},
		{"profile attribute", func(pd pprofile.Profiles) {
			firstScope(pd).Profiles().At(0).AttributeIndices().Append(math.MaxInt32)
		}, []string{ruleRange}, "profiles[0].attribute_indices[0] is 2147483647"},
		{"sample stack", func(pd pprofile.Profiles) {
			extra := sampleAt(pd, 0, 1)
			s := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
			extra.CopyTo(s)
			s.SetStackIndex(math.MinInt32)
		}, []string{ruleRange}, "samples[2].stack_index is -2147483648"},
		{"sample link", func(pd pprofile.Profiles) {
			s := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
			s.Values().Append(1)
			s.SetLinkIndex(3)
		}, []string{ruleRange}, "link_index is 3, outside of link_table, which has 3 entries"},
		{"sample attribute", func(pd pprofile.Profiles) { sampleAt(pd, 1, 0).AttributeIndices().Append(-5) }, []string{ruleRange}, "attribute_indices[0] is -5"},
		{"stack location", func(pd pprofile.Profiles) { pd.Dictionary().StackTable().At(1).LocationIndices().Append(50) }, []string{ruleRange}, "stack_table[1].location_indices[2] is 50"},
		{"location mapping", func(pd pprofile.Profiles) { pd.Dictionary().LocationTable().At(1).SetMappingIndex(-1) }, []string{ruleRange}, "location_table[1].mapping_index is -1"},
		{"location function", func(pd pprofile.Profiles) {
			pd.Dictionary().LocationTable().At(1).Lines().AppendEmpty().SetFunctionIndex(77)
		}, []string{ruleRange}, "location_table[1].lines[1].function_index is 77"},
		{"location attribute", func(pd pprofile.Profiles) { pd.Dictionary().LocationTable().At(1).AttributeIndices().Append(77) }, []string{ruleRange}, "location_table[1].attribute_indices[0]"},
		{"mapping file", func(pd pprofile.Profiles) {
			pd.Dictionary().FunctionTable().At(1).SetSystemNameStrindex(pd.Dictionary().MappingTable().At(1).FilenameStrindex())
			pd.Dictionary().MappingTable().At(1).SetFilenameStrindex(1000)
		}, []string{ruleRange}, "mapping_table[1].filename_strindex is 1000"},
		{"mapping attribute", func(pd pprofile.Profiles) { pd.Dictionary().MappingTable().At(1).AttributeIndices().Append(1000) }, []string{ruleRange}, "mapping_table[1].attribute_indices[1]"},
		{"function name", func(pd pprofile.Profiles) { pd.Dictionary().FunctionTable().At(1).SetSystemNameStrindex(-1) }, []string{ruleRange}, "function_table[1].system_name_strindex"},
		{"attribute unit", func(pd pprofile.Profiles) { pd.Dictionary().AttributeTable().At(1).SetUnitStrindex(-1) }, []string{ruleRange}, "attribute_table[1].unit_strindex"},

		{"equal strings", func(pd pprofile.Profiles) {
			pd.Dictionary().StringTable().Append("leaf")
			pd.Dictionary().FunctionTable().At(1).SetSystemNameStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		}, []string{ruleDuplicate}, `are both "leaf"`},
		{"a second empty string", func(pd pprofile.Profiles) {
			pd.Dictionary().StringTable().Append("")
			pd.Dictionary().FunctionTable().At(1).SetSystemNameStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		}, []string{ruleDuplicate}, `string_table[0] are both ""`},
		{"equal functions", func(pd pprofile.Profiles) {
			duplicate := pd.Dictionary().FunctionTable().AppendEmpty()
			pd.Dictionary().FunctionTable().At(1).CopyTo(duplicate)
			line := pd.Dictionary().LocationTable().At(1).Lines().AppendEmpty()
			line.SetFunctionIndex(int32(pd.Dictionary().FunctionTable().Len() - 1))
		}, []string{ruleDuplicate}, "function_table[3] and function_table[1]"},
		{"equal locations by equal functions", func(pd pprofile.Profiles) {
			duplicate := pd.Dictionary().FunctionTable().AppendEmpty()
			pd.Dictionary().FunctionTable().At(1).CopyTo(duplicate)
			twin := pd.Dictionary().LocationTable().AppendEmpty()
			pd.Dictionary().LocationTable().At(1).CopyTo(twin)
			twin.Lines().At(0).SetFunctionIndex(3)
			pd.Dictionary().StackTable().At(1).LocationIndices().Append(3)
		}, []string{ruleDuplicate, ruleDuplicate}, "location_table[3] and location_table[1]"},
		{"equal mappings, attributes as a set", func(pd pprofile.Profiles) {
			twin := pd.Dictionary().MappingTable().AppendEmpty()
			pd.Dictionary().MappingTable().At(1).CopyTo(twin)
			pd.Dictionary().MappingTable().At(1).AttributeIndices().FromRaw([]int32{1, 2})
			twin.AttributeIndices().FromRaw([]int32{2, 1})
			pd.Dictionary().LocationTable().At(2).SetMappingIndex(2)
		}, []string{ruleDuplicate}, "mapping_table[2] and mapping_table[1]"},
		{"equal stacks", func(pd pprofile.Profiles) {
			twin := pd.Dictionary().StackTable().AppendEmpty()
			pd.Dictionary().StackTable().At(1).CopyTo(twin)
			s := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
			s.SetStackIndex(int32(pd.Dictionary().StackTable().Len() - 1))
			s.Values().Append(1)
		}, []string{ruleDuplicate}, "and stack_table[1] are both"},
		{"sample identity by equal stacks", func(pd pprofile.Profiles) {
			twin := pd.Dictionary().StackTable().AppendEmpty()
			pd.Dictionary().StackTable().At(1).CopyTo(twin)
			s := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
			sampleAt(pd, 0, 0).CopyTo(s)
			s.SetStackIndex(int32(pd.Dictionary().StackTable().Len() - 1))
		}, []string{ruleDuplicate, ruleSampleIdentity}, "samples[2] has the identity of samples[0]"},
		{"equal links", func(pd pprofile.Profiles) {
			pd.Dictionary().LinkTable().At(1).CopyTo(pd.Dictionary().LinkTable().At(2))
		}, []string{ruleDuplicate}, "link_table[2] and link_table[1]"},
		{"equal attributes, lists of pairs without order", func(pd pprofile.Profiles) {
			twinAttributes(pd, func(v pcommon.Value) {
				m := v.SetEmptyMap()
				m.PutInt("a", 1)
				m.PutInt("b", 2)
			}, func(v pcommon.Value) {
				m := v.SetEmptyMap()
				m.PutInt("b", 2)
				m.PutInt("a", 1)
			})
		}, []string{ruleDuplicate}, "attribute_table"},
		{"equal attributes, zero and minus zero", func(pd pprofile.Profiles) {
			twinAttributes(pd, func(v pcommon.Value) { v.SetDouble(0) }, func(v pcommon.Value) { v.SetDouble(math.Copysign(0, -1)) })
		}, []string{ruleDuplicate}, "attribute_table"},
		{"equal attributes, NaN of equal bits", func(pd pprofile.Profiles) {
			twinAttributes(pd, func(v pcommon.Value) { v.SetDouble(math.NaN()) }, func(v pcommon.Value) { v.SetDouble(math.NaN()) })
		}, []string{ruleDuplicate}, "attribute_table"},

		{"unused string", func(pd pprofile.Profiles) { pd.Dictionary().StringTable().Append("nobody") }, []string{ruleUnreferenced}, `"nobody"`},
		{"unused link", func(pd pprofile.Profiles) { sampleAt(pd, 0, 1).SetLinkIndex(0) }, []string{ruleUnreferenced}, "link_table[1]"},
		{"unused stack and what only it reaches", func(pd pprofile.Profiles) {
			l := pd.Dictionary().LocationTable().AppendEmpty()
			l.SetAddress(5)
			pd.Dictionary().StackTable().AppendEmpty().LocationIndices().Append(3)
		}, []string{ruleUnreferenced, ruleUnreferenced}, "location_table[3]"},
		{"unused attribute", func(pd pprofile.Profiles) {
			a := pd.Dictionary().AttributeTable().AppendEmpty()
			a.SetKeyStrindex(1)
			a.Value().SetInt(99)
		}, []string{ruleUnreferenced}, "attribute_table[4]"},
		{"unused function", func(pd pprofile.Profiles) {
			pd.Dictionary().FunctionTable().AppendEmpty().SetFilenameStrindex(1)
		}, []string{ruleUnreferenced}, "function_table[3]"},
		{"unused mapping", func(pd pprofile.Profiles) {
			pd.Dictionary().MappingTable().AppendEmpty().SetFileOffset(1)
		}, []string{ruleUnreferenced}, "mapping_table[2]"},

		{"one key twice in a sample", func(pd pprofile.Profiles) { sampleAt(pd, 1, 0).AttributeIndices().FromRaw([]int32{2, 3}) }, []string{ruleAttributeKeys}, `"thread"`},
		{"one attribute twice in a location", func(pd pprofile.Profiles) {
			pd.Dictionary().LocationTable().At(1).AttributeIndices().FromRaw([]int32{1, 1})
		}, []string{ruleAttributeKeys}, "location_table[1].attribute_indices[1]"},
		{"sample identity, the set in another order", func(pd pprofile.Profiles) {
			sampleAt(pd, 0, 0).AttributeIndices().FromRaw([]int32{1, 2})
			s := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
			sampleAt(pd, 0, 0).CopyTo(s)
			s.AttributeIndices().FromRaw([]int32{2, 1})
		}, []string{ruleSampleIdentity}, "samples[2] has the identity of samples[0]"},
		{"mixed shapes", func(pd pprofile.Profiles) { sampleAt(pd, 0, 0).TimestampsUnixNano().Append(1001) }, []string{ruleSampleShape}, "values only"},
		{"timestamps only among both", func(pd pprofile.Profiles) { sampleAt(pd, 1, 1).Values().FromRaw(nil) }, []string{ruleSampleShape}, "timestamps only"},
		{"neither values nor timestamps", func(pd pprofile.Profiles) { sampleAt(pd, 0, 0).Values().FromRaw(nil) }, []string{ruleSampleData}, "neither"},
		{"more timestamps than values", func(pd pprofile.Profiles) { sampleAt(pd, 1, 0).TimestampsUnixNano().Append(1005) }, []string{ruleSampleData}, "2 values and 3 timestamps"},
		{"two values without timestamps", func(pd pprofile.Profiles) { sampleAt(pd, 0, 0).Values().Append(5) }, []string{ruleSampleData}, "2 values without timestamps"},
		{"link without span", func(pd pprofile.Profiles) { pd.Dictionary().LinkTable().At(1).SetSpanID(pcommon.SpanID{}) }, []string{ruleLinkIDs}, "link_table[1].span_id is missing or all zeros"},
		{"link without trace", func(pd pprofile.Profiles) { pd.Dictionary().LinkTable().At(2).SetTraceID(pcommon.TraceID{}) }, []string{ruleLinkIDs}, "link_table[2].trace_id is missing or all zeros"},
		{"link without both", func(pd pprofile.Profiles) { pprofile.NewLink().CopyTo(pd.Dictionary().LinkTable().At(1)) }, []string{ruleLinkIDs, ruleLinkIDs, ruleDuplicate}, "link_table[1].trace_id"},
		{"payload without format", func(pd pprofile.Profiles) { firstScope(pd).Profiles().At(0).OriginalPayload().Append(1) }, []string{rulePayload}, "1 bytes"},
		{"format without payload", func(pd pprofile.Profiles) { firstScope(pd).Profiles().At(1).SetOriginalPayloadFormat("jfr") }, []string{rulePayload}, `"jfr"`},
		{"string not UTF-8", func(pd pprofile.Profiles) { pd.Dictionary().StringTable().SetAt(1, "\xff") }, []string{ruleUTF8}, `string_table[1] is "\xff"`},
		{"attribute value not UTF-8", func(pd pprofile.Profiles) {
			pd.Dictionary().AttributeTable().At(1).Value().SetEmptySlice().AppendEmpty().SetStr("a\xc3")
		}, []string{ruleUTF8}, "dictionary.attribute_table[1].value.array_value.values[0].string_value"},
		{"scope version not UTF-8", func(pd pprofile.Profiles) { firstScope(pd).Scope().SetVersion("\xff") }, []string{ruleUTF8}, "scope_profiles[0].scope.version"},
		{"schema URL not UTF-8", func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).SetSchemaUrl("\xff") }, []string{ruleUTF8}, "resource_profiles[0].schema_url"},
		{"resource value not UTF-8", func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("x", "\xff") }, []string{ruleUTF8}, "string_table["},
	} {
		t.Run(test.name, func(t *testing.T) {
			pd := small(t)
			test.spoil(pd)
			before := pprofile.NewProfiles()
			pd.CopyTo(before)
			violations, _ := Conformance(pd)
			wantRules(t, violations, test.rules, test.says)
			requireSame(t, before, pd)
		})
	}
}

// TestConformanceOfMessages breaks what pdata cannot express.
func TestConformanceOfMessages(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(data *profilespb.ProfilesData)
		rules []string
		says  string
	}{
		{"no dictionary", func(data *profilespb.ProfilesData) { proto.Reset(data) }, slices.Repeat([]string{ruleZeroValue}, 7), "attribute_table is empty"},
		{"short trace id", func(data *profilespb.ProfilesData) { data.Dictionary.LinkTable[1].TraceId = []byte{1} }, []string{ruleLinkIDs}, "has 1 bytes, not 16"},
		{"link 0 without bytes", func(data *profilespb.ProfilesData) { data.Dictionary.LinkTable[0] = &profilespb.Link{} }, nil, ""},
		{"short profile id", func(data *profilespb.ProfilesData) {
			data.ResourceProfiles[0].ScopeProfiles[0].Profiles[0].ProfileId = []byte{1, 2}
		}, []string{ruleProfileID}, "has 2 bytes, not 16"},
		{"key and reference", func(data *profilespb.ProfilesData) {
			data.ResourceProfiles[0].Resource.Attributes[0].Key = "too"
		}, []string{ruleKeyReference}, `key "too" and key_strindex`},
		{"key reference outside", func(data *profilespb.ProfilesData) {
			data.ResourceProfiles[0].Resource.Attributes[0].KeyStrindex = -1
		}, []string{ruleRange, ruleUnreferenced}, "resource.attributes[0].key_strindex is -1"},
		{"value reference outside", func(data *profilespb.ProfilesData) {
			data.ResourceProfiles[0].ScopeProfiles[0].Scope.Attributes[0].Value.Value = &commonpb.AnyValue_StringValueStrindex{StringValueStrindex: 500}
		}, []string{ruleRange}, "scope.attributes[0].value.string_value_strindex is 500"},
		{"resource key twice, once by reference", func(data *profilespb.ProfilesData) {
			r := data.ResourceProfiles[0].Resource
			r.Attributes = append(r.Attributes, &commonpb.KeyValue{Key: "service.name"})
		}, []string{ruleAttributeKeys}, `key "service.name" is also that of resource.attributes[0]`},
		{"scope key twice", func(data *profilespb.ProfilesData) {
			s := data.ResourceProfiles[0].ScopeProfiles[0].Scope
			s.Attributes = append(s.Attributes, s.Attributes[0])
		}, []string{ruleAttributeKeys}, "scope.attributes[1]"},
		{"nested key twice", func(data *profilespb.ProfilesData) {
			twice := []*commonpb.KeyValue{{Key: "a"}, {Key: "a"}}
			data.Dictionary.AttributeTable[1].Value.Value = &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: twice}}
		}, []string{ruleAttributeKeys}, "attribute_table[1].value[1]"},
		{"reference and string of equal value", func(data *profilespb.ProfilesData) {
			// Attribute 3 has the value "1" and the key of attribute 2.
			data.Dictionary.StringTable = append(data.Dictionary.StringTable, "1")
			data.Dictionary.AttributeTable[2].Value.Value = &commonpb.AnyValue_StringValueStrindex{StringValueStrindex: int32(len(data.Dictionary.StringTable) - 1)}
		}, []string{ruleDuplicate}, "attribute_table[3] and attribute_table[2]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			message, err := marshalCopy(small(t))
			if err != nil {
				t.Fatal(err)
			}
			data := &profilespb.ProfilesData{}
			if err := proto.Unmarshal(message, data); err != nil {
				t.Fatal(err)
			}
			test.spoil(data)
			if message, err = proto.Marshal(data); err != nil {
				t.Fatal(err)
			}
			violations, _ := ConformanceBytes(message)
			wantRules(t, violations, test.rules, test.says)
		})
	}
	violations, _ := ConformanceBytes([]byte{0x0a, 0x50, 0x01})
	wantRules(t, violations, []string{ruleDecode}, "protobuf-go cannot read it")
}

func TestConformanceAdvice(t *testing.T) {
	pd := small(t)
	sampleAt(pd, 1, 0).TimestampsUnixNano().SetAt(0, 999)
	sampleAt(pd, 1, 1).TimestampsUnixNano().SetAt(0, 1100)
	pd.Dictionary().LocationTable().At(1).SetAddress(0xffff)
	sampleAt(pd, 0, 0).AttributeIndices().Append(0)
	pd.Dictionary().FunctionTable().AppendEmpty().SetStartLine(3)
	pd.Dictionary().LocationTable().At(1).Lines().AppendEmpty().SetFunctionIndex(3)
	violations, warnings := Conformance(pd)
	wantRules(t, violations, nil, "")
	wantRules(t, warnings, []string{adviceTime, adviceTime, adviceAddress, adviceNull, adviceFunction}, "is 1100, outside of the profile, 1000 to 1100")
}

// TestConformanceKeepsDifferentApart has entries that only look equal.
func TestConformanceKeepsDifferentApart(t *testing.T) {
	for name, values := range map[string][2]func(pcommon.Value){
		"int and string":   {func(v pcommon.Value) { v.SetInt(1) }, func(v pcommon.Value) { v.SetStr("1") }},
		"int and double":   {func(v pcommon.Value) { v.SetInt(0) }, func(v pcommon.Value) { v.SetDouble(0) }},
		"empty and string": {func(pcommon.Value) {}, func(v pcommon.Value) { v.SetStr("") }},
		"string and bytes": {func(v pcommon.Value) { v.SetStr("a") }, func(v pcommon.Value) { v.SetEmptyBytes().Append('a') }},
		"order of a list": {
			func(v pcommon.Value) { _ = v.SetEmptySlice().FromRaw([]any{1, 2}) },
			func(v pcommon.Value) { _ = v.SetEmptySlice().FromRaw([]any{2, 1}) },
		},
		"NaN of other bits": {
			func(v pcommon.Value) { v.SetDouble(math.NaN()) },
			func(v pcommon.Value) { v.SetDouble(math.Float64frombits(math.Float64bits(math.NaN()) ^ 2)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			pd := small(t)
			twinAttributes(pd, values[0], values[1])
			violations, _ := Conformance(pd)
			wantRules(t, violations, nil, "")
		})
	}
}

// TestConformanceBoundsMessages has one rule broken a thousand times.
func TestConformanceBoundsMessages(t *testing.T) {
	pd := small(t)
	for i := range 1000 {
		pd.Dictionary().StringTable().Append(strings.Repeat("x", 2000) + fmt.Sprint(i))
	}
	violations, _ := Conformance(pd)
	if len(violations) != messagesPerRule+1 || violations[messagesPerRule] != ruleUnreferenced+": and 980 more" {
		t.Errorf("got %d messages, the last is %q", len(violations), violations[len(violations)-1])
	}
	if n := len(violations[0]); n > messageBytes+100 {
		t.Errorf("a message has %d bytes", n)
	}
}

// TestConformanceOfEmptyTables takes each table away from an empty dictionary.
func TestConformanceOfEmptyTables(t *testing.T) {
	for name, empty := range map[string]func(d *profilespb.ProfilesDictionary){
		"string_table":    func(d *profilespb.ProfilesDictionary) { d.StringTable = nil },
		"mapping_table":   func(d *profilespb.ProfilesDictionary) { d.MappingTable = nil },
		"location_table":  func(d *profilespb.ProfilesDictionary) { d.LocationTable = nil },
		"function_table":  func(d *profilespb.ProfilesDictionary) { d.FunctionTable = nil },
		"link_table":      func(d *profilespb.ProfilesDictionary) { d.LinkTable = nil },
		"attribute_table": func(d *profilespb.ProfilesDictionary) { d.AttributeTable = nil },
		"stack_table":     func(d *profilespb.ProfilesDictionary) { d.StackTable = nil },
	} {
		message, err := marshalCopy(newBuilder().pd)
		if err != nil {
			t.Fatal(err)
		}
		data := &profilespb.ProfilesData{}
		if err := proto.Unmarshal(message, data); err != nil {
			t.Fatal(err)
		}
		empty(data.Dictionary)
		if message, err = proto.Marshal(data); err != nil {
			t.Fatal(err)
		}
		violations, _ := ConformanceBytes(message)
		wantRules(t, violations, []string{ruleZeroValue}, name+" is empty, its index 0 must be present")
	}
}

// TestConformanceOfGenerated holds the generator to the check.
func TestConformanceOfGenerated(t *testing.T) {
	for seed := range uint64(Rounds(t, 100, 3000)) {
		if violations, _ := Conformance(GenerateProfiles(NewRand(seed))); len(violations) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(violations, "\n"))
		}
	}
}

// TestHostileIndices sets each index field in turn to values outside of its
// table: all are found, by the check and by Expand, and nothing panics.
func TestHostileIndices(t *testing.T) {
	for name, set := range indexFields() {
		for _, hostile := range []int32{-1, math.MinInt32, math.MaxInt32} {
			pd := small(t)
			set(pd, hostile)
			violations, _ := Conformance(pd)
			if !slices.ContainsFunc(violations, func(v string) bool { return strings.HasPrefix(v, ruleRange+":") }) {
				t.Errorf("%s = %d is not reported: %q", name, hostile, violations)
			}
			if _, err := Expand(pd); err == nil || !strings.Contains(err.Error(), fmt.Sprint(hostile)) {
				t.Errorf("%s = %d: Expand says %v", name, hostile, err)
			}
		}
	}
}

func indexFields() map[string]func(pd pprofile.Profiles, index int32) {
	profile := func(pd pprofile.Profiles) pprofile.Profile { return firstScope(pd).Profiles().At(0) }
	dict := pprofile.Profiles.Dictionary
	return map[string]func(pd pprofile.Profiles, index int32){
		"profile.sample_type.type": func(pd pprofile.Profiles, i int32) { profile(pd).SampleType().SetTypeStrindex(i) },
		"profile.sample_type.unit": func(pd pprofile.Profiles, i int32) { profile(pd).SampleType().SetUnitStrindex(i) },
		"profile.period_type.type": func(pd pprofile.Profiles, i int32) { profile(pd).PeriodType().SetTypeStrindex(i) },
		"profile.period_type.unit": func(pd pprofile.Profiles, i int32) { profile(pd).PeriodType().SetUnitStrindex(i) },
		"profile.attribute":        func(pd pprofile.Profiles, i int32) { profile(pd).AttributeIndices().Append(i) },
		"sample.stack":             func(pd pprofile.Profiles, i int32) { sampleAt(pd, 0, 0).SetStackIndex(i) },
		"sample.link":              func(pd pprofile.Profiles, i int32) { sampleAt(pd, 0, 0).SetLinkIndex(i) },
		"sample.attribute":         func(pd pprofile.Profiles, i int32) { sampleAt(pd, 0, 0).AttributeIndices().Append(i) },
		"stack.location":           func(pd pprofile.Profiles, i int32) { dict(pd).StackTable().At(1).LocationIndices().SetAt(0, i) },
		"location.mapping":         func(pd pprofile.Profiles, i int32) { dict(pd).LocationTable().At(1).SetMappingIndex(i) },
		"location.attribute":       func(pd pprofile.Profiles, i int32) { dict(pd).LocationTable().At(1).AttributeIndices().Append(i) },
		"line.function":            func(pd pprofile.Profiles, i int32) { dict(pd).LocationTable().At(1).Lines().At(0).SetFunctionIndex(i) },
		"mapping.filename":         func(pd pprofile.Profiles, i int32) { dict(pd).MappingTable().At(1).SetFilenameStrindex(i) },
		"mapping.attribute":        func(pd pprofile.Profiles, i int32) { dict(pd).MappingTable().At(1).AttributeIndices().Append(i) },
		"function.name":            func(pd pprofile.Profiles, i int32) { dict(pd).FunctionTable().At(1).SetNameStrindex(i) },
		"function.system_name":     func(pd pprofile.Profiles, i int32) { dict(pd).FunctionTable().At(1).SetSystemNameStrindex(i) },
		"function.filename":        func(pd pprofile.Profiles, i int32) { dict(pd).FunctionTable().At(1).SetFilenameStrindex(i) },
		"attribute.key":            func(pd pprofile.Profiles, i int32) { dict(pd).AttributeTable().At(1).SetKeyStrindex(i) },
		"attribute.unit":           func(pd pprofile.Profiles, i int32) { dict(pd).AttributeTable().At(1).SetUnitStrindex(i) },
	}
}

// TestConformanceOfCorpus shows what real payloads of another producer break:
// they must at least be readable with all indices in range.
func TestConformanceOfCorpus(t *testing.T) {
	for i, pd := range CorpusOTLP(t) {
		violations, warnings := Conformance(pd)
		for _, v := range violations {
			for _, rule := range []string{ruleDecode, ruleRange, ruleUTF8, ruleSampleData} {
				if strings.HasPrefix(v, rule+":") {
					t.Errorf("request %d: %s", i, v)
				}
			}
		}
		if i == 0 {
			t.Logf("request %d: violations\n%s\nwarnings\n%s", i, strings.Join(violations, "\n"), strings.Join(warnings, "\n"))
		}
		if _, err := Expand(pd); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func wantRules(t *testing.T, messages, rules []string, says string) {
	t.Helper()
	var got []string
	for _, m := range messages {
		rule, _, _ := strings.Cut(m, ":")
		got = append(got, rule)
	}
	want := slices.Clone(rules)
	slices.Sort(got)
	slices.Sort(want)
	// The seven empty tables of no dictionary are one finding each.
	if slices.Equal(want, []string{ruleZeroValue}) && len(got) == 7 {
		got = slices.Compact(got)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want the rules %q", messages, want)
	}
	if says != "" && !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, says) }) {
		t.Fatalf("got %q, want one that says %q", messages, says)
	}
}

// requireSame compares without marshalling either: the argument must be untouched.
func requireSame(t *testing.T, want, got pprofile.Profiles) {
	t.Helper()
	w, err := marshalCopy(want)
	if err != nil {
		t.Fatal(err)
	}
	g, err := marshalCopy(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(w) != string(g) || want.Dictionary().StringTable().Len() != got.Dictionary().StringTable().Len() {
		t.Fatal("the profiles were changed")
	}
	if want.ResourceProfiles().Len() > 0 {
		w, g := want.ResourceProfiles().At(0).Resource().Attributes(), got.ResourceProfiles().At(0).Resource().Attributes()
		if !w.Equal(g) {
			t.Fatal("the resource was changed")
		}
	}
}

// twinAttributes gives two locations an attribute each, equal but for the value.
func twinAttributes(pd pprofile.Profiles, first, second func(pcommon.Value)) {
	attributes := pd.Dictionary().AttributeTable()
	pd.Dictionary().StringTable().Append("twin")
	for i, set := range []func(pcommon.Value){first, second} {
		a := attributes.AppendEmpty()
		a.SetKeyStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		set(a.Value())
		pd.Dictionary().LocationTable().At(1 + i).AttributeIndices().Append(int32(attributes.Len() - 1))
	}
}

func bigInt(v int64) *big.Int { return big.NewInt(v) }
