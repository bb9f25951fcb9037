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
)

// TestModulesInstallFromAProxy publishes the tree in a directory as the module proxy will have it
// after a release. go install builds both programs from there, and ocb builds the manifest of
// config/custom-build without path.
func TestModulesInstallFromAProxy(t *testing.T) {
	dist(t) // this is part of make snapshot
	const version = "v0.1.0"
	proxy := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "run", "./modproxy", version, "..", proxy).Output()
	if err != nil {
		t.Fatalf("modproxy: %v", err)
	}
	variables := strings.Split(strings.TrimSpace(string(out)), "\n")
	bin, empty := t.TempDir(), t.TempDir()
	run := func(directory, name string, arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir = directory
		command.Env = append(append(os.Environ(), variables...), "GOBIN="+bin)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
		return string(out)
	}

	const module = "github.com/otelcol-profiles/otelcol-profiles"
	for _, program := range []string{"otelprof", "otelcol-profiles"} {
		run(empty, "go", "install", module+"/cmd/"+program+"@"+version)
		if printed := run(empty, filepath.Join(bin, program), "--version"); !strings.Contains(printed, strings.TrimPrefix(version, "v")) {
			t.Errorf("%s --version prints %s", program, printed)
		}
	}

	tool := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join("..", "internal", "tools", "go.mod"), "-n", "builder")
	builder, err := tool.Output()
	if err != nil {
		t.Fatalf("%v: %v", tool, err)
	}
	manifest, err := os.ReadFile(filepath.Join("..", "config", "custom-build", "builder-config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	released := regexp.MustCompile(`(?m)^ +path: .*\n`).ReplaceAll(bytes.ReplaceAll(manifest, []byte(module+" v0.0.0"), []byte(module+" "+version)), nil)
	if bytes.Contains(released, []byte("v0.0.0")) || !bytes.Contains(released, []byte(module+" "+version)) {
		t.Fatalf("the manifest does not name the release:\n%s", released)
	}
	if err := os.WriteFile(filepath.Join(empty, "builder-config.yaml"), released, 0o600); err != nil {
		t.Fatal(err)
	}
	run(empty, strings.TrimSpace(string(builder)), "--config", "builder-config.yaml")
	if components := run(empty, filepath.Join(empty, "otelcol", "otelcol"), "components"); !strings.Contains(components, module+" "+version) {
		t.Errorf("the program does not have the release:\n%s", components)
	}
}
