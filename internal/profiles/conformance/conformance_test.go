// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// empty is a payload of nothing but zero values.
func empty(tb testing.TB) pprofile.Profiles {
	tb.Helper()
	return profiletest.Build(tb)
}

func firstScope(pd pprofile.Profiles) pprofile.ScopeProfiles {
	return pd.ResourceProfiles().At(0).ScopeProfiles().At(0)
}

func sampleAt(pd pprofile.Profiles, profile, sample int) pprofile.Sample {
	return firstScope(pd).Profiles().At(profile).Samples().At(sample)
}

func TestCheckAcceptsSoundProfiles(t *testing.T) {
	require.Empty(t, conformance.Check(profiletest.Small(t)).Findings)
	require.Empty(t, conformance.Check(empty(t)).Violations())
}

// TestCheckFindsEachFault breaks one rule at a time, and wants it and no other
// reported.
func TestCheckFindsEachFault(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(pd pprofile.Profiles)
		rules []conformance.Rule // expected, in any order
		says  string             // part of one message
	}{
		{"no tables but that of strings, which pdata adds", func(pd pprofile.Profiles) { pprofile.NewProfiles().CopyTo(pd) }, slices.Repeat([]conformance.Rule{conformance.ZeroValue}, 6), "stack_table is empty"},
		{"string 0", func(pd pprofile.Profiles) {
			pd.Dictionary().StringTable().SetAt(0, "first")
			pd.Dictionary().StringTable().Append("")
			firstScope(pd).Profiles().At(0).PeriodType().SetTypeStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		}, []conformance.Rule{conformance.ZeroValue}, `string_table[0] is "first"`},
		{"mapping 0", func(pd pprofile.Profiles) { pd.Dictionary().MappingTable().At(0).SetMemoryStart(1) }, []conformance.Rule{conformance.ZeroValue}, "mapping_table[0]"},
		{"location 0", func(pd pprofile.Profiles) { pd.Dictionary().LocationTable().At(0).SetAddress(1) }, []conformance.Rule{conformance.ZeroValue}, "location_table[0]"},
		{"function 0", func(pd pprofile.Profiles) { pd.Dictionary().FunctionTable().At(0).SetStartLine(1) }, []conformance.Rule{conformance.ZeroValue}, "function_table[0]"},
		{"link 0", func(pd pprofile.Profiles) { pd.Dictionary().LinkTable().At(0).SetSpanID(pcommon.SpanID{1}) }, []conformance.Rule{conformance.ZeroValue}, "link_table[0]"},
		{"attribute 0", func(pd pprofile.Profiles) { pd.Dictionary().AttributeTable().At(0).Value().SetStr("") }, []conformance.Rule{conformance.ZeroValue}, "attribute_table[0]"},
		{"stack 0", func(pd pprofile.Profiles) { pd.Dictionary().StackTable().At(0).LocationIndices().Append(2, 2) }, []conformance.Rule{conformance.ZeroValue}, "stack_table[0]"},

		{"sample type", func(pd pprofile.Profiles) { firstScope(pd).Profiles().At(0).SampleType().SetTypeStrindex(99) }, []conformance.Rule{conformance.IndexRange}, "sample_type.type_strindex is 99"},
		{"sample link", func(pd pprofile.Profiles) {
			s := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
			s.Values().Append(1)
			s.SetLinkIndex(3)
		}, []conformance.Rule{conformance.IndexRange}, "link_index is 3: must be an index of dictionary.link_table, which has 3 entries"},

		{"equal strings", func(pd pprofile.Profiles) {
			pd.Dictionary().StringTable().Append("leaf")
			pd.Dictionary().FunctionTable().At(1).SetSystemNameStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		}, []conformance.Rule{conformance.Duplicate}, `is "leaf": must be different from`},
		{"a second empty string", func(pd pprofile.Profiles) {
			pd.Dictionary().StringTable().Append("")
			pd.Dictionary().FunctionTable().At(1).SetSystemNameStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		}, []conformance.Rule{conformance.Duplicate}, `is "": must be different from dictionary.string_table[0]`},
		{"equal functions", func(pd pprofile.Profiles) {
			duplicate := pd.Dictionary().FunctionTable().AppendEmpty()
			pd.Dictionary().FunctionTable().At(1).CopyTo(duplicate)
			pd.Dictionary().LocationTable().At(1).Lines().AppendEmpty().SetFunctionIndex(int32(pd.Dictionary().FunctionTable().Len() - 1))
		}, []conformance.Rule{conformance.Duplicate}, "different from dictionary.function_table[1]"},
		{"equal locations by equal functions", func(pd pprofile.Profiles) {
			duplicate := pd.Dictionary().FunctionTable().AppendEmpty()
			pd.Dictionary().FunctionTable().At(1).CopyTo(duplicate)
			twin := pd.Dictionary().LocationTable().AppendEmpty()
			pd.Dictionary().LocationTable().At(1).CopyTo(twin)
			twin.Lines().At(0).SetFunctionIndex(3)
			pd.Dictionary().StackTable().At(1).LocationIndices().Append(3)
		}, []conformance.Rule{conformance.Duplicate, conformance.Duplicate}, "different from dictionary.location_table[1]"},
		{"equal mappings, attributes as a set", func(pd pprofile.Profiles) {
			twin := pd.Dictionary().MappingTable().AppendEmpty()
			pd.Dictionary().MappingTable().At(1).CopyTo(twin)
			pd.Dictionary().MappingTable().At(1).AttributeIndices().FromRaw([]int32{1, 2})
			twin.AttributeIndices().FromRaw([]int32{2, 1})
			pd.Dictionary().LocationTable().At(2).SetMappingIndex(2)
		}, []conformance.Rule{conformance.Duplicate}, "different from dictionary.mapping_table[1]"},
		{"equal stacks", func(pd pprofile.Profiles) {
			twin := pd.Dictionary().StackTable().AppendEmpty()
			pd.Dictionary().StackTable().At(1).CopyTo(twin)
			s := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
			s.SetStackIndex(int32(pd.Dictionary().StackTable().Len() - 1))
			s.Values().Append(1)
		}, []conformance.Rule{conformance.Duplicate}, "different from dictionary.stack_table[1]"},
		{"sample identity by equal stacks", func(pd pprofile.Profiles) {
			twin := pd.Dictionary().StackTable().AppendEmpty()
			pd.Dictionary().StackTable().At(1).CopyTo(twin)
			s := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
			sampleAt(pd, 0, 0).CopyTo(s)
			s.SetStackIndex(int32(pd.Dictionary().StackTable().Len() - 1))
		}, []conformance.Rule{conformance.Duplicate, conformance.SampleIdentity}, "link 0, as samples[0] is: must be an identity"},
		{"equal links", func(pd pprofile.Profiles) {
			pd.Dictionary().LinkTable().At(1).CopyTo(pd.Dictionary().LinkTable().At(2))
		}, []conformance.Rule{conformance.Duplicate}, "different from dictionary.link_table[1]"},
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
		}, []conformance.Rule{conformance.Duplicate}, "attribute_table"},
		{"equal attributes, zero and minus zero", func(pd pprofile.Profiles) {
			twinAttributes(pd, func(v pcommon.Value) { v.SetDouble(0) }, func(v pcommon.Value) { v.SetDouble(math.Copysign(0, -1)) })
		}, []conformance.Rule{conformance.Duplicate}, "attribute_table"},
		{"equal attributes, NaN of equal bits", func(pd pprofile.Profiles) {
			twinAttributes(pd, func(v pcommon.Value) { v.SetDouble(math.NaN()) }, func(v pcommon.Value) { v.SetDouble(math.NaN()) })
		}, []conformance.Rule{conformance.Duplicate}, "attribute_table"},

		{"unused string", func(pd pprofile.Profiles) { pd.Dictionary().StringTable().Append("nobody") }, []conformance.Rule{conformance.Unreferenced}, `"nobody"`},
		{"unused link", func(pd pprofile.Profiles) { sampleAt(pd, 0, 1).SetLinkIndex(0) }, []conformance.Rule{conformance.Unreferenced}, "link_table[1]"},
		{"unused stack and what only it reaches", func(pd pprofile.Profiles) {
			pd.Dictionary().LocationTable().AppendEmpty().SetAddress(5)
			pd.Dictionary().StackTable().AppendEmpty().LocationIndices().Append(3)
		}, []conformance.Rule{conformance.Unreferenced, conformance.Unreferenced}, "location_table[3]"},
		{"unused attribute", func(pd pprofile.Profiles) {
			a := pd.Dictionary().AttributeTable().AppendEmpty()
			a.SetKeyStrindex(1)
			a.Value().SetInt(99)
		}, []conformance.Rule{conformance.Unreferenced}, "attribute_table[4]"},

		{"one key twice in a sample", func(pd pprofile.Profiles) { sampleAt(pd, 1, 0).AttributeIndices().FromRaw([]int32{2, 3}) }, []conformance.Rule{conformance.AttributeKeys}, `"thread"`},
		{"sample identity, the set in another order", func(pd pprofile.Profiles) {
			sampleAt(pd, 0, 0).AttributeIndices().FromRaw([]int32{1, 2})
			s := firstScope(pd).Profiles().At(0).Samples().AppendEmpty()
			sampleAt(pd, 0, 0).CopyTo(s)
			s.AttributeIndices().FromRaw([]int32{2, 1})
		}, []conformance.Rule{conformance.SampleIdentity}, "link 0, as samples[0] is: must be an identity"},
		{"mixed shapes", func(pd pprofile.Profiles) { sampleAt(pd, 0, 0).TimestampsUnixNano().Append(1001) }, []conformance.Rule{conformance.SampleShape}, "values only"},
		{"timestamps only among both", func(pd pprofile.Profiles) { sampleAt(pd, 1, 1).Values().FromRaw(nil) }, []conformance.Rule{conformance.SampleShape}, "timestamps only"},
		{"neither values nor timestamps", func(pd pprofile.Profiles) { sampleAt(pd, 0, 0).Values().FromRaw(nil) }, []conformance.Rule{conformance.SampleData}, "0 values and 0 timestamps"},
		{"more timestamps than values", func(pd pprofile.Profiles) { sampleAt(pd, 1, 0).TimestampsUnixNano().Append(1005) }, []conformance.Rule{conformance.SampleData}, "2 values and 3 timestamps"},
		{"two values without timestamps", func(pd pprofile.Profiles) { sampleAt(pd, 0, 0).Values().Append(5) }, []conformance.Rule{conformance.SampleData}, "2 values and 0 timestamps"},
		{"link without span", func(pd pprofile.Profiles) { pd.Dictionary().LinkTable().At(1).SetSpanID(pcommon.SpanID{}) }, []conformance.Rule{conformance.LinkIDs}, "link_table[1].span_id is missing or all zeros"},
		{"link without trace", func(pd pprofile.Profiles) { pd.Dictionary().LinkTable().At(2).SetTraceID(pcommon.TraceID{}) }, []conformance.Rule{conformance.LinkIDs}, "link_table[2].trace_id is missing or all zeros"},
		{"link without both", func(pd pprofile.Profiles) { pprofile.NewLink().CopyTo(pd.Dictionary().LinkTable().At(1)) }, []conformance.Rule{conformance.LinkIDs, conformance.LinkIDs, conformance.Duplicate}, "link_table[1].trace_id"},
		{"payload without format", func(pd pprofile.Profiles) { firstScope(pd).Profiles().At(0).OriginalPayload().Append(1) }, []conformance.Rule{conformance.Payload}, "1 byte with the format"},
		{"format without payload", func(pd pprofile.Profiles) { firstScope(pd).Profiles().At(1).SetOriginalPayloadFormat("jfr") }, []conformance.Rule{conformance.Payload}, `"jfr"`},
		{"string not UTF-8", func(pd pprofile.Profiles) { pd.Dictionary().StringTable().SetAt(1, "\xff") }, []conformance.Rule{conformance.UTF8}, `string_table[1] is "\xff"`},
		{"attribute value not UTF-8", func(pd pprofile.Profiles) {
			pd.Dictionary().AttributeTable().At(1).Value().SetEmptySlice().AppendEmpty().SetStr("a\xc3")
		}, []conformance.Rule{conformance.UTF8}, "dictionary.attribute_table[1].value.array_value.values[0].string_value"},
		{"scope version not UTF-8", func(pd pprofile.Profiles) { firstScope(pd).Scope().SetVersion("\xff") }, []conformance.Rule{conformance.UTF8}, "scope_profiles[0].scope.version"},
		{"schema URL not UTF-8", func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).SetSchemaUrl("\xff") }, []conformance.Rule{conformance.UTF8}, "resource_profiles[0].schema_url"},
		{"resource value not UTF-8", func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("x", "\xff") }, []conformance.Rule{conformance.UTF8}, "string_table["},
	} {
		t.Run(test.name, func(t *testing.T) {
			pd := profiletest.Small(t)
			test.spoil(pd)
			pd.MarkReadOnly()
			wantRules(t, conformance.Check(pd).Violations(), test.rules, test.says)
		})
	}
}

// TestCheckBytesFindsWhatPdataCannotExpress breaks what pdata cannot express.
func TestCheckBytesFindsWhatPdataCannotExpress(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(data *profilespb.ProfilesData)
		rules []conformance.Rule
		says  string
	}{
		{"no dictionary", func(data *profilespb.ProfilesData) { proto.Reset(data) }, slices.Repeat([]conformance.Rule{conformance.ZeroValue}, 7), "string_table is empty"},
		{"short trace id", func(data *profilespb.ProfilesData) { data.Dictionary.LinkTable[1].TraceId = []byte{1} }, []conformance.Rule{conformance.LinkIDs}, "is 1 byte: must be 16 bytes"},
		{"link 0 without bytes", func(data *profilespb.ProfilesData) { data.Dictionary.LinkTable[0] = &profilespb.Link{} }, nil, ""},
		{"short profile id", func(data *profilespb.ProfilesData) {
			data.ResourceProfiles[0].ScopeProfiles[0].Profiles[0].ProfileId = []byte{1, 2}
		}, []conformance.Rule{conformance.ProfileID}, "is 2 bytes: must be 16 bytes"},
		{"key and reference", func(data *profilespb.ProfilesData) {
			data.ResourceProfiles[0].Resource.Attributes[0].Key = "too"
		}, []conformance.Rule{conformance.KeyReference}, `key "too" and key_strindex`},
		{"key reference outside", func(data *profilespb.ProfilesData) {
			data.ResourceProfiles[0].Resource.Attributes[0].KeyStrindex = -1
		}, []conformance.Rule{conformance.IndexRange, conformance.Unreferenced}, "resource.attributes[0].key_strindex is -1"},
		{"value reference outside", func(data *profilespb.ProfilesData) {
			data.ResourceProfiles[0].ScopeProfiles[0].Scope.Attributes[0].Value.Value = &commonpb.AnyValue_StringValueStrindex{StringValueStrindex: 500}
		}, []conformance.Rule{conformance.IndexRange}, "scope.attributes[0].value.string_value_strindex is 500"},
		{"resource key twice, once by reference", func(data *profilespb.ProfilesData) {
			r := data.ResourceProfiles[0].Resource
			r.Attributes = append(r.Attributes, &commonpb.KeyValue{Key: "service.name"})
		}, []conformance.Rule{conformance.AttributeKeys}, `key "service.name", the key of resource_profiles[0].resource.attributes[0]`},
		{"scope key twice", func(data *profilespb.ProfilesData) {
			s := data.ResourceProfiles[0].ScopeProfiles[0].Scope
			s.Attributes = append(s.Attributes, s.Attributes[0])
		}, []conformance.Rule{conformance.AttributeKeys}, "scope.attributes[1]"},
		{"nested key twice", func(data *profilespb.ProfilesData) {
			twice := []*commonpb.KeyValue{{Key: "a"}, {Key: "a"}}
			data.Dictionary.AttributeTable[1].Value.Value = &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: twice}}
		}, []conformance.Rule{conformance.AttributeKeys}, "attribute_table[1].value[1]"},
		{"reference and string of equal value", func(data *profilespb.ProfilesData) {
			// Attribute 3 has the value "1" and the key of attribute 2.
			data.Dictionary.StringTable = append(data.Dictionary.StringTable, "1")
			data.Dictionary.AttributeTable[2].Value.Value = &commonpb.AnyValue_StringValueStrindex{StringValueStrindex: int32(len(data.Dictionary.StringTable) - 1)}
		}, []conformance.Rule{conformance.Duplicate}, "different from dictionary.attribute_table[2]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			message, err := conformance.Marshal(profiletest.Small(t))
			require.NoError(t, err)
			data := &profilespb.ProfilesData{}
			require.NoError(t, proto.Unmarshal(message, data))
			test.spoil(data)
			message, err = proto.Marshal(data)
			require.NoError(t, err)
			violations := conformance.CheckBytes(message).Violations()
			wantRules(t, violations, test.rules, test.says)
		})
	}
	violations := conformance.CheckBytes([]byte{0x0a, 0x50, 0x01}).Violations()
	wantRules(t, violations, []conformance.Rule{conformance.Decode}, "readable by protobuf-go")
}

func TestWarnings(t *testing.T) {
	pd := profiletest.Small(t)
	sampleAt(pd, 1, 0).TimestampsUnixNano().SetAt(0, 999)
	sampleAt(pd, 1, 1).TimestampsUnixNano().SetAt(0, 1100)
	pd.Dictionary().LocationTable().At(1).SetAddress(0xffff)
	sampleAt(pd, 0, 0).AttributeIndices().Append(0)
	pd.Dictionary().FunctionTable().AppendEmpty().SetStartLine(3)
	pd.Dictionary().LocationTable().At(1).Lines().AppendEmpty().SetFunctionIndex(3)
	report := conformance.Check(pd)
	violations, warnings := report.Violations(), report.Warnings()
	wantRules(t, violations, nil, "")
	wantRules(t, warnings, []conformance.Rule{conformance.TimeRange, conformance.TimeRange, conformance.AddressRange, conformance.NullAttribute, conformance.FunctionNames}, "is 1100: must be inside the profile, 1000 to 1100")
}

// Ten million timestamps outside their Profile are counted, and 20 reported.
func TestTimestampsOutsideTheirProfileAreCounted_J7(t *testing.T) {
	const count = 10_000_000
	pd := profiletest.Small(t)
	s := sampleAt(pd, 1, 0)
	times, values := make([]uint64, count), make([]int64, count)
	for i := range times {
		times[i] = math.MaxUint64 - uint64(i)
	}
	s.TimestampsUnixNano().FromRaw(times)
	s.Values().FromRaw(values)
	report := conformance.Check(pd)
	require.Equal(t, count, report.Counts[conformance.TimeRange])
	require.Len(t, report.Warnings(), 20)
	require.Empty(t, report.Violations())
}

// Rules of sig-profiling's profcheck, and recommendations of the semantic conventions.
func TestWarningsOfMappingsLinesListsAndUnits(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(pd pprofile.Profiles)
		want  conformance.Rule
		says  string
	}{
		"no resource": {func(pd pprofile.Profiles) {
			pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
		}, conformance.EmptyList, "message is without resource_profiles"},
		"no scope": {func(pd pprofile.Profiles) { pd.ResourceProfiles().AppendEmpty() }, conformance.EmptyList, "resource_profiles[1] is without scope_profiles"},
		"no profile": {func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).ScopeProfiles().AppendEmpty() },
			conformance.EmptyList, "resource_profiles[0].scope_profiles[1] is without profiles"},
		"an empty mapping": {func(pd pprofile.Profiles) {
			m := pd.Dictionary().MappingTable().At(1)
			m.SetMemoryLimit(m.MemoryStart())
		}, conformance.MappingRange, "must be a range that ends behind its start"},
		"a line below 0": {func(pd pprofile.Profiles) {
			l := pd.Dictionary().LocationTable().At(1).Lines().At(0)
			l.SetLine(-1)
		}, conformance.Negative, "lines[0].line is -1"},
		"a start line below 0": {func(pd pprofile.Profiles) { pd.Dictionary().FunctionTable().At(1).SetStartLine(-7) }, conformance.Negative, "function_table[1].start_line is -7"},
		"no build ID":          {func(pd pprofile.Profiles) { pd.Dictionary().MappingTable().At(1).AttributeIndices().FromRaw(nil) }, conformance.BuildID, "mapping_table[1] is without a build ID"},
		"a unit of pprof": {func(pd pprofile.Profiles) {
			pd.Dictionary().StringTable().Append("bytes")
			pd.Dictionary().AttributeTable().At(1).SetUnitStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		}, conformance.Units, `"bytes": must be a unit of UCUM`},
	} {
		pd := profiletest.Small(t)
		before := conformance.Check(pd)
		require.Zero(t, before.Counts[test.want], name)
		test.spoil(pd)
		report := conformance.Check(pd)
		require.Equal(t, 1, report.Counts[test.want], "%s: %v", name, report.Findings)
		at := slices.IndexFunc(report.Findings, func(f conformance.Finding) bool { return f.Rule == test.want })
		require.Contains(t, report.Findings[at].String(), test.says, name)
		require.True(t, report.Findings[at].IsWarning(), name)
	}
}

// TestSimilarValuesAreDifferent has entries that only look equal.
func TestSimilarValuesAreDifferent(t *testing.T) {
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
			pd := profiletest.Small(t)
			twinAttributes(pd, values[0], values[1])
			wantRules(t, conformance.Check(pd).Violations(), nil, "")
		})
	}
}

// TestFindingsAreLimited has one rule broken a thousand times.
func TestFindingsAreLimited(t *testing.T) {
	pd := profiletest.Small(t)
	for i := range 1000 {
		pd.Dictionary().StringTable().Append(strings.Repeat("x", 2000) + fmt.Sprint(i))
	}
	report := conformance.Check(pd)
	require.Len(t, report.Findings, 20)
	require.Equal(t, 1000, report.Counts[conformance.Unreferenced])
	require.LessOrEqual(t, len(report.Findings[0].Found), 600)
}

// TestGeneratedProfilesConform holds the generator to the check.
func TestGeneratedProfilesConform(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 100, 3000)) {
		require.Empty(t, conformance.Check(profiletest.GenerateProfiles(profiletest.NewRand(seed))).Violations(), "seed %d", seed)
	}
}

// A message that nests deeper than protobuf-go reads takes little memory for its size, also with a string that is not UTF-8.
func TestDeepMessagesTakeLittleMemory(t *testing.T) {
	value := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("\xff")) // string_value
	for range 6000 {
		for _, field := range []protowire.Number{1, 5} { // values, array_value
			value = protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), value)
		}
	}
	for _, field := range []protowire.Number{2, 6, 2} { // value, attribute_table, dictionary
		value = protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), value)
	}
	before, most := profiletest.Heap(), int64(0)
	done := make(chan *conformance.Report)
	go func() { done <- conformance.CheckBytes(value) }()
	for {
		select {
		case report := <-done:
			require.Equal(t, 1, report.Counts[conformance.Decode])
			require.Less(t, most-before, int64(64<<20))
			return
		default:
			most = max(most, profiletest.Heap())
		}
	}
}

// TestIndicesOutsideTheirTablesAreFound sets each index field in turn to values outside of its
// table: all are found, by the check and by Expand, and nothing panics.
func TestIndicesOutsideTheirTablesAreFound(t *testing.T) {
	for name, set := range profiletest.IndexFields() {
		for _, invalid := range []int32{-1, math.MinInt32, math.MaxInt32} {
			pd := profiletest.OneOfEach()
			set(pd, invalid)
			violations := conformance.Check(pd).Violations()
			isIndexRange := func(f conformance.Finding) bool { return f.Rule == conformance.IndexRange }
			require.True(t, slices.ContainsFunc(violations, isIndexRange), "%s = %d is not reported: %v", name, invalid, violations)
			_, err := expand.Profiles(pd)
			require.ErrorContains(t, err, fmt.Sprint(invalid), name)
		}
	}
}

// TestCorpusIsReadable has real payloads of another producer, which are at least readable, with all
// indices in range.
func TestCorpusIsReadable(t *testing.T) {
	for i, pd := range profiletest.CorpusOTLP(t) {
		for _, v := range conformance.Check(pd).Violations() {
			require.NotContains(t, []conformance.Rule{conformance.Decode, conformance.IndexRange, conformance.UTF8, conformance.SampleData}, v.Rule, "request %d: %s", i, v)
		}
		profiletest.Expand(t, pd)
	}
}

func wantRules(t *testing.T, findings []conformance.Finding, rules []conformance.Rule, says string) {
	t.Helper()
	var got []conformance.Rule
	for _, f := range findings {
		got = append(got, f.Rule)
	}
	want := slices.Clone(rules)
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(t, want, got, "%v", findings)
	if says != "" {
		require.Contains(t, fmt.Sprint(findings), says)
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
