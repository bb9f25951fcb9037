// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestAllGoesOn behind what cannot be a pprof, and ends when it is told to.
func TestAllGoesOn(t *testing.T) {
	o := newOTLP()
	for _, values := range [][]int64{{1}, {math.MaxInt64, 1}, {3}} {
		p := o.profile(o.scope(), "cpu", "nanoseconds")
		for _, v := range values {
			addValue(p, 0, v)
		}
	}
	var got []int64
	for p, err := range (Marshaler{}).All(t.Context(), o.Profiles) {
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
	_, err := pprofsOf(Marshaler{}, o.Profiles)
	require.ErrorContains(t, err, "resource_profiles[1]")
	for _, err := range (Marshaler{}).All(t.Context(), o.Profiles) {
		require.NoError(t, err)
		break
	}
	o.profile(o.scope(), "", "").SampleType().SetTypeStrindex(99)
	n := 0
	for _, err := range (Marshaler{}).All(t.Context(), o.Profiles) {
		require.Error(t, err)
		n++
	}
	assert.Equal(t, 1, n, "an index outside its table is the error of all")
}

// Each sample of a pprof has a value of each sample type, so a limit of samples would not bound the memory.
func TestMaxValuesIsOfAllPprofsTogether(t *testing.T) {
	o := newOTLP()
	for range 2 {
		sp := o.scope()
		addValue(o.profile(sp, "cpu", ""), 0, 1)
		addValue(o.profile(sp, "samples", ""), 0, 1)
	}
	for limit := range 5 {
		converted, err := pprofsOf(Marshaler{MaxValues: limit}, o.Profiles)
		if 0 < limit && limit < 4 {
			require.ErrorIs(t, err, ErrMaxValues)
		} else {
			require.NoError(t, err)
			assert.Len(t, converted, 2)
		}
	}
}

func TestAllEndsWithItsContext(t *testing.T) {
	pd := pprofile.NewProfiles()
	samples := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples()
	samples.EnsureCapacity(20_000)
	for range 20_000 {
		samples.AppendEmpty().Values().Append(1)
	}
	looks, err := 0, error(nil)
	for ; looks == 0 || err != nil; looks++ {
		for _, err = range (Marshaler{}).All(profiletest.NewCountdown(looks), pd) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
		}
	}
	assert.Greater(t, looks, 4, "also within a Profile")
}
