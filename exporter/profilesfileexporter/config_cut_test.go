// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// TestNoNumberIsCut: a fraction of a whole number, and a duration without its unit, are
// refused, with their key.
func TestNoNumberIsCut(t *testing.T) {
	for key, value := range map[string]any{
		"rotation::max_records":              0.5,
		"rotation::max_age":                  0.5,
		"retention::max_files":               0.9,
		"retention::max_age":                 0.5,
		"max_groups":                         1.9,
		"max_open_files":                     1.9,
		"sync_interval":                      1500000.7,
		"sending_queue::num_consumers":       2.5,
		"sending_queue::queue_size":          1000.5,
		"retry_on_failure::max_elapsed_time": 10,
		"retry_on_failure::initial_interval": 10,
		"retry_on_failure::max_interval":     0.5,
	} {
		conf := confmap.NewFromStringMap(map[string]any{"directory": "d"})
		require.NoError(t, conf.Merge(confmap.NewFromStringMap(map[string]any{key: value})))
		cfg := createDefaultConfig().(*Config)
		err := conf.Unmarshal(cfg)
		if err == nil {
			err = cfg.Validate()
		}
		assert.ErrorContains(t, err, key, "%v", value)
	}
}

// TestRetentionThatKeepsNothing is refused, with both keys.
func TestRetentionThatKeepsNothing(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory = "d"
	cfg.Rotation.MaxAge, cfg.Retention.MaxAge = 24*time.Hour, time.Hour
	assert.ErrorContains(t, cfg.Validate(), "retention::max_age is 1h0m0s: must be rotation::max_age, which is 24h0m0s, or more")
	cfg.Retention.MaxAge = 24 * time.Hour
	require.NoError(t, cfg.Validate())
	cfg.Rotation.MaxSize, cfg.Retention.MaxTotalSize = 0, 1
	assert.ErrorContains(t, cfg.Validate(), "rotation::max_size is 0B: must be more than 0 with a retention::max_total_size")
	cfg.Framing, cfg.Retention.MaxAge = framingNone, time.Hour // each record is a file
	require.NoError(t, cfg.Validate())
}
