// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

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
		"include: [/a]\npath_attributes: x":                       `path_attributes is "x": must be a regular expression with a named group`,
		"include: [/a]\npath_attributes: (":                       `path_attributes is "(": must be a regular expression: `,
		"directory: /a\nrejected: {directory: /a/}":               `rejected::directory is "/a/": must be another directory than directory`,
		"directory: /a\nafter_read: move\nmove_to: /a":            `move_to is "/a": must be another directory than directory`,
	})
}

// Programs reject pipelines that write into what they read.
func TestMayReadItsDirectory(t *testing.T) {
	dir := t.TempDir()
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, profiletest.LoadConfig("directory: "+dir, cfg))
	require.NoError(t, cfg.Validate())
	assert.True(t, cfg.MayRead(filepath.Join(dir, "service.name=*", "2026", "11", "28", "14", "file.otlp.pb.zst")))
	assert.False(t, cfg.MayRead(dir+"2/2026/11/28/14/file.otlp.pb.zst"))
}
