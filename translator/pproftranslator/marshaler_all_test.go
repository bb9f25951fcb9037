// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// TestAllGoesOn behind what cannot be a pprof, and ends when it is told to.
func TestAllGoesOn(t *testing.T) {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", "cpu", "nanoseconds")
	for _, values := range [][]int64{{1}, {math.MaxInt64, 1}, {3}} {
		p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
		p.SampleType().SetTypeStrindex(1)
		p.SampleType().SetUnitStrindex(2)
		for _, v := range values {
			p.Samples().AppendEmpty().Values().Append(v)
		}
	}
	var got []int64
	for p, err := range (Marshaler{}).All(pd) {
		if err != nil {
			require.ErrorContains(t, err, "resource_profiles[1].scope_profiles[0].profiles[0].samples[1]: sum of merged values overflows int64")
			require.Nil(t, p.Profile)
			got = append(got, 0)
			continue
		}
		assert.Equal(t, []int{0}, p.Profiles)
		assert.Equal(t, []int{len(got), 0}, []int{p.Resource, p.Scope})
		got = append(got, p.Sample[0].Value[0])
	}
	assert.Equal(t, []int64{1, 0, 3}, got)
	_, err := Marshaler{}.ConvertProfiles(pd)
	require.ErrorContains(t, err, "resource_profiles[1]")
	for _, err := range (Marshaler{}).All(pd) {
		require.NoError(t, err)
		break
	}
	pd.ResourceProfiles().At(2).ScopeProfiles().At(0).Profiles().At(0).SampleType().SetTypeStrindex(9)
	n := 0
	for _, err := range (Marshaler{}).All(pd) {
		require.Error(t, err)
		n++
	}
	assert.Equal(t, 1, n, "an index outside its table is the error of all")
}
