// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// The resources of a payload, taken one by one from one Splitter, mean what they meant.
func TestSplitKeepsMeaning(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 50, 1000)) {
		pd := profiletest.GenerateProfiles(profiletest.NewRand(seed))
		s := NewSplitter(pd)
		for i, rp := range pd.ResourceProfiles().All() {
			alone := pprofile.NewProfiles()
			pd.Dictionary().CopyTo(alone.Dictionary())
			rp.CopyTo(alone.ResourceProfiles().AppendEmpty())
			want := profiletest.Expand(t, alone)
			taken := s.Take([]Part{{Resource: i}})
			profiletest.RequireConforms(t, taken)
			require.Emptyf(t, expand.Diff(want, profiletest.Expand(t, taken)), "seed %d, resource %d", seed, i)
		}
	}
}

func TestSplitKeepsPartialLinks(t *testing.T) {
	p := NewSplitter(profiletest.OneOfEach()).Take([]Part{{}})
	require.Equal(t, 2, p.Dictionary().LinkTable().Len())
	require.Equal(t, pcommon.TraceID{1}, p.Dictionary().LinkTable().At(1).TraceID())
	sample := p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0)
	require.Equal(t, int32(1), sample.LinkIndex())
}
