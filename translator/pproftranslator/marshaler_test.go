// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/fromotlp"
)

// pprofsOf returns all pprofs of pd, unless there is an error.
func pprofsOf(m Marshaler, pd pprofile.Profiles) (pprofs []*profile.Profile, err error) {
	for p, err := range m.All(context.Background(), pd) {
		if err != nil {
			return nil, err
		}
		pprofs = append(pprofs, p.Profile)
	}
	return pprofs, nil
}

// otlp makes OTLP profiles by hand. Its methods add an entry, even if there is
// an equal one, and return its index.
type otlp struct {
	pprofile.Profiles
	dict pprofile.ProfilesDictionary
}

func newOTLP() otlp {
	pd, err := expand.Build(nil) // the zero values of the tables
	if err != nil {
		panic(err)
	}
	return otlp{pd, pd.Dictionary()}
}

func (o otlp) str(s string) int32 {
	o.dict.StringTable().Append(s)
	return int32(o.dict.StringTable().Len() - 1)
}

// attr adds an attribute; value is as pcommon.Value.FromRaw takes it.
func (o otlp) attr(key string, value any, unit string) int32 {
	a := o.dict.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(o.str(key))
	if err := a.Value().FromRaw(value); err != nil {
		panic(err)
	}
	if unit != "" {
		a.SetUnitStrindex(o.str(unit))
	}
	return int32(o.dict.AttributeTable().Len() - 1)
}

func (o otlp) mapping(file string, start uint64, attributes ...int32) int32 {
	m := o.dict.MappingTable().AppendEmpty()
	m.SetMemoryStart(start)
	m.SetMemoryLimit(start + 0x1000)
	m.SetFileOffset(0x10)
	m.SetFilenameStrindex(o.str(file))
	m.AttributeIndices().FromRaw(attributes)
	return int32(o.dict.MappingTable().Len() - 1)
}

// location adds a location with a line for each function, numbered down from 9.
func (o otlp) location(mapping int32, address uint64, functions ...int32) int32 {
	l := o.dict.LocationTable().AppendEmpty()
	l.SetMappingIndex(mapping)
	l.SetAddress(address)
	for i, f := range functions {
		line := l.Lines().AppendEmpty()
		line.SetFunctionIndex(f)
		line.SetLine(int64(9 - i))
		line.SetColumn(int64(i))
	}
	return int32(o.dict.LocationTable().Len() - 1)
}

func (o otlp) stack(locations ...int32) int32 {
	o.dict.StackTable().AppendEmpty().LocationIndices().FromRaw(locations)
	return int32(o.dict.StackTable().Len() - 1)
}

// stackAt adds a stack of one location at that address.
func (o otlp) stackAt(address uint64) int32 { return o.stack(o.location(0, address)) }

func (o otlp) link(trace, span byte) int32 {
	l := o.dict.LinkTable().AppendEmpty()
	l.SetTraceID(pcommon.TraceID{15: trace})
	l.SetSpanID(pcommon.SpanID{7: span})
	return int32(o.dict.LinkTable().Len() - 1)
}

func (o otlp) resource() pprofile.ResourceProfiles { return o.ResourceProfiles().AppendEmpty() }

// scope adds a scope to a resource of its own.
func (o otlp) scope() pprofile.ScopeProfiles { return o.resource().ScopeProfiles().AppendEmpty() }

func (o otlp) profile(sp pprofile.ScopeProfiles, name, unit string, attributes ...int32) pprofile.Profile {
	p := sp.Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(o.str(name))
	p.SampleType().SetUnitStrindex(o.str(unit))
	p.AttributeIndices().FromRaw(attributes)
	return p
}

func addValue(p pprofile.Profile, stack int32, value int64, attributes ...int32) pprofile.Sample {
	s := p.Samples().AppendEmpty()
	s.SetStackIndex(stack)
	s.AttributeIndices().FromRaw(attributes)
	s.Values().Append(value)
	return s
}

// addTimes adds a sample with timestamps; values may be nil.
func addTimes(p pprofile.Profile, stack int32, times []uint64, values []int64, attributes ...int32) {
	s := addValue(p, stack, 0, attributes...)
	s.TimestampsUnixNano().FromRaw(times)
	s.Values().FromRaw(values)
}

func setOrder(sp pprofile.ScopeProfiles, order ...any) {
	if err := sp.Scope().Attributes().PutEmptySlice("pprof.scope.sample_type_order").FromRaw(order); err != nil {
		panic(err)
	}
}

// convert converts pd, which it makes read-only, and checks what holds always.
func convert(t *testing.T, o otlp) []*profile.Profile {
	t.Helper()
	o.MarkReadOnly()
	converted, err := pprofsOf(Marshaler{}, o.Profiles)
	require.NoError(t, err)
	again, err := pprofsOf(Marshaler{}, o.Profiles)
	require.NoError(t, err)
	for i, p := range converted {
		require.NoError(t, p.CheckValid())
		require.Equal(t, p.String(), again[i].String())
	}
	return converted
}

func convertOne(t *testing.T, o otlp) *profile.Profile {
	t.Helper()
	converted := convert(t, o)
	require.Len(t, converted, 1)
	return converted[0]
}

func valuesOf(p *profile.Profile) [][]int64 {
	var values [][]int64
	for _, s := range p.Sample {
		values = append(values, s.Value)
	}
	return values
}

func typesOf(p *profile.Profile) []string {
	var types []string
	for _, st := range p.SampleType {
		types = append(types, st.Type+"/"+st.Unit)
	}
	return types
}

func TestBuildIDs(t *testing.T) {
	const prefix = "process.executable.build_id."
	for keys, want := range map[string]string{"": "", "gnu": "gnu", "go": "go", "htlhash": "htlhash", "htlhash go gnu": "gnu", "htlhash go": "go"} {
		o := newOTLP()
		var attributes []int32
		for key := range strings.FieldsSeq(keys) {
			attributes = append(attributes, o.attr(prefix+key, key, ""))
		}
		addValue(o.profile(o.scope(), "cpu", ""), o.stack(o.location(o.mapping("f", 1, attributes...), 1)), 1)
		require.Equal(t, want, convertOne(t, o).Mapping[0].BuildID, "%v", keys)
	}
}

// A mapping of the executable comes first; others stay in the order of their first use.
func TestMappingOrder(t *testing.T) {
	for executable, want := range map[any]string{
		"app": "1:/bin/app 2:/lib/a.so 3:[kernel.kallsyms]_text 4:/opt/app", "/usr/sbin/app": "1:/bin/app 2:/lib/a.so 3:[kernel.kallsyms]_text 4:/opt/app",
		"nothing": "1:/lib/a.so 2:/bin/app 3:[kernel.kallsyms]_text 4:/opt/app", 17: "1:/lib/a.so 2:/bin/app 3:[kernel.kallsyms]_text 4:/opt/app",
	} {
		o := newOTLP()
		rp := o.resource()
		require.NoError(t, rp.Resource().Attributes().PutEmpty("process.executable.name").FromRaw(executable))
		o.mapping("/bin/never", 1)
		locations := []int32{}
		for i, file := range []string{"/lib/a.so", "/bin/app", "[kernel.kallsyms]_text", "/opt/app"} {
			locations = append(locations, o.location(o.mapping(file, uint64(i)<<16), uint64(i)<<16))
		}
		addValue(o.profile(rp.ScopeProfiles().AppendEmpty(), "cpu", ""), o.stack(locations...), 1)
		p := convertOne(t, o)
		var got []string
		for _, m := range p.Mapping {
			got = append(got, fmt.Sprintf("%d:%s", m.ID, m.File))
		}
		require.Equal(t, want, strings.Join(got, " "), "%v", executable)
		require.Equal(t, "_text", p.Mapping[2].KernelRelocationSymbol)
	}
}

func TestWindowsExecutable(t *testing.T) {
	require.Equal(t, "app.exe", fromotlp.BaseName(`C:\Program Files\app.exe`))
	require.Equal(t, "app", fromotlp.BaseName(" /usr/bin/app (deleted)"))
	require.Empty(t, fromotlp.BaseName("/usr/bin/"))
}

func TestEmptyFunctionAndMapping(t *testing.T) {
	o := newOTLP()
	emptyFunction := int32(o.dict.FunctionTable().Len())
	o.dict.FunctionTable().AppendEmpty() // equal to entry 0
	emptyMapping := int32(o.dict.MappingTable().Len())
	o.dict.MappingTable().AppendEmpty()
	addValue(o.profile(o.scope(), "cpu", ""), o.stack(o.location(emptyMapping, 1, emptyFunction, 0), o.location(0, 2, 0)), 1)
	p := convertOne(t, o)
	require.Empty(t, p.Mapping)
	require.Len(t, p.Function, 1)
	require.Nil(t, p.Location[0].Mapping)
	require.Same(t, p.Location[0].Line[0].Function, p.Location[1].Line[0].Function)
	require.Equal(t, profile.Function{ID: 1}, *p.Function[0])
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		unit  string
		want  profile.Sample
	}{
		{"string", "v", "", profile.Sample{Label: map[string][]string{"k": {"v"}}}},
		{"string with a unit", "v", "bytes", profile.Sample{Label: map[string][]string{"k": {"v"}}}},
		{"int", 5, "", profile.Sample{NumLabel: map[string][]int64{"k": {5}}}},
		{"int with a unit", 5, "bytes", profile.Sample{NumLabel: map[string][]int64{"k": {5}}, NumUnit: map[string][]string{"k": {"bytes"}}}},
		{"zero with a unit", 0, "bytes", profile.Sample{NumLabel: map[string][]int64{"k": {0}}, NumUnit: map[string][]string{"k": {"bytes"}}}},
		{"strings", []any{"b", "a", "b"}, "", profile.Sample{Label: map[string][]string{"k": {"b", "a", "b"}}}},
		{"ints with a unit", []any{2, 1}, "ms", profile.Sample{NumLabel: map[string][]int64{"k": {2, 1}}, NumUnit: map[string][]string{"k": {"ms", "ms"}}}},
		{"both kinds", []any{"a", 1}, "", profile.Sample{Label: map[string][]string{"k": {"a"}}, NumLabel: map[string][]int64{"k": {1}}}},
		{
			"a unit each", []any{map[string]any{"value": "a"}, map[string]any{"value": 1}, map[string]any{"value": 2, "unit": "ms"}, 3, map[string]any{"value": 4, "unit": ""}}, "",
			profile.Sample{Label: map[string][]string{"k": {"a"}}, NumLabel: map[string][]int64{"k": {1, 2, 3, 4}}, NumUnit: map[string][]string{"k": {"", "ms", "", ""}}},
		},
		{
			"lists that are not value and unit",
			[]any{map[string]any{"value": 1, "other": 1}, map[string]any{"unit": "ms"}, map[string]any{"value": 1, "unit": 1}, map[string]any{"value": true}}, "",
			profile.Sample{Label: map[string][]string{"k": {`{"other":1,"value":1}`, `{"unit":"ms"}`, `{"unit":1,"value":1}`, `{"value":true}`}}},
		},
		{"array of other kinds", []any{true, 0.5, []any{1}, []byte{1}}, "", profile.Sample{Label: map[string][]string{"k": {"true", "0.5", "[1]", "AQ=="}}}},
		{"empty array", []any{}, "", profile.Sample{Label: map[string][]string{"k": {"[]"}}}},
		{"bool", true, "", profile.Sample{Label: map[string][]string{"k": {"true"}}}},
		{"double", 1.5, "s", profile.Sample{Label: map[string][]string{"k": {"1.5"}}}},
		{"bytes", []byte{1, 2}, "", profile.Sample{Label: map[string][]string{"k": {"AQI="}}}},
		{"map", map[string]any{"b": 1, "a": "x"}, "", profile.Sample{Label: map[string][]string{"k": {`{"a":"x","b":1}`}}}},
		{"nothing", nil, "", profile.Sample{Label: map[string][]string{"k": {""}}}},
		{"bad UTF-8", "a\xffb", "", profile.Sample{Label: map[string][]string{"k": {`a\xffb`}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOTLP()
			addValue(o.profile(o.scope(), "cpu", ""), 0, 1, 0, o.attr("k", c.value, c.unit), 0)
			s := convertOne(t, o).Sample[0]
			require.Equal(t, c.want.Label, s.Label)
			require.Equal(t, c.want.NumLabel, s.NumLabel)
			require.Equal(t, c.want.NumUnit, s.NumUnit)
		})
	}
}

const (
	hexTrace = "00000000000000000000000000000001"
	hexSpan  = "0000000000000002"
)

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		name        string
		trace, span byte
		attributes  map[string]any
		want        string
	}{
		{"link", 1, 2, nil, "span_id:[" + hexSpan + "] trace_id:[" + hexTrace + "]"},
		{"half a link is none", 1, 0, nil, ""},
		{"attributes of the same names", 1, 2, map[string]any{"trace_id": "x", "span_id": 3}, "span_id:[" + hexSpan + "] trace_id:[" + hexTrace + " x] span_id:[3]"},
		{"attributes that say the same", 1, 2, map[string]any{"trace_id": hexTrace, "span_id": hexSpan}, "span_id:[" + hexSpan + "] trace_id:[" + hexTrace + "]"},
		{"attributes that the link came from", 1, 2, map[string]any{"otel_traceid": hexTrace, "otel_spanid": hexSpan}, "otel_spanid:[" + hexSpan + "] otel_traceid:[" + hexTrace + "]"},
		{"Datadog's", 1, 2, map[string]any{"trace id": hexTrace, "span id": 2}, "trace id:[" + hexTrace + "] span id:[2]"},
		{"attributes of another link", 9, 2, map[string]any{"otel_traceid": hexTrace, "otel_spanid": hexSpan}, "otel_spanid:[" + hexSpan + "] otel_traceid:[" + hexTrace + "] span_id:[" + hexSpan + "] trace_id:[00000000000000000000000000000009]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOTLP()
			var attributes []int32
			for key, v := range c.attributes {
				attributes = append(attributes, o.attr(key, v, ""))
			}
			addValue(o.profile(o.scope(), "cpu", ""), 0, 1, attributes...).SetLinkIndex(o.link(c.trace, c.span))
			converted, err := pprofsOf(Marshaler{}, o.Profiles)
			require.NoError(t, err)
			got := converted[0].String()
			got = got[strings.Index(got, "1:")+2 : strings.Index(got, "Locations")]
			require.Equal(t, c.want, strings.Join(strings.Fields(got), " "))
		})
	}
}

func TestTimestamps(t *testing.T) {
	o := newOTLP()
	sp := o.scope()
	a, own := o.stackAt(1), o.attr("end_timestamp_ns", 77, "s")
	cpu, samples := o.profile(sp, "cpu", "ns"), o.profile(sp, "samples", "count")
	addTimes(cpu, a, []uint64{30, 10, 10}, []int64{1, 2, 3})
	addTimes(cpu, a, []uint64{10, math.MaxUint64}, []int64{4, 5}, own)
	addTimes(samples, a, []uint64{10, 0, 10, 30, 10}, nil) // timestamps alone
	var got []string
	for _, s := range convertOne(t, o).Sample {
		got = append(got, fmt.Sprint(s.NumLabel, s.NumUnit, s.Value))
	}
	require.Equal(t, []string{
		"map[end_timestamp_ns:[30]] map[] [1 1]", "map[end_timestamp_ns:[10]] map[] [2 1]", "map[end_timestamp_ns:[10]] map[] [3 1]",
		"map[end_timestamp_ns:[10 77]] map[end_timestamp_ns:[ s]] [4 0]", "map[end_timestamp_ns:[-1 77]] map[end_timestamp_ns:[ s]] [5 0]",
		"map[end_timestamp_ns:[0]] map[end_timestamp_ns:[nanoseconds]] [0 1]", "map[end_timestamp_ns:[10]] map[] [0 1]",
	}, got)
}

func TestProfilesWithValuesAndTimestampsMixed(t *testing.T) {
	o := newOTLP()
	sp := o.scope()
	stack := o.stackAt(1)
	mixed := o.profile(sp, "cpu", "ns")
	addValue(mixed, stack, 1)
	addTimes(mixed, stack, []uint64{5}, []int64{2})
	addValue(o.profile(sp, "cpu", "ns"), stack, 3)
	converted := convert(t, o)
	require.Len(t, converted, 2)
	require.Equal(t, [][]int64{{1}, {2}}, valuesOf(converted[0]))
	require.Equal(t, [][]int64{{3}}, valuesOf(converted[1]))
}

func TestJoinByIdentity(t *testing.T) {
	o := newOTLP()
	sp := o.scope()
	// Each entry twice: equal values are one identity.
	a, a2, b := o.stackAt(1), o.stackAt(1), o.stackAt(2)
	x, x2, y := o.attr("x", "1", ""), o.attr("x", "1", ""), o.attr("y", 1, "")
	number := o.attr("x", 1, "")
	link, link2 := o.link(1, 2), o.link(1, 2)

	one, two := o.profile(sp, "one", ""), o.profile(sp, "two", "")
	addValue(one, a, 1, x, y).SetLinkIndex(link)
	addValue(one, b, 2)
	addValue(one, a, 3, x, y)
	addValue(one, a, 4, number, y)
	addValue(one, b, 5) // the identity of the second again
	addValue(two, b, 10)
	addValue(two, b, 30, y)
	addValue(two, a2, 20, y, x2, y).SetLinkIndex(link2)
	p := convertOne(t, o)
	require.Equal(t, [][]int64{{1, 20}, {7, 10}, {3, 0}, {4, 0}, {0, 30}}, valuesOf(p))
	require.Len(t, p.Location, 2)
}

func TestValuesAddUp(t *testing.T) {
	for _, c := range []struct {
		values []int64
		want   int64
		fails  bool
	}{
		{values: nil, want: 0},
		{values: []int64{1, 2, -5}, want: -2},
		{values: []int64{math.MaxInt64, math.MinInt64, 1}, want: 0},
		{values: []int64{math.MaxInt64, 0}, want: math.MaxInt64},
		{values: []int64{math.MinInt64, 0}, want: math.MinInt64},
		{values: []int64{math.MaxInt64, 1}, fails: true},
		{values: []int64{math.MinInt64, -1}, fails: true},
		{values: []int64{math.MinInt64, math.MinInt64}, fails: true},
	} {
		o := newOTLP()
		addValue(o.profile(o.scope(), "cpu", ""), 0, 0).Values().FromRaw(c.values)
		converted, err := pprofsOf(Marshaler{}, o.Profiles)
		if c.fails {
			require.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[0].samples[0]: ")
			require.ErrorIs(t, err, fromotlp.ErrOverflow)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, [][]int64{{c.want}}, valuesOf(converted[0]))
	}
}

func TestSampleTypeOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		types string // one letter each
		order []any
		want  []string // one for each pprof
	}{
		{"no order", "abc", nil, []string{"abc"}},
		{"order", "cab", []any{2, 0, 1}, []string{"abc"}},
		{"too short", "cab", []any{1, 0}, []string{"cab"}},
		{"too long", "cab", []any{2, 0, 1, 3}, []string{"cab"}},
		{"repeats", "cab", []any{2, 2, 1}, []string{"cab"}},
		{"out of range", "cab", []any{3, 0, 1}, []string{"cab"}},
		{"negative", "cab", []any{-1, 0, 1}, []string{"cab"}},
		{"no numbers", "cab", []any{"2", "0", "1"}, []string{"cab"}},
		{"of types, not of Profiles", "baba", []any{1, 0}, []string{"ba", "ba"}},
		{"two pprofs of a scope", "baba", []any{1, 0, 1, 0}, []string{"ab", "ab"}},
		{"two pprofs, sorted by type", "bbaa", []any{1, 1, 0, 0}, []string{"ab", "ab"}},
		{"repeated type without order", "aa", nil, []string{"a", "a"}},
		{"two pprofs of one type", "aa", []any{0, 0}, []string{"a", "a"}},
		{"repeated type of one pprof", "aba", []any{2, 0, 1}, []string{"baa"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOTLP()
			sp := o.scope()
			if c.order != nil {
				setOrder(sp, c.order...)
			}
			for i, name := range c.types {
				addValue(o.profile(sp, string(name), "u"), 0, int64(i))
			}
			var got []string
			total := int64(0)
			for _, p := range convert(t, o) {
				require.Empty(t, p.DefaultSampleType)
				require.Len(t, p.Sample, 1)
				var types strings.Builder
				for i, st := range p.SampleType {
					types.WriteString(st.Type)
					total += p.Sample[0].Value[i]
					require.Equal(t, st.Type, string(c.types[p.Sample[0].Value[i]]))
				}
				got = append(got, types.String())
			}
			require.Equal(t, c.want, got)
			require.EqualValues(t, len(c.types)*(len(c.types)-1)/2, total)
		})
	}
}

// A sample type without a Profile returns as zeros, in each pprof of the scope.
func TestListedSampleTypesReturnAsZeros(t *testing.T) {
	o := newOTLP()
	sp := o.scope()
	setOrder(sp, 3, 1, 1)
	require.NoError(t, sp.Scope().Attributes().PutEmptySlice(attrkey.SampleTypes).FromRaw([]any{"a/x", "b/y%2Fz", "c/", "d/x"}))
	sp.Scope().Attributes().PutStr("pprof.scope.default_sample_type", "c")
	addValue(o.profile(sp, "d", "x"), 0, 4)
	addValue(o.profile(sp, "b", "y/z"), 0, 2)
	addValue(o.profile(sp, "b", "y/z"), 0, 5)

	types := []*profile.ValueType{{Type: "a", Unit: "x"}, {Type: "b", Unit: "y/z"}, {Type: "c"}, {Type: "d", Unit: "x"}}
	converted := convert(t, o)
	require.Len(t, converted, 2)
	for i, want := range [][]int64{{0, 2, 0, 4}, {0, 5, 0, 0}} {
		require.Equal(t, types, converted[i].SampleType)
		require.Equal(t, "c", converted[i].DefaultSampleType)
		require.Equal(t, [][]int64{want}, valuesOf(converted[i]))
	}
}

// The Profiles of one pprof have its header in common.
func TestHeadersSeparatePprofs(t *testing.T) {
	o := newOTLP()
	comment := func(value any) func(pprofile.Profile) {
		i := o.attr("pprof.profile.comment", value, "")
		return func(p pprofile.Profile) { p.AttributeIndices().Append(i) }
	}
	for _, set := range [7]func(pprofile.Profile){
		func(p pprofile.Profile) { p.SetTime(1) },
		func(p pprofile.Profile) { p.SetDurationNano(1) },
		func(p pprofile.Profile) { p.SetPeriod(1) },
		func(p pprofile.Profile) { p.PeriodType().SetTypeStrindex(o.str("t")) },
		func(p pprofile.Profile) { p.PeriodType().SetUnitStrindex(o.str("u")) },
		comment([]any{"a"}),
		comment("a single one"),
	} {
		sp := o.scope()
		setOrder(sp, 0, 1)
		for i, name := range []string{"a", "b", "b"} {
			p := o.profile(sp, name, "")
			addValue(p, 0, int64(i+1))
			if i != 1 {
				set(p)
			}
		}
	}
	var got []string
	for _, p := range convert(t, o) {
		got = append(got, fmt.Sprint(typesOf(p), valuesOf(p)))
	}
	require.Equal(t, slices.Repeat([]string{"[a/ b/] [[1 3]]", "[b/] [[2]]"}, 7), got)
}

func TestTimesBeyondInt64(t *testing.T) {
	o := newOTLP()
	p := o.profile(o.scope(), "cpu", "")
	p.SetTime(math.MaxUint64)
	p.SetDurationNano(math.MaxInt64 + 1)
	got := convertOne(t, o)
	require.EqualValues(t, math.MaxInt64, got.TimeNanos)
	require.EqualValues(t, math.MaxInt64, got.DurationNanos)
}

func TestConvertedPprofsAreTheCallers(t *testing.T) {
	o := newOTLP()
	p := o.profile(o.scope(), "cpu", "ns", o.attr("pprof.profile.comment", []any{"a"}, ""))
	addTimes(p, o.stackAt(1), []uint64{1, 2}, nil, o.attr("k", "v", ""))
	first := convertOne(t, o)
	first.Sample[0].Label["k"][0] = "changed"
	first.Sample[0].Location[0] = nil
	first.Comments[0] = "changed"
	require.Equal(t, "v", first.Sample[1].Label["k"][0])
	require.NotNil(t, first.Sample[1].Location[0])
	require.Equal(t, []string{"a"}, convertOne(t, o).Comments)
}
