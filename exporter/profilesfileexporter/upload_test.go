// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// uploading starts an exporter whose files have a record each.
func uploading(t *testing.T, s *s3test.Server, change func(*Config)) (*fileExporter, *componenttest.Telemetry, *observer.ObservedLogs) {
	cfg := newConfig(t, "service.name")
	cfg.Rotation.MaxRecords = 1
	cfg.ObjectStorage = configoptional.Some(ObjectStorageConfig{Endpoint: s.URL, Bucket: s3test.Bucket, Prefix: "host-1", Timeout: time.Minute})
	if change != nil {
		change(cfg)
	}
	e, telemetry, logs := observed(t, cfg)
	e.interval = time.Millisecond
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { _ = e.shutdown(context.Background()) })
	return e, telemetry, logs
}

// send writes n files.
func send(t *testing.T, e *fileExporter, n int) {
	for i := range n {
		pd := payloadtest.With(payloadtest.Interval(1_700_000_000_000_000_000+uint64(i), 1e9, int64(i)), "service.name", "checkout")
		require.NoError(t, e.consume(t.Context(), pd))
	}
}

// closedFiles are those of the directory, by their keys.
func closedFiles(t *testing.T, e *fileExporter) map[string][]byte {
	files := map[string][]byte{}
	for name, data := range s3test.Files(t, e.config.Directory) {
		if f, ours := layout.ParsePath(name); ours && !f.Partial {
			files["host-1/"+name] = data
		}
	}
	return files
}

func TestClosedFilesAreUploaded(t *testing.T) {
	s := s3test.New(t)
	e, telemetry, logs := uploading(t, s, nil)
	send(t, e, 5)
	require.Eventually(t, func() bool { return sum(t, telemetry, "uploaded_files", "") == 5 }, time.Minute, time.Millisecond)
	assert.Equal(t, closedFiles(t, e), s.Objects())
	bytes := int64(0)
	for _, data := range s.Objects() {
		bytes += int64(len(data))
	}
	assert.Equal(t, bytes, sum(t, telemetry, "uploaded_bytes", ""))
	require.Eventually(t, func() bool { return sum(t, telemetry, "waiting_uploads", "") == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, e.shutdown(t.Context()))
	assert.Equal(t, 1, logs.FilterMessage("Stopped uploading; the next start uploads the rest").Len())
	assertNoSecret(t, logs)
}

func assertNoSecret(t *testing.T, logs *observer.ObservedLogs) {
	for _, entry := range logs.All() {
		text := entry.Message + fmt.Sprint(entry.ContextMap())
		assert.NotContains(t, text, s3test.Secret)
		assert.NotContains(t, text, "test-access-key")
	}
}

// TestOutageOfTheObjectStore: the directory is the buffer, within its limits but for max_age.
func TestOutageOfTheObjectStore(t *testing.T) {
	var away atomic.Bool
	away.Store(true)
	s := s3test.New(t)
	s.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		if away.Load() {
			s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
		}
		return away.Load()
	}
	e, telemetry, logs := uploading(t, s, func(cfg *Config) {
		t.Chdir(filepath.Dir(cfg.Directory))
		cfg.Directory = filepath.Base(cfg.Directory)
		cfg.Rotation.MaxAge, cfg.Retention.MaxAge, cfg.Retention.MaxFiles = time.Millisecond, time.Millisecond, 3
	})
	send(t, e, 5)
	require.Eventually(t, func() bool { return sum(t, telemetry, "upload_failures", "") > 2 }, time.Minute, time.Millisecond)
	time.Sleep(2 * time.Millisecond) // so that all files are older than max_age
	before := closedFiles(t, e)
	e.writer.Maintain()
	kept := closedFiles(t, e)
	assert.Len(t, before, 5)
	assert.Len(t, kept, 3)
	assert.Equal(t, int64(2), sum(t, telemetry, "dropped_files", ""))
	dropped := logs.FilterMessage("Removed a file before it was uploaded; raise retention::max_total_size or max_files").All()
	require.Len(t, dropped, 2)
	assert.Contains(t, before, "host-1/"+dropped[0].ContextMap()["path"].(string))
	failures := logs.FilterMessage("Upload failed; will retry").All()
	require.NotEmpty(t, failures)
	assert.Contains(t, failures[0].ContextMap()["error"], "s3://profiles/host-1/: Please reduce your request rate. (SlowDown)")

	away.Store(false)
	require.Eventually(t, func() bool { return sum(t, telemetry, "uploaded_files", "") == 3 }, time.Minute, time.Millisecond)
	assert.Equal(t, kept, s.Objects())
	assert.Equal(t, 1, logs.FilterMessage("Uploading files again").Len())
	e.writer.Maintain()
	assert.Empty(t, closedFiles(t, e), "max_age removes what was uploaded")
	assert.Equal(t, int64(2), sum(t, telemetry, "dropped_files", ""))
	assertNoSecret(t, logs)
}

// TestShutdownDoesNotWaitForUploads: the next start uploads the rest, and replaces no object of another Collector.
func TestShutdownDoesNotWaitForUploads(t *testing.T) {
	s := s3test.New(t)
	var hang atomic.Bool
	hang.Store(true)
	entered := make(chan struct{}, 1000)
	s.Fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if !hang.Load() {
			return false
		}
		entered <- struct{}{}
		<-r.Context().Done()
		return true
	}
	first, _, _ := uploading(t, s, nil)
	send(t, first, 3)
	<-entered
	require.NoError(t, first.shutdown(t.Context()))
	hang.Store(false)
	want, taken := closedFiles(t, first), ""
	for key := range want {
		taken = key
	}
	want[taken] = []byte("of another Collector")
	s.Put(taken, want[taken])
	_, telemetry, logs := uploading(t, s, func(cfg *Config) { cfg.Directory = first.config.Directory })
	require.Eventually(t, func() bool {
		return sum(t, telemetry, "uploaded_files", "") == 2 && logs.FilterMessage("Cannot upload file").Len() == 1
	}, time.Minute, time.Millisecond)
	assert.Contains(t, logs.FilterMessage("Cannot upload file").All()[0].ContextMap()["error"],
		"put s3://profiles/"+taken+": there is another object of this name, which stays; move it away")
	assert.Equal(t, int64(1), sum(t, telemetry, "waiting_uploads", ""))
	assert.Equal(t, want, s.Objects())
}

// TestParquetFilesAreUploaded: the bucket has them, and the directory has not.
func TestParquetFilesAreUploaded(t *testing.T) {
	s := s3test.New(t)
	group := layout.GroupDir("service.name", "checkout")
	var written []string
	e, telemetry, _ := uploading(t, s, func(cfg *Config) {
		cfg.Compact, cfg.Parquet = configoptional.Some(defaultCompact()), configoptional.Some(ParquetConfig{})
		for _, table := range []string{lake.SamplesDir, lake.ProcessesDir} {
			dir := lake.Dir(table, group, time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC))
			written = append(written, dir+"/14_0123456789ab.parquet")
			path := filepath.Join(cfg.Directory, filepath.FromSlash(written[len(written)-1]))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(table), 0o600))
		}
	})
	require.Eventually(t, func() bool { return parquetFiles(t, telemetry)["uploaded"] == 2 }, time.Minute, time.Millisecond)
	assert.Equal(t, map[string][]byte{"host-1/" + written[0]: []byte(lake.SamplesDir), "host-1/" + written[1]: []byte(lake.ProcessesDir)}, s.Objects())
	for _, name := range written {
		assert.NoFileExists(t, filepath.Join(e.config.Directory, filepath.FromSlash(name)))
	}
	assert.Zero(t, sum(t, telemetry, "uploaded_files", ""), "these are segments")
}
