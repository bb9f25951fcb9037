// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asProgram, when set in the environment, makes this test binary the program.
const asProgram = "OTELCOL_PROFILES_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Args = withDefaultConfig(os.Args)
		main()
		return
	}
	os.Exit(m.Run())
}

// program runs the program with args in an empty directory, until it ends.
func program(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestComponents(t *testing.T) {
	out, err := program(t, "components")
	require.NoError(t, err, out)
	for _, name := range []string{
		"pprof", "otlp", "receiver_creator",
		"profiles_dedup", "memory_limiter", "resource",
		"profiles_file", "otlp_grpc", "otlp_http", "debug",
		"health_check", "zpages", "file_storage", "k8s_observer",
	} {
		assert.Contains(t, out, "- name: "+name+"\n")
	}
	for _, scheme := range []string{"env", "file", "yaml"} {
		assert.Contains(t, out, "- scheme: "+scheme+"\n")
	}
}

func TestDefaultConfigIsValid(t *testing.T) {
	out, err := program(t, "validate")
	require.NoError(t, err, out)
}

func TestDefaultConfigIsPrinted(t *testing.T) {
	out, err := program(t, "print-config")
	require.NoError(t, err, out)
	assert.Contains(t, out, "endpoint: localhost:4040")
	assert.Contains(t, out, "directory: ./profiles")
}

func TestSetChangesTheDefaultConfig(t *testing.T) {
	out, err := program(t, "print-config", "--set=exporters.profiles_file.directory=elsewhere")
	require.NoError(t, err, out)
	assert.Contains(t, out, "directory: elsewhere")
	assert.Contains(t, out, "endpoint: localhost:4040")
}

func TestFeatureGatesOfTheUserWin(t *testing.T) {
	out, err := program(t, "validate", "--feature-gates=-"+profilesGate)
	require.Error(t, err)
	assert.Contains(t, out, profilesGate)
}

func TestConfigOfTheUserReplacesTheDefault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
receivers: {otlp: {protocols: {grpc: {}}}}
exporters: {debug: {}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [debug]}}}
`), 0o600))
	for _, args := range [][]string{
		{"--config=" + file},
		{"--config", file},
		{"--config", "file:" + file},
	} {
		out, err := program(t, append([]string{"print-config"}, args...)...)
		require.NoError(t, err, "%q: %s", args, out)
		assert.Contains(t, out, "otlp")
		assert.NotContains(t, out, "pprof", "%q", args)

		out, err = program(t, append([]string{"validate"}, args...)...)
		require.NoError(t, err, "%q: %s", args, out)
	}
}
