// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// ofEveryKind has one entry of each table, each with all of its references.
func ofEveryKind() otlp {
	o := newOTLP()
	attribute := o.attr("k", "v", "u")
	location := o.location(o.mapping("f", 1, attribute), 1, o.function("g"))
	o.dict.LocationTable().At(int(location)).AttributeIndices().Append(attribute)
	p := o.profile(o.scope(), "cpu", "ns", attribute)
	addValue(p, o.stack(location), 1, attribute).SetLinkIndex(o.link(1, 2))
	return o
}

func TestIndicesOutsideTheirTables(t *testing.T) {
	profileOf := func(o otlp) pprofile.Profile {
		return o.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	}
	sampleOf := func(o otlp) pprofile.Sample { return profileOf(o).Samples().At(0) }
	const inProfile = "resource_profiles[0].scope_profiles[0].profiles[0]."
	for _, c := range []struct {
		place, table string
		length       func(pprofile.ProfilesDictionary) int
		set          func(o otlp, index int32)
	}{
		{"mapping_table[1].filename_strindex", "string", stringsOf, func(o otlp, i int32) { o.dict.MappingTable().At(1).SetFilenameStrindex(i) }},
		{"mapping_table[1].attribute_indices[0]", "attribute", attributesOf, func(o otlp, i int32) { o.dict.MappingTable().At(1).AttributeIndices().SetAt(0, i) }},
		{"location_table[1].mapping_index", "mapping", func(d pprofile.ProfilesDictionary) int { return d.MappingTable().Len() }, func(o otlp, i int32) { o.dict.LocationTable().At(1).SetMappingIndex(i) }},
		{"location_table[1].lines[0].function_index", "function", func(d pprofile.ProfilesDictionary) int { return d.FunctionTable().Len() }, func(o otlp, i int32) { o.dict.LocationTable().At(1).Lines().At(0).SetFunctionIndex(i) }},
		{"location_table[1].attribute_indices[0]", "attribute", attributesOf, func(o otlp, i int32) { o.dict.LocationTable().At(1).AttributeIndices().SetAt(0, i) }},
		{"function_table[1].name_strindex", "string", stringsOf, func(o otlp, i int32) { o.dict.FunctionTable().At(1).SetNameStrindex(i) }},
		{"function_table[1].system_name_strindex", "string", stringsOf, func(o otlp, i int32) { o.dict.FunctionTable().At(1).SetSystemNameStrindex(i) }},
		{"function_table[1].filename_strindex", "string", stringsOf, func(o otlp, i int32) { o.dict.FunctionTable().At(1).SetFilenameStrindex(i) }},
		{"attribute_table[1].key_strindex", "string", stringsOf, func(o otlp, i int32) { o.dict.AttributeTable().At(1).SetKeyStrindex(i) }},
		{"attribute_table[1].unit_strindex", "string", stringsOf, func(o otlp, i int32) { o.dict.AttributeTable().At(1).SetUnitStrindex(i) }},
		{"stack_table[1].location_indices[0]", "location", func(d pprofile.ProfilesDictionary) int { return d.LocationTable().Len() }, func(o otlp, i int32) { o.dict.StackTable().At(1).LocationIndices().SetAt(0, i) }},
		{inProfile + "sample_type.type_strindex", "string", stringsOf, func(o otlp, i int32) { profileOf(o).SampleType().SetTypeStrindex(i) }},
		{inProfile + "sample_type.unit_strindex", "string", stringsOf, func(o otlp, i int32) { profileOf(o).SampleType().SetUnitStrindex(i) }},
		{inProfile + "period_type.type_strindex", "string", stringsOf, func(o otlp, i int32) { profileOf(o).PeriodType().SetTypeStrindex(i) }},
		{inProfile + "period_type.unit_strindex", "string", stringsOf, func(o otlp, i int32) { profileOf(o).PeriodType().SetUnitStrindex(i) }},
		{inProfile + "attribute_indices[0]", "attribute", attributesOf, func(o otlp, i int32) { profileOf(o).AttributeIndices().SetAt(0, i) }},
		{inProfile + "samples[0].stack_index", "stack", func(d pprofile.ProfilesDictionary) int { return d.StackTable().Len() }, func(o otlp, i int32) { sampleOf(o).SetStackIndex(i) }},
		{inProfile + "samples[0].link_index", "link", func(d pprofile.ProfilesDictionary) int { return d.LinkTable().Len() }, func(o otlp, i int32) { sampleOf(o).SetLinkIndex(i) }},
		{inProfile + "samples[0].attribute_indices[0]", "attribute", attributesOf, func(o otlp, i int32) { sampleOf(o).AttributeIndices().SetAt(0, i) }},
	} {
		for _, index := range []int32{-1, math.MinInt32, math.MaxInt32, int32(c.length(ofEveryKind().Dictionary()))} {
			t.Run(fmt.Sprintf("%s %d", c.place, index), func(t *testing.T) {
				o := ofEveryKind()
				c.set(o, index)
				_, err := Marshaler{}.ConvertProfiles(o.Profiles)
				var wrong *dictionary.IndexError
				require.ErrorAs(t, err, &wrong, "%v", err)
				require.Equal(t, dictionary.IndexError{Where: c.place, Index: index, Table: c.table, Len: c.length(o.dict)}, *wrong)
			})
		}
		t.Run(c.place+" 0", func(t *testing.T) {
			o := ofEveryKind()
			c.set(o, 0)
			convert(t, o)
		})
	}
}

func stringsOf(d pprofile.ProfilesDictionary) int    { return d.StringTable().Len() }
func attributesOf(d pprofile.ProfilesDictionary) int { return d.AttributeTable().Len() }

// An index into a table whose first entry is no zero value means that entry, as
// other tools make them.
func TestTablesWithoutZeroValue(t *testing.T) {
	o := ofEveryKind()
	pd := pprofile.NewProfiles()
	o.CopyTo(pd)
	d := pd.Dictionary()
	first := true
	drop := func() bool { was := first; first = false; return was }
	d.StackTable().RemoveIf(func(pprofile.Stack) bool { return drop() })
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).SetStackIndex(0)
	p := convertOne(t, otlp{pd, d})
	require.Len(t, p.Sample[0].Location, 1)
	require.EqualValues(t, 1, p.Sample[0].Location[0].Address)
}

func TestUnequalValuesAndTimestamps(t *testing.T) {
	o := newOTLP()
	addTimes(o.profile(o.scope(), "cpu", ""), 0, []uint64{1, 2}, []int64{1})
	_, err := Marshaler{}.ConvertProfiles(o.Profiles)
	require.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[0].samples[0] has 1 values and 2 timestamps")
}

func TestRepeatedKeys(t *testing.T) {
	one, two := func(o otlp) int32 { return o.attr("k", 1, "") }, func(o otlp) int32 { return o.attr("k", 2, "") }
	o := newOTLP()
	addValue(o.profile(o.scope(), "cpu", ""), 0, 1, one(o), two(o))
	_, err := Marshaler{}.ConvertProfiles(o.Profiles)
	var repeated *dictionary.DuplicateKeyError
	require.ErrorAs(t, err, &repeated, "%v", err)
	require.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[0].samples[0]: ")

	o = newOTLP()
	o.profile(o.scope(), "cpu", "", one(o), two(o))
	_, err = Marshaler{}.ConvertProfiles(o.Profiles)
	require.ErrorAs(t, err, &repeated, "%v", err)
	require.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[0]")
}

func TestDeepValues(t *testing.T) {
	o := newOTLP()
	i := o.attr("k", nil, "")
	v := o.dict.AttributeTable().At(int(i)).Value()
	for range 100_000 {
		v = v.SetEmptySlice().AppendEmpty()
	}
	addValue(o.profile(o.scope(), "cpu", ""), 0, 1, i)
	_, err := Marshaler{}.ConvertProfiles(o.Profiles)
	require.ErrorContains(t, err, "attribute_table[1].value nests deeper than")
}

// Pprof writes a zero where OTLP has nothing, which grows with the square of
// the sample types if these share no samples.
func TestSparseTypes(t *testing.T) {
	sparse := func(types, samples int, shared bool) otlp {
		o := newOTLP()
		sp := o.scope()
		for i := range types {
			p := o.profile(sp, fmt.Sprint(i), "")
			for j := range samples {
				if !shared {
					j += i * samples
				}
				for o.dict.StackTable().Len() <= j {
					o.stackAt(uint64(o.dict.StackTable().Len()))
				}
				addValue(p, int32(j), 1)
			}
		}
		return o
	}
	_, err := Marshaler{}.ConvertProfiles(sparse(1500, 2, false).Profiles)
	require.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[")
	require.ErrorContains(t, err, "the 1500 sample types share too few samples")
	require.Len(t, convertOne(t, sparse(150, 100, true)).Sample, 100)
	require.Len(t, convertOne(t, sparse(16, 1000, false)).Sample, 16_000)
}

// One timestamp many times is found in linear time.
func TestManyEqualTimestamps(t *testing.T) {
	const n = 30_000
	o := newOTLP()
	sp := o.scope()
	addTimes(o.profile(sp, "a", ""), 0, make([]uint64, n), nil)
	addTimes(o.profile(sp, "b", ""), 0, make([]uint64, n+1), nil)
	p := convertOne(t, o)
	require.Len(t, p.Sample, n+1)
	require.Equal(t, []int64{1, 1}, p.Sample[n-1].Value)
	require.Equal(t, []int64{0, 1}, p.Sample[n].Value)
}
