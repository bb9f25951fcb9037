// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// container is a memory cgroup for one program. If the machine lets the test make none (it needs
// root and a writable hierarchy, v1 or v2), the program runs with a GOMEMLIMIT of 80 % of the limit
// instead, and only its RSS is compared with the limit.
type container struct {
	limit int64
	// dir is the directory of the cgroup, empty without one.
	dir   string
	files cgroupFiles
}

// cgroupFiles are the names of the files that limit and describe a memory cgroup.
type cgroupFiles struct {
	limit string
	kills string // a file with a line "oom_kill N"
}

var cgroupVersions = map[int]cgroupFiles{
	1: {"memory.limit_in_bytes", "memory.oom_control"},
	2: {"memory.max", "memory.events"},
}

var containers atomic.Int64 // that this process has made

// newContainer makes a container with a limit in bytes. It is removed at the end of the test.
func newContainer(t *testing.T, limit int64) *container {
	t.Helper()
	c := &container{limit: limit}
	parent, version, err := memoryCgroup()
	if err == nil {
		c.files = cgroupVersions[version]
		c.dir = filepath.Join(parent, fmt.Sprintf("otelcol-profiles-test-%d-%d", os.Getpid(), containers.Add(1)))
		err = os.Mkdir(c.dir, 0o755)
	}
	if err == nil {
		t.Cleanup(func() { c.remove(t) })
		// Without a memory controller in the parent, v2 has no such file.
		err = os.WriteFile(filepath.Join(c.dir, c.files.limit), fmt.Append(nil, limit), 0)
	}
	if err != nil {
		t.Logf("no memory cgroup, GOMEMLIMIT takes its place: %v", err)
		c.dir = ""
	}
	return c
}

// memoryCgroup returns the directory below which cgroups with a memory limit can be made.
func memoryCgroup() (dir string, version int, err error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && fields[1] == "memory" {
			const root = "/sys/fs/cgroup/memory"
			// In a container, the path may be one of the host.
			if _, err := os.Stat(root + fields[2]); err == nil {
				return root + fields[2], 1, nil
			}
			return root, 1, nil
		}
	}
	// A v2 cgroup with processes has no children with controllers, so the test's own cannot be the
	// parent.
	return "/sys/fs/cgroup", 2, nil
}

// command returns the program and arguments that run a program in the container.
func (c *container) command(program string, args ...string) (path string, inContainer []string) {
	if c.dir == "" {
		return "/usr/bin/env", append([]string{fmt.Sprintf("GOMEMLIMIT=%dB", c.limit*8/10), program}, args...)
	}
	// The shell moves itself before it becomes the program, so that the program finds its limit.
	return "/bin/sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(c.dir, "cgroup.procs"), program}, args...)
}

// requireAlive ends the test if the program has ended.
func (c *container) requireAlive(t *testing.T, program *collector) {
	t.Helper()
	require.Zero(t, c.killed(t), "processes were killed for exceeding the limit of %d MiB\n%s", c.limit>>20, program.logs)
	select {
	case exit := <-program.exited:
		t.Fatalf("the program ended: %v\n%s", exit, program.logs)
	default:
	}
}

// requireWithinLimit ends the test if the program has exceeded the limit. It returns the peak RSS in
// MiB. In a cgroup, the kernel is the judge. RSS also counts pages of files, such as the program
// itself, which the kernel takes back when it needs them; without a cgroup they do not count.
func (c *container) requireWithinLimit(t *testing.T, program *collector) int64 {
	t.Helper()
	c.requireAlive(t, program)
	pid := program.command.Process.Pid
	peak, files := memory(t, pid, "VmHWM:"), memory(t, pid, "RssFile:")
	if c.dir == "" && peak-files > c.limit {
		t.Errorf("peak RSS is %d MiB without %d MiB of files, over the limit of %d MiB", (peak-files)>>20, files>>20, c.limit>>20)
	}
	t.Logf("container of %d MiB: peak RSS %d MiB, of which files have %d MiB now", c.limit>>20, peak>>20, files>>20)
	return peak >> 20
}

// killed returns how many processes the kernel has killed for the limit, as far as it is known.
func (c *container) killed(t *testing.T) int {
	t.Helper()
	if c.dir == "" {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(c.dir, c.files.kills))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok { // since Linux 4.13
			n, err := strconv.Atoi(strings.TrimSpace(count))
			require.NoError(t, err)
			return n
		}
	}
	return 0
}

// remove deletes the cgroup once its processes, which were killed before, have gone.
func (c *container) remove(t *testing.T) {
	t.Helper()
	var err error
	for range 100 {
		if err = os.Remove(c.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("cgroup left behind: %v", err)
}
