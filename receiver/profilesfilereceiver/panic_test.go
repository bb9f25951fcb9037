// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilesfilereceiver/internal/metadatatest"
)

// TestPanicsEndNoGoroutine_A11: a file whose records make a goroutine panic is read again.
func TestPanicsEndNoGoroutine_A11(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.otlp.pb"), message(t, 1))
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, profiletest.LoadConfig("include: ['"+filepath.ToSlash(dir)+"/**']\npoll_interval: 10ms\nafter_read: keep", cfg))
	observed, telemetry, logs := profiletest.Observe(t)
	set := metadatatest.NewSettings(telemetry)
	set.Logger = observed.Logger
	n := &testConsumer{}
	r, err := newReceiver(set, cfg, n)
	require.NoError(t, err)
	r.obsreport = nil // sending panics, outside of what the next consumer does
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return logs.FilterMessage("Panic while processing a profile").Len() > 1 }, patience, time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Contains(t, logs.FilterMessage("Panic while processing a profile").All()[0].ContextMap()["stack"], "consume")

	again := start(t, "include: ['"+filepath.ToSlash(dir)+"/**']\nafter_read: keep", n)
	again.await(n, 1)
}
