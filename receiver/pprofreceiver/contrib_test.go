// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestContribConfigsWork decodes configurations of the forms that the documentation of
// contrib's receiver has had.
func TestContribConfigsWork(t *testing.T) {
	load := func(yaml string) *Config {
		cfg, err := loadConfig(yaml)
		require.NoError(t, err, yaml)
		return cfg
	}
	cfg := load(`
remote: {endpoint: 'http://checkout:6060/debug/pprof/profile?seconds=1', collection_interval: 20s, initial_delay: 5s, timeout: 10s, headers: {X-Team: shop}}
server: {endpoint: 127.0.0.1:4040, tls: {cert_file: tls.crt, key_file: tls.key}}
file: {include: /var/tmp/pprof/*, collection_interval: 15s, initial_delay: 2s}
self: {collection_interval: 25s, initial_delay: 1s, block_profile_fraction: 1, mutex_profile_fraction: 1}
`)
	assert.Equal(t, "http://checkout:6060/debug/pprof/profile?seconds=1", cfg.Remote.Get().HTTP.Endpoint)
	assert.Equal(t, 20*time.Second, cfg.Remote.Get().CollectionInterval)
	assert.Equal(t, 10*time.Second, cfg.Remote.Get().HTTP.Timeout)
	assert.Equal(t, "127.0.0.1:4040", cfg.Server.Get().HTTP.NetAddr.Endpoint)
	assert.Equal(t, []string{"/var/tmp/pprof/*"}, cfg.File.Get().Watch.Include)
	assert.Equal(t, 15*time.Second, cfg.File.Get().Watch.PollInterval)
	assert.Equal(t, 25*time.Second, cfg.Self.Get().CollectionInterval)
	assert.Equal(t, 1, cfg.Self.Get().BlockProfileFraction)
	assert.Equal(t, 1, cfg.Self.Get().MutexProfileFraction)

	assert.Equal(t, time.Minute, load("self: {initial_delay: 1s}").Self.Get().CollectionInterval)
	assert.Equal(t, "localhost:4041", load("protocols: {http: {endpoint: 'localhost:4041'}}").Server.Get().HTTP.NetAddr.Endpoint)
	assert.Equal(t, "localhost:4040", load("protocols: {http: }").Server.Get().HTTP.NetAddr.Endpoint)

	// Before v0.153, of itself and of files.
	cfg = load("{collection_interval: 10s, block_profile_fraction: 2, mutex_profile_fraction: 3}")
	assert.Equal(t, 10*time.Second, cfg.Self.Get().CollectionInterval)
	assert.Equal(t, 2, cfg.Self.Get().BlockProfileFraction)
	assert.False(t, cfg.File.HasValue())
	cfg = load("{include: /var/tmp/pprof/*, collection_interval: 10s, initial_delay: 1s}")
	assert.Equal(t, []string{"/var/tmp/pprof/*"}, cfg.File.Get().Watch.Include)
	assert.Equal(t, 10*time.Second, cfg.File.Get().Watch.PollInterval)
	assert.False(t, cfg.Self.HasValue())
}

func TestContribKeysThatContradictAreRejected(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"{server: , collection_interval: 10s}":                                  "unknown key collection_interval",
		"{server: , mutex_profile_fraction: 1}":                                 "unknown key mutex_profile_fraction",
		"file: {include: x, poll_interval: 1s, collection_interval: 1s}":        "unknown key file::collection_interval",
		"self: {initial_delay: soon}":                                           "unknown key self::initial_delay",
		"server: {initial_delay: 1s}":                                           "unknown key server::initial_delay",
		"{server: , protocols: {http: }}":                                       "unknown key protocols",
		"protocols: {grpc: {endpoint: x}}":                                      "unknown key protocols",
		"{collection_interval: 10}":                                             "self::collection_interval is 10:",
		"endpoint: http://checkout:6060/debug/pprof/profile?seconds=1":          "unknown key endpoint",
		"{remote: {endpoint: http://a:1/debug/pprof/heap}, endpoint: 'b:6060'}": "unknown key endpoint",
	})
}
