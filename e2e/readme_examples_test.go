// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestReadmeExamplesAreValid validates each complete configuration in the components' READMEs by the program
// that has its components.
func TestReadmeExamplesAreValid(t *testing.T) {
	parallel(t)
	path := program(t)
	for component, examples := range map[string]int{
		"receiver/pprofreceiver":             4,
		"receiver/profilesfilereceiver":      1,
		"processor/profilesdedupprocessor":   1,
		"exporter/profilesfileexporter":      1,
		"exporter/pprofexporter":             1,
		"extension/otlplimitextension":       1,
		"extension/profilesviewextension":    1,
		"connector/splunkprofilingconnector": 1,
	} {
		readme, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(component), "README.md"))
		require.NoError(t, err)
		found := 0
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(readme, -1) {
			if !strings.Contains(string(block[1]), "\nservice:\n") {
				continue // part of a configuration
			}
			found++
			// Directories that must exist.
			text := strings.ReplaceAll(string(block[1]), "directory: /var/lib/otelcol", "directory: "+t.TempDir())
			program := path
			if strings.Contains(text, "k8s_observer:") {
				program = nodeProgram(t)
			}
			requireValid(t, program, text, "K8S_NODE_NAME=node-1")
		}
		assert.Equal(t, examples, found, "complete configurations of %s", component)
	}
}

// requireValid validates a configuration by the program that has its components.
func requireValid(t *testing.T, program, text string, env ...string) {
	t.Helper()
	config := profiletest.WriteFile(t, "config.yaml", []byte(text))
	command := exec.Command(program, "validate", "--config", config)
	command.Env = append(os.Environ(), env...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
}
