// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"

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
	cfg := newConfig(t)
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

// TestOneBadProfileTakesNoOther: what cannot be pprof is rejected permanently, after the
// rest was written, in its scope, in other scopes, and in other groups.
func TestOneBadProfileTakesNoOther(t *testing.T) {
	for _, keys := range [][]string{nil, {"service.name"}} {
		cfg := pprofConfig(t)
		cfg.GroupBy = keys
		e, telemetry, logs := observed(t, cfg)
		require.NoError(t, e.start(t.Context(), nil))
		pd := pprofile.NewProfiles()
		addScope(pd, "a", 1)
		addScope(pd, "b", math.MaxInt64, math.MaxInt64)
		addScope(pd, "b", 3)
		addScope(pd, "c", math.MaxInt64, 1)
		addScope(pd, "c", 4)
		err := e.consume(t.Context(), pd)
		require.ErrorContains(t, err, "overflows int64")
		assert.True(t, consumererror.IsPermanent(err))
		require.NoError(t, e.shutdown(t.Context()))
		if keys == nil {
			assert.Equal(t, []int64{1, 3, 4}, pprofValues(t, cfg.Directory))
			require.ErrorContains(t, err, "2 pprofs rejected; first error: resource_profiles[1].scope_profiles[0].profiles[0].samples[1]")
		} else {
			for service, sum := range map[string]int64{"a": 1, "b": 3, "c": 4} {
				assert.Equal(t, []int64{sum}, pprofValues(t, filepath.Join(cfg.Directory, service)))
			}
			require.ErrorContains(t, err, "2 records or groups rejected; first error: group b: convert 2 profiles to pprof: resource_profiles[0]")
		}
		assert.Equal(t, int64(1+len(keys)), sums(t, telemetry)["otelcol_exporter_profiles_file_errors convert"])
		assert.Equal(t, 1, logs.FilterMessage("Rejected profiles permanently").Len())
	}
}

// TestAllBadProfilesAreRejectedAtOnce, though there is a queue.
func TestAllBadProfilesAreRejectedAtOnce(t *testing.T) {
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

// TestUndecodableQueueItemIsReported_E14: an item of the queue that cannot be restored is
// counted and logged.
func TestUndecodableQueueItemIsReported_E14(t *testing.T) {
	pd := pprofile.NewProfiles()
	addScope(pd, "a", 1)
	stored := storedItem(t, pd)
	for name, tt := range map[string]struct {
		item []byte
		lost int64
	}{
		"complete":      {stored, 0},
		"truncated":     {stored[:20], 1},
		"not ours":      {append([]byte{9}, stored[1:]...), 1},
		"too long":      {append(slices.Clone(stored), 1), 1},
		"empty":         {[]byte{}, 1},
		"older version": {[]byte(`[{"Data":12}]` + "\n"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			e, telemetry, logs := observed(t, newConfig(t, "service.name", "host.name"))
			_, restored, err := queueEncoding(e).Unmarshal(tt.item)
			lost := sums(t, telemetry)["otelcol_exporter_profiles_file_errors convert"]
			assert.Equal(t, tt.lost, lost)
			profiletest.Injected(t, fmt.Sprintf("1 stored items of another configuration or cut, %d counted losses", lost))
			if tt.lost == 0 {
				require.NoError(t, err)
				again, err := queueEncoding(e).Marshal(t.Context(), restored)
				require.NoError(t, err)
				assert.Equal(t, stored, again)
				assert.Zero(t, logs.Len())
				return
			}
			require.ErrorContains(t, err, "damaged or belongs to another exporter")
			require.Equal(t, 1, logs.FilterMessage("Dropped queued item").Len())
		})
	}
}

// TestMissingQueueItemIsNoLoss: after a write that failed, the queue counts an item that it does
// not have. Its sender got an error.
func TestMissingQueueItemIsNoLoss_E14(t *testing.T) {
	cfg := newConfig(t)
	e, telemetry, logs := observed(t, cfg)
	_, _, err := queueEncoding(e).Unmarshal(nil)
	require.ErrorIs(t, err, errNotStored)
	assert.Empty(t, sums(t, telemetry))
	assert.Zero(t, logs.Len())
	profiletest.Injected(t, "1 items that were not stored")
}
