// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// Payloads that are joined, some in parts, mean what they meant, and so do the next ones of the same Joiner.
func TestJoinKeepsMeaning(t *testing.T) {
	j := NewJoiner()
	for seed := range uint64(profiletest.Rounds(t, 50, 1000)) {
		r := profiletest.NewRand(seed)
		var payloads []pprofile.Profiles
		for range 1 + r.IntN(4) {
			payloads = append(payloads, profiletest.GenerateProfiles(r))
		}
		want := profiletest.Expand(t, payloads...)
		for _, pd := range payloads {
			var whole, divided []Part
			for i, rp := range pd.ResourceProfiles().All() {
				if r.IntN(2) == 0 {
					whole = append(whole, Part{Resource: i})
					continue
				}
				for k := range rp.ScopeProfiles().Len() {
					divided = append(divided, Part{Resource: i, Scopes: []int{k}})
				}
			}
			require.NoError(t, j.Add(pd, divided))
			require.NoError(t, j.Add(pd, whole))
		}
		wireSize := j.WireSize()
		joined := j.Take()
		alone := pprofile.NewProfiles()
		joined.Dictionary().CopyTo(alone.Dictionary())
		require.LessOrEqual(t, len(profiletest.Proto(t, alone)), wireSize+128, "seed %d", seed) // zero values are not counted
		profiletest.RequireConforms(t, joined)
		require.Emptyf(t, expand.Diff(want, profiletest.Expand(t, joined)), "seed %d", seed)
	}
	require.Zero(t, j.Take().ResourceProfiles().Len())
}

// TestJoinedEntriesAreShared: ten payloads of one program take little more than one.
func TestJoinedEntriesAreShared(t *testing.T) {
	j := NewJoiner()
	one := profiletest.Small(t)
	for range 10 {
		require.NoError(t, j.Add(profiletest.Small(t), []Part{{}}))
	}
	size := j.TablesSize()
	joined := j.Take()
	require.Equal(t, 10, joined.ResourceProfiles().Len())
	require.LessOrEqual(t, joined.Dictionary().StringTable().Len(), one.Dictionary().StringTable().Len()+1)
	require.LessOrEqual(t, joined.Dictionary().StackTable().Len(), one.Dictionary().StackTable().Len()+1)
	require.Greater(t, size, j.TablesSize())
}
