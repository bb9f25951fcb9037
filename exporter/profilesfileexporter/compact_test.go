// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

func TestInvalidCompactionNamesTheKey_D3(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, profiletest.LoadConfig("{directory: d, compact: {}}", cfg))
	assert.Equal(t, defaultCompact(), *cfg.Compact.Get())
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"{directory: d, compact: {after: -1s}}":                "compact::after is -1s: must be 0 or more",
		"{directory: d, compact: {resolution: []}}":            "compact::resolution is []: must be one duration for hours, or two for hours and days, such as [1m, 10m]",
		"{directory: d, compact: {resolution: [1m, 10m, 1h]}}": "must be one duration for hours, or two",
		"{directory: d, compact: {resolution: [7m]}}":          "compact::resolution is 7m0s: must be a divisor of 1h0m0s",
		"{directory: d, compact: {resolution: [1m, 7m]}}":      "compact::resolution is 7m0s: must be a divisor of 24h0m0s",
		"{directory: d, compact: {resolution: [2m, 3m]}}":      "compact::resolution is 3m0s: must be a multiple of 2m0s",
		"{directory: d, compact: {resolution: [0s]}}":          "compact::resolution is 0s: must be a multiple of 1s",
		"{directory: d, compact: {resolution: [1m]}}":          "",
		"{directory: d, compact: {resolution: [1m, 1h]}}":      "",
		"{directory: d, compact: {max_memory: 1MiB}}":          "compact::max_memory is 1MiB: must be at least 16MiB",
		"{directory: d, compact: {into: 1h}}":                  "unknown key compact::into",

		"{directory: d, parquet: {}}":                                             "compact is not set: must be set with parquet",
		"{directory: d, compact: {}, parquet: {}}":                                "",
		"{directory: d, compact: {}, parquet: {retention: {max_age: 2160h}}}":     "",
		"{directory: d, compact: {}, parquet: {retention: {max_age: -1h}}}":       "parquet::retention::max_age is -1h0m0s: must be 0 (no limit), or",
		"{directory: d, compact: {}, parquet: {retention: {max_total_size: -1}}}": "'retention.max_total_size' is \"-1\"",
		"{directory: d, compact: {}, parquet: {retention: {max_files: 1}}}":       "unknown key parquet::retention::max_files",
	})
}

// TestHoursAndDaysAreCompacted: what is written becomes a file an hour and a file a day, with the same sums; of a damaged file the
// readable records do.
func TestHoursAndDaysAreCompacted(t *testing.T) {
	cfg := newConfig(t, "service.name")
	cfg.Compact = configoptional.Some(defaultCompact())
	cfg.Rotation.MaxRecords = 2
	inBubble(t, func(t *testing.T) {
		e, telemetry, logs := observed(t, cfg)
		require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
		for range 4 {
			require.NoError(t, e.consume(t.Context(), present(1, "checkout")))
		}
		files := closedIn(t, cfg.Directory)
		require.Len(t, files, 2)
		damaged := filepath.Join(cfg.Directory, files[1].Path)
		data, err := os.ReadFile(damaged)
		require.NoError(t, err)
		data[30] ^= 1 // in its record, which has two of those that were written
		require.NoError(t, os.WriteFile(damaged, data, 0o600))
		time.Sleep(30 * time.Minute)
		require.NoError(t, e.consume(t.Context(), present(1, "other")))
		time.Sleep(2 * time.Hour)
		assert.EqualValues(t, 2, sum(t, telemetry, "compactions", ""))
		assert.EqualValues(t, 1, sum(t, telemetry, "damaged_files", ""))
		assert.Equal(t, []string{"damaged", "service.name=checkout", "service.name=other"}, listGroups(t, cfg.Directory))
		require.NoError(t, os.RemoveAll(filepath.Join(cfg.Directory, "damaged")))
		for _, f := range closedIn(t, cfg.Directory) {
			assert.Equal(t, layout.Hour, f.Level)
		}
		assert.EqualValues(t, 3, storedSum(t, cfg.Directory))
		time.Sleep(26 * time.Hour)
		for _, f := range closedIn(t, cfg.Directory) {
			assert.Equal(t, layout.Day, f.Level)
		}
		assert.EqualValues(t, 3, storedSum(t, cfg.Directory))
		require.NoError(t, e.shutdown(t.Context()))
		moved := logs.FilterMessage("Moved a damaged file after its readable records were compacted").All()
		require.Len(t, moved, 1)
		assert.Equal(t, files[1].Path, moved[0].ContextMap()["path"])
	})
}

// TestHoursBecomeParquet: samples and processes have a file each, until their own retention.
func TestHoursBecomeParquet(t *testing.T) {
	cfg := newConfig(t, "service.name")
	cfg.Compact = configoptional.Some(defaultCompact())
	cfg.Parquet = configoptional.Some(ParquetConfig{Retention: ParquetRetentionConfig{MaxAge: 24 * time.Hour}})
	inBubble(t, func(t *testing.T) {
		e, telemetry, _ := observed(t, cfg)
		require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
		day := time.Now().UTC().Truncate(24 * time.Hour)
		for range 3 {
			require.NoError(t, e.consume(t.Context(), present(7, "checkout")))
		}
		time.Sleep(3 * time.Hour)
		group := layout.GroupDir("service.name", "checkout")
		files := func(table string) []string {
			found, err := filepath.Glob(filepath.Join(cfg.Directory, filepath.FromSlash(lake.Dir(table, group, day)), "*.parquet"))
			require.NoError(t, err)
			return found
		}
		require.Len(t, files(lake.SamplesDir), 1)
		require.Len(t, files(lake.ProcessesDir), 1)
		rows, err := parquet.ReadFile[lake.Process](files(lake.ProcessesDir)[0])
		require.NoError(t, err)
		require.Len(t, rows, 1)
		assert.Equal(t, []int64{21, 3}, []int64{rows[0].Value, rows[0].Intervals})
		assert.Equal(t, map[string]int64{"written": 2}, parquetFiles(t, telemetry))
		assert.EqualValues(t, 2, sum(t, telemetry, "parquet_rows", ""))
		assert.Positive(t, sum(t, telemetry, "parquet_bytes", ""))
		time.Sleep(50 * time.Hour)
		assert.Empty(t, files(lake.SamplesDir))
		assert.Equal(t, map[string]int64{"written": 2, "removed": 2}, parquetFiles(t, telemetry))
		assert.EqualValues(t, 21, storedSum(t, cfg.Directory))
		require.NoError(t, e.shutdown(t.Context()))
	})
}

// parquetFiles is the metric of Parquet files, by outcome.
func parquetFiles(t testing.TB, telemetry *componenttest.Telemetry) map[string]int64 {
	return profiletest.MetricsBy(t, telemetry, "otelcol_exporter_profiles_file_parquet_files", "outcome")[""]
}

// present returns a payload that ends now.
func present(value int64, service string) pprofile.Profiles {
	now := uint64(time.Now().UnixNano())
	return payloadtest.With(payloadtest.Interval(now-uint64(time.Second), uint64(time.Second), value), "service.name", service)
}

func TestADirectoryThatIsSentIsNotCompacted_D6(t *testing.T) {
	cfg := newConfig(t)
	cfg.Compact = configoptional.Some(defaultCompact())
	claim, err := store.ClaimDirectory(cfg.Directory, store.Sends)
	require.NoError(t, err)
	e, _, _ := observed(t, cfg)
	err = e.start(t.Context(), componenttest.NewNopHost())
	var inUse *store.InUseError
	require.ErrorAs(t, err, &inUse)
	require.ErrorContains(t, err, cfg.Directory)
	require.ErrorContains(t, err, "remove exporters::profiles_file")
	require.NoError(t, e.shutdown(t.Context()))
	require.NoError(t, claim.Close())
	for range 2 {
		e, _, _ = observed(t, cfg)
		require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
		_, err = store.ClaimDirectory(cfg.Directory, store.Sends)
		require.ErrorAs(t, err, &inUse)
		require.NoError(t, e.shutdown(t.Context()))
	}
	claim, err = store.ClaimDirectory(cfg.Directory, store.Sends)
	require.NoError(t, err, "after a shutdown")
	require.NoError(t, claim.Close())
}
