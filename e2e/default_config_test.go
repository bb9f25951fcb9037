// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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

// The largest program, for linux/amd64, and the most memory that it may have without load: RSS, and
// the part of it that is not of the program's file. Raise the size only for a component that users
// of the default configuration need: others belong into a distribution of their own, such as
// config/node.
const (
	maxProgram = 57_400_000 // 103 % of the 55.7 MB with the Collector v0.165.0, whose detectors of resources bring the SDK of AWS, and with Parquet, 4.9 MB
	maxIdle    = 60 << 20
	maxOwn     = 30 << 20
)

// TestDefaultConfig runs the program without --config, on other ports. It responds at each address of the default configuration, and
// profiles itself in little memory. Start and stop are quiet.
func TestDefaultConfig(t *testing.T) {
	parallel(t)
	c, addresses := runDefaultConfig(t)
	for _, page := range []struct{ address, path, says string }{
		{"localhost:13133", "/", `"status":"StatusOK"`},
		{"localhost:4041", "/", "Profiles"},
		{"localhost:4041", "/api/services", "services"},
		{"localhost:8888", "/metrics", "otelcol_process_uptime"},
	} {
		got := get(t, "http://"+addresses[page.address]+page.path)
		if got.status != http.StatusOK || !strings.Contains(got.body, page.says) {
			t.Errorf("%s%s answers %d, want 200 and %q in it:\n%.500s", page.address, page.path, got.status, page.says, got.body)
		}
	}
	c.await(t, "file of its own profiles", func() bool { return hasFiles(t, c.files) })
	info, err := os.Stat(program(t))
	require.NoError(t, err)
	assert.LessOrEqual(t, info.Size(), int64(maxProgram), "bytes of the program")
	t.Run("memory", func(t *testing.T) {
		// RSS also has the pages of the program's file that it has touched, and their neighbours. How many
		// depends on the system, but they are not more than the file, so that the bound is stable.
		assert.LessOrEqual(t, memory(t, c.command.Process.Pid, "VmRSS:"), int64(maxIdle), "RSS of the idle program")
		assert.LessOrEqual(t, memory(t, c.command.Process.Pid, "RssAnon:"), int64(maxOwn), "bytes of the idle program's own")
	})
	c.stop(t)
	for _, p := range readProfiles(t, c.files) {
		assert.True(t, len(p.Samples) > 0 || p.Time > 0, "a Profile covers nothing: %v %s", p.Scope, p.Type)
	}
	assert.Equal(t, 1, countFiles(t, c.files), "files after the stop")
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
