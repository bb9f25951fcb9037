// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func marshal(t testing.TB, pd pprofile.Profiles) []byte {
	t.Helper()
	mutable := pprofile.NewProfiles()
	pd.CopyTo(mutable)
	b, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(mutable)
	require.NoError(t, err)
	return b
}

func unmarshalPprof(t testing.TB, data []byte) pprofile.Profiles {
	t.Helper()
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(data)
	require.NoError(t, err)
	return pd
}

func eachProfile(pd pprofile.Profiles, f func(pprofile.Profile)) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				f(p)
			}
		}
	}
}

func inOne(t testing.TB, a, b pprofile.Profiles) pprofile.Profiles {
	t.Helper()
	expandedA, err := expand.Profiles(a)
	require.NoError(t, err)
	expandedB, err := expand.Profiles(b)
	require.NoError(t, err)
	pd, err := expand.Build(append(expandedA, expandedB...))
	require.NoError(t, err)
	return pd
}

func interval(start, duration uint64, value int64) pprofile.Profiles {
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

func onlyProfile(t testing.TB, pd pprofile.Profiles) pprofile.Profile {
	t.Helper()
	require.Equal(t, 1, pd.ProfileCount())
	return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
}

func of(pd pprofile.Profiles, attributes ...string) pprofile.Profiles {
	for _, rp := range pd.ResourceProfiles().All() {
		for i := 0; i < len(attributes); i += 2 {
			rp.Resource().Attributes().PutStr(attributes[i], attributes[i+1])
		}
	}
	return pd
}

func snapshot(process string, time uint64, value int64) pprofile.Profiles {
	pd := of(interval(time, 0, value), "service.name", "checkout", "service.instance.id", process)
	pd.Dictionary().StringTable().SetAt(1, "objects") // the sample type
	return pd
}

func firstProfile(pd pprofile.Profiles) pprofile.Profile {
	return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
}

func manyStacks(n int, id byte) pprofile.Profiles {
	pd := interval(1, 1, 1)
	d := pd.Dictionary()
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
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
