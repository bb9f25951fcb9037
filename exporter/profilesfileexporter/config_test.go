// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

func TestDefaultConfig(t *testing.T) {
	config := createDefaultConfig().(*Config)
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval, retry.MaxInterval, retry.MaxElapsedTime = 200*time.Millisecond, time.Second, 10*time.Second
	assert.Equal(t, retry, config.RetryOnFailure)
}

func TestLoadConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	withDefaults := func(change func(c *Config)) *Config {
		c := createDefaultConfig().(*Config)
		change(c)
		return c
	}
	for id, tt := range map[string]struct {
		config  *Config
		options store.Options
	}{
		"profiles_file/all": {
			withDefaults(func(c *Config) {
				c.Directory = "/var/lib/profiles"
				c.Sync, c.SyncInterval = "record", 5*time.Second
				c.Rotation = RotationConfig{MaxSize: 128 * config.MiB, MaxAge: 10 * time.Minute, MaxRecords: 1000}
				c.Retention = RetentionConfig{MaxFiles: 500, MaxAge: 24 * time.Hour, MaxTotalSize: 10 * config.GiB}
				c.GroupBy, c.MaxGroups, c.MaxOpenFiles = []string{"service.name", "host.name"}, 50, 20
				c.RetryOnFailure.InitialInterval = time.Second
				c.RetryOnFailure.MaxInterval = 5 * time.Second
			}),
			store.Options{
				Directory: "/var/lib/profiles",
				Format:    segment.Proto,
				Rotation:  store.Rotation{MaxSize: 128 << 20, MaxAge: 10 * time.Minute, MaxRecords: 1000},
				Sync:      store.SyncRecord, SyncInterval: 5 * time.Second,
				MaxGroups: 50, MaxOpen: 20,
				Retention: store.Retention{MaxFiles: 500, MaxAge: 24 * time.Hour, MaxTotalSize: 10 << 30},
			},
		},
		"profiles_file/json": {
			withDefaults(func(c *Config) {
				c.Directory, c.Format, c.Sync, c.SyncInterval, c.GroupBy = "out", "json", "none", 0, []string{}
				c.Rotation = RotationConfig{}
				c.RetryOnFailure.Enabled = false
			}),
			store.Options{Directory: "out", Format: segment.JSON, MaxGroups: 1000, MaxOpen: 100},
		},
		"profiles_file": {
			withDefaults(func(c *Config) { c.Directory = "./profiles" }),
			store.Options{
				Directory: "./profiles", Format: segment.Proto, MaxGroups: 1000, MaxOpen: 100,
				Rotation: store.Rotation{MaxSize: 64 << 20, MaxAge: time.Minute}, Sync: store.SyncInterval, SyncInterval: time.Second,
			},
		},
	} {
		t.Run(id, func(t *testing.T) {
			sub, err := conf.Sub(id)
			require.NoError(t, err)
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, sub.Unmarshal(cfg))
			require.NoError(t, confmap.Validate(cfg))
			assert.Equal(t, tt.config, cfg)
			assert.Equal(t, tt.options, cfg.storeOptions())
		})
	}
}

func TestWrongConfigurationsAreRejected_D3(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"directory: $HOME/x":                                                                  `directory is "$HOME/x": must be written with ${env:HOME}: $HOME is not replaced`,
		"directory: /data/$NAME":                                                              "must be written with ${env:NAME}",
		"directory: ~/x":                                                                      "must be written with ${env:HOME}: ~ is not replaced",
		"{}":                                                                                  "directory is \"\": must be the path of the directory of the files",
		`directory: "a\0b"`:                                                                   `directory is "a\x00b": must be the path`,
		"{directory: d, format: pprof}":                                                       "format is \"pprof\": must be proto or json (for single pprof files use otelprof convert, or /api/profile",
		"{directory: d, sending_queue: {}}":                                                   "unknown key sending_queue",
		"{directory: d, framing: none}":                                                       "unknown key framing",
		"{directory: d, compression: zstd}":                                                   "unknown key compression",
		"{directory: d, sync: always}":                                                        "sync is \"always\": must be one of none, interval, record",
		"{directory: d, sync_interval: 0s}":                                                   "sync_interval is 0s: must be 1ms or more",
		"{directory: d, sync_interval: -1s, sync: none}":                                      "sync_interval is -1s: must be 1ms or more",
		"{directory: d, rotation: {max_size: -1}}":                                            "'rotation.max_size' is \"-1\": must be a whole number of bytes",
		"{directory: d, rotation: {max_age: -1s}}":                                            "rotation::max_age is -1s: must be 0 (no limit), or 1ms or more",
		"{directory: d, rotation: {max_records: -1}}":                                         "rotation::max_records is -1: must be 0 (no limit) or more",
		"{directory: d, retention: {max_files: -1}}":                                          "retention::max_files is -1: must be 0 (no limit) or more",
		"{directory: d, retention: {max_total_size: 1MiB}}":                                   "retention::max_total_size is 1MiB: must be rotation::max_size, which is 64MiB, or more",
		"{directory: d, retention: {max_total_size: -1}}":                                     "is \"-1\": must be",
		"{directory: d, rotation: {max_age: 24h}, retention: {max_age: 1h}}":                  "retention::max_age is 1h0m0s: must be rotation::max_age, which is 24h0m0s, or more",
		"{directory: d, rotation: {max_age: 24h}, retention: {max_age: 24h}}":                 "",
		"{directory: d, rotation: {max_size: 0}, retention: {max_total_size: 1}}":             "rotation::max_size is 0B: must be more than 0 with a retention::max_total_size",
		"{directory: d, group_by: ['']}":                                                      "group_by[0] is \"\": must be otelcol_profiles.type or the key of a resource attribute",
		"{directory: d, group_by: [a, a]}":                                                    "group_by[1] is \"a\": must be different",
		"{directory: d, group_by: [a, b, c, d, e, f, g, h, i]}":                               "must be at most 8 keys",
		"{directory: d, max_groups: 0}":                                                       "max_groups is 0: must be 1 or more",
		"{directory: d, max_open_files: 0}":                                                   "max_open_files is 0: must be 1 or more",
		"{directory: d, retry_on_failure: {initial_interval: -1s}}":                           "initial_interval",
		"{directory: d, object_storage: {prefix: p}}":                                         `object_storage::bucket is "": must be the name of a bucket`,
		"{directory: d, object_storage: {bucket: b-1}}":                                       "",
		"{directory: d, object_storage: {bucket: b-1, prefix: a/../b}}":                       `object_storage::prefix is "a/../b": must be a path such as prod/profiles`,
		"{directory: d, object_storage: {bucket: b-1, prefix: $HOST}}":                        "must be written with ${env:HOST}",
		"{directory: d, object_storage: {bucket: b-1, prefix: p, endpoint: 'ftp://x'}}":       `object_storage::endpoint is a URL with the scheme "ftp": must be http or https`,
		"{directory: d, object_storage: {bucket: b-1, prefix: p, endpoint: 'http://u:p@x'}}":  "object_storage::endpoint has a user or password",
		"{directory: d, object_storage: {bucket: b-1, prefix: p, timeout: 1ms}}":              "object_storage::timeout is 1ms: must be 1s or more",
		"{directory: d, object_storage: {bucket: b-1, prefix: p, retention: {max_age: 30s}}}": "object_storage::retention::max_age is 30s: must be 0 (no limit), or at least 1m and rotation::max_age, which is 1m0s",
		"{directory: d, object_storage: {bucket: b-1, prefix: p}, rotation: {max_size: 0}}":   "rotation::max_size is 0B: must be more than 0 and at most 5GiB with object_storage",
		"{directory: d, object_storage: {bucket: b-1, prefix: p, access_key: x}}":             "access_key",
		"{directory: d, format: json}":                                                        "",
		"{directory: d, object_storage: {endpoint: 'http://localhost:9000', bucket: profiles, prefix: prod/host-1/, region: eu-west-1, timeout: 1m, retention: {max_age: 720h}}}": "",
	})
}
