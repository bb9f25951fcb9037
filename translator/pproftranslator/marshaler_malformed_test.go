// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

func TestRepeatedKeys(t *testing.T) {
	one, two := func(o otlp) int32 { return o.attr("k", 1, "") }, func(o otlp) int32 { return o.attr("k", 2, "") }
	o := newOTLP()
	addValue(o.profile(o.scope(), "cpu", ""), 0, 1, one(o), two(o))
	_, err := pprofsOf(Marshaler{}, o.Profiles)
	var repeated *dictionary.DuplicateKeyError
	require.ErrorAs(t, err, &repeated, "%v", err)
	require.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[0].samples[0]: ")

	o = newOTLP()
	o.profile(o.scope(), "cpu", "", one(o), two(o))
	_, err = pprofsOf(Marshaler{}, o.Profiles)
	require.ErrorAs(t, err, &repeated, "%v", err)
	require.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[0]")
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
	_, err := pprofsOf(Marshaler{}, sparse(1500, 2, false).Profiles)
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
