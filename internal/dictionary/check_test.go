// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// full is a payload in which each index field leads somewhere.
func full() pprofile.Profiles {
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	d.StringTable().Append("", "one")
	m := d.MappingTable()
	m.AppendEmpty()
	d.AttributeTable().AppendEmpty()
	a := d.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(1)
	a.SetUnitStrindex(1)
	mapping := m.AppendEmpty()
	mapping.SetFilenameStrindex(1)
	mapping.AttributeIndices().Append(1)
	d.FunctionTable().AppendEmpty()
	f := d.FunctionTable().AppendEmpty()
	f.SetNameStrindex(1)
	f.SetSystemNameStrindex(1)
	f.SetFilenameStrindex(1)
	d.LocationTable().AppendEmpty()
	l := d.LocationTable().AppendEmpty()
	l.SetMappingIndex(1)
	l.Lines().AppendEmpty().SetFunctionIndex(1)
	l.AttributeIndices().Append(1)
	d.LinkTable().AppendEmpty()
	d.LinkTable().AppendEmpty().SetTraceID(pcommon.TraceID{1})
	d.StackTable().AppendEmpty()
	d.StackTable().AppendEmpty().LocationIndices().Append(1)
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(1)
	p.SampleType().SetUnitStrindex(1)
	p.PeriodType().SetTypeStrindex(1)
	p.PeriodType().SetUnitStrindex(1)
	p.AttributeIndices().Append(1)
	s := p.Samples().AppendEmpty()
	s.SetStackIndex(1)
	s.SetLinkIndex(1)
	s.AttributeIndices().Append(1)
	s.Values().Append(1)
	return pd
}

// Check names each index field that is outside its table.
func TestCheckRejectsIndicesOutsideTables_P1(t *testing.T) {
	profile := func(pd pprofile.Profiles) pprofile.Profile {
		return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	}
	for field, set := range map[string]func(pprofile.Profiles, int32){
		"mapping_table[1].filename_strindex": func(pd pprofile.Profiles, i int32) { pd.Dictionary().MappingTable().At(1).SetFilenameStrindex(i) },
		"mapping_table[1].attribute_indices[0]": func(pd pprofile.Profiles, i int32) {
			pd.Dictionary().MappingTable().At(1).AttributeIndices().SetAt(0, i)
		},
		"location_table[1].mapping_index": func(pd pprofile.Profiles, i int32) { pd.Dictionary().LocationTable().At(1).SetMappingIndex(i) },
		"location_table[1].lines[0].function_": func(pd pprofile.Profiles, i int32) {
			pd.Dictionary().LocationTable().At(1).Lines().At(0).SetFunctionIndex(i)
		},
		"location_table[1].attribute_indices[0]": func(pd pprofile.Profiles, i int32) {
			pd.Dictionary().LocationTable().At(1).AttributeIndices().SetAt(0, i)
		},
		"function_table[1].name_strindex":        func(pd pprofile.Profiles, i int32) { pd.Dictionary().FunctionTable().At(1).SetNameStrindex(i) },
		"function_table[1].system_name_strindex": func(pd pprofile.Profiles, i int32) { pd.Dictionary().FunctionTable().At(1).SetSystemNameStrindex(i) },
		"function_table[1].filename_strindex":    func(pd pprofile.Profiles, i int32) { pd.Dictionary().FunctionTable().At(1).SetFilenameStrindex(i) },
		"attribute_table[1].key_strindex":        func(pd pprofile.Profiles, i int32) { pd.Dictionary().AttributeTable().At(1).SetKeyStrindex(i) },
		"attribute_table[1].unit_strindex":       func(pd pprofile.Profiles, i int32) { pd.Dictionary().AttributeTable().At(1).SetUnitStrindex(i) },
		"stack_table[1].location_indices[0]":     func(pd pprofile.Profiles, i int32) { pd.Dictionary().StackTable().At(1).LocationIndices().SetAt(0, i) },
		"profiles[0].sample_type.type_strindex":  func(pd pprofile.Profiles, i int32) { profile(pd).SampleType().SetTypeStrindex(i) },
		"profiles[0].sample_type.unit_strindex":  func(pd pprofile.Profiles, i int32) { profile(pd).SampleType().SetUnitStrindex(i) },
		"profiles[0].period_type.type_strindex":  func(pd pprofile.Profiles, i int32) { profile(pd).PeriodType().SetTypeStrindex(i) },
		"profiles[0].period_type.unit_strindex":  func(pd pprofile.Profiles, i int32) { profile(pd).PeriodType().SetUnitStrindex(i) },
		"profiles[0].attribute_indices[0]":       func(pd pprofile.Profiles, i int32) { profile(pd).AttributeIndices().SetAt(0, i) },
		"samples[0].stack_index":                 func(pd pprofile.Profiles, i int32) { profile(pd).Samples().At(0).SetStackIndex(i) },
		"samples[0].link_index":                  func(pd pprofile.Profiles, i int32) { profile(pd).Samples().At(0).SetLinkIndex(i) },
		"samples[0].attribute_indices[0]":        func(pd pprofile.Profiles, i int32) { profile(pd).Samples().At(0).AttributeIndices().SetAt(0, i) },
	} {
		t.Run(field, func(t *testing.T) {
			for _, bad := range []int32{-1, 2, math.MinInt32, math.MaxInt32} {
				pd := full()
				require.NoError(t, Check(pd))
				set(pd, bad)
				err := Check(pd)
				var index *IndexError
				require.ErrorAs(t, err, &index)
				require.Equal(t, bad, index.Index)
				profiletest.Injected(t, "1 payloads with an index to nowhere")
				require.Contains(t, err.Error(), field)
			}
			pd := full()
			set(pd, 0)
			require.NoError(t, Check(pd))
		})
	}
}

func TestCheckRejectsDeepValues_P1(t *testing.T) {
	for _, list := range []bool{false, true} {
		for depth, ok := range map[int]bool{MaxDepth: true, MaxDepth + 1: false, 10_000: false} {
			pd := full()
			v := pd.Dictionary().AttributeTable().At(1).Value()
			for range depth {
				if list {
					v = v.SetEmptyMap().PutEmpty("k")
				} else {
					v = v.SetEmptySlice().AppendEmpty()
				}
			}
			v.SetInt(1)
			if ok {
				require.NoError(t, Check(pd))
			} else {
				require.ErrorContains(t, Check(pd), "attribute_table[1].value nests deeper")
			}
		}
	}
	pd := full()
	v := pd.ResourceProfiles().At(0).Resource().Attributes().PutEmpty("deep")
	for range MaxDepth + 1 {
		v = v.SetEmptySlice().AppendEmpty()
	}
	require.ErrorContains(t, Check(pd), `resource_profiles[0].resource: attribute "deep"`)
	profiletest.Injected(t, "5 values nested too deep")
}

func TestCheckCounts(t *testing.T) {
	pd := full()
	s := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0)
	s.TimestampsUnixNano().Append(1, 2)
	require.ErrorContains(t, Check(pd), "samples[0] has 1 values and 2 timestamps")
	s.Values().Append(5)
	require.NoError(t, Check(pd))
	s.Values().FromRaw(nil)
	require.NoError(t, Check(pd))
}

// Tables without a zero value, and empty ones, are read as what they hold.
func TestRemapWithoutZeroValues(t *testing.T) {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("first")
	pd.Dictionary().LocationTable().AppendEmpty().SetAddress(7)
	pd.Dictionary().StackTable().AppendEmpty().LocationIndices().Append(0)
	require.NoError(t, Check(pd))
	tables := New(0)
	var r Remap
	r.Reset(pd.Dictionary(), tables)
	require.Equal(t, "first", tables.StringAt(r.String(0)))
	require.Equal(t, tables.Stack([]int32{tables.Location(Location{Address: 7})}), r.Stack(0))
	require.Zero(t, r.Mapping(0))
	require.Zero(t, r.Link(0))

	half := pprofile.NewProfiles()
	half.Dictionary().LinkTable().AppendEmpty()
	half.Dictionary().LinkTable().AppendEmpty().SetTraceID(pcommon.TraceID{1})
	r.Reset(half.Dictionary(), tables)
	require.Zero(t, r.Link(1), "a link without a span is none")
}

// Whatever passes Check can be written anew, and what is written conforms.
func FuzzCheckAndRemap(f *testing.F) {
	for seed := range uint64(20) {
		b, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(profiletest.GenerateProfiles(profiletest.NewRand(seed)))
		require.NoError(f, err)
		f.Add(b)
	}
	b, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(full())
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
		if err != nil || Check(pd) != nil {
			return
		}
		tables := New(0)
		var r Remap
		remapped(tables, &r, pd)
		if tables.Err() != nil {
			return
		}
		profiletest.RequireConformsBytes(t, canonical(pd))
	})
}
