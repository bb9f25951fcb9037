// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runDefaultConfig runs the program without --config in a directory of its own, at addresses of its
// own: by the variables that the error names if an address is in use.
func runDefaultConfig(t *testing.T) (c *collector, addresses map[string]string) {
	t.Helper()
	addresses = map[string]string{}
	variables := os.Environ()
	for name, address := range map[string]string{"PPROF_LISTEN": "localhost:4040", "VIEW_LISTEN": "localhost:4041", "HEALTH_LISTEN": "localhost:13133", "METRICS_PORT": "localhost:8888"} {
		addresses[address] = freeAddress(t)
		_, port, err := net.SplitHostPort(addresses[address])
		require.NoError(t, err)
		value := addresses[address]
		if name == "METRICS_PORT" {
			value = port
		}
		variables = append(variables, name+"="+value)
	}
	command := collectorCommand(program(t))
	command.Dir, command.Env = t.TempDir(), variables
	c = begin(t, command)
	c.url, c.files = "http://"+addresses["localhost:4040"], filepath.Join(command.Dir, "profiles")
	c.awaitReady(t)
	return c, addresses
}

// TestDefaultConfig runs the program without --config, on other ports. It responds at each address
// of the default configuration, and its metrics have their documented names.
func TestDefaultConfig(t *testing.T) {
	parallel(t)
	c, addresses := runDefaultConfig(t)
	for _, page := range []struct{ address, path, says string }{
		{"localhost:13133", "/", "Server available"},
		{"localhost:4041", "/", "Profiles"},
		{"localhost:4041", "/api/services", "services"},
		{"localhost:8888", "/metrics", "otelcol_process_uptime"},
	} {
		status, body := get(t, "http://"+addresses[page.address]+page.path)
		if status != http.StatusOK || !strings.Contains(body, page.says) {
			t.Errorf("%s%s answers %d, want 200 and %q in it:\n%.500s", page.address, page.path, status, page.says, body)
		}
	}
	// The others of the Collector come after its first CPU profile, that of an idle one.
	m := member{collector: c, metrics: "http://" + addresses["localhost:8888"] + "/metrics"}
	m.await(t, "self profiles", func() bool { return m.metric(t, "otelcol_processor_profiles_dedup_incoming_profiles") > 0 })
	c.stop(t)
	entries, err := os.ReadDir(c.files)
	closed := slices.DeleteFunc(entries, func(entry fs.DirEntry) bool { return strings.HasSuffix(entry.Name(), ".index") })
	if err != nil || len(closed) != 1 || strings.HasSuffix(closed[0].Name(), ".partial") {
		t.Fatalf("after the stop there are %v, want one file: %v", closed, err)
	}
	for _, record := range readFile(t, filepath.Join(c.files, closed[0].Name())) {
		for _, p := range record {
			assert.NotEmpty(t, p.Samples, "a Profile without samples was written: %v %s", p.Scope, p.Type)
		}
	}
}

func TestStartAndStopOfTheDefaultConfigAreQuiet(t *testing.T) {
	parallel(t)
	c, _ := runDefaultConfig(t)
	c.stop(t)
	c.requireQuiet(t)
}

// requireQuiet checks the log of a collector that has stopped: ten lines at most for the start and five for an
// orderly stop, without warnings, dumps of structs and the resource of the Collector.
func (c *collector) requireQuiet(t *testing.T) {
	t.Helper()
	started, after, found := strings.Cut(c.logs.String(), ready)
	_, stopped, _ := strings.Cut(after, "Received signal")
	if !found || stopped == "" {
		t.Fatalf("no start and stop in\n%s", c.logs)
	}
	for _, part := range []struct {
		text string
		most int
	}{{started, 10}, {stopped, 5}} {
		assert.LessOrEqual(t, strings.Count(part.text, "\n")+1, part.most, "lines:\n%s", part.text)
		for line := range strings.Lines(part.text) {
			if len(line) > 1000 || regexp.MustCompile(`\t(warn|error)\t|"resource"|ServerConfig|^\t`).MatchString(line) {
				t.Errorf("the log has the line\n%s", line)
			}
		}
	}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	text, err := io.ReadAll(response.Body)
	assert.NoError(t, errors.Join(err, response.Body.Close()))
	return response.StatusCode, string(text)
}
