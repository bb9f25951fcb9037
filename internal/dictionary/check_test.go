// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Profiles names each index field that is outside its table.
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
				profiletest.Injected(t, "1 payloads with an index to nowhere")
				require.Contains(t, err.Error(), field)
			}
			pd := profiletest.OneOfEach()
			set(pd, 0)
			require.NoError(t, Check(pd))
		})
	}
}

func TestCheckRejectsDeepValues_P1(t *testing.T) {
	for _, list := range []bool{false, true} {
		for depth, ok := range map[int]bool{MaxDepth: true, MaxDepth + 1: false, 10_000: false} {
			pd := profiletest.OneOfEach()
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
	pd := profiletest.OneOfEach()
	v := pd.ResourceProfiles().At(0).Resource().Attributes().PutEmpty("deep")
	for range MaxDepth + 1 {
		v = v.SetEmptySlice().AppendEmpty()
	}
	require.ErrorContains(t, Check(pd), `resource_profiles[0].resource: attribute "deep"`)
	profiletest.Injected(t, "5 values nested too deep")
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
