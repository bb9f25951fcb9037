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

func TestWrongConfigurationsAreRejected_D3(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"server: {}\nbogus: 1":                      "unknown key bogus: must be one of ",
		"server: {bogus: 1}":                        "unknown key server::bogus: must be one of ",
		"server: {}\nlinks: {bogus: 1}":             "unknown key links::bogus: must be one of ",
		"server: {}\njfr: {original_payload: true}": "unknown key jfr::original_payload: must be one of normalize_class_names, timestamps",
		"{}":                                                "at least one of server, remote or self is required",
		"server:":                                           "at least one of server, remote or self is required ... null turns it off",
		"server: {endpoint: ''}":                            "server: endpoint ... localhost:4040",
		"server: {transport: carrier-pigeon}":               "transport",
		"server: {max_request_body_size: 0}":                "server: max_request_body_size is 0 ... above 0",
		"server: {max_decompressed_size: 0}":                "server: max_decompressed_size is 0 ... above 0",
		"server: {max_decompressed_size: 4GiB}":             "server: max_decompressed_size is 4GiB ... at most",
		serverYAML + "max_in_flight: 9223372036854775807":   "max_in_flight ... at most 1TiB",
		serverYAML + "max_in_flight: 4095KiB":               "max_in_flight is 4095KiB: must be at least 4MiB",
		"server: {max_in_flight: 63MiB}":                    "server ... max_in_flight",
		"server: {read_timeout: -1s}":                       "server: read_timeout is -1s ... 0 (no timeout) or more",
		"server: {read_timeout: 30}":                        "server::read_timeout is 30: ... with a unit",
		"server: {compression_algorithms: [lzma]}":          "compression_algorithms[0] is \"lzma\": must be ... zstd",
		"self: {collection_interval: 0s}":                   "self: collection_interval is 0s: must be ... at least 1ms",
		"self: {collection_interval: 5s, cpu_duration: 5s}": "self: cpu_duration is 5s: must be ... shorter than collection_interval (5s)",
		"self: {cpu_duration: -1s}":                         "self: cpu_duration is -1s: must be",
		"self: {profiles: []}":                              "self: profiles is []: must be some of ... goroutine",
		"self: {profiles: [cpu, wall]}":                     "self: profiles is \"wall\": must be one of ... goroutine",
		"self: {block_profile_fraction: -1}":                "self: block_profile_fraction is -1: must be at least 0",
		"self: {mutex_profile_fraction: -1}":                "self: mutex_profile_fraction is -1: must be at least 0",
		"self: {profiles: [cpu, cpu]}":                      "self: profiles is \"cpu\": must be listed once",
		"server: {}\nlinks: {trace_id: ''}":                 "links: trace_id is \"\": must be",
		"server: {}\nlinks: {span_id: ''}":                  "links: span_id is \"\": must be",
		"server: {}\nlinks: {span_id: trace_id}":            "links: span_id is \"trace_id\": must be another label than trace_id",
		"server: {}\ntimestamp_label: ''":                   "timestamp_label is \"\": must be",
		"server: {}\ntimestamp_label: span_id":              "timestamp_label is \"span_id\": must be another label than those of links",
		"server: {}\ntimestamp_label: profile_id":           "timestamp_label is \"profile_id\": must be another label than those of links",
		"server: {}\nresource_attributes: {'': x}":          "resource_attributes is \"\": must be",
		"server: {}\nresource_attributes: {a.b: [1]}":       "resource_attributes",
	})
}

func TestWrongRemoteValuesAreRejected_D3(t *testing.T) {
	const (
		heap    = "endpoint: http://localhost:6060/debug/pprof/heap"
		cpu     = "endpoint: http://localhost:6060/debug/pprof/profile"
		targets = "targets: [{endpoint: http://localhost:6060}]"
	)
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"remote: {}": "remote: either endpoint or targets is required",
		"remote: {" + heap + ", " + targets + "}":                                                                                          "mutually exclusive",
		"remote: {endpoint: localhost:6060}":                                                                                               "remote: endpoint is a URL with the scheme \"localhost\" ... http or https",
		"remote: {endpoint: 'http:///heap'}":                                                                                               "endpoint is a URL without a host: must be",
		"remote: {endpoint: 'http://[::1'}":                                                                                                "endpoint is not a URL: must be",
		"remote: {endpoint: 'http://u:s3cret@localhost/debug/pprof/heap'}":                                                                 "user or password ... auth",
		"remote: {endpoint: 'http://localhost:6060/debug/pprof/'}":                                                                         "must be the URL of one profile ... /debug/pprof/heap",
		"remote: {" + heap + ", profiles: [heap]}":                                                                                         "remote: profiles is [\"heap\"]: must be unset with endpoint",
		"remote: {" + heap + ", timeout: 0}":                                                                                               "remote: timeout is 0s: must be ... at least 1ms",
		"remote: {" + heap + ", max_decompressed_size: 0}":                                                                                 "remote: max_decompressed_size is 0B: must be ... above 0",
		"remote: {" + heap + ", max_in_flight: 8MiB}":                                                                                      "remote ... max_in_flight",
		"remote: {" + cpu + ", cpu_duration: 500ms}":                                                                                       "cpu_duration is 500ms: must be ... whole number of seconds",
		"remote: {" + cpu + ", cpu_duration: 30s}":                                                                                         "cpu_duration is 30s: must be shorter than timeout (30s)",
		"remote: {" + cpu + ", timeout: 1s}":                                                                                               "timeout is 1s: must be longer than 1s, the shortest CPU profile",
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=0'}":                                                                     "must be a URL whose parameter seconds is a whole number",
		"remote: {" + targets + ", collection_interval: 1s}":                                                                               "collection_interval is 1s: must be longer than 1s",
		"remote: {endpoint: 'http://localhost:6060'}":                                                                                      "must be the URL of one profile",
		"remote: {" + heap + ", collection_interval: 0s}":                                                                                  "collection_interval is 0s",
		"remote: {" + targets + ", timeout: 1s}":                                                                                           "timeout is 1s: must be longer than 1s",
		"remote: {" + targets + ", profiles: [wall]}":                                                                                      "profiles is \"wall\": must be one of allocs, block, cpu, delta_block, delta_heap, ",
		"remote: {" + targets + ", profiles: [cpu, cpu]}":                                                                                  "profiles is \"cpu\": must be listed once",
		"remote: {" + targets + ", profiles: [heap, delta_heap]}":                                                                          "profiles is \"delta_heap\": must be listed without \"heap\": it would be counted twice",
		"remote: {targets: [{endpoint: ''}]}":                                                                                              "targets::0::endpoint is empty: must be",
		"remote: {targets: [{endpoint: 'http://a'}, {endpoint: 'http://a/debug/pprof'}]}":                                                  "targets::1::endpoint is \"http://a/debug/pprof\": duplicate target: targets::0",
		"remote: {targets: [{endpoint: 'http://a?x=1&y=2'}, {endpoint: 'http://A:80/debug/./pprof/?y=2&x=1'}]}":                            "targets::1::endpoint is \"http://A:80/debug/./pprof/\": duplicate target: targets::0",
		"remote: {targets: [{endpoint: 'http://a?pod=s3cret'}, {endpoint: 'http://a?pod=2', profiles: [heap]}]}":                           "targets::1::endpoint is \"http://a\": duplicate target: targets::0 already scrapes \"heap\" from this host, port and path ... service.instance.id",
		"remote: {targets: [{endpoint: 'http://a/debug/pprof?seconds=5', profiles: [heap]}]}":                                              "targets::0::endpoint is \"http://a/debug/pprof\": must be a URL without the parameter seconds ... cpu_duration",
		"remote: {targets: [{endpoint: 'http://a?debug=1', profiles: [heap]}]}":                                                            "targets::0::endpoint is \"http://a\": must be a URL without the parameter debug ... text",
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=60', collection_interval: 90s}":                                          "remote: endpoint is \"http://a/debug/pprof/profile\": must be a URL whose parameter seconds ... timeout (30s)",
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=60', timeout: 2m}":                                                       "remote: endpoint is \"http://a/debug/pprof/profile\": must be a URL whose parameter seconds ... collection_interval (1m0s)",
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=s3cret'}":                                                                "must be a URL whose parameter seconds is a whole number",
		"remote: {targets: [{endpoint: 'http://a', resource_attributes: {'': x}}]}":                                                        "targets::0::resource_attributes",
		"remote: {" + heap + ", timeout: 1s, collection_interval: 1s}":                                                                     "",
		"remote: {endpoint: 'http://localhost:6060/debug/pprof/profile?seconds=2', timeout: 3s}":                                           "",
		"remote: {endpoint: 'http://localhost:6060/debug/pprof/heap?gc=1&debug=0'}":                                                        "",
		"remote: {targets: [{endpoint: 'http://a?gc=1', profiles: [heap]}, {endpoint: 'http://a', profiles: [cpu]}]}":                      "",
		"remote: {targets: [{endpoint: 'http://a?pod=1', resource_attributes: {service.instance.id: one}}, {endpoint: 'http://a?pod=2'}]}": "",
		"remote: {targets: [{endpoint: 'http://a'}, {endpoint: 'https://a'}, {endpoint: 'http://a:6060'}, {endpoint: 'http://a/x'}]}":      "",
		"remote: {" + targets + ", timeout: 1s, profiles: [heap]}":                                                                         "",
	})
}

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
self: {collection_interval: 25s, initial_delay: 1s, block_profile_fraction: 1, mutex_profile_fraction: 1}
`)
	assert.Equal(t, "http://checkout:6060/debug/pprof/profile?seconds=1", cfg.Remote.Get().HTTP.Endpoint)
	assert.Equal(t, 20*time.Second, cfg.Remote.Get().CollectionInterval)
	assert.Equal(t, 10*time.Second, cfg.Remote.Get().HTTP.Timeout)
	assert.Equal(t, "127.0.0.1:4040", cfg.Server.Get().HTTP.NetAddr.Endpoint)
	assert.Equal(t, 25*time.Second, cfg.Self.Get().CollectionInterval)
	assert.Equal(t, 1, cfg.Self.Get().BlockProfileFraction)
	assert.Equal(t, 1, cfg.Self.Get().MutexProfileFraction)

	assert.Equal(t, time.Minute, load("self: {initial_delay: 1s}").Self.Get().CollectionInterval)
	assert.Equal(t, "localhost:4041", load("protocols: {http: {endpoint: 'localhost:4041'}}").Server.Get().HTTP.NetAddr.Endpoint)
	assert.Equal(t, "localhost:4040", load("protocols: {http: }").Server.Get().HTTP.NetAddr.Endpoint)

	// Before v0.153, of itself.
	cfg = load("{collection_interval: 10s, block_profile_fraction: 2, mutex_profile_fraction: 3}")
	assert.Equal(t, 10*time.Second, cfg.Self.Get().CollectionInterval)
	assert.Equal(t, 2, cfg.Self.Get().BlockProfileFraction)
}

// Configurations of files, also of before v0.153, name the receiver that reads them.
func TestFilesAreOfAnotherReceiver(t *testing.T) {
	const other = "file is no section of this receiver: must be the receiver profiles_file, which reads files of pprof and JFR by include, such as"
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"file: {include: [/var/tmp/pprof/*], collection_interval: 15s}":            other,
		"{server: {}, file: {include: /var/tmp/pprof/*}}":                          other,
		"{include: /var/tmp/pprof/*, collection_interval: 10s, initial_delay: 1s}": other,
	})
}

func TestContribKeysThatContradictAreRejected(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"{server: , collection_interval: 10s}":                                  "unknown key collection_interval",
		"self: {initial_delay: soon}":                                           "unknown key self::initial_delay",
		"server: {initial_delay: 1s}":                                           "unknown key server::initial_delay",
		"{server: , protocols: {http: }}":                                       "unknown key protocols",
		"{collection_interval: 10}":                                             "self::collection_interval is 10:",
		"endpoint: http://checkout:6060/debug/pprof/profile?seconds=1":          "unknown key endpoint",
		"{remote: {endpoint: http://a:1/debug/pprof/heap}, endpoint: 'b:6060'}": "unknown key endpoint",
	})
}
