// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemd checks that systemd accepts the unit, and that its exposure level is low.
func TestSystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("the unit is not looked at: %v", err) // a matter of the system, also where all tests must run
	}
	unit, err := os.ReadFile(filepath.Join("systemd", "otelcol-profiles.service"))
	if err != nil {
		t.Fatal(err)
	}
	const installed = "/usr/bin/otelcol-profiles"
	if strings.Count(string(unit), "="+installed+" ") != 2 {
		t.Fatalf("the unit does not start and reload %s", installed)
	}
	file := filepath.Join(t.TempDir(), "otelcol-profiles.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(unit), "="+installed, "="+program(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"verify", "--man=no", "--recursive-errors=no", file},
		{"security", "--offline=true", "--no-pager", "--threshold=15", file}, // 1.5 of 10
	} {
		out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
