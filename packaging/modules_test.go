// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestModulesInstallFromAProxy publishes the tree in a directory as the module proxy will have it
// after a release. go install builds both programs from there, and ocb builds the manifest of
// config/custom-build without path.
func TestModulesInstallFromAProxy(t *testing.T) {
	dist(t) // this is part of make snapshot
	const version = "v0.1.0"
	out, err := exec.CommandContext(t.Context(), "go", "run", "./modproxy", version, "..", t.TempDir()).Output()
	require.NoError(t, err)
	variables := strings.Split(strings.TrimSpace(string(out)), "\n")
	bin, empty := t.TempDir(), t.TempDir()
	run := func(directory, name string, arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir = directory
		command.Env = append(append(os.Environ(), variables...), "GOBIN="+bin)
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%v\n%s", command, out)
		return string(out)
	}

	const module = "github.com/otelcol-profiles/otelcol-profiles"
	for _, program := range []string{"otelprof", "otelcol-profiles"} {
		run(empty, "go", "install", module+"/cmd/"+program+"@"+version)
		assert.Contains(t, run(empty, filepath.Join(bin, program), "--version"), strings.TrimPrefix(version, "v"), "%s --version", program)
	}

	tool := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join("..", "internal", "tools", "go.mod"), "-n", "builder")
	builder, err := tool.Output()
	require.NoError(t, err, "%v", tool)
	manifest := read(t, "..", "config", "custom-build", "builder-config.yaml")
	released := regexp.MustCompile(`(?m)^ +path: .*\n`).ReplaceAll(bytes.ReplaceAll(manifest, []byte(module+" v0.0.0"), []byte(module+" "+version)), nil)
	require.NotContains(t, string(released), " v0.0.0\n")
	require.Contains(t, string(released), module+" "+version)
	require.NoError(t, os.WriteFile(filepath.Join(empty, "builder-config.yaml"), released, 0o600))
	run(empty, strings.TrimSpace(string(builder)), "--config", "builder-config.yaml")
	assert.Contains(t, run(empty, filepath.Join(empty, "otelcol", "otelcol"), "components"), module+" "+version, "the program does not have the release")
}
