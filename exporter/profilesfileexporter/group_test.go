// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// generateGroups gives profiles of several resources in one dictionary, with values
// of every kind to group by.
func generateGroups(t testing.TB, seed uint64) pprofile.Profiles {
	random := profiletest.NewRand(seed)
	var all []expand.Profile
	for range 1 + random.IntN(4) {
		all = append(all, profiletest.GenerateExpanded(random)...)
	}
	pd, err := expand.Build(all)
	require.NoError(t, err)
	for _, rp := range pd.ResourceProfiles().All() {
		attributes := rp.Resource().Attributes()
		switch random.IntN(8) {
		case 0:
			attributes.PutStr("group", "")
		case 1:
			attributes.PutInt("group", 1)
		case 2:
			attributes.PutStr("group", "1")
		case 3:
			attributes.PutStr("group", "../1")
		case 4:
			attributes.PutEmptySlice("group").AppendEmpty().SetInt(1)
		case 5:
			attributes.PutDouble("group", 1)
		case 6:
			attributes.PutBool("group", true)
		}
	}
	return pd
}

// byGroup says what each group has to hold, by the values themselves.
func byGroup(pd pprofile.Profiles) map[string]pprofile.Profiles {
	groups := map[string]pprofile.Profiles{}
	for i := range pd.ResourceProfiles().Len() {
		only := pprofile.NewProfiles()
		pd.CopyTo(only)
		n := 0
		only.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { n++; return n-1 != i })
		key := "none"
		if v, found := pd.ResourceProfiles().At(i).Resource().Attributes().Get("group"); found {
			key = v.Type().String() + " " + v.AsString()
		}
		if all, found := groups[key]; found {
			only.ResourceProfiles().At(0).CopyTo(all.ResourceProfiles().AppendEmpty())
		} else {
			groups[key] = only
		}
	}
	return groups
}

var groupDirectories = map[string]string{
	"none": "_unset", "Str ": "_empty", "Int 1": "_int-1", "Str 1": "1", "Str ../1": "%2E.%2F1", "Double 1": "_double-1", "Bool true": "_bool-true",
	"Slice [1]": groupNameOf(func() pcommon.Value { v := pcommon.NewValueSlice(); v.Slice().AppendEmpty().SetInt(1); return v }()),
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
			for key, only := range byGroup(pd) {
				expanded, err := expand.Profiles(only)
				require.NoError(t, err)
				want[groupDirectories[key]] = append(want[groupDirectories[key]], expanded)
			}
			before, err := expand.Profiles(pd)
			require.NoError(t, err)
			several := len(byGroup(pd)) > 1
			if i%2 == 0 {
				pd.MarkReadOnly()
			}
			require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
			if several || i%2 == 0 {
				after, err := expand.Profiles(pd)
				require.NoError(t, err)
				require.Empty(t, expand.Diff(before, after), "the caller's data is changed")
			}
		}
		require.NoError(t, e.Shutdown(t.Context()))
		require.Len(t, list(t, cfg.Directory), len(want))
		acknowledged, readable := 0, 0
		for directory, payloads := range want {
			of := *cfg
			of.Directory = filepath.Join(cfg.Directory, directory)
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

// TestGroupsHoldWhatTheyReachOnly: a group's dictionary has nothing of the others'.
func TestGroupsHoldWhatTheyReachOnly(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 15, 500)) {
		pd := generateGroups(t, seed)
		err := groupsOf(pd, []string{"group"}, func(g group) {
			lengths := dictionary.LengthsOf(g.profiles.Dictionary())
			whole := dictionary.LengthsOf(pd.Dictionary())
			assert.LessOrEqual(t, lengths.Stacks, whole.Stacks)
			assert.LessOrEqual(t, lengths.Strings, whole.Strings)
			if g.profiles == pd {
				return
			}
			profiletest.RequireConforms(t, g.profiles)
			// Taken again, there is nothing to leave out.
			again := dictionary.NewSplitter(g.profiles)
			var all []int
			for i := range g.profiles.ResourceProfiles().Len() {
				all = append(all, i)
			}
			assert.Equal(t, lengths, dictionary.LengthsOf(again.Take(all).Dictionary()))
		})
		require.NoError(t, err)
	}
}

// TestGroupOfWhatWasMarshalled: marshalling has made references of the strings of
// resources; the groups are the same.
func TestGroupOfWhatWasMarshalled(t *testing.T) {
	pd := generateGroups(t, 3)
	names := func() (all []string) {
		require.NoError(t, groupsOf(pd, []string{"group", "service.name"}, func(g group) {
			all = append(all, strings.Join(g.names, "/"))
		}))
		return all
	}
	before := names()
	require.NotEmpty(t, before)
	_, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	assert.Equal(t, before, names())
}

func TestGroupRefusesWhatRefersToNothing(t *testing.T) {
	cfg := newConfig(t, "service.name")
	e, _ := startExporter(t, cfg)
	pd := pprofile.NewProfiles()
	pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty().SetStackIndex(7)
	err := e.ConsumeProfiles(t.Context(), pd)
	require.ErrorContains(t, err, "resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index is 7: stack_table has 0 entries")
	assert.True(t, consumererror.IsPermanent(err))
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
	m := pcommon.NewValueMap()
	assert.NotEqual(t, groupNameOf(m), groupNameOf(pcommon.NewValueSlice()))
}

// TestManyGroupsInOnePayload_E12: the time goes with what a group reaches, not with
// the whole dictionary.
func TestManyGroupsInOnePayload_E12(t *testing.T) {
	groups := profiletest.Rounds(t, 500, 10_000)
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("")
	pd.Dictionary().StackTable().AppendEmpty()
	for i := range groups {
		pd.Dictionary().StringTable().Append("of " + strconv.Itoa(i))
		rp := pd.ResourceProfiles().AppendEmpty()
		rp.Resource().Attributes().PutStr("service.name", fmt.Sprintf("service %d", i))
		p := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
		p.SampleType().SetTypeStrindex(int32(i + 1))
		p.Samples().AppendEmpty().Values().Append(int64(i))
	}
	cfg := createDefaultConfig().(*Config)
	cfg.Directory, cfg.GroupBy, cfg.Compression, cfg.Sync = t.TempDir(), []string{"service.name"}, compressionNone, syncNone
	cfg.MaxOpenFiles, cfg.MaxGroups = 50, groups
	e, _ := startExporter(t, cfg)
	require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
	require.NoError(t, e.Shutdown(t.Context()))
	require.Len(t, list(t, cfg.Directory), groups)
	readable := 0
	for i := range groups {
		of := *cfg
		of.Directory = filepath.Join(cfg.Directory, fmt.Sprintf("service%%20%d", i))
		records := plainRecords(t, &of)
		require.Len(t, records, 1)
		read, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(records[0])
		require.NoError(t, err)
		require.Contains(t, read.Dictionary().StringTable().AsRaw(), "of "+strconv.Itoa(i))
		require.LessOrEqual(t, read.Dictionary().StringTable().Len(), 4)
		readable += read.ProfileCount()
	}
	profiletest.Account(t, fmt.Sprintf("%d groups for %d open files", groups, cfg.MaxOpenFiles), groups, readable, 0)
}

// TestPermissions_E11 of files, directories and groups.
func TestPermissions_E11(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory, cfg.GroupBy = filepath.Join(t.TempDir(), "a", "b"), []string{"x", "y"}
	e, _ := startExporter(t, cfg)
	require.NoError(t, e.ConsumeProfiles(t.Context(), pprofile.NewProfiles()))
	require.NoError(t, e.Shutdown(t.Context()))
	file := list(t, filepath.Join(cfg.Directory, "_unset", "_unset"))[0]
	for path, want := range map[string]os.FileMode{"..": 0o700, "": 0o700, "_unset": 0o700, "_unset/_unset": 0o700, "_unset/_unset/" + file: 0o600} {
		info, err := os.Stat(filepath.Join(cfg.Directory, path))
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm(), path)
	}
	profiletest.Injected(t, "1 directories of groups recreated")
}

// TestPprof: each set of sample types is a file that google/pprof reads.
func TestPprof(t *testing.T) {
	for _, groupBy := range [][]string{nil, {"group"}} {
		cfg := createDefaultConfig().(*Config)
		cfg.Directory, cfg.GroupBy, cfg.Sync = t.TempDir(), groupBy, syncNone
		cfg.Format, cfg.Framing, cfg.Compression = formatPprof, framingNone, compressionGzip
		e, logs := startExporter(t, cfg)
		random := profiletest.NewRand(profiletest.Seed(t))
		want := map[string]int{}
		for range profiletest.Rounds(t, 10, 200) {
			original := profiletest.GeneratePprof(random)
			var encoded bytes.Buffer
			require.NoError(t, original.WriteUncompressed(&encoded))
			pd := unmarshalPprof(t, encoded.Bytes())
			pd.ResourceProfiles().At(0).Resource().Attributes().PutInt("group", int64(random.IntN(3)))
			if random.IntN(2) == 0 {
				pd.MarkReadOnly()
			}
			for _, p := range convertPprof(t, pd) {
				want[p]++
			}
			require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
		}
		require.NoError(t, e.ConsumeProfiles(t.Context(), pprofile.NewProfiles()), "no pprof is in it")
		require.NoError(t, e.Shutdown(t.Context()))
		files, err := filepath.Glob(filepath.Join(cfg.Directory, strings.Repeat("*/", len(groupBy)), "*.pprof.pb.gz"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, path := range files {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			p, err := profile.ParseData(data)
			require.NoError(t, err)
			require.NoError(t, p.CheckValid())
			want[p.String()]--
			// And our own reader.
			records := recordsOf(t, path)
			require.Len(t, records, 1)
			again, err := profile.ParseUncompressed(records[0])
			require.NoError(t, err)
			require.Equal(t, p.String(), again.String())
		}
		for p, n := range want {
			require.Zero(t, n, p)
		}
		assert.Equal(t, len(files), logs.FilterMessage("Closed file").Len())
	}
}

func unmarshalPprof(t testing.TB, data []byte) pprofile.Profiles {
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(data)
	require.NoError(t, err)
	return pd
}

// Nothing is written for a pprof without samples, such as the mutex profile of a process
// without contention.
func TestPprofWithoutSamplesIsNotWritten(t *testing.T) {
	cfg := pprofConfig(t)
	e, telemetry, _ := observed(t, cfg)
	require.NoError(t, e.start(t.Context(), nil))
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "contentions", Unit: "count"}, {Type: "delay", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "contentions", Unit: "count"}, Period: 1, TimeNanos: 1,
	}
	var encoded bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&encoded))
	require.NoError(t, e.consume(t.Context(), unmarshalPprof(t, encoded.Bytes())))
	require.NoError(t, e.shutdown(t.Context()))
	assert.Empty(t, list(t, cfg.Directory))
	assert.Equal(t, map[string]int64{"otelcol_exporter_profiles_file_empty_profiles": 2}, sums(t, telemetry))
}

// TestPprofFilesAreNamedByProfileType: pprof merges the files of one name, and mutex and block profiles,
// which have the same sample types, can be distinguished.
func TestPprofFilesAreNamedByProfileType(t *testing.T) {
	cfg := pprofConfig(t)
	e, logs := startExporter(t, cfg)
	for i, sent := range []struct{ profileType, sampleType, periodType string }{
		{"cpu", "samples,cpu", "cpu"},
		{"mutex", "contentions,delay", "contentions"},
		{"block", "contentions,delay", "contentions"},
		{"", "contentions,delay", "contentions"},
		{"", "samples,cpu", "cpu"},
		{"cpu", "samples,cpu", "cpu"},
		{"../up", "x", ""},
		{"", "", ""},
		{"", "alloc_space,inuse_space", "space"},
		{"heap", "inuse_space", "space"},
		{"heap", "objects,space", "space"}, // Node.js
		{"", "objects,space", "space"},
		{"heap", "alloc_space", "space"},
		{"", "samples,time", "wallclock"},
		{"cpu", "samples,time", "wallclock"},
		{"cpu", "samples", ""},                  // JFR without a period
		{"mutex", "contentions,delay", "delay"}, // JFR
		{"wall", "samples,wall", "wall"},
	} {
		p := &profile.Profile{TimeNanos: int64(i + 1), Sample: []*profile.Sample{{}}, PeriodType: &profile.ValueType{Type: sent.periodType, Unit: "count"}}
		for name := range strings.SplitSeq(sent.sampleType, ",") {
			p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: "count"})
			p.Sample[0].Value = append(p.Sample[0].Value, int64(i+1))
		}
		var encoded bytes.Buffer
		require.NoError(t, p.WriteUncompressed(&encoded))
		pd := unmarshalPprof(t, encoded.Bytes())
		if sent.profileType != "" {
			pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutStr("profile.type", sent.profileType)
		}
		require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	written := map[string][]*profile.Profile{}
	for _, name := range list(t, cfg.Directory) {
		prefix, _, _ := strings.Cut(name, "-20")
		data, err := os.ReadFile(filepath.Join(cfg.Directory, name))
		require.NoError(t, err)
		p, err := profile.ParseData(data)
		require.NoError(t, err)
		written[prefix] = append(written[prefix], p)
	}
	counts := map[string]int{}
	for prefix, profiles := range written {
		counts[prefix] = len(profiles)
		require.NoError(t, profile.CompatibilizeSampleTypes(profiles), prefix)
		_, err := profile.Merge(profiles)
		require.NoError(t, err, prefix)
	}
	assert.Equal(t, map[string]int{
		"cpu": 3, "mutex": 1, "block": 1, "delay": 1, "%2E.%2Fup.x": 1, "profiles": 1, "heap": 2, "heap.space": 2,
		"heap.alloc_space.space": 1, "time.wallclock": 1, "cpu.time.wallclock": 1, "cpu.samples": 1, "mutex.delay": 1, "wall": 1,
	}, counts)
	closed := logs.FilterMessage("Closed file").All()
	require.Len(t, closed, 18)
	assert.Equal(t, []any{"mutex"}, closed[1].ContextMap()["profile_types"])
	assert.Equal(t, zapcore.InfoLevel, closed[0].Level)
	for _, line := range closed[1:] {
		assert.Equal(t, zapcore.DebugLevel, line.Level, "files are logged at info once")
	}
}

// convertPprof gives the text of each pprof with samples that pd makes.
func convertPprof(t testing.TB, pd pprofile.Profiles) []string {
	converted, err := pproftranslator.Marshaler{}.ConvertProfiles(pd)
	require.NoError(t, err)
	var texts []string
	for _, p := range converted {
		if len(p.Sample) == 0 {
			continue
		}
		var encoded bytes.Buffer
		require.NoError(t, pproftranslator.WritePprof(&encoded, p))
		read, err := profile.ParseUncompressed(encoded.Bytes())
		require.NoError(t, err)
		texts = append(texts, read.String())
	}
	return texts
}

// TestMaxGroups: the records of further groups are in one directory, are counted, and are logged once.
func TestMaxGroups(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory, cfg.GroupBy, cfg.MaxGroups = t.TempDir(), []string{"service.name"}, 2
	for restart := range 2 {
		e, telemetry, logs := observed(t, cfg)
		require.NoError(t, e.start(t.Context(), nil))
		require.NoError(t, e.consume(t.Context(), numbered(restart, "a", "b", "_other", "d", "a")))
		assert.EqualValues(t, 2, sums(t, telemetry)["otelcol_exporter_profiles_file_other_records"])
		warnings := logs.Filter(func(entry observer.LoggedEntry) bool { return entry.Level >= zapcore.WarnLevel })
		require.Equal(t, 1, warnings.Len())
		assert.Equal(t, map[string]any{"directory": cfg.Directory, "max_groups": int64(2), "group": recordfile.GroupName("_other")}, warnings.All()[0].ContextMap())
		require.NoError(t, e.shutdown(t.Context()))
	}
	assert.Equal(t, []string{"_other", "a", "b"}, list(t, cfg.Directory))
	assert.Equal(t, map[string][]int{"_other": {0, 1}, "d": {0, 1}}, numbersIn(t, filepath.Join(cfg.Directory, "_other")))
	assert.Equal(t, map[string][]int{"a": {0, 0, 1, 1}}, numbersIn(t, filepath.Join(cfg.Directory, "a")))
}
