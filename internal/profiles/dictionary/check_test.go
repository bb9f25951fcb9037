// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Check names each index field that is outside its table.
func TestCheckRejectsIndicesOutsideTables_P1(t *testing.T) {
	for field, set := range profiletest.IndexFields() {
		t.Run(field, func(t *testing.T) {
			for _, bad := range []int32{-1, 2, math.MinInt32, math.MaxInt32} {
				pd := profiletest.OneOfEach()
				require.NoError(t, Check(pd))
				set(pd, bad)
				err := Check(pd)
				var index *IndexError
				require.ErrorAs(t, err, &index)
				require.Equal(t, bad, index.Index)
				require.Contains(t, err.Error(), field)
			}
			pd := profiletest.OneOfEach()
			set(pd, 0)
			require.NoError(t, Check(pd))
		})
	}
}

func TestCheckRejectsDeepValues_P1(t *testing.T) {
	for place, attribute := range map[string]func(pprofile.Profiles) pcommon.Value{
		"attribute_table[1].value": func(pd pprofile.Profiles) pcommon.Value { return pd.Dictionary().AttributeTable().At(1).Value() },
		`resource_profiles[0].resource: attribute "deep"`: func(pd pprofile.Profiles) pcommon.Value {
			return pd.ResourceProfiles().At(0).Resource().Attributes().PutEmpty("deep")
		},
		`scope_profiles[0].scope: attribute "deep"`: func(pd pprofile.Profiles) pcommon.Value {
			return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutEmpty("deep")
		},
	} {
		for _, list := range []bool{false, true} {
			for depth, ok := range map[int]bool{MaxDepth: true, MaxDepth + 1: false, 10_000: false} {
				pd := profiletest.OneOfEach()
				v := attribute(pd)
				for range depth {
					if list {
						v = v.SetEmptyMap().PutEmpty("k")
					} else {
						v = v.SetEmptySlice().AppendEmpty()
					}
				}
				v.SetInt(1)
				for _, err := range []error{Check(pd), CheckValues(pd)} {
					if ok {
						require.NoError(t, err, place)
					} else {
						require.ErrorContains(t, err, place+" nests deeper")
					}
				}
			}
		}
	}
}

func TestCheckCounts(t *testing.T) {
	pd := profiletest.OneOfEach()
	s := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0)
	s.TimestampsUnixNano().Append(1, 2)
	require.ErrorContains(t, Check(pd), "samples[0] has 1 values and 2 timestamps")
	s.Values().Append(5)
	require.NoError(t, Check(pd))
	s.Values().FromRaw(nil)
	require.NoError(t, Check(pd))
}

// Two different attributes of one key are rejected wherever they are; equal ones, zero values and dropped ones are not.
func TestDuplicateKeysInSets_P1(t *testing.T) {
	sets := map[string]func(pd pprofile.Profiles) pcommon.Int32Slice{
		"mapping_table[1]": func(pd pprofile.Profiles) pcommon.Int32Slice {
			return pd.Dictionary().MappingTable().At(1).AttributeIndices()
		},
		"location_table[1]": func(pd pprofile.Profiles) pcommon.Int32Slice {
			return pd.Dictionary().LocationTable().At(1).AttributeIndices()
		},
		"resource_profiles[0].scope_profiles[0].profiles[0].samples[0]": func(pd pprofile.Profiles) pcommon.Int32Slice {
			return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).AttributeIndices()
		},
	}
	for place, set := range sets {
		pd := profiletest.OneOfEach()
		d := pd.Dictionary()
		d.StringTable().Append("k\xff", `k\xff`)
		n, key := int32(d.AttributeTable().Len()), int32(d.StringTable().Len()-2)
		for i, value := range []int64{1, 1, 2} {
			a := d.AttributeTable().AppendEmpty()
			a.SetKeyStrindex(key + int32(i%2))
			a.Value().SetInt(value)
		}
		set(pd).FromRaw([]int32{n, n + 1, 0, n, 0})
		_, err := CheckToMerge(pd, nil)
		require.NoError(t, err, "equal")
		set(pd).Append(n + 2)
		_, err = CheckToMerge(pd, nil)
		require.ErrorContains(t, err, place+`: attribute_indices refer to two attributes with the key "k`)
		drop := make([]bool, n+3)
		drop[n+2] = true
		if _, err = CheckToMerge(pd, drop); strings.HasSuffix(place, "samples[0]") {
			require.NoError(t, err, "dropped")
		} else {
			require.Error(t, err, "only samples lose attributes")
		}
	}
}

// Sets of two attributes are compared with each other's keys, not with those of the sets before.
func TestDuplicateKeysInSetsOfTwo(t *testing.T) {
	d := pprofile.NewProfilesDictionary()
	d.StringTable().Append("", "a", "b", "a")
	for i, key := range []int32{0, 1, 2, 1, 3} {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(key)
		a.Value().SetInt(int64(i))
	}
	c := SetChecker{Dictionary: d}
	for _, test := range []struct {
		set      []int32
		rejected bool
	}{
		{[]int32{0, 0}, false}, {[]int32{1, 3}, true}, {[]int32{1, 2}, false}, {[]int32{1, 2}, false}, {[]int32{3, 2}, false},
		{[]int32{1, 3}, true}, {[]int32{1, 4}, true}, {[]int32{4, 2}, false}, {[]int32{4, 1}, true}, {[]int32{2, 2}, false},
	} {
		set := pcommon.NewInt32Slice()
		set.FromRaw(test.set)
		require.Equal(t, test.rejected, c.Check(set, nil) != nil, "%v", test.set)
	}
}
