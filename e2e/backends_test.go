// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestBackendsPage validates the configurations in docs/backends.md for our own components.
func TestBackendsPage(t *testing.T) {
	parallel(t)
	path := program(t)
	page, err := os.ReadFile(filepath.Join("..", "docs", "backends.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)<!-- valid( exporter)? -->\n```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.GreaterOrEqual(t, len(blocks), 3, "configurations of the page")
	for _, block := range blocks {
		text := block[2]
		if block[1] != "" { // an exporter, for which there must be the rest
			name := regexp.MustCompile(`(?m)^  (\w+):$`).FindStringSubmatch(text)[1]
			text += "receivers: {otlp: {protocols: {grpc: {}}}}\nservice: {pipelines: {profiles: {receivers: [otlp], exporters: [" + name + "]}}}\n"
		}
		config := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
		command := exec.Command(path, "validate", "--config", config)
		command.Env = append(os.Environ(), "OPENOBSERVE_TOKEN=token")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, text)
		}
	}
}

// TestBackendConfigurations runs each configuration of config/backends, pushes profiles, and
// checks what the backend gets by the rules of that backend.
func TestBackendConfigurations(t *testing.T) {
	parallel(t)
	files, err := filepath.Glob(filepath.Join(configs, "backends", "*.yaml"))
	require.NoError(t, err)
	backends := map[string]*backend{
		"pyroscope.yaml": {rejects: rejectedByPyroscope},
		"parca.yaml":     {rules: []conformance.Rule{conformance.TimeRange}},
		"devfiler.yaml":  {},
		"otlp.yaml":      {rejects: rejectedByPosition},
	}
	assert.Len(t, files, len(backends))
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			parallel(t)
			b := startBackend(t, backends[name])
			m := runConfig(t, program(t), "backends/"+name, env{
				"PPROF_LISTEN": freeAddress(t), "BACKEND_ENDPOINT": b.address, "WINDOW": "300ms",
			})
			expected := map[string]bool{} // services that Pyroscope does not accept
			for _, p := range payloads(t) {
				if full, _ := profiletest.Soak(t); !full && len(p.data) > 256<<10 {
					continue // a large one takes long to check
				}
				m.push(t, p.service, p.data)
				parsed, err := profile.ParseData(p.data)
				require.NoError(t, err)
				expected[p.service] = name == "pyroscope.yaml" && (parsed.Period == 0 || hasIntegers(parsed, "bytes"))
				if len(parsed.Sample) == 0 {
					expected[p.service] = false
				}
			}
			m.stop(t)
			found := b.check(t)
			for service, faults := range found {
				if !expected[service] && len(faults) > 0 {
					t.Errorf("%s: %q", service, faults[:min(len(faults), 3)])
				}
			}
			for service, rejected := range expected {
				assert.Equal(t, rejected, len(found[service]) > 0, "%s: faults %q", service, found[service])
			}
			assert.NotEmpty(t, b.received, "the backend got no profile")
			assert.Zero(t, b.texts, "names of services are references")
		})
	}
}

// hasIntegers reports whether a sample of p has a numeric label other than the given one.
func hasIntegers(p *profile.Profile, except string) bool {
	for _, s := range p.Sample {
		for key := range s.NumLabel {
			if key != except {
				return true
			}
		}
	}
	return false
}
