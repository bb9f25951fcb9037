// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSystemd checks that systemd accepts the unit, and that its exposure level is low.
func TestSystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("the unit is not looked at: %v", err) // a matter of the system, also where all tests must run
	}
	unit := string(read(t, "systemd", "otelcol-profiles.service"))
	const installed = "/usr/bin/otelcol-profiles"
	require.Equal(t, 2, strings.Count(unit, "="+installed+" "), "commands of the unit that start or validate %s", installed)
	file := filepath.Join(t.TempDir(), "otelcol-profiles.service")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(unit, "="+installed, "="+program(t))), 0o600))
	for _, args := range [][]string{
		{"verify", "--man=no", "--recursive-errors=no", file},
		{"security", "--offline=true", "--no-pager", "--threshold=15", file}, // 1.5 of 10
	} {
		out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
		assert.NoError(t, err, "systemd-analyze %s: %s", args[0], out)
		assert.True(t, args[0] != "verify" || len(out) == 0, "systemd-analyze %s: %s", args[0], out)
	}
}
