// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

func TestConfig(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, cfg.Validate())
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"window": "2s", "acknowledge": "on_flush", "memory_limit": "64MiB", "snapshots": "sum",
		"snapshot_sample_types": []any{"live"}, "drop_zero_samples": false,
		"retry_on_failure": map[string]any{"max_elapsed_time": "5m"}, "shutdown_timeout": "3s",
		"timestamps": "drop", "granularity": "line", "rebase_mappings": true, "repeat_horizon": "1m",
		"drop_sample_attributes": []any{"thread.id"}, "drop_resource_attributes": []any{"service.instance.id"},
		"split_by": []any{"service.name"},
	}).Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	require.Equal(t, 2*time.Second, cfg.Window)
	require.Equal(t, 64*bytesize.MiB, cfg.MemoryLimit)
	require.Equal(t, []string{"live"}, cfg.SnapshotSampleTypes)
	require.Equal(t, 5*time.Minute, cfg.RetryOnFailure.MaxElapsedTime)
	require.Equal(t, time.Second, cfg.RetryOnFailure.InitialInterval)
	require.Equal(t, time.Minute, cfg.RepeatHorizon)
	require.Equal(t, mergeSettings{
		snapshots: snapshotsSum, snapshotTypes: setOf([]string{"live"}), dropTimestamps: true,
		coarsening:           dictionary.Coarsening{Granularity: dictionary.ByLine, RebaseMappings: true},
		dropSampleAttributes: setOf([]string{"thread.id"}), dropResourceAttributes: setOf([]string{"service.instance.id"}),
		splitBy: []string{"service.name"},
	}, cfg.mergeSettings())
}

func TestConfigRefuses(t *testing.T) {
	for _, test := range []struct {
		config map[string]any
		want   string
	}{
		{map[string]any{"window": "-1s"}, "window is -1s"},
		{map[string]any{"window": "soon"}, "window"},
		{map[string]any{"acknowledge": "never"}, `acknowledge is "never": it must be on_receive or on_flush`},
		{map[string]any{"acknowledge": "on_flush"}, "window is 10s: with acknowledge on_flush it must be at most 5s"},
		{map[string]any{"memory_limit": "1KiB"}, "memory_limit is 1KiB: it must be at least 1MiB"},
		{map[string]any{"memory_limit": 1.5}, "memory_limit"},
		{map[string]any{"snapshots": "newest"}, `snapshots is "newest": it must be keep, latest or sum`},
		{map[string]any{"snapshot_sample_types": []any{"a", ""}}, "snapshot_sample_types[1] is empty"},
		{map[string]any{"timestamps": "some"}, `timestamps is "some": it must be keep or drop`},
		{map[string]any{"granularity": "file"}, `granularity is "file": it must be address, line or function`},
		{map[string]any{"rebase_mappings": "often"}, "rebase_mappings"},
		{map[string]any{"drop_sample_attributes": []any{""}}, "drop_sample_attributes[0] is empty"},
		{map[string]any{"drop_resource_attributes": []any{"a", "a"}}, `drop_resource_attributes[1] is "a": that is there already`},
		{map[string]any{"split_by": []any{"a", ""}}, "split_by[1] is empty"},
		{map[string]any{"split_by": []any{"a", "A"}}, "no upper and lower case"},
		{map[string]any{"split_by": []any{"a"}, "drop_resource_attributes": []any{"a"}}, "must not be one of drop_resource_attributes"},
		{map[string]any{"repeat_horizon": "-1s"}, "repeat_horizon is -1s"},
		{map[string]any{"repeat_horizon": 300}, "repeat_horizon is 300: must be a duration with a unit"},
		{map[string]any{"shutdown_timeout": "0s"}, "shutdown_timeout is 0s"},
		{map[string]any{"window": 5}, "window is 5: must be a duration with a unit"},
		{map[string]any{"retry_on_failure": map[string]any{"initial_interval": "0s"}}, "initial_interval is 0s"},
		{map[string]any{"retry_on_failure": map[string]any{"max_interval": "1ms"}}, "max_interval is 1ms"},
		{map[string]any{"windows": "1s"}, "windows"},
		{map[string]any{"retry_on_failure": map[string]any{"maximum": "1s"}}, "maximum"},
		{map[string]any{"retry_on_failure": map[string]any{"initial_interval": "-1s"}}, "initial_interval"},
	} {
		cfg := createDefaultConfig().(*Config)
		err := confmap.NewFromStringMap(test.config).Unmarshal(cfg)
		if err == nil {
			err = confmap.Validate(cfg)
		}
		require.ErrorContainsf(t, err, test.want, "%v", test.config)
	}
}
