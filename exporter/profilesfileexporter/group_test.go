// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// generateGroups gives profiles of several resources in one dictionary, with values
// of every kind to group by.
func generateGroups(t testing.TB, seed uint64) pprofile.Profiles {
	random := profiletest.NewRand(seed)
	var all []expand.Profile
	for range 1 + random.IntN(4) {
		all = append(all, profiletest.GenerateExpanded(random)...)
	}
	pd := profiletest.Build(t, all...)
	values := []any{"", 1, "1", "../1", []any{1}, 1.0, true}
	for _, rp := range pd.ResourceProfiles().All() {
		if i := random.IntN(len(values) + 1); i < len(values) {
			require.NoError(t, rp.Resource().Attributes().PutEmpty("group").FromRaw(values[i]))
		}
	}
	return pd
}

// byGroup says what each group has to hold, by the values themselves.
func byGroup(all []expand.Profile) map[string][]expand.Profile {
	groups := map[string][]expand.Profile{}
	for _, p := range all {
		value := expand.Value(p.Resource.Attributes, "group")
		directory := groupDirectories[fmt.Sprintf("%T %v", value, value)]
		groups[directory] = append(groups[directory], p)
	}
	return groups
}

var groupDirectories = map[string]string{
	"<nil> <nil>": "_unset", "string ": "_empty", "int64 1": "_int-1", "string 1": "1", "string ../1": "%2E.%2F1", "float64 1": "_double-1", "bool true": "_bool-true",
	"[]interface {} [1]": groupNameOf(func() pcommon.Value { v := pcommon.NewValueSlice(); v.Slice().AppendEmpty().SetInt(1); return v }()),
}

// TestGrouped_E8: what goes into groups comes out of them, stacks written out, for
// random payloads in every mode.
func TestGrouped_E8(t *testing.T) {
	payloads := profiletest.Rounds(t, 3, 1000)
	seed := profiletest.Seed(t)
	forEachWay(t, func(t *testing.T, cfg *Config) {
		t.Parallel()
		cfg.GroupBy = []string{"group"}
		cfg.Sync = syncNone
		cfg.Rotation.MaxRecords = 20
		e, _ := startExporter(t, cfg)
		want := map[string][][]expand.Profile{}
		for i := range payloads {
			pd := generateGroups(t, seed+uint64(i))
			before := profiletest.Expand(t, pd)
			groups := byGroup(before)
			for directory, profiles := range groups {
				want[directory] = append(want[directory], profiles)
			}
			if i%2 == 0 {
				pd.MarkReadOnly()
			}
			require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
			if len(groups) > 1 || i%2 == 0 {
				require.Empty(t, expand.Diff(before, profiletest.Expand(t, pd)), "the caller's data is changed")
			}
		}
		require.NoError(t, e.Shutdown(t.Context()))
		require.Len(t, listGroups(t, cfg.Directory), len(want))
		acknowledged, readable := 0, 0
		for directory, payloads := range want {
			of := *cfg
			of.Directory = filepath.Join(cfg.Directory, layout.GroupDir("group", directory))
			records := plainRecords(t, &of)
			require.Len(t, records, len(payloads), directory)
			for i, record := range records {
				require.Empty(t, expand.Diff(payloads[i], expandRecord(t, cfg, record)), "%s, record %d", directory, i)
			}
			acknowledged, readable = acknowledged+len(payloads), readable+len(records)
		}
		profiletest.Account(t, fmt.Sprintf("%d payloads of several groups", payloads), acknowledged, readable, 0)
	})
}

func TestGroupRefusesWhatRefersToNothing(t *testing.T) {
	cfg := newConfig(t, "service.name")
	e, _ := startExporter(t, cfg)
	pd := pprofile.NewProfiles()
	pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty().SetStackIndex(7)
	err := e.ConsumeProfiles(t.Context(), pd)
	require.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index is 7: stack_table has 0 entries")
	assert.True(t, consumererror.IsPermanent(err))
	require.NoError(t, e.Shutdown(t.Context()))
	assert.Empty(t, list(t, cfg.Directory))
}

func TestGroupNames(t *testing.T) {
	values := map[string]func(v pcommon.Value){
		"checkout":          func(v pcommon.Value) { v.SetStr("checkout") },
		"_empty":            func(v pcommon.Value) { v.SetStr("") },
		"_null-":            func(pcommon.Value) {},
		"_int-1":            func(v pcommon.Value) { v.SetInt(1) },
		"_int--1":           func(v pcommon.Value) { v.SetInt(-1) },
		"_double-1":         func(v pcommon.Value) { v.SetDouble(1) },
		"_bool-false":       func(v pcommon.Value) { v.SetBool(false) },
		"_bytes-2e2e":       func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte("..")) },
		"1":                 func(v pcommon.Value) { v.SetStr("1") },
		"%5Funset":          func(v pcommon.Value) { v.SetStr("_unset") },
		"_double-NaN":       func(v pcommon.Value) { v.SetDouble(math.NaN()) },
		"_double--Infinity": func(v pcommon.Value) { v.SetDouble(math.Inf(-1)) },
	}
	for want, set := range values {
		v := pcommon.NewValueEmpty()
		set(v)
		assert.True(t, strings.EqualFold(want, groupNameOf(v)), "want %s, got %s", want, groupNameOf(v))
	}
	// Lists whose text is the same.
	a, b := pcommon.NewValueSlice(), pcommon.NewValueSlice()
	a.Slice().AppendEmpty().SetInt(1)
	b.Slice().AppendEmpty().SetDouble(1)
	assert.NotEqual(t, groupNameOf(a), groupNameOf(b))
	assert.NotEqual(t, groupNameOf(pcommon.NewValueMap()), groupNameOf(pcommon.NewValueSlice()))
}

// TestMaxGroups: the records of further groups are in one directory, are counted, and are logged once.
func TestMaxGroups(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory, cfg.GroupBy, cfg.MaxGroups = t.TempDir(), []string{"service.name"}, 2
	for restart := range 2 {
		e, telemetry, logs := observed(t, cfg)
		require.NoError(t, e.start(t.Context(), nil))
		require.NoError(t, e.consume(t.Context(), numbered(restart, "a", "b", "_other", "d", "a")))
		assert.EqualValues(t, 2, sum(t, telemetry, "other_records", ""))
		warnings := logs.Filter(func(entry observer.LoggedEntry) bool { return entry.Level >= zapcore.WarnLevel })
		require.Equal(t, 1, warnings.Len())
		assert.Equal(t, map[string]any{"directory": cfg.Directory, "max_groups": int64(2), "group": layout.GroupDir("service.name", layout.GroupName("_other"))}, warnings.All()[0].ContextMap())
		require.NoError(t, e.shutdown(t.Context()))
	}
	assert.Equal(t, []string{"service.name=_other", "service.name=a", "service.name=b"}, listGroups(t, cfg.Directory))
	assert.Equal(t, map[string][]int{"_other": {0, 1}, "d": {0, 1}}, numbersIn(t, filepath.Join(cfg.Directory, "service.name=_other")))
	assert.Equal(t, map[string][]int{"a": {0, 0, 1, 1}}, numbersIn(t, filepath.Join(cfg.Directory, "service.name=a")))
}

// TestGroupWithoutDirectory: where something else stands in the place of the directory
// of a group, its records are rejected permanently, and the other groups are written once.
func TestGroupWithoutDirectory(t *testing.T) {
	for name, stand := range map[string]func(string) error{
		"file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"link": func(path string) error { return os.Symlink(filepath.Dir(path), path) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(t, "service.name")
			cfg.RetryOnFailure.MaxElapsedTime = 0
			require.NoError(t, stand(filepath.Join(cfg.Directory, "service.name=a")))
			e, telemetry, logs := observed(t, cfg)
			require.NoError(t, e.start(t.Context(), nil))
			err := e.consume(t.Context(), numbered(1, "a", "b"))
			require.ErrorContains(t, err, "not a directory")
			assert.True(t, consumererror.IsPermanent(err))
			assert.EqualValues(t, 1, sum(t, telemetry, "errors", "other"))
			assert.Equal(t, 1, logs.FilterMessage("Rejected profiles permanently").Len())
			require.NoError(t, e.shutdown(t.Context()))
			require.NoError(t, os.Remove(filepath.Join(cfg.Directory, "service.name=a")))
			assert.Equal(t, map[string][]int{"b": {1}}, numbersIn(t, cfg.Directory))
		})
	}
}
