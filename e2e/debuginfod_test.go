// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"debug/elf"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

const nativeSource = `
__attribute__((noinline)) int leaf(int x) { return x * 3; }
static inline int twice(int x) { return 2 * leaf(x); }
int main(int argc, char** argv) { int sum = 0; for (int i = 0; i < 1000; i++) sum += twice(argc + i); return sum; }
`

// TestSymbolizeFromDebiansDebuginfod: a profile of a stripped C++ program, as perf's pprofs are, gets its functions from the
// server that Debian has. The server listens at all addresses, so the test runs in a network namespace.
func TestSymbolizeFromDebiansDebuginfod(t *testing.T) {
	for _, tool := range []string{"debuginfod", "g++", "strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	if os.Getenv(inNamespace) == "" {
		parallel(t)
		out, err := againInNamespace(t)
		if err != nil && out == "" {
			t.Skipf("the system does not allow network namespaces: %v", err)
		}
		require.NoError(t, err, "%s", out)
		return
	}
	require.NoError(t, loopbackUp())
	dir := t.TempDir()
	served, stripped := filepath.Join(dir, "served"), filepath.Join(dir, "program")
	require.NoError(t, os.Mkdir(served, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "program.cc"), []byte(nativeSource), 0o600))
	for _, args := range [][]string{
		{"g++", "-g", "-O1", "-Wl,--build-id=sha1", "-o", "served/program", "program.cc"}, {"strip", "-o", stripped, "served/program"},
	} {
		build := exec.CommandContext(t.Context(), args[0], args[1:]...)
		build.Dir = dir
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	const port = "8002"
	server := exec.CommandContext(t.Context(), "debuginfod", "-p", port, "-d", filepath.Join(dir, "database"), "-F", served)
	server.Env = append(os.Environ(), "DEBUGINFOD_URLS=") // it asks no others
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })

	p, id := nativeProfile(t, filepath.Join(served, "program"))
	url := "http://localhost:" + port
	require.Eventually(t, func() bool {
		response, err := http.Get(url + "/buildid/" + id + "/debuginfo")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, patience, 100*time.Millisecond, "debuginfod has indexed the program")

	listen, files := freeAddress(t), filepath.Join(dir, "profiles")
	c := run(t, listen, files, fmt.Sprintf(`
receivers: {pprof: {server: {endpoint: %s}}}
processors:
  profiles_dedup: {window: 100ms}
  symbolize: {debuginfod: {urls: [%s]}, cache: {directory: %s}, timeout: 60s}
exporters: {profiles_file: {directory: %s}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [pprof], processors: [profiles_dedup, symbolize], exporters: [profiles_file]}}
`, listen, url, filepath.Join(dir, "symbols"), files))
	c.push(t, "native", p)
	c.stop(t)
	var functions []string
	for _, record := range readAll(t, files) {
		for _, profile := range record {
			for _, sample := range profile.Samples {
				for _, frame := range sample.Stack {
					for _, line := range frame.Lines {
						functions = append(functions, line.Function)
					}
				}
			}
		}
	}
	assert.Equal(t, []string{"leaf", "main"}, functions)
}

// nativeProfile returns a pprof with a sample in leaf, called by main, that has addresses only, and the build ID.
func nativeProfile(t *testing.T, program string) (pprof []byte, id string) {
	t.Helper()
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	note, err := f.Section(".note.gnu.build-id").Data()
	require.NoError(t, err)
	id = fmt.Sprintf("%x", note[16:])
	symbols, err := f.Symbols()
	require.NoError(t, err)
	address := map[string]uint64{}
	for _, s := range symbols {
		address[s.Name] = s.Value
	}
	const start = 0x5500_0000_0000
	m := &profile.Mapping{ID: 1, Start: start, Limit: start + 1<<20, File: "/usr/bin/program", BuildID: id}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cycles", Unit: "count"}}, PeriodType: &profile.ValueType{Type: "cycles", Unit: "count"}, Period: 1,
		TimeNanos: time.Now().UnixNano(), Mapping: []*profile.Mapping{m},
	}
	for i, name := range []string{"_Z4leafi", "main"} {
		require.NotZero(t, address[name], name)
		p.Location = append(p.Location, &profile.Location{ID: uint64(i + 1), Mapping: m, Address: start + address[name] + uint64(i)})
	}
	p.Sample = []*profile.Sample{{Location: p.Location, Value: []int64{1}}}
	data := profiletest.Pprof(t, p)
	return data, id
}
