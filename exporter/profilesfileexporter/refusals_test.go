// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// addScope adds a Profile of one sample type in a scope of its own, and a sample for
// each value; all are of one identity.
func addScope(pd pprofile.Profiles, service string, values ...int64) {
	if pd.Dictionary().StringTable().Len() == 0 {
		pd.Dictionary().StringTable().Append("", "cpu", "nanoseconds")
	}
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("service.name", service)
	p := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(1)
	p.SampleType().SetUnitStrindex(2)
	for _, v := range values {
		p.Samples().AppendEmpty().Values().Append(v)
	}
}

func pprofConfig(t testing.TB) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory = t.TempDir()
	cfg.Format, cfg.Framing, cfg.Compression = formatPprof, framingNone, compressionGzip
	return cfg
}

// pprofValues gives the sums of the pprofs in a directory, in order.
func pprofValues(t testing.TB, dir string) []int64 {
	var sums []int64
	for _, name := range list(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		p, err := profile.ParseData(data)
		require.NoError(t, err)
		sum := int64(0)
		for _, s := range p.Sample {
			sum += s.Value[0]
		}
		sums = append(sums, sum)
	}
	return sums
}

// telling gives an exporter, what it counts, and what it logs.
func telling(t testing.TB, cfg *Config) (*fileExporter, *componenttest.Telemetry, *observer.ObservedLogs) {
	require.NoError(t, cfg.Validate())
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { _ = telemetry.Shutdown(t.Context()) })
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	core, logs := observer.New(zapcore.ErrorLevel)
	set.Logger = zap.New(core)
	e, err := newFileExporter(cfg, set)
	require.NoError(t, err)
	return e, telemetry, logs
}

// TestOneBadProfileTakesNoOther: what cannot be pprof is refused for good, after the
// rest was written, in its scope, in other scopes, and in other groups.
func TestOneBadProfileTakesNoOther(t *testing.T) {
	for _, keys := range [][]string{nil, {"service.name"}} {
		cfg := pprofConfig(t)
		cfg.GroupBy = keys
		e, telemetry, logs := telling(t, cfg)
		require.NoError(t, e.start(t.Context(), nil))
		pd := pprofile.NewProfiles()
		addScope(pd, "a", 1)
		addScope(pd, "b", math.MaxInt64, math.MaxInt64)
		addScope(pd, "b", 3)
		addScope(pd, "c", math.MaxInt64, 1)
		addScope(pd, "c", 4)
		req, err := e.request(t.Context(), pd)
		require.NoError(t, err)
		require.Equal(t, 3, req.ItemsCount())
		err = e.consume(t.Context(), req)
		require.ErrorContains(t, err, "overflows int64")
		assert.True(t, consumererror.IsPermanent(err))
		require.NoError(t, e.shutdown(t.Context()))
		if keys == nil {
			assert.Equal(t, []int64{1, 3, 4}, pprofValues(t, cfg.Directory))
			require.ErrorContains(t, err, "2 pprofs, the first of them: resource_profiles[1].scope_profiles[0].profiles[0].samples[1]")
		} else {
			for service, sum := range map[string]int64{"a": 1, "b": 3, "c": 4} {
				assert.Equal(t, []int64{sum}, pprofValues(t, filepath.Join(cfg.Directory, service)))
			}
			require.ErrorContains(t, err, "2 records or groups, the first of them: group b: convert 2 profiles to pprof: resource_profiles[0]")
		}
		assert.Equal(t, int64(1+len(keys)), sums(t, telemetry)["otelcol_exporter_profiles_file_errors convert"])
		assert.Equal(t, 1, logs.FilterMessage("Refused profiles for good").Len())
	}
}

// TestAllBadProfilesAreRefusedAtOnce, though there is a queue.
func TestAllBadProfilesAreRefusedAtOnce(t *testing.T) {
	cfg := pprofConfig(t)
	cfg.SendingQueue = queueConfig(func(*exporterhelper.QueueBatchConfig) {})
	e, _ := startExporter(t, cfg)
	pd := pprofile.NewProfiles()
	addScope(pd, "a", math.MaxInt64, 1)
	err := e.ConsumeProfiles(t.Context(), pd)
	require.ErrorContains(t, err, "overflows int64")
	assert.True(t, consumererror.IsPermanent(err))
	require.NoError(t, e.Shutdown(t.Context()))
	assert.Empty(t, list(t, cfg.Directory))
}

// TestE14NothingStoredIsLostSilently: what the queue has stored and cannot be restored
// is counted and logged, and takes nothing else with it.
func TestE14NothingStoredIsLostSilently(t *testing.T) {
	const errors = "otelcol_exporter_profiles_file_errors convert"
	stored := func(e *fileExporter, r *request) []byte {
		b, err := encoding{e}.Marshal(t.Context(), r)
		require.NoError(t, err)
		return b
	}
	good := must((&pprofile.ProtoMarshaler{}).MarshalProfiles(func() pprofile.Profiles {
		pd := pprofile.NewProfiles()
		addScope(pd, "a", 1)
		return pd
	}()))
	bad := must((&pprofile.ProtoMarshaler{}).MarshalProfiles(func() pprofile.Profiles {
		pd := pprofile.NewProfiles()
		addScope(pd, "a", 1, math.MaxInt64)
		return pd
	}()))
	toPprof := &request{left: []record{{bytes: good}, {bytes: bad}, {bytes: []byte{0xff}}}}
	proto := testExporter(t, func(*Config) {})
	pprof := testExporter(t, func(cfg *Config) { *cfg = *pprofConfig(t) })
	grouped := pprofConfig(t)
	grouped.GroupBy = []string{"service.name", "host.name"}
	for _, tt := range []struct {
		name  string
		cfg   *Config
		item  []byte
		left  int
		lost  int64
		group []string
		told  string
	}{
		{"cut short", grouped, stored(pprof, &request{left: []record{{bytes: good}}})[:20], 0, 1, nil, "cut short"},
		{"pprof to proto", proto.config, stored(pprof, &request{left: []record{{bytes: good}}}), 0, 1, nil, `is "pprof.pb", which cannot be made "otlp.pb"`},
		{"other groups of pprof", grouped, stored(pprof, &request{left: []record{{bytes: good}}}), 1, 0, []string{"_unset", "_unset"}, ""},
		{"some of proto to pprof", pprof.config, stored(proto, toPprof), 1, 2, nil, "2 records, the first of them: convert 1 profiles to pprof"},
		{"none of proto to pprof", pprof.config, stored(proto, &request{left: toPprof.left[1:]}), 0, 1, nil, "2 records"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, telemetry, logs := telling(t, tt.cfg)
			_, req, err := encoding{e}.Unmarshal(tt.item)
			if tt.left == 0 {
				require.ErrorContains(t, err, tt.told)
			} else {
				require.NoError(t, err)
				require.Len(t, req.(*request).left, tt.left)
				assert.Equal(t, tt.group, req.(*request).left[0].group)
			}
			lost := sums(t, telemetry)[errors]
			assert.Equal(t, tt.lost, lost)
			profiletest.Injected(t, fmt.Sprintf("1 stored items of another configuration or cut, %d counted losses", lost))
			if tt.lost == 0 {
				assert.Zero(t, logs.Len())
				return
			}
			require.Equal(t, 1, logs.Len())
			assert.Contains(t, logs.All()[0].ContextMap()["error"], tt.told)
		})
	}
}
