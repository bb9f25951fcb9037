// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestReloadsLoseNothing_D2 sends SIGHUP repeatedly while clients push.
func TestReloadsLoseNothing_D2(t *testing.T) {
	parallel(t)
	reloads := profiletest.Rounds(t, 5, 100)
	c := start(t, "500ms", "    rotation: {max_age: 1s}")
	var l ledger
	ctx, cancel := context.WithCancel(t.Context())
	wait := l.clients(ctx, t, 8, c.url, 5*time.Millisecond)
	for i := range reloads {
		// At different times within a window.
		time.Sleep(time.Duration(97*i%600) * time.Millisecond)
		c.signal(t, syscall.SIGHUP)
		c.await(t, "ready again", func() bool { return strings.Count(c.logs.String(), ready) > i+1 })
	}
	time.Sleep(300 * time.Millisecond)
	cancel()
	wait()
	c.stop(t)
	l.verify(t, c.files, fmt.Sprintf("%d SIGHUP", reloads), 0)
}

// TestBrokenReloadEndsTheProgramAndLosesNothing_D5 sends SIGHUP with an unknown key in the
// configuration. The Collector cannot return to the old configuration: it names the key and
// ends with an error, so that its unit or pod starts it again.
func TestBrokenReloadEndsTheProgramAndLosesNothing_D5(t *testing.T) {
	parallel(t)
	c := start(t, "1h", "")
	var l ledger
	ctx, cancel := context.WithCancel(t.Context())
	wait := l.clients(ctx, t, 4, c.url, 5*time.Millisecond)
	c.await(t, "acknowledged pushes", l.anyAcknowledged)
	config, err := os.ReadFile(c.config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.config, bytes.Replace(config, []byte("{window: 1h}"), []byte("{windows: 1h}"), 1), 0o600))
	c.signal(t, syscall.SIGHUP)
	select {
	case err := <-c.exited:
		assert.Error(t, err, "the program ended without an error")
	case <-time.After(patience):
		t.Fatal("the program still runs with a broken configuration")
	}
	assert.Contains(t, c.logs.String(), "windows", "the error does not name the key windows:\n%s", c.logs)
	cancel()
	wait()
	l.verify(t, c.files, "1 SIGHUP", 0)
}
