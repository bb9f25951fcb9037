// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package loadbench

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds each wait for the program.
const patience = time.Minute

// program returns the path of the program in OTELCOL_PROFILES_BIN or in bin.
func program(b *testing.B) string {
	b.Helper()
	path := os.Getenv("OTELCOL_PROFILES_BIN")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "otelcol-profiles")
	}
	path, err := filepath.Abs(path)
	require.NoError(b, err)
	if _, err := os.Stat(path); err != nil {
		b.Skipf("no program to measure: %v (make build)", err)
	}
	return path
}

// config is what benchmarks change of receiver, processor and exporter.
type config struct {
	window                      time.Duration
	server, processor, exporter string // more keys of each
	self                        string // that section of the receiver, null if it is empty
	environment                 []string
}

// collector is the running program.
type collector struct {
	command *exec.Cmd
	output  *bytes.Buffer // to be read when it has ended
	ended   chan error
	url     string
	files   string
	started time.Duration // CPU time until its server responded
}

// start runs a program with one pipeline, and returns when its server responds.
func start(b *testing.B, path string, c config) *collector {
	b.Helper()
	address, dir := freeAddress(b), b.TempDir()
	text := fmt.Sprintf(`
receivers:
  pprof:
    server: {endpoint: %s, %s}
    self: %s
processors:
  profiles_dedup: {window: %s, %s}
exporters:
  profiles_file: {directory: %q, %s}
service:
  telemetry: {metrics: {level: none}, logs: {level: warn}}
  pipelines:
    profiles: {receivers: [pprof], processors: [profiles_dedup], exporters: [profiles_file]}
`, address, c.server, cmp.Or(c.self, "null"), c.window, c.processor, filepath.Join(dir, "profiles"), c.exporter)
	file := filepath.Join(dir, "config.yaml")
	require.NoError(b, os.WriteFile(file, []byte(text), 0o600))
	command := exec.Command(path, "--config", file)
	command.Env = append(os.Environ(), c.environment...)
	return run(b, command, address, filepath.Join(dir, "profiles"))
}

func freeAddress(b *testing.B) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	require.NoError(b, listener.Close())
	return listener.Addr().String()
}

// run starts a command and returns when its server responds at the address.
func run(b *testing.B, command *exec.Cmd, address, files string) *collector {
	b.Helper()
	c := &collector{command: command, output: &bytes.Buffer{}, ended: make(chan error, 1), url: "http://" + address, files: files}
	command.Stdout, command.Stderr = c.output, c.output
	require.NoError(b, command.Start())
	go func() { c.ended <- command.Wait() }()
	b.Cleanup(func() { _ = command.Process.Kill() }) // an error means that it has ended
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(c.url + "/v1/pprof")
		if err == nil {
			_ = response.Body.Close()
			c.started = c.sinceExec(b)
			return c
		}
		if time.Now().After(deadline) {
			b.Fatalf("the program does not serve: %v\n%s", err, c.logs())
		}
	}
}

// logs stops the program and returns its output.
func (c *collector) logs() string {
	_ = c.command.Process.Kill() // an error means that it has ended
	err := <-c.ended
	c.ended <- err
	return c.output.String()
}

// cpu returns the CPU time of the program since its start was complete.
func (c *collector) cpu(b *testing.B) time.Duration {
	b.Helper()
	return c.sinceExec(b) - c.started
}

func (c *collector) sinceExec(b *testing.B) time.Duration {
	b.Helper()
	if state := c.command.ProcessState; state != nil {
		return state.UserTime() + state.SystemTime()
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.command.Process.Pid))
	if err != nil {
		b.Skipf("its time cannot be read: %v", err)
	}
	// After the name in parentheses, state is the first field; utime and stime, in hundredths of a
	// second, are the twelfth and thirteenth.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		require.NoError(b, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// peak returns the peak RSS of the program in bytes.
func (c *collector) peak(b *testing.B) int64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.command.Process.Pid))
	if err != nil {
		b.Skipf("its memory cannot be read: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
			require.NoError(b, err)
			return kilobytes << 10
		}
	}
	b.Fatalf("there is no VmHWM in %s", status)
	return 0
}

// stop stops the program and returns the number of bytes that it has written.
func (c *collector) stop(b *testing.B) (written int64) {
	b.Helper()
	require.NoError(b, c.command.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-c.ended:
		require.NoError(b, err, "after SIGTERM\n%s", c.output)
	case <-time.After(patience):
		b.Fatalf("it has not ended after SIGTERM\n%s", c.logs())
	}
	err := filepath.WalkDir(c.files, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(entry.Name(), ".index") {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			written += info.Size()
		}
		return err
	})
	require.NoError(b, err)
	return written
}
