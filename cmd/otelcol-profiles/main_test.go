// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asProgram, when set in the environment, makes this test binary the program.
const asProgram = "OTELCOL_PROFILES_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
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

// succeeds runs the program, which must succeed.
func succeeds(t *testing.T, args ...string) (output string) {
	t.Helper()
	output, err := program(t, args...)
	require.NoError(t, err, "%q: %s", args, output)
	return output
}

// fails runs the program, which must fail.
func fails(t *testing.T, args ...string) (output string) {
	t.Helper()
	output, err := program(t, args...)
	require.Error(t, err, "%q: %s", args, output)
	return output
}

func TestDefaultConfigIsValidAndChangedBySet(t *testing.T) {
	assert.Contains(t, succeeds(t, "validate"), "Valid: the default configuration\nChecked: ")
	out := succeeds(t, "print-config", "--set=exporters.profiles_file.directory=elsewhere")
	assert.Contains(t, out, "directory: elsewhere")
	assert.Contains(t, out, "endpoint: localhost:4040")
}

func TestVersion(t *testing.T) {
	assert.Regexp(t, `^otelcol-profiles version 0\.1\.0(\+\w+)?\ngo1\.\S+ \w+/\w+, OpenTelemetry Collector v0\.\d+\.\d+\n$`, succeeds(t, "--version"))
	manifest, err := os.ReadFile(filepath.Join("..", "..", "builder-config.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "\n  version: "+version+"\n")
}

func TestUnknownFlagNamesTheHelp(t *testing.T) {
	for _, args := range [][]string{{"--confg=x.yaml"}, {"-config=x.yaml"}, {"validate", "--confg=x.yaml"}} {
		assert.Regexp(t, `Run 'otelcol-profiles( validate)? --help' for the flags`, fails(t, args...))
	}
}

// TestAddressInUseNamesTheSolution also for the metrics, the first conflict of a second Collector.
func TestAddressInUseNamesTheSolution(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	for _, set := range []string{"METRICS_PORT=" + port, "PPROF_LISTEN=localhost:" + port, "HEALTH_LISTEN=localhost:" + port} {
		for _, free := range []string{"METRICS_PORT=0", "PPROF_LISTEN=localhost:0", "HEALTH_LISTEN=localhost:0"} {
			name, value, _ := strings.Cut(free, "=")
			t.Setenv(name, value)
		}
		name, value, _ := strings.Cut(set, "=")
		t.Setenv(name, value)
		out := fails(t)
		assert.Contains(t, out, "address already in use")
		assert.Contains(t, out, "\n  "+anotherCollector+" otelcol-profiles\n")
		assert.NotContains(t, out, "\n\t", "no stack")
	}
	for assignment := range strings.FieldsSeq(anotherCollector) {
		name, _, _ := strings.Cut(assignment, "=")
		assert.Contains(t, defaultConfig, "${env:"+name+":-")
	}
}

func TestFeatureGatesOfTheUserWin(t *testing.T) {
	assert.Contains(t, fails(t, "validate", "--feature-gates=-"+profilesGate), profilesGate)
}

func TestConfigOfTheUserReplacesTheDefault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
receivers: {otlp: {protocols: {grpc: {}}}}
exporters: {debug: {}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [debug]}}}
`), 0o600))
	for _, config := range []string{file, "file:" + file} {
		out := succeeds(t, "print-config", "--config", config)
		assert.Contains(t, out, "otlp")
		assert.NotContains(t, out, "pprof", config)
		assert.Contains(t, succeeds(t, "validate", "--config="+config, "--set=exporters.debug.verbosity=detailed"), "Valid: "+config+"\n")
	}
	assert.NotContains(t, fails(t, "validate", "--config", file, "--set=exporters.debug.verbosty=detailed"), "Valid")
}
