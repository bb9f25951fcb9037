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
	"time"

	"github.com/stretchr/testify/require"
)

// TestClientExamples builds the programs in docs/push-protocols.md, runs them against the default
// configuration until Ctrl+C, and finds their profiles in the files.
func TestClientExamples(t *testing.T) {
	parallel(t)
	page, err := os.ReadFile(filepath.Join("..", "docs", "push-protocols.md"))
	require.NoError(t, err)
	examples := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, examples, 2, "programs of the page")
	for _, example := range examples {
		t.Run(regexp.MustCompile(`pyroscope|datadog`).FindString(strings.ToLower(string(example[1]))), func(t *testing.T) {
			parallel(t)
			c, addresses := runDefaultConfig(t)
			source := filepath.Join(t.TempDir(), "main.go")
			text := strings.ReplaceAll(string(example[1]), "localhost:4040", addresses["localhost:4040"])
			require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
			client := strings.TrimSuffix(source, ".go")
			// In this directory, whose go.mod has the clients.
			if out, err := exec.Command("go", "build", "-o", client, source).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			command := exec.Command(client)
			command.Env = append(os.Environ(), "DD_PROFILING_FLUSH_ON_EXIT=true", "DD_INSTRUMENTATION_TELEMETRY_ENABLED=false", "DD_REMOTE_CONFIGURATION_ENABLED=false")
			program := begin(t, command)
			time.Sleep(3 * time.Second) // of work
			require.NoError(t, command.Process.Signal(os.Interrupt))
			select {
			case err := <-program.exited:
				require.NoError(t, err, "%s", program.logs)
			case <-time.After(patience):
				t.Fatalf("the client does not end\n%s", program.logs)
			}
			c.stop(t)
			out, err := exec.Command(otelprofProgram(t), "ls", "--service", "checkout", "--label", "region=eu", c.files).CombinedOutput()
			if err != nil || !regexp.MustCompile(`(?m)^checkout +cpu +cpu `).Match(out) {
				t.Errorf("otelprof ls: %v\n%s\n%s\n%s", err, out, program.logs, c.logs)
			}
		})
	}
}
