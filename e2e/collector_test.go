// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// parallel runs a test beside others: most tests wait for the program most of the time. With
// full counts each test runs alone.
func parallel(t *testing.T) {
	t.Helper()
	if full, _ := profiletest.Soak(t); !full {
		t.Parallel()
	}
}

// patience bounds each wait for the program.
const patience = time.Minute

// program returns the path of the built program.
func program(t testing.TB) string {
	t.Helper()
	return builtProgram(t, "OTELCOL_PROFILES_BIN", "otelcol-profiles", "make build")
}

// collector is a running program.
type collector struct {
	command *exec.Cmd
	logs    *logs
	exited  chan error
	url     string // of its server, without a path
	files   string // directory that it writes to
	config  string // path of what run was given
}

// logs collects the output of a program.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs the program with a server on a free port, the given window, lines of keys for
// the file exporter, and arguments. It returns when the server responds. The program is killed at the end of
// the test.
func start(t testing.TB, window, exporterKeys string, args ...string) *collector {
	t.Helper()
	address := freeAddress(t)
	files := filepath.Join(t.TempDir(), "profiles")
	return run(t, address, files, fmt.Sprintf(`
receivers: {pprof: {server: {endpoint: %s}}}
processors: {profiles_dedup: {window: %s}}
exporters:
  profiles_file:
    directory: %s
%s
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [pprof], processors: [profiles_dedup], exporters: [profiles_file]}}
`, address, window, files, exporterKeys), args...)
}

// run is start with a configuration of the caller, whose server listens at address and which
// writes to the directory files.
func run(t testing.TB, address, files, config string, args ...string) *collector {
	t.Helper()
	configFile := profiletest.WriteFile(t, "config.yaml", []byte(config))
	c := launch(t, program(t), nil, append([]string{"--config", configFile}, args...)...)
	c.url, c.files, c.config = "http://"+address, files, configFile
	c.awaitReady(t)
	return c
}

// launch starts a program with arguments and additional NAME=value variables. It is killed at
// the end of the test.
func launch(t testing.TB, path string, env []string, args ...string) *collector {
	t.Helper()
	command := collectorCommand(path, args...)
	command.Env = append(os.Environ(), env...)
	return begin(t, command)
}

// collectorCommand runs a Collector that ignores SIGINT until it handles signals, by which others see that
// it does.
func collectorCommand(path string, args ...string) *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", `trap '' INT; exec "$0" "$@"`, path}, args...)...)
}

// begin is launch for a prepared command.
func begin(t testing.TB, command *exec.Cmd) *collector {
	t.Helper()
	c := &collector{command: command, logs: &logs{}, exited: make(chan error, 1)}
	c.command.Stdout, c.command.Stderr = c.logs, c.logs
	require.NoError(t, c.command.Start())
	go func() { c.exited <- c.command.Wait() }()
	t.Cleanup(func() {
		_ = c.command.Process.Kill() // an error means that it has ended
	})
	return c
}

// lastPort is the port that freeAddress tried last. Ports of this range are not used for
// outgoing connections, so that a free one stays free until the program listens there.
var lastPort atomic.Int32

func init() { lastPort.Store(int32(10_000 + os.Getpid()*50%20_000)) }

// freeAddress returns an address of loopback that nothing listens at. No two calls return
// the same one.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+lastPort.Add(1)%20_000)
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

func (c *collector) awaitReady(t testing.TB) {
	t.Helper()
	deadline := time.After(patience)
	for {
		_, err := ask(http.MethodGet, c.url+"/v1/pprof", nil)
		if err == nil {
			return
		}
		select {
		case exit := <-c.exited:
			t.Fatalf("the program ended before it served: %v\n%s", exit, c.logs)
		case <-deadline:
			t.Fatalf("the program does not serve after %s: %v\n%s", patience, err, c.kill())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// await waits until done returns true, and fails with the logs after patience.
func (c *collector) await(t testing.TB, what string, done func() bool) {
	t.Helper()
	c.awaitFor(t, patience, what, done)
}

// awaitFor is await with another patience.
func (c *collector) awaitFor(t testing.TB, patience time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after %s\n%s", what, patience, c.kill())
		}
	}
}

// kill sends SIGKILL and returns the logs.
func (c *collector) kill() string {
	err := c.command.Process.Kill()
	return fmt.Sprint(c.logs, errors.Join(err, <-c.exited))
}

// ready is what the Collector logs at the end of each start.
const ready = "Everything is ready"

// signal sends a signal to a Collector that handles it, which it does only some time after its server
// responds, and also after it says that it is ready. Before, the signal would kill it.
func (c *collector) signal(t testing.TB, signal os.Signal) {
	t.Helper()
	c.await(t, "start", func() bool { return strings.Contains(c.logs.String(), ready) })
	if runtime.GOOS == "linux" {
		c.await(t, "handler of signals", func() bool { return handlesInterrupt(t, c.command.Process.Pid) })
	} else {
		time.Sleep(100 * time.Millisecond)
	}
	require.NoError(t, c.command.Process.Signal(signal))
}

var caughtSignals = regexp.MustCompile(`(?m)^SigCgt:\s+([0-9a-f]+)$`)

// handlesInterrupt tells whether a process of collectorCommand handles SIGINT by now, and with it
// SIGHUP and SIGTERM.
func handlesInterrupt(t testing.TB, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	caught, err := strconv.ParseUint(string(caughtSignals.FindSubmatch(status)[1]), 16, 64)
	require.NoError(t, err)
	return caught&(1<<(syscall.SIGINT-1)) != 0
}

// stop sends SIGTERM and waits until the program exits with 0.
func (c *collector) stop(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGTERM)
	select {
	case exit := <-c.exited:
		require.NoError(t, exit, "after SIGTERM the program\n%s", c.logs)
	case <-time.After(patience):
		t.Fatalf("the program has not ended %s after SIGTERM\n%s", patience, c.kill())
	}
}
