// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestReloadsLoseNothing_D2 sends SIGHUP repeatedly while clients push.
func TestReloadsLoseNothing_D2(t *testing.T) {
	parallel(t)
	reloads := profiletest.Rounds(t, 5, 100)
	address, files := freeAddress(t), filepath.Join(t.TempDir(), "profiles")
	c := run(t, address, files, fmt.Sprintf(`
receivers:
  pprof:
    server: {endpoint: %s}
processors:
  profiles_dedup: {window: 500ms}
exporters:
  profiles_file:
    directory: %s
    compression: none
    rotation: {max_age: 1s}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [pprof], processors: [profiles_dedup], exporters: [profiles_file]}
`, address, files))

	const ready = "Everything is ready"
	var l ledger
	ctx, cancel := context.WithCancel(t.Context())
	wait := l.clients(ctx, t, 8, c.url, 5*time.Millisecond)
	for i := range reloads {
		// At different times within a window.
		time.Sleep(time.Duration(50+97*i%600) * time.Millisecond)
		if err := c.command.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		c.await(t, "ready again", func() bool { return strings.Count(c.logs.String(), ready) > i+1 })
	}
	time.Sleep(300 * time.Millisecond)
	cancel()
	wait()
	c.stop(t)
	l.verify(t, files, fmt.Sprintf("%d SIGHUP", reloads))
}
