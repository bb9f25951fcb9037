// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestSectionsAreOptional(t *testing.T) {
	cfg, err := loadConfig("server: {}")
	require.NoError(t, err)
	assert.True(t, cfg.Server.HasValue())
	assert.False(t, cfg.Self.HasValue())

	cfg, err = loadConfig("{self: {}, server: , remote: , file: }")
	require.NoError(t, err)
	assert.False(t, cfg.Server.HasValue())
	assert.True(t, cfg.Self.HasValue())
}

func TestWrongConfigurationsAreRejected_D3(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"server: {}\nbogus: 1":                         "unknown key bogus: must be one of ",
		"server: {bogus: 1}":                           "unknown key server::bogus: must be one of ",
		"server: {max_decompressed_sise: 1MiB}":        "unknown key server::max_decompressed_sise: must be one of ",
		"server: {http: {endpoint: localhost:1}}":      "unknown key server::http: must be one of ",
		"server: {auth: {authenticator: a, bogus: 1}}": "unknown key server::auth::bogus: must be one of ",
		"remote: {targets: [{endpoint: x, bogus: 1}]}": "unknown key remote::targets::0::bogus: must be one of ",
		"self: {bogus: 1}":                             "unknown key self::bogus: must be one of ",
		"server: {}\nlinks: {bogus: 1}":                "unknown key links::bogus: must be one of ",
		"server: {}\njfr: {original_payload: true}":    "unknown key jfr::original_payload: must be one of normalize_class_names, timestamps",
		"{}":                                                "at least one of server, remote, file or self is required",
		"server:":                                           "at least one of server, remote, file or self is required ... null turns it off",
		"server: {enabled: false}":                          "at least one of server, remote, file or self is required",
		"server: {endpoint: ''}":                            "server: endpoint ... localhost:4040",
		"server: {transport: carrier-pigeon}":               "transport",
		"server: {max_request_body_size: 0}":                "server: max_request_body_size is 0 ... above 0",
		"server: {max_request_body_size: 64mib}":            "max_request_body_size is \"64mib\": must be a whole number of bytes",
		"server: {max_decompressed_size: 0}":                "server: max_decompressed_size is 0 ... above 0",
		"server: {max_decompressed_size: 4GiB}":             "server: max_decompressed_size is 4GiB ... at most",
		serverYAML + "max_in_flight: 9223372036854775807":   "max_in_flight ... at most 1TiB",
		"server: {max_decompressed_size: 1.5}":              "max_decompressed_size ... 1.5",
		"server: {max_decompressed_size: 10 potatoes}":      "max_decompressed_size ... 10 potatoes",
		serverYAML + "max_in_flight: 4095KiB":               "max_in_flight is 4095KiB: must be at least 4MiB",
		serverYAML + "max_in_flight: 101%":                  "max_in_flight ... at most 100%",
		"server: {max_in_flight: 63MiB}":                    "server ... max_in_flight",
		"server: {read_timeout: -1s}":                       "server: read_timeout is -1s ... 0 (no timeout) or more",
		"server: {read_timeout: 30}":                        "server::read_timeout is 30: ... with a unit",
		"server: {compression_algorithms: [lzma]}":          "compression_algorithms[0] is \"lzma\": must be ... zstd",
		"self: {collection_interval: 0s}":                   "self: collection_interval is 0s: must be ... at least 1ms",
		"self: {collection_interval: 60}":                   "self::collection_interval is 60: ... with a unit",
		"self: {collection_interval: 5s, cpu_duration: 5s}": "self: cpu_duration is 5s: must be ... shorter than collection_interval (5s)",
		"self: {cpu_duration: -1s}":                         "self: cpu_duration is -1s: must be",
		"self: {profiles: []}":                              "self: profiles is []: must be some of ... goroutine",
		"self: {profiles: [cpu, wall]}":                     "self: profiles is \"wall\": must be one of ... goroutine",
		"self: {mutex_profile_fraction: -1}":                "self: mutex_profile_fraction is -1: must be at least 0",
		"self: {block_profile_fraction: -1}":                "self: block_profile_fraction is -1: must be at least 0",
		"self: {profiles: [cpu, cpu]}":                      "self: profiles is \"cpu\": must be listed once",
		"server: {}\nlinks: {trace_id: ''}":                 "links: trace_id is \"\": must be",
		"server: {}\nlinks: {span_id: ''}":                  "links: span_id is \"\": must be",
		"server: {}\nlinks: {span_id: trace_id}":            "links: span_id is \"trace_id\": must be another label than trace_id",
		"server: {}\ntimestamp_label: ''":                   "timestamp_label is \"\": must be",
		"server: {}\ntimestamp_label: span_id":              "timestamp_label is \"span_id\": must be another label than those of links",
		"server: {}\ntimestamp_label: span id":              "timestamp_label is \"span id\": must be another label than those of links",
		"server: {}\ntimestamp_label: profile_id":           "timestamp_label is \"profile_id\": must be another label than those of links",
		"server: {}\nresource_attributes: {'': x}":          "resource_attributes is \"\": must be",
		"server: {}\nresource_attributes: {a.b: [1]}":       "resource_attributes",
		"max_in_flight: -1\nserver: {}":                     "max_in_flight is \"-1\"",
	})
}

func TestConfigMarshals(t *testing.T) {
	cfg, err := loadConfig(serverYAML + "self: {collection_interval: 8s}\nresource_attributes: {a.b: c}")
	require.NoError(t, err)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(cfg))
	again := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(again))
	assert.Equal(t, cfg.MaxInFlight, again.MaxInFlight)
	assert.Equal(t, cfg.Server.Get().HTTP.NetAddr, again.Server.Get().HTTP.NetAddr)
	assert.Equal(t, cfg.Self, again.Self)
	assert.Equal(t, cfg.ResourceAttributes, again.ResourceAttributes)
}
