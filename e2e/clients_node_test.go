// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// nodeWork is a service of four seconds, which calls finish then.
const nodeWork = `
const held = [], end = Date.now() + 4000
function work() {
  for (let i = 0; i < 1e5; i++) held[i % 1000] = { i, s: 'x' + i }
  if (Date.now() < end) setImmediate(work)
  else finish()
}
work()`

// TestNodeClients runs the clients of Pyroscope and Datadog for Node.js, which make bin/node-clients installs, with the settings of
// docs/push-protocols.md.
func TestNodeClients(t *testing.T) {
	parallel(t)
	installed, err := filepath.Abs(filepath.Join("..", "bin", "node-clients", "node_modules"))
	require.NoError(t, err)
	if _, err := os.Stat(installed); err != nil {
		require.Empty(t, os.Getenv("E2E_REQUIRE"), "make bin/node-clients: %v", err)
		t.Skipf("no clients, which make bin/node-clients installs with npm: %v", err)
	}
	for name, client := range map[string]struct {
		init, finish string
		want         map[string]string // temporality by profile type and sample type
	}{
		"pyroscope": {
			`const client = require('@pyroscope/nodejs')
			client.init({ serverAddress: process.env.SERVER, appName: 'checkout', tags: { region: 'eu' }, flushIntervalMs: 1000 })
			client.start()`, `client.stop().then(() => process.exit(0))`,
			map[string]string{"wall samples": "delta", "wall wall": "delta", "heap inuse_objects": "instant", "heap inuse_space": "instant"},
		},
		"datadog": {
			`require('dd-trace').init({ profiling: true, service: 'checkout', tags: { region: 'eu' }, startupLogs: false })`, `process.kill(process.pid, 'SIGTERM')`,
			map[string]string{"wall wall": "delta", "cpu cpu": "delta", "heap inuse_objects": "instant", "heap inuse_space": "instant"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			c := start(t, "0s", "")
			program := exec.Command("node", "-e", client.init+"\nfunction finish() { "+client.finish+" }"+nodeWork)
			program.Env = append(os.Environ(), "NODE_PATH="+installed, "SERVER="+c.url, "DD_TRACE_AGENT_URL="+c.url,
				"DD_PROFILING_UPLOAD_PERIOD=2", "DD_INSTRUMENTATION_TELEMETRY_ENABLED=false", "DD_REMOTE_CONFIGURATION_ENABLED=false")
			running := begin(t, program)
			select {
			case <-running.exited: //nolint:errcheck // of a signal, with Datadog's
			case <-time.After(patience):
				t.Fatalf("the client does not end\n%s", running.logs)
			}
			c.stop(t)
			got := map[string]string{}
			for _, p := range byService(readProfiles(t, c.files))["checkout"] {
				got[expand.Text(p.Scope.Attributes, attrkey.ProfileType)+" "+p.Type] = expand.Text(p.Attributes, attrkey.Temporality)
				assert.Equal(t, "eu", resourceAttribute(p, "region"))
				assert.NotZero(t, p.Time)
			}
			for kind, want := range client.want {
				assert.Equal(t, want, got[kind], "%s of %v\n%s\n%s", kind, got, running.logs, c.logs)
			}
		})
	}
}
