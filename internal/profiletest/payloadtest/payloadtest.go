// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package payloadtest has small payloads for tests of merging.
package payloadtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Interval is a payload with one Profile of one sample of CPU time, counted from start on, in nanoseconds.
func Interval(start, duration uint64, value int64) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", "cpu", "nanoseconds")
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(1)
	p.SampleType().SetUnitStrindex(2)
	p.SetTime(pcommon.Timestamp(start))
	p.SetDurationNano(duration)
	p.Samples().AppendEmpty().Values().Append(value)
	return pd
}

// Snapshot is a payload with one Profile of the objects of a process at a time.
func Snapshot(process string, time uint64, value int64) pprofile.Profiles {
	pd := With(Interval(time, 0, value), "service.name", "checkout", "service.instance.id", process)
	pd.Dictionary().StringTable().SetAt(1, "objects") // the sample type
	return pd
}

// ManyStacks is a payload with n samples of different stacks in a Profile with this ID.
func ManyStacks(n int, id byte) pprofile.Profiles {
	pd := Interval(1, 1, 1)
	d := pd.Dictionary()
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	p := First(pd)
	p.SetProfileID(pprofile.ProfileID{id})
	p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
	p.Samples().EnsureCapacity(n)
	for i := range n {
		d.LocationTable().AppendEmpty().SetAddress(uint64(i + 1))
		d.StackTable().AppendEmpty().LocationIndices().Append(int32(i + 1))
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(int32(i + 1))
		s.Values().Append(1)
	}
	return pd
}

// With sets attributes, keys and values in turns, on all resources of pd, and returns it.
func With(pd pprofile.Profiles, attributes ...string) pprofile.Profiles {
	for _, rp := range pd.ResourceProfiles().All() {
		for i := 0; i < len(attributes); i += 2 {
			rp.Resource().Attributes().PutStr(attributes[i], attributes[i+1])
		}
	}
	return pd
}

// InOne is one payload with the resources and scopes of both, also of those that are equal.
func InOne(t testing.TB, a, b pprofile.Profiles) pprofile.Profiles {
	t.Helper()
	pd, more := pprofile.NewProfiles(), pprofile.NewProfiles()
	a.CopyTo(pd)
	b.CopyTo(more)
	require.NoError(t, more.MergeTo(pd))
	return pd
}

// Only returns the only Profile of pd.
func Only(t testing.TB, pd pprofile.Profiles) pprofile.Profile {
	t.Helper()
	require.Equal(t, 1, pd.ProfileCount())
	return First(pd)
}

// First returns the first Profile of pd.
func First(pd pprofile.Profiles) pprofile.Profile {
	return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
}

// OfServices is pd with n resources instead of one, each of a service of its own.
func OfServices(pd pprofile.Profiles, n int) pprofile.Profiles {
	With(pd, "service.name", "0")
	for i := 1; i < n; i++ {
		to := pd.ResourceProfiles().AppendEmpty()
		pd.ResourceProfiles().At(0).CopyTo(to)
		to.Resource().Attributes().PutStr("service.name", fmt.Sprint(i))
	}
	return pd
}
