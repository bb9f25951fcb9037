// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// TestUnwritableGroupIsRetriedAlone_E6_P8: the directory of one service is read-only for many attempts. The
// sums of the other services stay exact, and those of this one arrive once.
func TestUnwritableGroupIsRetriedAlone_E6_P8(t *testing.T) {
	parallel(t)
	program(t)
	if os.Geteuid() != 0 {
		t.Skip("not run: a file system cannot be mounted here")
	}
	for name, queue := range map[string]string{"without a queue": "", "with a queue": "    sending_queue: {}\n"} {
		t.Run(name, func(t *testing.T) {
			files := filepath.Join(t.TempDir(), "profiles")
			blocked := filepath.Join(files, "blocked")
			require.NoError(t, os.MkdirAll(blocked, 0o700))
			if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", blocked).CombinedOutput(); err != nil {
				t.Skipf("not run: %v: %s", err, out)
			}
			unmount := func() error { return exec.Command("umount", "--lazy", blocked).Run() }
			t.Cleanup(func() { _ = unmount() }) // it fails after the test has done so
			address := freeAddress(t)
			c := run(t, address, files, fmt.Sprintf(`
receivers:
  pprof:
    server:
      endpoint: %s
processors:
  profiles_dedup:
    window: 1s
    retry_on_failure: { initial_interval: 50ms, max_interval: 100ms }
exporters:
  profiles_file:
    directory: %s
    group_by: [service.name]
    rotation: { max_age: 100ms }
    retry_on_failure: { initial_interval: 10ms, max_interval: 20ms, max_elapsed_time: %s }
%sservice:
  telemetry:
    logs:
      sampling: { enabled: false }
    metrics:
      level: none
  pipelines:
    profiles:
      receivers: [pprof]
      processors: [profiles_dedup]
      exporters: [profiles_file]
`, address, files, map[bool]string{true: "50ms", false: "0s"}[queue == ""], queue))
			services := []string{"a", "blocked", "c"}
			const pushes = 5
			for i := range pushes {
				for _, service := range services {
					c.push(t, service, pprofBytes(t, &profile.Profile{
						SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
						TimeNanos:  int64(1 + i),
						Sample:     []*profile.Sample{{Value: []int64{1}}},
					}))
				}
			}
			c.await(t, "attempts", func() bool { return strings.Count(c.logs.String(), "read-only file system") > 40 })
			require.NoError(t, unmount())
			c.await(t, "files", func() bool { return allThere(t, files, services) })
			c.stop(t)
			readable := 0
			for _, service := range services {
				var all []expand.Profile
				for _, record := range readAll(t, filepath.Join(files, service)) {
					all = append(all, record...)
				}
				sum := int64(0)
				for _, total := range totalsOf(all) {
					sum += total
				}
				assert.EqualValues(t, pushes, sum, "sum of %s", service)
				readable += int(sum)
			}
			profiletest.Account(t, "40 attempts at a read-only directory", pushes*len(services), readable, 0)
		})
	}
}
