// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// orderAndList returns the attributes of a scope that restore the sample types.
func orderAndList(scope pprofile.ScopeProfiles) (order, list []any) {
	if v, ok := scope.Scope().Attributes().Get(sampletypes.OrderAttribute); ok {
		order = v.Slice().AsRaw()
	}
	if v, ok := scope.Scope().Attributes().Get(attrkey.SampleTypes); ok {
		list = v.Slice().AsRaw()
	}
	return order, list
}

func pprofOf(t *testing.T, p *profile.Profile) pprofile.Profiles {
	t.Helper()
	return unmarshalPprof(t, profiletest.Pprof(t, p))
}

// pprofsOf returns all pprofs of pd.
func pprofsOf(t *testing.T, pd pprofile.Profiles) (pprofs []*profile.Profile) {
	t.Helper()
	for p, err := range (pproftranslator.Marshaler{}).All(t.Context(), pd) {
		require.NoError(t, err)
		pprofs = append(pprofs, p.Profile)
	}
	return pprofs
}

// Snapshots are in another scope than intervals. Each scope describes its own Profiles, and
// returns to a pprof with all sample types.
func TestSplitScopesDescribeTheirProfiles(t *testing.T) {
	p := profiletest.HeapPprof(10, 1000, 2, 200)
	p.DurationNanos, p.DefaultSampleType = 1e9, "alloc_space"
	out := merged(t, defaultOptions(), pprofOf(t, p))
	scopes := out.ResourceProfiles().At(0).ScopeProfiles()
	require.Equal(t, 2, scopes.Len())
	all := []any{"alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"}
	for i, want := range [][]any{{int64(1), int64(0)}, {int64(2), int64(3)}} {
		order, list := orderAndList(scopes.At(i))
		require.Equal(t, want, order)
		require.Equal(t, all, list)
	}
	pprofs := pprofsOf(t, out)
	require.Len(t, pprofs, 2)
	sum, err := profile.Merge(pprofs)
	require.NoError(t, err)
	require.Equal(t, []int64{10, 1000, 2, 200}, sum.Sample[0].Value)
	require.Equal(t, "alloc_space", sum.DefaultSampleType)
}

// Profiles merge whichever other sample types of their pprof have samples.
func TestScopesMergeIfTheirSampleTypesAreEqual(t *testing.T) {
	options := defaultOptions()
	options.Snapshots = SnapshotsSum
	whole := pprofOf(t, profiletest.HeapPprof(10, 1000, 2, 200))
	window := NewWindow(options)
	payload, err := Check(whole, options)
	require.NoError(t, err)
	var skip []bool
	for p := range sampletypes.ProfilesOf(whole) {
		skip = append(skip, whole.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex())) != "alloc_space")
	}
	require.NoError(t, window.Add(payload.Without(skip)))
	part := window.Emit("")
	order, list := orderAndList(part.ResourceProfiles().At(0).ScopeProfiles().At(0))
	require.Equal(t, []any{int64(1)}, order)
	require.Len(t, list, 4)
	_, list = orderAndList(whole.ResourceProfiles().At(0).ScopeProfiles().At(0))
	require.Empty(t, list, "all types have a Profile")

	for _, payloads := range [][]pprofile.Profiles{{whole, part}, {part, whole}} {
		out := merged(t, options, payloads...)
		require.Equal(t, 1, out.ResourceProfiles().At(0).ScopeProfiles().Len())
		order, list := orderAndList(out.ResourceProfiles().At(0).ScopeProfiles().At(0))
		require.ElementsMatch(t, []any{int64(3), int64(0), int64(1), int64(2)}, order)
		require.Empty(t, list)
		pprofs := pprofsOf(t, out)
		require.Len(t, pprofs, 1)
		require.Equal(t, []int64{10, 2000, 2, 200}, pprofs[0].Sample[0].Value)
	}
}

// A scope whose name reads like the sample type of another one stays apart.
func TestScopesOfCraftedNamesStayApart(t *testing.T) {
	typed := pprofOf(t, &profile.Profile{DurationNanos: 1e9, SampleType: []*profile.ValueType{{Type: "\x00\x08ab"}}, Sample: []*profile.Sample{{Value: []int64{1}}}})
	typed.ResourceProfiles().At(0).ScopeProfiles().At(0).SetSchemaUrl("\x00\x00")
	typed.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutEmptySlice(sampletypes.OrderAttribute).AppendEmpty().SetInt(0)
	named := pprofile.NewProfiles()
	typed.CopyTo(named)
	scope := named.ResourceProfiles().At(0).ScopeProfiles().At(0)
	scope.Scope().Attributes().Remove(sampletypes.OrderAttribute)
	scope.Scope().SetName("ab\x00\x04\x02\x00\x00\x02")
	scope.SetSchemaUrl("")
	require.Equal(t, 2, merged(t, defaultOptions(), typed, named).ResourceProfiles().At(0).ScopeProfiles().Len())
}

// An order that does not fit the Profiles would mislead readers.
func TestSampleTypeOrderThatDoesNotFitIsDropped(t *testing.T) {
	pd := pprofOf(t, profiletest.HeapPprof(10, 1000, 2, 200))
	scope := pd.ResourceProfiles().At(0).ScopeProfiles().At(0)
	n := 0
	scope.Profiles().RemoveIf(func(pprofile.Profile) bool { n++; return n > 2 })
	out := merged(t, defaultOptions(), pd)
	for _, scope := range out.ResourceProfiles().At(0).ScopeProfiles().All() {
		order, list := orderAndList(scope)
		require.Empty(t, order)
		require.Empty(t, list)
	}
}
