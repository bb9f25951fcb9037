// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

func isAllocated(sampleType string) bool { return strings.HasPrefix(sampleType, "alloc") }

// deltaOf returns the delta of two payloads, which stay as they are.
func deltaOf(t *testing.T, current, baseline pprofile.Profiles) (pprofile.Profiles, error) {
	t.Helper()
	current.MarkReadOnly() // a change panics
	baseline.MarkReadOnly()
	out, err := Delta(current, baseline, isAllocated)
	if err == nil {
		profiletest.RequireConforms(t, out)
	}
	return out, err
}

// allocations is a heap profile: alloc_space is cumulative, inuse_space is not. It has a
// sample for each value, of a stack of its own.
func allocations(time uint64, allocated, inUse []int64) pprofile.Profiles {
	pd := payloadtest.ManyStacks(max(len(allocated), len(inUse)), 0)
	pd.Dictionary().StringTable().Append("alloc_space", "inuse_space", "bytes")
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	profiles.RemoveIf(func(pprofile.Profile) bool { return true })
	for i, values := range [][]int64{allocated, inUse} {
		p := profiles.AppendEmpty()
		p.SampleType().SetTypeStrindex(int32(3 + i))
		p.SampleType().SetUnitStrindex(5)
		p.SetTime(pcommon.Timestamp(time))
		for stack, v := range values {
			s := p.Samples().AppendEmpty()
			s.SetStackIndex(int32(stack + 1))
			s.Values().Append(v)
		}
	}
	return pd
}

func TestDelta(t *testing.T) {
	out, err := deltaOf(t, allocations(90, []int64{10, 20, 30, math.MinInt64}, []int64{1, 2}), allocations(60, []int64{10, 5, 0, math.MinInt64}, []int64{4, 7, 9}))
	require.NoError(t, err)
	profiles := out.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	require.Equal(t, 2, profiles.Len())
	values := func(p pprofile.Profile) (all []int64) {
		for _, s := range p.Samples().All() {
			all = append(all, s.Values().AsRaw()...)
		}
		return all
	}
	require.ElementsMatch(t, []int64{15, 30}, values(profiles.At(0)))
	require.EqualValues(t, 60, profiles.At(0).Time())
	require.EqualValues(t, 30, profiles.At(0).DurationNano(), "it spans both snapshots")
	require.ElementsMatch(t, []int64{1, 2}, values(profiles.At(1)), "not cumulative")
	require.EqualValues(t, 90, profiles.At(1).Time())
	require.Zero(t, profiles.At(1).DurationNano())
}

func TestDeltaNoticesARestart(t *testing.T) {
	current := allocations(90, []int64{10, 20}, []int64{1})
	_, err := deltaOf(t, current, allocations(60, []int64{10, 21}, nil))
	require.ErrorIs(t, err, ErrRestarted)
	require.ErrorContains(t, err, "a sum of alloc_space is negative")
	_, err = deltaOf(t, current, allocations(60, []int64{10, 20, 1}, nil))
	require.ErrorIs(t, err, ErrRestarted, "a stack is missing")

	other := allocations(60, []int64{1}, nil)
	other.Dictionary().StringTable().SetAt(3, "alloc_objects")
	_, err = deltaOf(t, current, other)
	require.ErrorIs(t, err, ErrRestarted)
	require.ErrorContains(t, err, "sample types changed")

	for _, moved := range []struct {
		allocated, inUse []int64
		err              string
	}{
		{[]int64{0}, nil, ""}, // no sample refers to it
		{[]int64{1}, nil, "a sum of alloc_space is negative"},
		{nil, []int64{1}, ""}, // no cumulative sample refers to it
	} {
		baseline := allocations(60, moved.allocated, moved.inUse)
		baseline.Dictionary().MappingTable().AppendEmpty().SetMemoryStart(4096)
		baseline.Dictionary().LocationTable().At(1).SetMappingIndex(1)
		if _, err = deltaOf(t, current, baseline); moved.err == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, moved.err)
		}
	}
}

// A program that counts more than before at another address has restarted, also if merging would take it for the same code.
func TestDeltaNoticesAnotherLoadAddress(t *testing.T) {
	loaded := func(start uint64, allocated int64) pprofile.Profiles {
		pd := allocations(uint64(60+allocated), []int64{allocated}, nil)
		d := pd.Dictionary()
		d.StringTable().Append("/app")
		m := d.MappingTable().AppendEmpty()
		m.SetMemoryStart(start)
		m.SetMemoryLimit(start + 0x1000)
		m.SetFilenameStrindex(int32(d.StringTable().Len() - 1))
		d.FunctionTable().AppendEmpty()
		d.LocationTable().At(1).SetMappingIndex(1)
		d.LocationTable().At(1).SetAddress(start + 5)
		d.LocationTable().At(1).Lines().AppendEmpty().SetLine(7)
		return pd
	}
	require.Equal(t, 1+1, merged(t, defaultOptions(), loaded(0x1000, 10), loaded(0x8000, 20)).Dictionary().MappingTable().Len())
	_, err := deltaOf(t, loaded(0x8000, 20), loaded(0x1000, 10))
	require.ErrorIs(t, err, ErrRestarted)
	out, err := deltaOf(t, loaded(0x1000, 20), loaded(0x1000, 10))
	require.NoError(t, err)
	require.EqualValues(t, 10, payloadtest.First(out).Samples().At(0).Values().At(0))
}
