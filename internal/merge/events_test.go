// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// timestamped is a payload of n Profiles that do not merge, each with one timestamp of a
// stack of its own.
func timestamped(n int) pprofile.Profiles {
	pd := payloadtest.ManyStacks(n, 0)
	scope := pd.ResourceProfiles().At(0).ScopeProfiles().At(0)
	all := pprofile.NewProfile()
	scope.Profiles().At(0).CopyTo(all)
	scope.Profiles().RemoveIf(func(pprofile.Profile) bool { return true })
	for i := range n {
		p := scope.Profiles().AppendEmpty()
		p.SampleType().SetTypeStrindex(all.SampleType().TypeStrindex())
		p.SetPeriod(int64(i + 1))
		p.SetTime(1)
		p.SetDurationNano(1)
		s := p.Samples().AppendEmpty()
		all.Samples().At(i).CopyTo(s)
		s.TimestampsUnixNano().Append(1)
	}
	return pd
}

// What many Profiles with timestamps cost grows with their number and not with its square.
func TestManyTimestampedProfiles(t *testing.T) {
	cost := func(n int) uint64 {
		w := NewWindow(defaultOptions())
		require.NoError(t, add(w, timestamped(n)))
		var pd pprofile.Profiles
		allocated := profiletest.AllocatedBy(func() { pd = w.Emit("") })
		require.Equal(t, n, pd.SampleCount())
		require.Equal(t, n, pd.ProfileCount())
		return allocated
	}
	few, many := cost(1000), cost(8000)
	t.Logf("1000 Profiles: %d bytes; 8000: %d", few, many)
	require.Less(t, many, 12*few)
}
