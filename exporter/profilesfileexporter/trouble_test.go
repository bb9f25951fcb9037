// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// fullDir is a directory on a disk that may be full.
type fullDir struct {
	layout.Dir
	full *atomic.Bool
}

func (d fullDir) Create(name string) (layout.Handle, error) {
	if d.full.Load() {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.ENOSPC}
	}
	return d.Dir.Create(name)
}

// TestAFullDiskIsOneWarning: it is no line a second, gives no advice against the configuration, and is the status of the
// component until a record is written.
func TestAFullDiskIsOneWarning(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory, cfg.RetryOnFailure.Enabled = t.TempDir(), false
	require.NoError(t, cfg.Validate())
	set := exportertest.NewNopSettings(metadata.Type)
	logs := profiletest.LogFromInfo(&set.TelemetrySettings)
	own, err := newFileExporter(cfg, set)
	require.NoError(t, err)
	var full atomic.Bool
	own.options.OpenDir = func(path string, group ...string) (layout.Dir, error) {
		dir, err := layout.OpenDir(path, group...)
		return fullDir{dir, &full}, err
	}
	e := withRetries(t, own)
	host := profiletest.NewStatusHost()
	require.NoError(t, e.Start(t.Context(), host))
	full.Store(true)
	for i := range 50 {
		require.ErrorIs(t, e.ConsumeProfiles(t.Context(), numbered(i, "a")), syscall.ENOSPC)
	}
	warnings := logs.Filter(func(e observer.LoggedEntry) bool { return e.Level >= zapcore.WarnLevel }).All()
	require.Len(t, warnings, 1)
	assert.Equal(t, "Disk is full", warnings[0].Message)
	assert.Equal(t, zapcore.WarnLevel, warnings[0].Level)
	fields := warnings[0].ContextMap()
	assert.Equal(t, cfg.Directory, fields["directory"])
	assert.Equal(t, "profiles of the sender, which gets a retryable error", fields["waits"])
	assert.Contains(t, fields["error"], "no space left on device")
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, host.Statuses())

	full.Store(false)
	require.NoError(t, e.ConsumeProfiles(t.Context(), numbered(1, "a")))
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.Statuses())
	assert.Equal(t, 1, logs.FilterMessage("Writing profiles again").Len())
	require.NoError(t, e.Shutdown(t.Context()))
	for _, entry := range logs.All() {
		assert.NotContains(t, entry.Message, "Exporting failed")
	}
}
