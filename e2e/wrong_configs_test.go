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
// value and the allowed values. The tests of the components have more.
var wrongConfigs = []struct{ component, keys, says string }{
	{"pprof", "{}", "server, remote, file or self"},
	{"pprof", "server: {endpoit: localhost:4040}", "server::endpoit: must be one of|endpoint"},
	{"pprof", "server: {endpoint: nowhere}", "server|endpoint|nowhere"},
	{"pprof", "server: localhost:4040", "server|localhost:4040|a section"},
	{"pprof", "server: {cors: {allowed_origin: [x]}}", "server::cors::allowed_origin: must be one of|allowed_origins"},
	{"pprof", "remote: {targets: [{endpoint: 'http://localhost:1', labels: {a: b}}]}", "remote::targets::0::labels"},
	{"pprof", "file: {include: [/var/lib/*.pb.gz], storage: file_storage}", "file_storage"},
	{"profiles_dedup", "acknowledge: never", "acknowledge|never|on_receive|on_flush"},
	{"profiles_dedup", "retry_on_failure: {initial: 1s}", "retry_on_failure::initial: must be one of|initial_interval"},
	{"profiles_file", "{directory: x, format: pprof}", "format|pprof|proto|json|otelprof convert|/api/profile"},
	{"profiles_file", "{directory: x, sending_queue: {que_size: 1}}", "sending_queue::que_size: must be one of|queue_size"},
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
