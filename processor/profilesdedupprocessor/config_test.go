// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestConfig(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, cfg.Validate())
	require.Equal(t, config.MemoryLimit()/4, cfg.MemoryLimit, "with two processors and the receiver's quarter, one is left")
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"window": "2s", "acknowledge": "on_flush", "memory_limit": "64MiB", "snapshots": "sum",
		"snapshot_sample_types": []any{"live"}, "drop_zero_samples": false,
		"retry_on_failure": map[string]any{"max_elapsed_time": "5m"}, "shutdown_timeout": "3s",
		"timestamps": "drop", "granularity": "line", "duplicate_ttl": "1m",
		"drop_sample_attributes": []any{"thread.id"}, "drop_resource_attributes": []any{"service.instance.id"},
		"split_by": []any{"service.name"},
	}).Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	require.Equal(t, 2*time.Second, cfg.Window)
	require.Equal(t, 64*config.MiB, cfg.MemoryLimit)
	require.Equal(t, []string{"live"}, cfg.SnapshotSampleTypes)
	require.Equal(t, 5*time.Minute, cfg.RetryOnFailure.MaxElapsedTime)
	require.Equal(t, time.Second, cfg.RetryOnFailure.InitialInterval)
	require.Equal(t, time.Minute, cfg.DuplicateTTL)
	require.Equal(t, &merge.Options{
		SlotLength: 2 * time.Second,
		Snapshots:  merge.SnapshotsSum, SnapshotSampleTypes: []string{"live"}, DropTimestamps: true,
		Granularity:          dictionary.ByLine,
		DropSampleAttributes: []string{"thread.id"}, DropResourceAttributes: []string{"service.instance.id"},
		SplitBy: []string{"service.name"}, MaxTypes: 1024, ProfileKeys: true,
	}, cfg.mergeOptions())
}

func TestWrongConfigurationsAreRejected_D3(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"{window: -1s}":                                  "window is -1s",
		"{window: soon}":                                 "window",
		"{acknowledge: never}":                           `acknowledge is "never": must be one of on_receive, on_flush`,
		"{acknowledge: on_flush}":                        "window is 10s: must be at most 5s with acknowledge on_flush",
		"{memory_limit: 1KiB}":                           "memory_limit is 1KiB: must be at least 1MiB",
		"{memory_limit: 1.5}":                            "memory_limit",
		"{snapshots: newest}":                            `snapshots is "newest": must be one of keep, latest, sum`,
		"{snapshot_sample_types: [a, '']}":               "snapshot_sample_types[1] is \"\": must be a sample type",
		"{timestamps: some}":                             `timestamps is "some": must be one of keep, drop`,
		"{granularity: file}":                            `granularity is "file": must be one of address, function, line`,
		"{drop_sample_attributes: ['']}":                 `drop_sample_attributes[0] is "": must be`,
		"{split_by: [a, a]}":                             `split_by[1] is "a": must be different from the others`,
		"{split_by: [a, '']}":                            `split_by[1] is "": must be`,
		"{split_by: [a, A]}":                             `split_by[1] is "A": must be different from the others in more than case`,
		"{split_by: [a], drop_resource_attributes: [a]}": `split_by[0] is "a": must be a key that is not listed in drop_resource_attributes`,
		"{duplicate_ttl: -1s}":                           "duplicate_ttl is -1s",
		"{duplicate_ttl: 300}":                           "duplicate_ttl is 300: must be a duration with a unit",
		"{shutdown_timeout: 0s}":                         "shutdown_timeout is 0s",
		"{window: 5}":                                    "window is 5: must be a duration with a unit",
		"{window: 5ns}":                                  "window is 5ns: must be 0s (no window) or at least 1ms",
		"{retry_on_failure: {initial_interval: 0s}}":     "initial_interval is 0s",
		"{retry_on_failure: {max_interval: 1ms}}":        "max_interval is 1ms",
		"{windows: 1s}":                                  "unknown key windows: must be one of ... window",
		"{retry_on_failure: {maximum: 1s}}":              "unknown key retry_on_failure::maximum: must be one of ... max_interval",
		"{retry_on_failure: {initial_interval: -1s}}":    "initial_interval",
	})
}
