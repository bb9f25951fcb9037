// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestConfigIsRead(t *testing.T) {
	cfg, err := loadConfig(`
include: /a/{b,c}/*.pb
exclude: [/a/b/x*]
poll_interval: 2s
storage: file_storage/x
start_at: end
after_read: move
move_to: /done
rejected: {directory: /rejected, max_total_size: 1GiB}
concurrency: 8
max_in_flight: 64MiB
retry_on_failure: {initial_interval: 2s, max_interval: 1m}
once: true
`)
	require.NoError(t, err)
	assert.Equal(t, []string{"/a/{b,c}/*.pb"}, cfg.Watch.Include)
	assert.Equal(t, "file_storage/x", cfg.Watch.Storage.String())
	assert.Equal(t, 2*time.Second, cfg.Watch.PollInterval)
	assert.Equal(t, RejectedConfig{Directory: "/rejected", MaxTotalSize: config.GiB}, cfg.Rejected)
	assert.Equal(t, RetryConfig{InitialInterval: 2 * time.Second, MaxInterval: time.Minute}, cfg.RetryOnFailure)
	assert.True(t, cfg.Once)
}

func TestWrongConfigurationsAreRejected_D3(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"{}":                                                      `include is []: must be a glob such as`,
		"include: [/a]\nx: 1":                                     `unknown key x`,
		"include: [/a]\nstart_at: x":                              `start_at is "x": must be one of beginning, end`,
		"include: [/a]\nafter_read: x":                            `after_read is "x": must be one of keep, delete, move`,
		"include: [/a]\nafter_read: delete":                       `rejected::directory is "": must be a directory, as after_read is delete`,
		"include: [/a]\nafter_read: move":                         `move_to is "": must be a directory`,
		"include: [/a]\nmove_to: /b":                              `move_to is "/b": must be empty unless after_read is move`,
		"include: [/a]\nconcurrency: 0":                           `concurrency is 0: must be between 1 and 1000`,
		"include: [/a]\nmax_in_flight: 1MiB":                      `max_in_flight is 1MiB: must be at least 4MiB`,
		"include: [/a]\nretry_on_failure: {initial_interval: 0s}": `retry_on_failure::initial_interval is 0s: must be at least 1ms`,
		"include: [/a]\nretry_on_failure: {max_interval: 1ms}":    `retry_on_failure::max_interval is 1ms: must be at least initial_interval (1s)`,
		"include: [/a]\npath_attributes: x":                       `unknown key path_attributes`,
	})
}
