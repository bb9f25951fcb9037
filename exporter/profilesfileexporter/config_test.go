// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

func TestDefaultConfig(t *testing.T) {
	cfg := createDefaultConfig()
	require.NoError(t, componenttest.CheckConfigStruct(cfg))
	assert.Equal(t, &Config{
		Format: "proto", Framing: "length_prefixed", Compression: "zstd", Sync: "interval", SyncInterval: time.Second,
		Rotation: RotationConfig{MaxSize: 64 << 20, MaxAge: time.Minute},
	}, cfg)
	require.EqualError(t, confmap.Validate(cfg),
		"directory: is empty: want the path of the directory that the files go into")
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
		options segment.Options
	}{
		"profiles_file": {
			withDefaults(func(c *Config) { c.Directory = "./profiles" }),
			segment.Options{
				Format:   segment.Format{Content: segment.OTLPProto, Framing: segment.LengthPrefixed, Compression: segment.Zstd},
				Rotation: segment.Rotation{MaxSize: 64 << 20, MaxAge: time.Minute},
				Sync:     segment.SyncInterval, SyncInterval: time.Second,
			},
		},
		"profiles_file/all": {
			&Config{
				Directory: "/var/lib/profiles", Format: "proto", Framing: "none", Compression: "gzip",
				Sync: "record", SyncInterval: 5 * time.Second,
				Rotation: RotationConfig{MaxSize: 128 * bytesize.MiB, MaxAge: 10 * time.Minute, MaxRecords: 1000},
			},
			segment.Options{
				Format:   segment.Format{Content: segment.OTLPProto, Framing: segment.Bare, Compression: segment.Gzip},
				Rotation: segment.Rotation{MaxSize: 128 << 20, MaxAge: 10 * time.Minute, MaxRecords: 1000},
				Sync:     segment.SyncRecord, SyncInterval: 5 * time.Second,
			},
		},
		"profiles_file/json": {
			&Config{Directory: "out", Format: "json", Framing: "length_prefixed", Compression: "none", Sync: "none"},
			segment.Options{Format: segment.Format{Content: segment.OTLPJSON, Framing: segment.Lines}},
		},
	} {
		t.Run(id, func(t *testing.T) {
			sub, err := conf.Sub(id)
			require.NoError(t, err)
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, sub.Unmarshal(cfg))
			require.NoError(t, confmap.Validate(cfg))
			assert.Equal(t, tt.config, cfg)
			assert.Equal(t, tt.options, cfg.segmentOptions())
		})
	}
}

func TestConfigRefuses(t *testing.T) {
	for yaml, want := range map[string]string{
		"directory: ''":                  "directory: is empty",
		"{}":                             "directory: is empty",
		`directory: "a\0b"`:              `directory: "a\x00b" holds a NUL`,
		"{directory: d, format: pprof}":  "format: is \"pprof\": want one of proto, json",
		"{directory: d, format: ''}":     "format: is \"\": want one of proto, json",
		"{directory: d, framing: lines}": "framing: is \"lines\": want one of length_prefixed, none",
		"{directory: d, format: json, framing: none}":    "framing: is none with format: json",
		"{directory: d, compression: snappy}":            "compression: is \"snappy\": want one of none, gzip, zstd",
		"{directory: d, sync: always}":                   "sync: is \"always\": want one of none, interval, record",
		"{directory: d, sync_interval: 0s}":              "sync_interval: is 0s: want at least 1ms",
		"{directory: d, sync_interval: -1s, sync: none}": "sync_interval: is -1s: want at least 1ms",
		"{directory: d, sync_interval: soon}":            "sync_interval",
		"{directory: d, rotation: {max_size: 1.5}}":      "'rotation.max_size' invalid size 1.5: want a whole number of bytes",
		"{directory: d, rotation: {max_size: -1}}":       "'rotation.max_size' invalid size -1: want a whole number of bytes",
		"{directory: d, rotation: {max_size: 1 mb}}":     "invalid size \"1 mb\"",
		"{directory: d, rotation: {max_age: -1s}}":       "rotation::max_age: is -1s: want 0 for no limit, or at least 1ms",
		"{directory: d, rotation: {max_records: -1}}":    "rotation::max_records: is -1: want 0 for no limit, or more",
		"{directory: d, rotation: {max_records: many}}":  "max_records",
		"{directory: d, rotation: {max_files: 1}}":       "max_files",
		"{directory: d, retention: {max_files: 1}}":      "retention",
		"{directory: d, group_by: [service.name]}":       "group_by",
		"{directory: d, sending_queue: {enabled: true}}": "sending_queue",
		"{directory: d, retry_on_failure: {}}":           "retry_on_failure",
		"{directory: d, path: x}":                        "path",
		"{directory: d, Format: json}":                   "Format",
	} {
		t.Run(yaml, func(t *testing.T) {
			retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
			require.NoError(t, err)
			conf, err := retrieved.AsConf()
			require.NoError(t, err)
			cfg := createDefaultConfig()
			if err = conf.Unmarshal(cfg); err == nil {
				err = confmap.Validate(cfg)
			}
			require.ErrorContains(t, err, want)
		})
	}
}

func TestConfigReportsAllFaults(t *testing.T) {
	cfg := &Config{Rotation: RotationConfig{MaxSize: -1, MaxAge: -1, MaxRecords: -1}}
	err := confmap.Validate(cfg)
	for _, key := range []string{
		"directory", "format", "framing", "compression", "sync",
		"rotation::max_size", "rotation::max_age", "rotation::max_records",
	} {
		assert.ErrorContains(t, err, key+": is ")
	}
}
