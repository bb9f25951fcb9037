// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

func TestRemoteDefaults(t *testing.T) {
	cfg, err := loadConfig("remote: {endpoint: http://localhost:6060/debug/pprof/heap}")
	require.NoError(t, err)
	remote := cfg.Remote.Get()
	assert.Equal(t, time.Minute, remote.CollectionInterval)
	assert.Equal(t, 30*time.Second, remote.HTTP.Timeout)
	assert.Equal(t, 10*time.Second, remote.cpuDuration())
	assert.True(t, remote.Delta)
	assert.EqualValues(t, 64<<20, remote.MaxDecompressedSize)
	assert.EqualValues(t, 256<<20, remote.MaxInFlight)
	assert.Equal(t, []string{"cpu", "heap", "goroutine", "mutex", "block"}, remote.kindsOf(TargetConfig{}))
	assert.False(t, cfg.Server.HasValue())
}

func TestRemoteKeys(t *testing.T) {
	cfg, err := loadConfig(`
remote:
  collection_interval: 20s
  timeout: 10s
  tls: {insecure_skip_verify: true}
  headers: {X-Scope: one}
  auth: {authenticator: basicauth}
  proxy_url: http://proxy:3128
  targets:
    - endpoint: http://localhost:6060/debug/pprof
      resource_attributes: {service.name: checkout}
    - endpoint: https://localhost:6061
      profiles: [delta_heap, delta_mutex]
  profiles: [cpu, heap]
  cpu_duration: 5s
  delta: false
  max_decompressed_size: 1MiB
  max_in_flight: 2MiB
`)
	require.NoError(t, err)
	remote := cfg.Remote.Get()
	assert.Equal(t, 20*time.Second, remote.CollectionInterval)
	assert.Equal(t, 10*time.Second, remote.HTTP.Timeout)
	assert.True(t, remote.HTTP.TLS.InsecureSkipVerify)
	assert.Equal(t, "http://proxy:3128", remote.HTTP.ProxyURL)
	header, _ := remote.HTTP.Headers.Get("X-Scope")
	assert.EqualValues(t, "one", header)
	assert.Equal(t, 5*time.Second, remote.cpuDuration())
	assert.False(t, remote.Delta)
	assert.Equal(t, map[string]string{"service.name": "checkout"}, remote.Targets[0].ResourceAttributes)
	assert.Equal(t, []string{"cpu", "heap"}, remote.kindsOf(remote.Targets[0]))
	assert.Equal(t, []string{"delta_heap", "delta_mutex"}, remote.kindsOf(remote.Targets[1]))

	conf := confmap.New()
	require.NoError(t, conf.Marshal(cfg))
	again := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(again))
	assert.Equal(t, remote.Targets, again.Remote.Get().Targets)
	assert.Equal(t, remote.HTTP.Timeout, again.Remote.Get().HTTP.Timeout)
}

func TestUnknownRemoteKeysAreRejected(t *testing.T) {
	const endpoint = "endpoint: http://localhost:6060/debug/pprof/heap"
	for yaml, key := range map[string]string{
		"remote: {" + endpoint + ", bogus: 1}":                           "remote::bogus",
		"remote: {" + endpoint + ", tls: {bogus: 1}}":                    "remote::tls::bogus",
		"remote: {" + endpoint + ", auth: {authenticator: a, bogus: 1}}": "remote::auth::bogus",
		"remote: {" + endpoint + ", keepalive: {bogus: 1}}":              "remote::keepalive::bogus",
		"remote: {targets: [{" + endpoint + ", bogus: 1}]}":              "remote::targets::0::bogus",
	} {
		_, err := loadConfig(yaml)
		assert.ErrorContains(t, err, "unknown key "+key, yaml)
	}
}

func TestWrongRemoteValuesAreRefused(t *testing.T) {
	const (
		heap    = "endpoint: http://localhost:6060/debug/pprof/heap"
		cpu     = "endpoint: http://localhost:6060/debug/pprof/profile"
		targets = "targets: [{endpoint: http://localhost:6060}]"
	)
	for yaml, want := range map[string][]string{
		"remote:": {"remote: one of endpoint and targets must be there"},
		"remote: {" + heap + ", " + targets + "}":                                                                {"exclude each other"},
		"remote: {endpoint: localhost:6060}":                                                                     {"remote: endpoint: scheme \"localhost\"", "http or https"},
		"remote: {endpoint: 'file:///etc/passwd'}":                                                               {"scheme \"file\""},
		"remote: {endpoint: 'http:///heap'}":                                                                     {"has no host"},
		"remote: {endpoint: 'http://[::1'}":                                                                      {"is not a URL"},
		"remote: {endpoint: 'http://u:s3cret@localhost/debug/pprof/heap'}":                                       {"user or password", "auth"},
		"remote: {endpoint: 'http://localhost:6060/debug/pprof/'}":                                               {"not the URL of one profile", "/debug/pprof/heap"},
		"remote: {endpoint: 'http://localhost:6060'}":                                                            {"not the URL of one profile"},
		"remote: {" + heap + ", profiles: [heap]}":                                                               {"remote: profiles: is for targets"},
		"remote: {" + heap + ", timeout: 0}":                                                                     {"remote: timeout: 0s", "at least 1ms"},
		"remote: {" + heap + ", collection_interval: 60}":                                                        {"remote::collection_interval is 60:", "with a unit"},
		"remote: {" + heap + ", max_decompressed_size: 0}":                                                       {"remote: max_decompressed_size: 0B", "above 0"},
		"remote: {" + heap + ", max_in_flight: 1MiB}":                                                            {"remote: max_in_flight: 1MiB", "64MiB"},
		"remote: {" + cpu + ", cpu_duration: 500ms}":                                                             {"cpu_duration: 500ms", "whole seconds"},
		"remote: {" + cpu + ", cpu_duration: 30s}":                                                               {"cpu_duration: 30s, must be shorter than timeout (30s)"},
		"remote: {" + cpu + ", timeout: 1s}":                                                                     {"cpu_duration: 1s, must be shorter than timeout (1s)"},
		"remote: {" + targets + ", timeout: 1s}":                                                                 {"cpu_duration: 1s, must be shorter"},
		"remote: {" + targets + ", profiles: [wall]}":                                                            {"profiles: \"wall\" is unknown", "delta_heap"},
		"remote: {" + targets + ", profiles: [cpu, cpu]}":                                                        {"profiles: \"cpu\" is there more than once"},
		"remote: {" + targets + ", profiles: [heap, delta_heap]}":                                                {"\"heap\" and \"delta_heap\" would be counted twice"},
		"remote: {targets: [{endpoint: ''}]}":                                                                    {"targets::0::endpoint: must not be empty"},
		"remote: {targets: [{endpoint: 'gopher://a'}]}":                                                          {"targets::0::endpoint: scheme \"gopher\""},
		"remote: {targets: [{endpoint: 'http://a'}, {endpoint: 'http://a'}]}":                                    {"targets::1::endpoint: http://a is that of targets::0 too"},
		"remote: {targets: [{endpoint: 'http://a'}, {endpoint: 'http://a/debug/pprof'}]}":                        {"targets::1::endpoint: http://a/debug/pprof is that of targets::0 too"},
		"remote: {targets: [{endpoint: 'http://a?x=1&y=2'}, {endpoint: 'http://A:80/debug/./pprof/?y=2&x=1'}]}":  {"targets::1::endpoint: http://A:80/debug/./pprof/ is that of targets::0 too"},
		"remote: {targets: [{endpoint: 'ftp://a'}, {endpoint: 'https://a:443/x/'}, {endpoint: 'https://a/x'}]}":  {"targets::2::endpoint: https://a/x is that of targets::1 too"},
		"remote: {targets: [{endpoint: 'http://a?pod=s3cret'}, {endpoint: 'http://a?pod=2', profiles: [heap]}]}": {"targets::1::endpoint: http://a is scraped for \"heap\" by targets::0 too", "service.instance.id"},
		"remote: {targets: [{endpoint: 'http://a/debug/pprof?seconds=5', profiles: [heap]}]}":                    {"targets::0::endpoint: must not have \"seconds\"", "cpu_duration"},
		"remote: {targets: [{endpoint: 'http://a?debug=1', profiles: [heap]}]}":                                  {"targets::0::endpoint: must not have \"debug\"", "text"},
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=60', collection_interval: 90s}":                {"remote: endpoint: seconds=60", "timeout (30s)"},
		"remote: {endpoint: 'http://a/debug/pprof/heap?seconds=30'}":                                             {"remote: endpoint: seconds=30", "timeout (30s)"},
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=60', timeout: 2m}":                             {"remote: endpoint: seconds=60", "collection_interval (1m0s)"},
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=s3cret'}":                                      {"remote: endpoint: seconds, in its query, must be a whole number"},
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=0'}":                                           {"remote: endpoint: seconds, in its query, must be a whole number"},
		"remote: {targets: [{endpoint: 'http://a', profiles: [x]}]}":                                             {"targets::0::profiles: \"x\""},
		"remote: {targets: [{endpoint: 'http://a', resource_attributes: {'': x}}]}":                              {"targets::0::resource_attributes"},
		"remote: {targets: [{endpoint: 'http://a?token=s3cret'}, {endpoint: 'ftp://a'}]}":                        {"targets::1::endpoint: scheme \"ftp\""},
	} {
		t.Run(yaml, func(t *testing.T) {
			_, err := loadConfig(yaml)
			require.Error(t, err)
			for _, part := range want {
				assert.ErrorContains(t, err, part)
			}
			assert.NotContains(t, err.Error(), "s3cret")
		})
	}
	for _, yaml := range []string{
		"remote: {" + heap + ", timeout: 1s, collection_interval: 1s}",
		"remote: {endpoint: 'http://localhost:6060/debug/pprof/profile?seconds=2', timeout: 3s}",
		"remote: {endpoint: 'http://localhost:6060/debug/pprof/heap?gc=1&debug=0'}",
		"remote: {targets: [{endpoint: 'http://a?gc=1', profiles: [heap]}, {endpoint: 'http://a', profiles: [cpu]}]}",
		"remote: {targets: [{endpoint: 'http://a?pod=1', resource_attributes: {service.instance.id: one}}, {endpoint: 'http://a?pod=2'}]}",
		"remote: {targets: [{endpoint: 'http://a'}, {endpoint: 'https://a'}, {endpoint: 'http://a:6060'}, {endpoint: 'http://a/x'}]}",
		"remote: {" + targets + ", timeout: 1s, profiles: [heap]}",
	} {
		_, err := loadConfig(yaml)
		assert.NoError(t, err, yaml)
	}
}

// Two targets never have one service.instance.id, unless that is configured.
func TestInstancesOfTargets(t *testing.T) {
	for _, row := range []struct{ targets, want []string }{
		{[]string{"http://a:6060", "http://b:6060/x"}, []string{"a:6060", "b:6060"}},
		{[]string{"http://a:6060/one", "http://A:6060/two/", "http://a"}, []string{"a:6060/one", "a:6060/two", "a"}},
		{[]string{"http://a", "https://a"}, []string{"a:80/debug/pprof", "a:443/debug/pprof"}},
		{[]string{"http://[::1]:6060/x", "http://[::1]:6060"}, []string{"[::1]:6060/x", "[::1]:6060/debug/pprof"}},
	} {
		config := defaultRemoteConfig()
		config.Profiles = []string{ingest.ProfileTypeHeap}
		for _, endpoint := range row.targets {
			config.Targets = append(config.Targets, TargetConfig{Endpoint: endpoint})
		}
		require.NoError(t, config.Validate())
		s, err := newScraper(config, nil, nil, componenttest.NewNopTelemetrySettings(), nil)
		require.NoError(t, err)
		var got []string
		for _, job := range s.jobs {
			id, _ := job.resource.Get("service.instance.id")
			got = append(got, id.Str())
		}
		assert.Equal(t, row.want, got)
	}
}
