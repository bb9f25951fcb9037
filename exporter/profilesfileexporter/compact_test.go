// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
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
		data[30] ^= 1 // in its first record
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
		assert.EqualValues(t, 4, storedSum(t, cfg.Directory))
		time.Sleep(26 * time.Hour)
		for _, f := range closedIn(t, cfg.Directory) {
			assert.Equal(t, layout.Day, f.Level)
		}
		assert.EqualValues(t, 4, storedSum(t, cfg.Directory))
		require.NoError(t, e.shutdown(t.Context()))
		moved := logs.FilterMessage("Moved a damaged file after its readable records were compacted").All()
		require.Len(t, moved, 1)
		assert.Equal(t, files[1].Path, moved[0].ContextMap()["path"])
	})
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
