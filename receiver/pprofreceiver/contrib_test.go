// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestContribConfigsWork decodes configurations of the forms that the documentation of
// contrib's receiver has had.
func TestContribConfigsWork(t *testing.T) {
	for name, test := range map[string]struct {
		yaml string
		want func(t *testing.T, cfg *Config)
	}{
		"all sections": {
			yaml: `
remote:
  endpoint: http://checkout:6060/debug/pprof/profile?seconds=1
  collection_interval: 20s
  initial_delay: 5s
  timeout: 10s
  headers: {X-Team: shop}
server:
  endpoint: 127.0.0.1:4040
  tls: {cert_file: tls.crt, key_file: tls.key}
file:
  include: /var/tmp/pprof/*
  collection_interval: 15s
  initial_delay: 2s
self:
  collection_interval: 25s
  initial_delay: 1s
  block_profile_fraction: 1
  mutex_profile_fraction: 1
`,
			want: func(t *testing.T, cfg *Config) {
				remote, server, file, self := cfg.Remote.Get(), cfg.Server.Get(), cfg.File.Get(), cfg.Self.Get()
				assert.Equal(t, "http://checkout:6060/debug/pprof/profile?seconds=1", remote.HTTP.Endpoint)
				assert.Equal(t, 20*time.Second, remote.CollectionInterval)
				assert.Equal(t, 10*time.Second, remote.HTTP.Timeout)
				assert.Equal(t, "127.0.0.1:4040", server.HTTP.NetAddr.Endpoint)
				assert.Equal(t, []string{"/var/tmp/pprof/*"}, file.Watch.Include)
				assert.Equal(t, 15*time.Second, file.Watch.PollInterval)
				assert.Equal(t, 25*time.Second, self.CollectionInterval)
				assert.Equal(t, 1, self.BlockProfileFraction)
				assert.Equal(t, 1, self.MutexProfileFraction)
			},
		},
		"the section self with a delay only": {
			yaml: "self: {initial_delay: 1s}",
			want: func(t *testing.T, cfg *Config) {
				assert.Equal(t, time.Minute, cfg.Self.Get().CollectionInterval)
			},
		},
		"protocols": {
			yaml: "protocols: {http: {endpoint: 'localhost:4041'}}",
			want: func(t *testing.T, cfg *Config) {
				assert.Equal(t, "localhost:4041", cfg.Server.Get().HTTP.NetAddr.Endpoint)
			},
		},
		"protocols with defaults": {
			yaml: "protocols:\n  http:\n",
			want: func(t *testing.T, cfg *Config) {
				assert.Equal(t, "localhost:4040", cfg.Server.Get().HTTP.NetAddr.Endpoint)
			},
		},
		"before v0.153, of itself": {
			yaml: "{collection_interval: 10s, block_profile_fraction: 2, mutex_profile_fraction: 3}",
			want: func(t *testing.T, cfg *Config) {
				self := cfg.Self.Get()
				require.NotNil(t, self)
				assert.Equal(t, 10*time.Second, self.CollectionInterval)
				assert.Equal(t, 2, self.BlockProfileFraction)
				assert.Equal(t, 3, self.MutexProfileFraction)
				assert.False(t, cfg.File.HasValue())
			},
		},
		"before v0.153, of files": {
			yaml: "{include: /var/tmp/pprof/*, collection_interval: 10s, initial_delay: 1s}",
			want: func(t *testing.T, cfg *Config) {
				file := cfg.File.Get()
				require.NotNil(t, file)
				assert.Equal(t, []string{"/var/tmp/pprof/*"}, file.Watch.Include)
				assert.Equal(t, 10*time.Second, file.Watch.PollInterval)
				assert.False(t, cfg.Self.HasValue())
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := loadConfig(test.yaml)
			require.NoError(t, err)
			test.want(t, cfg)
		})
	}
}

func TestContribKeysThatContradictAreRejected(t *testing.T) {
	assertInvalid(t, map[string]string{
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
