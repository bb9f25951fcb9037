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

// TestExamplesAreValid validates each complete configuration in the components' READMEs, and each marked one in docs/backends.md, by
// the program that has its components.
func TestExamplesAreValid(t *testing.T) {
	parallel(t)
	for page, examples := range map[string]int{
		"receiver/pprofreceiver/README.md":             3,
		"receiver/profilesfilereceiver/README.md":      2,
		"processor/profilesdedupprocessor/README.md":   1,
		"exporter/profilesfileexporter/README.md":      1,
		"exporter/pprofexporter/README.md":             1,
		"extension/otlplimitextension/README.md":       1,
		"extension/profilesviewextension/README.md":    1,
		"connector/splunkprofilingconnector/README.md": 1,
		"docs/backends.md":                             3,
	} {
		content, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(page)))
		require.NoError(t, err)
		found := 0
		for _, block := range regexp.MustCompile("(?s)(<!-- valid exporter -->\n)?```yaml\n(.*?)```").FindAllStringSubmatch(string(content), -1) {
			text := block[2]
			if block[1] != "" { // there must be the rest
				name := regexp.MustCompile(`(?m)^  (\w+):$`).FindStringSubmatch(text)[1]
				text += "receivers: {otlp: {protocols: {grpc: {}}}}\nservice: {pipelines: {profiles: {receivers: [otlp], exporters: [" + name + "]}}}\n"
			}
			if !strings.Contains(text, "\nservice:") {
				continue // part of a configuration
			}
			found++
			// Directories that must exist.
			text = strings.ReplaceAll(text, "directory: /var/lib/otelcol", "directory: "+t.TempDir())
			path := program(t)
			if strings.Contains(text, "k8s_observer:") {
				path = nodeProgram(t)
			}
			command := exec.Command(path, "validate", "--config", profiletest.WriteFile(t, "config.yaml", []byte(text)))
			command.Env = append(os.Environ(), "K8S_NODE_NAME=node-1", "OPENOBSERVE_TOKEN=token")
			out, err := command.CombinedOutput()
			assert.NoError(t, err, "%s\n%s", out, text)
		}
		assert.Equal(t, examples, found, "complete configurations of %s", page)
	}
}
