// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"math/big"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// typed returns a payload of services with a Profile of each profile type, whose value is its number.
func typed(t testing.TB, services []string, types ...string) pprofile.Profiles {
	var all []expand.Profile
	for s, service := range services {
		for i, typ := range types {
			all = append(all, expand.Profile{
				Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: service}}},
				Scope:    expand.Entity{Attributes: []expand.Attribute{{Key: attrkey.ProfileType, Value: typ}}},
				Type:     "cpu", Unit: "nanoseconds", Shape: expand.ShapeValues,
				Samples: []*expand.Sample{{Sum: big.NewInt(int64(10*s + i + 1))}},
			})
		}
	}
	return profiletest.Build(t, all...)
}

// valuesOf returns the values of all samples in the files of a directory.
func valuesOf(t *testing.T, cfg *Config, dir string) (values []int64) {
	t.Helper()
	dir = filepath.Join(cfg.Directory, dir)
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil
	}
	of := *cfg
	of.Directory = dir
	for _, record := range plainRecords(t, &of) {
		values = append(values, valuesIn(profiletest.Unmarshal(t, record))...)
	}
	return values
}

func valuesIn(pd pprofile.Profiles) (values []int64) {
	for p := range sampletypes.ProfilesOf(pd) {
		for _, s := range p.Samples().All() {
			values = append(values, s.Values().AsRaw()...)
		}
	}
	return values
}

// TestErrorCarriesUnwrittenProfiles: a retry has the groups whose directory took nothing, and no other, however often it fails.
func TestErrorCarriesUnwrittenProfiles(t *testing.T) {
	cfg := newConfig(t, attrkey.ProfileType)
	cfg.Sync = syncNone
	e, _, _ := observed(t, cfg)
	require.NoError(t, e.start(t.Context(), nil))
	unblock := []func(){block(t, cfg, "heap"), block(t, cfg, "mutex")}
	pd, err := consume(t.Context(), e.consume, typed(t, []string{"a", "b"}, "cpu", "heap", "mutex"))
	require.ErrorContains(t, err, "2 of 3 records failed")
	require.ErrorIs(t, err, syscall.EROFS)
	for range 2 {
		require.False(t, consumererror.IsPermanent(err))
		require.Equal(t, []int64{2, 12, 3, 13}, valuesIn(pd))
		require.Equal(t, []string{"a", "b", "a", "b"}, servicesOf(t, pd))
		pd, err = consume(t.Context(), e.consume, pd)
		require.ErrorContains(t, err, "2 of 2 records failed")
	}
	unblock[0]()
	pd, err = consume(t.Context(), e.consume, pd)
	require.ErrorContains(t, err, filepath.Join(cfg.Directory, "otelcol_profiles.type=mutex"))
	require.Equal(t, []int64{3, 13}, valuesIn(pd))
	pd, err = consume(t.Context(), e.consume, pd)
	require.ErrorContains(t, err, filepath.Join(cfg.Directory, "otelcol_profiles.type=mutex"), "its strings are references now, of which the group is the same")
	unblock[1]()
	_, err = consume(t.Context(), e.consume, pd)
	require.NoError(t, err)
	require.NoError(t, e.shutdown(t.Context()))
	for typ, want := range map[string][]int64{"cpu": {1, 11}, "heap": {2, 12}, "mutex": {3, 13}} {
		assert.Equal(t, want, valuesOf(t, cfg, "otelcol_profiles.type="+typ), typ)
	}
}

// Without the attribute, sample types tell the profile type, or nothing does.
func TestGroupsByProfileTypeAndResource(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory, cfg.MaxGroups, cfg.Sync = t.TempDir(), 3, syncNone
	cfg.GroupBy = []string{"service.name", attrkey.ProfileType}
	e, _ := startExporter(t, cfg)
	pd := typed(t, []string{"a", "b"}, "heap", "cpu")
	scopes := pd.ResourceProfiles().At(1).ScopeProfiles()
	scopes.At(1).Scope().Attributes().Remove(attrkey.ProfileType) // its sample type is cpu
	scopes.At(0).Scope().Attributes().Remove(attrkey.ProfileType)
	scopes.At(0).Profiles().At(0).SampleType().SetTypeStrindex(0)
	pd.ResourceProfiles().At(0).CopyTo(pd.ResourceProfiles().AppendEmpty())
	last := pd.ResourceProfiles().At(2)
	last.Resource().Attributes().PutStr("service.name", "c")
	last.ScopeProfiles().RemoveIf(func(pprofile.ScopeProfiles) bool { return true })
	require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
	require.NoError(t, e.Shutdown(t.Context()))
	for dir, want := range map[string][]int64{
		"service.name=a/otelcol_profiles.type=heap": {1}, "service.name=a/otelcol_profiles.type=cpu": {2}, "service.name=b/otelcol_profiles.type=_unset": {11},
		"service.name=_other/otelcol_profiles.type=_other": {12},
	} {
		assert.Equal(t, want, valuesOf(t, cfg, dir), dir)
	}
	assert.Equal(t, []string{"service.name=_other", "service.name=a", "service.name=b"}, listGroups(t, cfg.Directory), "c has no scope, and is beyond max_groups")
}
