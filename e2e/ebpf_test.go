// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEBPF runs config/ebpf until a file has a profile of this machine. Where the kernel does not
// allow that, the program must end with its reason, and the test is skipped.
func TestEBPF(t *testing.T) {
	path := os.Getenv("OTELCOL_PROFILES_EBPF_BIN")
	if path == "" {
		t.Skip("OTELCOL_PROFILES_EBPF_BIN names no program (make test-ebpf)")
	}
	dir := t.TempDir()
	c := launch(t, path, []string{
		"DATA_DIR=" + dir, "HEALTH_LISTEN=" + freeAddress(t), "GATEWAY_ENDPOINT=" + freeAddress(t), "WINDOW=1s",
	}, "--config", "../config/ebpf/ebpf.yaml", "--set=service.telemetry.metrics.level=none", "--set=exporters.profiles_file.rotation.max_age=1s")
	files := dir + "/files"
	denied := false
	c.await(t, "profiles of this machine, or the reason why there are none", func() bool {
		select {
		case err := <-c.exited:
			c.exited <- err
			denied = true
			return true
		default:
		}
		closed := func(path string) bool { return fileName.MatchString(filepath.Base(path)) }
		return slices.ContainsFunc(filesIn(t, files), closed)
	})
	if denied {
		for _, reason := range []string{"operation not permitted", "permission denied", "kernel version"} {
			if strings.Contains(c.logs.String(), reason) {
				t.Skipf("the machine does not allow eBPF: %s", reason)
			}
		}
		t.Fatalf("the program ended:\n%s", c.logs)
	}
	c.stop(t)
}
