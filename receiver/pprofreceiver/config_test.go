// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

func TestEmptySectionsHaveDefaults(t *testing.T) {
	cfg, err := loadConfig("server: {}\nself: {}\n")
	require.NoError(t, err)

	server := cfg.Server.Get()
	require.NotNil(t, server)
	assert.Equal(t, "localhost:4040", server.HTTP.NetAddr.Endpoint)
	assert.Equal(t, 30*time.Second, server.HTTP.ReadTimeout)
	assert.Equal(t, 10*time.Second, server.HTTP.ReadHeaderTimeout)
	assert.Equal(t, 60*time.Second, server.HTTP.WriteTimeout)
	assert.Equal(t, time.Minute, idleTimeout(t, server))
	assert.EqualValues(t, 67108864, server.HTTP.MaxRequestBodySize)
	assert.EqualValues(t, 64<<20, server.MaxDecompressedSize)
	assert.Equal(t, max(bytesize.MemoryLimit()/4, 4<<20), cfg.MaxInFlight)

	self := cfg.Self.Get()
	require.NotNil(t, self)
	assert.Equal(t, time.Minute, self.CollectionInterval)
	assert.Equal(t, []string{"cpu", "heap", "goroutine"}, self.Profiles)

	assert.Equal(t, LinksConfig{TraceID: "trace_id", SpanID: "span_id"}, cfg.Links)
	assert.Equal(t, "end_timestamp_ns", cfg.TimestampLabel)
	assert.Empty(t, cfg.ResourceAttributes)
}

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

func TestConfigKeys(t *testing.T) {
	cfg, err := loadConfig(`
server:
  endpoint: 0.0.0.0:14040
  transport: tcp4
  read_timeout: 5s
  read_header_timeout: 4s
  write_timeout: 50s
  keepalive: {idle_timeout: 3s}
  max_request_body_size: 1000
  include_metadata: true
  compression_algorithms: ["", zstd]
  response_headers: {X-One: two}
  tls: {cert_file: a, key_file: b}
  cors: {allowed_origins: [http://one]}
  auth: {authenticator: basicauth, request_params: [token]}
  max_decompressed_size: 2MiB
max_in_flight: 4194304
self:
  collection_interval: 8s
  cpu_duration: 2s
  profiles: [heap]
resource_attributes: {service.name: checkout, deployment.environment.name: test}
links:
  trace_id: trace id
  span_id: span id
timestamp_label: at
`)
	require.NoError(t, err)
	server := cfg.Server.Get()
	assert.Equal(t, "0.0.0.0:14040", server.HTTP.NetAddr.Endpoint)
	assert.EqualValues(t, "tcp4", server.HTTP.NetAddr.Transport)
	assert.Equal(t, 5*time.Second, server.HTTP.ReadTimeout)
	assert.Equal(t, 4*time.Second, server.HTTP.ReadHeaderTimeout)
	assert.Equal(t, 50*time.Second, server.HTTP.WriteTimeout)
	assert.Equal(t, 3*time.Second, idleTimeout(t, server))
	assert.EqualValues(t, 1000, server.HTTP.MaxRequestBodySize)
	assert.True(t, server.HTTP.IncludeMetadata)
	assert.Equal(t, []string{"", "zstd"}, server.HTTP.CompressionAlgorithms)
	assert.Equal(t, "a", server.HTTP.TLS.Get().CertFile)
	assert.Equal(t, []string{"http://one"}, server.HTTP.CORS.Get().AllowedOrigins)
	assert.Equal(t, []string{"token"}, server.HTTP.Auth.Get().RequestParameters)
	assert.EqualValues(t, 2<<20, server.MaxDecompressedSize)
	assert.EqualValues(t, 4<<20, cfg.MaxInFlight)
	assert.Equal(t, 2*time.Second, cfg.Self.Get().CPUDuration)
	assert.Equal(t, []string{"heap"}, cfg.Self.Get().Profiles)
	assert.Equal(t, map[string]string{"service.name": "checkout", "deployment.environment.name": "test"}, cfg.ResourceAttributes)
	assert.Equal(t, LinksConfig{TraceID: "trace id", SpanID: "span id"}, cfg.Links)
	assert.Equal(t, "at", cfg.TimestampLabel)
}

// idleTimeout is that of the HTTP server which the configuration makes.
func idleTimeout(t *testing.T, config *httpserver.Config) time.Duration {
	t.Helper()
	plain := config.HTTP
	plain.Auth = configoptional.None[confighttp.AuthConfig]()
	made, err := plain.ToServer(t.Context(), nil, componenttest.NewNopTelemetrySettings(), http.NotFoundHandler())
	require.NoError(t, err)
	return made.IdleTimeout
}

// The strict pass must not use up what the second one reads.
func TestKeepAliveCanBeDisabled(t *testing.T) {
	for config, closes := range map[string]bool{"": false, ", keepalive: {enabled: false}": true} {
		b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0"+config+"}", consumertest.NewNop())
		request, err := http.NewRequest(http.MethodPost, b.url("/v1/pprof"), nil)
		require.NoError(t, err)
		response, err := b.client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, closes, response.Close, config)
	}
}

func TestUnknownKeysAreRejected(t *testing.T) {
	for yaml, key := range map[string]string{
		"server: {}\nbogus: 1":                         "bogus",
		"server: {bogus: 1}":                           "server::bogus",
		"server: {max_decompressed_sise: 1MiB}":        "server::max_decompressed_sise, did you mean max_decompressed_size?",
		"server: {http: {endpoint: localhost:1}}":      "server::http",
		"server: {auth: {authenticator: a, bogus: 1}}": "server::auth::bogus",
		"remote: {targets: [{endpoint: x, bogus: 1}]}": "remote::targets::0::bogus",
		"self: {bogus: 1}":                             "self::bogus",
		"server: {}\nlinks: {bogus: 1}":                "links::bogus",
	} {
		_, err := loadConfig(yaml)
		require.Error(t, err, yaml)
		assert.Contains(t, err.Error()+"\n", "unknown key "+key+"\n")
		assert.NotContains(t, err.Error(), "Config", "no Go struct")
	}
}

func TestWrongValuesAreRejected(t *testing.T) {
	for yaml, want := range map[string][]string{
		"server: {}\njfr: {original_payload: true}": {"is invalid: jfr::original_payload was removed"},
		"{}":                                                {"at least one of server, remote, file or self is required"},
		"server:":                                           {"at least one of server, remote, file or self is required", "null turns it off"},
		"server: {enabled: false}":                          {"at least one of server, remote, file or self is required"},
		"server: {endpoint: ''}":                            {"server: endpoint", "localhost:4040"},
		"server: {transport: carrier-pigeon}":               {"transport"},
		"server: {max_request_body_size: 0}":                {"server: max_request_body_size is 0", "above 0"},
		"server: {max_request_body_size: 64mib}":            {"max_request_body_size is \"64mib\": must be a whole number of bytes"},
		"server: {max_decompressed_size: 0}":                {"server: max_decompressed_size is 0", "above 0"},
		"server: {max_decompressed_size: 4GiB}":             {"server: max_decompressed_size is 4GiB", "at most"},
		serverYAML + "max_in_flight: 9223372036854775807":   {"max_in_flight", "at most 1TiB"},
		"server: {max_decompressed_size: 1.5}":              {"max_decompressed_size", "1.5"},
		"server: {max_decompressed_size: 10 potatoes}":      {"max_decompressed_size", "10 potatoes"},
		serverYAML + "max_in_flight: 4095KiB":               {"max_in_flight is 4095KiB: must be at least 4MiB"},
		serverYAML + "max_in_flight: 101%":                  {"max_in_flight", "at most 100%"},
		"server: {max_in_flight: 63MiB}":                    {"server", "max_in_flight"},
		"server: {read_timeout: -1s}":                       {"server: read_timeout is -1s", "at least 1ms"},
		"server: {read_timeout: 30}":                        {"server::read_timeout is 30:", "with a unit"},
		"server: {compression_algorithms: [lzma]}":          {"compression_algorithms[0] is \"lzma\": must be", "zstd"},
		"self: {collection_interval: 0s}":                   {"self: collection_interval is 0s: must be", "at least 1ms"},
		"self: {collection_interval: 60}":                   {"self::collection_interval is 60:", "with a unit"},
		"self: {collection_interval: 5s, cpu_duration: 5s}": {"self: cpu_duration is 5s: must be", "shorter than collection_interval (5s)"},
		"self: {cpu_duration: -1s}":                         {"self: cpu_duration is -1s: must be"},
		"self: {profiles: []}":                              {"self: profiles is []: must be some of", "goroutine"},
		"self: {profiles: [cpu, wall]}":                     {"self: profiles is \"wall\": must be one of", "goroutine"},
		"self: {mutex_profile_fraction: -1}":                {"self: mutex_profile_fraction is -1: must be at least 0"},
		"self: {block_profile_fraction: -1}":                {"self: block_profile_fraction is -1: must be at least 0"},
		"self: {profiles: [cpu, cpu]}":                      {"self: profiles is \"cpu\": must be listed once"},
		"server: {}\nlinks: {trace_id: ''}":                 {"links: trace_id is \"\": must be"},
		"server: {}\nlinks: {span_id: ''}":                  {"links: span_id is \"\": must be"},
		"server: {}\nlinks: {span_id: trace_id}":            {"links: span_id is \"trace_id\": must be another label than trace_id"},
		"server: {}\ntimestamp_label: ''":                   {"timestamp_label is \"\": must be"},
		"server: {}\ntimestamp_label: span_id":              {"timestamp_label is \"span_id\": must be another label than those of links"},
		"server: {}\ntimestamp_label: span id":              {"timestamp_label is \"span id\": must be another label than those of links"},
		"server: {}\ntimestamp_label: profile_id":           {"timestamp_label is \"profile_id\": must be another label than those of links"},
		"server: {}\nresource_attributes: {'': x}":          {"resource_attributes: name is \"\": must be"},
		"server: {}\nresource_attributes: {a.b: [1]}":       {"resource_attributes"},
	} {
		t.Run(yaml, func(t *testing.T) {
			_, err := loadConfig(yaml)
			require.Error(t, err)
			for _, part := range want {
				require.ErrorContains(t, err, part)
			}
			assert.NotContains(t, strings.ToLower(err.Error()), "panic")
		})
	}
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
