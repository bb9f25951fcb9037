// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

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
		"remote: {endpoint: 'file:///etc/passwd'}":                                                                                         "scheme \"file\"",
		"remote: {endpoint: 'http:///heap'}":                                                                                               "endpoint is a URL without a host: must be",
		"remote: {endpoint: 'http://[::1'}":                                                                                                "endpoint is not a URL: must be",
		"remote: {endpoint: 'http://u:s3cret@localhost/debug/pprof/heap'}":                                                                 "user or password ... auth",
		"remote: {endpoint: 'http://localhost:6060/debug/pprof/'}":                                                                         "must be the URL of one profile ... /debug/pprof/heap",
		"remote: {endpoint: 'http://localhost:6060'}":                                                                                      "must be the URL of one profile",
		"remote: {" + heap + ", profiles: [heap]}":                                                                                         "remote: profiles is [\"heap\"]: must be unset with endpoint",
		"remote: {" + heap + ", timeout: 0}":                                                                                               "remote: timeout is 0s: must be ... at least 1ms",
		"remote: {" + heap + ", collection_interval: 60}":                                                                                  "remote::collection_interval is 60: ... with a unit",
		"remote: {" + heap + ", max_decompressed_size: 0}":                                                                                 "remote: max_decompressed_size is 0B: must be ... above 0",
		"remote: {" + heap + ", max_in_flight: 8MiB}":                                                                                      "remote ... max_in_flight",
		"remote: {" + cpu + ", cpu_duration: 500ms}":                                                                                       "cpu_duration is 500ms: must be ... whole number of seconds",
		"remote: {" + cpu + ", cpu_duration: 30s}":                                                                                         "cpu_duration is 30s: must be shorter than timeout (30s)",
		"remote: {" + cpu + ", timeout: 1s}":                                                                                               "timeout is 1s: must be longer than 1s, the shortest CPU profile",
		"remote: {" + targets + ", timeout: 1s}":                                                                                           "timeout is 1s: must be longer than 1s",
		"remote: {" + targets + ", collection_interval: 1s}":                                                                               "collection_interval is 1s: must be longer than 1s",
		"remote: {" + targets + ", profiles: [wall]}":                                                                                      "profiles is \"wall\": must be one of allocs, block, cpu, delta_block, delta_heap, ",
		"remote: {" + targets + ", profiles: [cpu, cpu]}":                                                                                  "profiles is \"cpu\": must be listed once",
		"remote: {" + targets + ", profiles: [heap, delta_heap]}":                                                                          "profiles is \"delta_heap\": must be listed without \"heap\": it would be counted twice",
		"remote: {targets: [{endpoint: ''}]}":                                                                                              "targets::0::endpoint is empty: must be",
		"remote: {targets: [{endpoint: 'gopher://a'}]}":                                                                                    "targets::0::endpoint is a URL with the scheme \"gopher\"",
		"remote: {targets: [{endpoint: 'http://a'}, {endpoint: 'http://a'}]}":                                                              "targets::1::endpoint is \"http://a\": duplicate target: targets::0",
		"remote: {targets: [{endpoint: 'http://a'}, {endpoint: 'http://a/debug/pprof'}]}":                                                  "targets::1::endpoint is \"http://a/debug/pprof\": duplicate target: targets::0",
		"remote: {targets: [{endpoint: 'http://a?x=1&y=2'}, {endpoint: 'http://A:80/debug/./pprof/?y=2&x=1'}]}":                            "targets::1::endpoint is \"http://A:80/debug/./pprof/\": duplicate target: targets::0",
		"remote: {targets: [{endpoint: 'ftp://a'}, {endpoint: 'https://a:443/x/'}, {endpoint: 'https://a/x'}]}":                            "targets::2::endpoint is \"https://a/x\": duplicate target: targets::1",
		"remote: {targets: [{endpoint: 'http://a?pod=s3cret'}, {endpoint: 'http://a?pod=2', profiles: [heap]}]}":                           "targets::1::endpoint is \"http://a\": duplicate target: targets::0 already scrapes \"heap\" from this host, port and path ... service.instance.id",
		"remote: {targets: [{endpoint: 'http://a:8/x'}, {endpoint: 'https://a:8/x', profiles: [heap]}]}":                                   "targets::1::endpoint is \"https://a:8/x\": duplicate target: targets::0 already scrapes \"heap\" from this host, port and path ... service.instance.id",
		"remote: {targets: [{endpoint: 'http://a/debug/pprof?seconds=5', profiles: [heap]}]}":                                              "targets::0::endpoint is \"http://a/debug/pprof\": must be a URL without the parameter seconds ... cpu_duration",
		"remote: {targets: [{endpoint: 'http://a?debug=1', profiles: [heap]}]}":                                                            "targets::0::endpoint is \"http://a\": must be a URL without the parameter debug ... text",
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=60', collection_interval: 90s}":                                          "remote: endpoint is \"http://a/debug/pprof/profile\": must be a URL whose parameter seconds ... timeout (30s)",
		"remote: {endpoint: 'http://a/debug/pprof/heap?seconds=30'}":                                                                       "remote: endpoint is \"http://a/debug/pprof/heap\": must be a URL whose parameter seconds ... timeout (30s)",
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=60', timeout: 2m}":                                                       "remote: endpoint is \"http://a/debug/pprof/profile\": must be a URL whose parameter seconds ... collection_interval (1m0s)",
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=s3cret'}":                                                                "must be a URL whose parameter seconds is a whole number",
		"remote: {endpoint: 'http://a/debug/pprof/profile?seconds=0'}":                                                                     "must be a URL whose parameter seconds is a whole number",
		"remote: {targets: [{endpoint: 'http://a', profiles: [x]}]}":                                                                       "targets::0::profiles is \"x\"",
		"remote: {targets: [{endpoint: 'http://a', resource_attributes: {'': x}}]}":                                                        "targets::0::resource_attributes",
		"remote: {targets: [{endpoint: 'http://a?token=s3cret'}, {endpoint: 'ftp://a'}]}":                                                  "targets::1::endpoint is a URL with the scheme \"ftp\"",
		"remote: {" + heap + ", collection_interval: 0s}":                                                                                  "collection_interval is 0s",
		"remote: {" + heap + ", timeout: 1s, collection_interval: 1s}":                                                                     "",
		"remote: {endpoint: 'http://localhost:6060/debug/pprof/profile?seconds=2', timeout: 3s}":                                           "",
		"remote: {endpoint: 'http://localhost:6060/debug/pprof/heap?gc=1&debug=0'}":                                                        "",
		"remote: {targets: [{endpoint: 'http://a?gc=1', profiles: [heap]}, {endpoint: 'http://a', profiles: [cpu]}]}":                      "",
		"remote: {targets: [{endpoint: 'http://a?pod=1', resource_attributes: {service.instance.id: one}}, {endpoint: 'http://a?pod=2'}]}": "",
		"remote: {targets: [{endpoint: 'http://a'}, {endpoint: 'https://a'}, {endpoint: 'http://a:6060'}, {endpoint: 'http://a/x'}]}":      "",
		"remote: {" + targets + ", timeout: 1s, profiles: [heap]}":                                                                         "",
	})
}
