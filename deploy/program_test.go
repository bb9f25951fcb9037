// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program returns the path of the built program.
func program(t *testing.T) string {
	t.Helper()
	return programOf(t, "otelcol-profiles:")
}

// programOf returns the path of the built program of an image.
func programOf(t *testing.T, image string) string {
	t.Helper()
	name, target, path := "otelcol-profiles", "build", os.Getenv("OTELCOL_PROFILES_BIN")
	if strings.HasPrefix(image, "otelcol-profiles-node:") {
		name, target, path = "otelcol-profiles-node", "build-node", os.Getenv("OTELCOL_PROFILES_NODE_BIN")
	}
	if path == "" {
		path = filepath.Join("..", "bin", name)
	}
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		missing(t, "no program to test: %v (make %s)", err, target)
	}
	return path
}

// missing skips a test, or fails it in CI.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" || os.Getenv("E2E_REQUIRE") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// run runs the program, which must succeed, and returns its output.
func run(t *testing.T, program string, environment map[string]string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range environment {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Dir = t.TempDir()
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%q\n%s", args, out)
	return string(out)
}
