// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// wrongConfigs are keys of one component each, and texts that the error must contain: the key, the
// value and the allowed values.
var wrongConfigs = []struct{ component, keys, says string }{
	{"pprof", "{}", "server, remote, file or self"},
	{"pprof", "server: {endpoit: localhost:4040}", "server::endpoit: must be one of|endpoint"},
	{"pprof", "server: {endpoint: nowhere}", "server|endpoint|nowhere"},
	{"pprof", "server: {max_decompressed_size: 64 megs}", "max_decompressed_size|64 megs|64MiB"},
	{"pprof", "server: {max_request_body_size: 5mib}", "server::max_request_body_size|5mib|64MiB"},
	{"pprof", "server: localhost:4040", "server|localhost:4040|a section"},
	{"pprof", "server: ", "server, remote, file or self|null turns it off"},
	{"pprof", "endpoint: localhost:4040", "::endpoint: must be one of|remote|server"},
	{"pprof", "server: {max_decompressed_size: 1.5}", "max_decompressed_size|1.5"},
	{"pprof", "server: {max_decompressed_size: 0}", "max_decompressed_size|0"},
	{"pprof", "{max_in_flight: -1, server: {}}", "max_in_flight|-1"},
	{"pprof", "{max_in_flight: 1MiB, server: {}}", "max_in_flight|1MiB|4MiB"},
	{"pprof", "server: {tls: {cert: x}}", "server::tls::cert: must be one of|cert_file"},
	{"pprof", "server: {read_timeout: 30}", "read_timeout|30"},
	{"pprof", "server: {cors: {allowed_origin: [x]}}", "server::cors::allowed_origin: must be one of|allowed_origins"},
	{"pprof", "servers: {}", "servers: must be one of|server"},
	{"pprof", "remote: {}", "remote|endpoint|targets"},
	{"pprof", "remote: {endpoint: localhost:6060}", "remote|endpoint|localhost:6060|http"},
	{"pprof", "remote: {endpoint: 'ftp://localhost/x'}", "remote|endpoint|ftp|http"},
	{"pprof", "remote: {endpoint: 'http://localhost:1/debug/pprof/heap', targets: [{endpoint: 'http://localhost:2'}]}", "remote|endpoint|targets"},
	{"pprof", "remote: {targets: [{endpoint: 'http://localhost:1', profiles: [hepa]}]}", "targets|0|profiles|hepa|heap"},
	{"pprof", "remote: {targets: [{endpoint: 'http://localhost:1', labels: {a: b}}]}", "remote::targets::0::labels"},
	{"pprof", "remote: {targets: [{endpoint: 'http://localhost:1'}, {endpoint: 'http://localhost:1'}]}", "targets|1|http://localhost:1"},
	{"pprof", "remote: {endpoint: 'http://localhost:1/debug/pprof/heap', collection_interval: 0s}", "collection_interval|0s"},
	{"pprof", "remote: {targets: [{endpoint: 'http://localhost:1'}], timeout: 5s, cpu_duration: 10s}", "timeout|5s|cpu_duration|10s"},
	{"pprof", "file: {}", "file|include"},
	{"pprof", "file: {include: ['[']}", "file|include|["},
	{"pprof", "file: {include: [/var/lib/*.pb.gz], poll_interval: 0s}", "poll_interval|0s"},
	{"pprof", "file: {include: [/var/lib/*.pb.gz], start_at: end}", "file|start_at"},
	{"pprof", "file: {include: [/var/lib/*.pb.gz], storage: file_storage}", "file_storage"},
	{"pprof", "self: {profiles: [heat]}", "self|profiles|heat|heap"},
	{"pprof", "self: {collection_interval: 5s, cpu_duration: 10s}", "cpu_duration|10s|collection_interval|5s"},
	{"pprof", "self: {blockprofile: 1}", "self::blockprofile"},
	{"pprof", "{self: {}, links: {trace_id: a, span_id: a}}", "links|trace_id|span_id"},
	{"pprof", "{self: {}, links: {trace: a}}", "links::trace: must be one of|trace_id"},

	{"profiles_dedup", "window: 10", "window|10"},
	{"profiles_dedup", "window: -1s", "window|-1s"},
	{"profiles_dedup", "acknowledge: never", "acknowledge|never|on_receive|on_flush"},
	{"profiles_dedup", "{window: 30s, acknowledge: on_flush}", "window|30s|on_flush|5s"},
	{"profiles_dedup", "memory_limit: 1", "memory_limit|1"},
	{"profiles_dedup", "snapshots: average", "snapshots|average|keep|latest|sum"},
	{"profiles_dedup", "timestamps: round", "timestamps|round|keep|drop"},
	{"profiles_dedup", "granularity: file", "granularity|file|address|function|line"},
	{"profiles_dedup", "split_by: ['']", "split_by"},
	{"profiles_dedup", "{split_by: [service.name], drop_resource_attributes: [service.name]}", "split_by|drop_resource_attributes|service.name"},
	{"profiles_dedup", "retry_on_failure: {initial: 1s}", "retry_on_failure::initial: must be one of|initial_interval"},
	{"profiles_dedup", "windows: 1s", "windows: must be one of|window"},

	{"profiles_file", "{}", "directory"},
	{"profiles_file", "{directory: x, format: xml}", "format|xml|proto|json"},
	{"profiles_file", "{directory: x, format: pprof}", "format|pprof|proto|json|otelprof convert|/api/profile"},
	{"profiles_file", "{directory: x, framing: none}", "framing|left out|otelprof convert|/api/profile"},
	{"profiles_file", "{directory: x, compression: lz4}", "compression|lz4|zstd|gzip|none"},
	{"profiles_file", "{directory: x, sync: often}", "sync|often|interval|record|none"},
	{"profiles_file", "{directory: x, sync_interval: 0s}", "sync_interval|0s"},
	{"profiles_file", "{directory: x, rotation: {max_size: 1.5}}", "rotation|max_size|1.5"},
	{"profiles_file", "{directory: x, rotation: {max_age: 10}}", "rotation|max_age|10"},
	{"profiles_file", "{directory: x, rotation: {size: 1}}", "rotation::size: must be one of|max_size"},
	{"profiles_file", "{directory: x, retention: {max_files: -1}}", "retention|max_files|-1"},
	{"profiles_file", "{directory: x, retention: {keep: 1}}", "retention::keep"},
	{"profiles_file", "{directory: x, group_by: ['']}", "group_by"},
	{"profiles_file", "{directory: x, group_by: [a, a]}", "group_by|a"},
	{"profiles_file", "{directory: x, sync: record, sending_queue: {}}", "sync|record|sending_queue|wait_for_result"},
	{"profiles_file", "{directory: x, sending_queue: {batch: {}}}", "sending_queue|batch"},
	{"profiles_file", "{directory: x, sending_queue: {que_size: 1}}", "sending_queue::que_size: must be one of|queue_size"},
	{"profiles_file", "{directory: x, retry_on_failure: {max: 1s}}", "retry_on_failure::max: must be one of|max_"},
	{"profiles_file", "{directory: x, dir: y}", "dir: must be one of|directory"},
}

// TestWrongConfigsAreRejected_D3 checks that the program does not start, and its error.
func TestWrongConfigsAreRejected_D3(t *testing.T) {
	parallel(t)
	path := program(t)
	good := map[string]string{"pprof": "self: {}", "profiles_dedup": "{}", "profiles_file": "directory: x", "file_storage": "directory: ."}
	for i, wrong := range wrongConfigs {
		t.Run(fmt.Sprintf("%d %s %s", i, wrong.component, wrong.keys), func(t *testing.T) {
			parallel(t)
			dir := t.TempDir()
			config := "service: {telemetry: {metrics: {level: none}}, pipelines: {profiles: {receivers: [pprof], processors: [profiles_dedup], exporters: [profiles_file]}}}\n"
			for kind, component := range map[string]string{"receivers": "pprof", "processors": "profiles_dedup", "exporters": "profiles_file", "extensions": "file_storage"} {
				keys := good[component]
				if component == wrong.component {
					keys = wrong.keys
				}
				config += kind + ": {" + component + ": " + braced(keys) + "}\n"
			}
			file := filepath.Join(dir, "config.yaml")
			require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			command := exec.CommandContext(ctx, path, "--config", file)
			command.Dir = dir
			out, err := command.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() <= 0 {
				t.Fatalf("it ended with %v, want a rejection\n%s", err, out)
			}
			for want := range strings.SplitSeq(wrong.says, "|") {
				assert.Contains(t, string(out), want, "it does not say %q:\n%s", want, out)
			}
			if strings.Contains(string(out), "unknown key ") && !regexp.MustCompile("unknown key [a-z]+::"+wrong.component+"::").Match(out) {
				t.Errorf("it does not name the whole key:\n%s", out)
			}
			assert.NotContains(t, string(out), "Config'", "it names a type of Go:\n%s", out)
			assert.NotContains(t, string(out), "goroutine ", "it panics:\n%s", out)
		})
	}
	profiletest.Injected(t, fmt.Sprintf("%d wrong configurations", len(wrongConfigs)))
}

// braced turns keys into a YAML flow mapping.
func braced(keys string) string {
	if strings.HasPrefix(keys, "{") {
		return keys
	}
	return "{" + keys + "}"
}
