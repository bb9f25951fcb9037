// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		requireValid(t, path, text, "OPENOBSERVE_TOKEN=token")
	}
}

// TestBackendConfigurations runs each configuration of config/backends that sends OTLP, pushes profiles, and
// checks what the backend gets by the rules of that backend.
func TestBackendConfigurations(t *testing.T) {
	parallel(t)
	files, err := filepath.Glob(filepath.Join(configs, "backends", "*.yaml"))
	require.NoError(t, err)
	backends := map[string]*backend{
		"devfiler.yaml": {},
		"otlp.yaml":     {rejects: rejectedByPosition},
	}
	assert.Len(t, files, len(backends)+2, "and those of TestPprofBackendsGetTheSumsOfGooglePprof")
	for name := range backends {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			b := startBackend(t, backends[name])
			m := runConfig(t, program(t), "backends/"+name, env{
				"PPROF_LISTEN": freeAddress(t), "BACKEND_ENDPOINT": b.address, "WINDOW": "300ms",
			})
			for _, p := range payloads(t) {
				if full, _ := profiletest.Soak(t); !full && len(p.data) > 256<<10 {
					continue // a large one takes long to check
				}
				m.push(t, p.service, p.data)
			}
			m.stop(t)
			for service, faults := range b.check(t) {
				assert.Empty(t, faults[:min(len(faults), 3)], service)
			}
			assert.NotEmpty(t, b.received, "the backend got no profile")
			assert.Zero(t, b.texts, "names of services are references")
		})
	}
}
