// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// TestGroupWithoutDirectory: where something else stands in the place of the directory
// of a group, its records are rejected permanently, and the other groups are written once.
func TestGroupWithoutDirectory(t *testing.T) {
	for name, stand := range map[string]func(string) error{
		"file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"link": func(path string) error { return os.Symlink(filepath.Dir(path), path) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(t, "service.name")
			cfg.RetryOnFailure.MaxElapsedTime = 0
			require.NoError(t, stand(filepath.Join(cfg.Directory, "a")))
			e, telemetry, logs := observed(t, cfg)
			require.NoError(t, e.start(t.Context(), nil))
			err := e.consume(t.Context(), numbered(1, "a", "b"))
			require.ErrorContains(t, err, "not a directory")
			assert.True(t, consumererror.IsPermanent(err))
			assert.EqualValues(t, 1, sums(t, telemetry)["otelcol_exporter_profiles_file_errors other"])
			assert.Equal(t, 1, logs.FilterMessage("Rejected profiles permanently").Len())
			require.NoError(t, e.shutdown(t.Context()))
			require.NoError(t, os.Remove(filepath.Join(cfg.Directory, "a")))
			assert.Equal(t, map[string][]int{"b": {1}}, numbersIn(t, cfg.Directory))
		})
	}
}

// TestGroupWithoutDirectoryParksNoConsumer of the queue.
func TestGroupWithoutDirectoryParksNoConsumer(t *testing.T) {
	cfg := newConfig(t, "service.name")
	cfg.RetryOnFailure.MaxElapsedTime = 0
	cfg.SendingQueue = queueConfig(func(q *exporterhelper.QueueBatchConfig) { q.NumConsumers = 2 })
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Directory, "a"), nil, 0o600))
	e, _ := startExporter(t, cfg)
	for i := range 2 * cfg.SendingQueue.Get().NumConsumers {
		require.NoError(t, e.ConsumeProfiles(t.Context(), numbered(i, "a")))
	}
	require.NoError(t, e.ConsumeProfiles(t.Context(), numbered(99, "b")))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(cfg.Directory, "b"))
		return err == nil
	}, time.Minute, time.Millisecond)
}

// TestRejectionsAreReportedOnce: what is rejected of a payload is counted and logged once, though
// the rest is sent again because the disk did not take it.
func TestRejectionsAreReportedOnce(t *testing.T) {
	cfg := pprofConfig(t)
	cfg.GroupBy = []string{"service.name"}
	e, telemetry, logs := observed(t, cfg)
	require.NoError(t, e.start(t.Context(), nil))
	pd := pprofile.NewProfiles()
	addScope(pd, "a", 1)
	addScope(pd, "b", 1<<62, 1<<62)
	const rejected = "otelcol_exporter_profiles_file_errors convert"
	unblock := block(t, cfg, "a")
	for range 3 {
		var err error
		pd, err = consume(t.Context(), e, pd)
		require.Error(t, err)
		require.False(t, consumererror.IsPermanent(err))
	}
	unblock()
	require.NoError(t, e.consume(t.Context(), pd))
	assert.EqualValues(t, 1, sums(t, telemetry)[rejected])
	assert.Equal(t, 1, logs.FilterMessage("Rejected profiles permanently").Len())
	require.NoError(t, e.shutdown(t.Context()))
}
