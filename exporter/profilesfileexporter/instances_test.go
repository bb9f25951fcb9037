// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// TestMetricsTellExportersApart: exporters of one meter are counted by their ids.
func TestMetricsTellExportersApart(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
	for i, id := range []component.ID{component.NewID(metadata.Type), component.NewIDWithName(metadata.Type, "debug")} {
		set := exportertest.NewNopSettings(metadata.Type)
		set.ID, set.TelemetrySettings = id, telemetry.NewTelemetrySettings()
		cfg := createDefaultConfig().(*Config)
		cfg.Directory, cfg.Rotation.MaxRecords, cfg.Retention.MaxFiles = t.TempDir(), 1, 1
		incomplete := filepath.Join(cfg.Directory, "2026/11/28/14", layout.PartialBase("20261128T140000.000Z-0123456789ab", segment.Proto))
		require.NoError(t, os.MkdirAll(filepath.Dir(incomplete), 0o700))
		require.NoError(t, os.WriteFile(incomplete, []byte("torn"), 0o600))
		e, err := newFileExporter(cfg, set)
		require.NoError(t, err)
		require.NoError(t, e.start(t.Context(), nil))
		for n := range 2 + i {
			require.NoError(t, e.consume(t.Context(), numbered(n, "a")))
		}
		e.countError(reasonConvert)
		e.writer.Maintain()
		require.NoError(t, e.shutdown(t.Context()))
	}

	got := profiletest.MetricsBy(t, telemetry, "otelcol_exporter_profiles_file_", "exporter")
	by := func(plain, debug int64) map[string]int64 {
		return map[string]int64{"profiles_file": plain, "profiles_file/debug": debug}
	}
	for name, want := range map[string]map[string]int64{
		"records": by(2, 3), "files": by(2, 3), "removed_files": by(1, 2), "recovered_files": by(1, 1), "errors": by(1, 1),
	} {
		assert.Equal(t, want, got[name], name)
	}
	for _, name := range []string{"uncompressed_bytes", "written_bytes"} {
		assert.Len(t, got[name], 2, name)
		assert.Equal(t, 3*got[name]["profiles_file"], 2*got[name]["profiles_file/debug"], name)
	}
	assert.Len(t, got, 7, "all there are")
}
