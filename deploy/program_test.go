// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program returns the path of the built program.
func program(t *testing.T) string {
	t.Helper()
	name := os.Getenv("OTELCOL_PROFILES_BIN")
	if name == "" {
		name = filepath.Join("..", "bin", "otelcol-profiles")
	}
	name, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err != nil {
		missing(t, "no program to test: %v (make build)", err)
	}
	return name
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
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}
