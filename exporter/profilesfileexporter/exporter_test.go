// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// forEachWay runs a test for all ways to write.
func forEachWay(t *testing.T, test func(t *testing.T, cfg *Config)) {
	for _, format := range []string{formatProto, formatJSON} {
		t.Run(format, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Directory, cfg.Format, cfg.GroupBy = filepath.Join(t.TempDir(), "profiles"), format, nil
			test(t, cfg)
		})
	}
}

// newConfig returns the default configuration with a directory for the test.
func newConfig(t testing.TB, groupBy ...string) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory, cfg.GroupBy = t.TempDir(), groupBy
	return cfg
}

// observed returns an exporter whose groups block makes fail, what it counts, and what it logs.
func observed(t testing.TB, cfg *Config) (*fileExporter, *componenttest.Telemetry, *observer.ObservedLogs) {
	require.NoError(t, cfg.Validate())
	set := exportertest.NewNopSettings(metadata.Type)
	settings, telemetry, logs := profiletest.Observe(t)
	set.TelemetrySettings = settings
	e, err := newFileExporter(cfg, set)
	require.NoError(t, err)
	e.options.OpenDir = openUnblocked
	return e, telemetry, logs
}

// inBubble is synctest.Test. The zstd encoder that all tests share must not belong to the bubble.
func inBubble(t *testing.T, test func(t *testing.T)) {
	e := segment.NewEncoder()
	_, err := e.Encode(segment.Proto, profiletest.Proto(t, numbered(1, "a")))
	require.NoError(t, err)
	synctest.Test(t, test)
}

// newExporter returns an exporter with the Collector's retries.
func newExporter(t testing.TB, cfg *Config) (xexporter.Profiles, *observer.ObservedLogs) {
	own, _, logs := observed(t, cfg)
	return withRetries(t, own), logs
}

func withRetries(t testing.TB, own *fileExporter) xexporter.Profiles {
	set := exportertest.NewNopSettings(metadata.Type)
	set.Logger = own.logger
	e, err := own.withHelper(context.Background(), set)
	require.NoError(t, err)
	return e
}

func startExporter(t testing.TB, cfg *Config) (xexporter.Profiles, *observer.ObservedLogs) {
	e, logs := newExporter(t, cfg)
	require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
	return e, logs
}

// list returns the paths of the files below a directory, in order, without hidden ones.
func list(t testing.TB, dir string) []string {
	names := []string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}))
	return names
}

// listGroups returns the names of the directories in a directory.
func listGroups(t testing.TB, dir string) []string {
	names := []string{}
	for _, name := range list(t, dir) {
		if group, _, _ := strings.Cut(name, "/"); !slices.Contains(names, group) {
			names = append(names, group)
		}
	}
	return names
}

// closedIn returns the closed files below a directory. Their paths are those below it.
func closedIn(t testing.TB, dir string) (files []layout.File) {
	for _, name := range list(t, dir) {
		f, ok := layout.ParsePath(name)
		require.True(t, ok, name)
		if !f.Partial {
			files = append(files, f)
		}
	}
	return files
}

// plainRecords returns the records of the files of a directory, which are closed, in order.
func plainRecords(t testing.TB, cfg *Config) (records [][]byte) {
	files := closedIn(t, cfg.Directory)
	require.Len(t, list(t, cfg.Directory), len(files))
	for i := range files {
		require.Equal(t, cfg.storeOptions().Format, files[i].Format)
		records = append(records, profiletest.ReadRecords(t, filepath.Join(cfg.Directory, files[i].Path))...)
	}
	return records
}

// storedRecord is a record as our own reader gives it.
type storedRecord struct {
	group string
	data  []byte
	entry *contents.Entry
}

// readStore reads all records of a directory, by their indexes.
func readStore(t testing.TB, dir string) (all []storedRecord) {
	t.Helper()
	future := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) // also the records that end in the future
	s, err := store.Open(dir, store.ReadOptions{MaxRecord: 1 << 30, MaxDecoded: 1 << 30, Cache: 16 << 20, Now: func() time.Time { return future }})
	require.NoError(t, err)
	defer s.Close()
	segments, err := s.Live(t.Context(), time.Time{}, future, nil)
	require.NoError(t, err)
	for _, seg := range segments {
		x, err := seg.Index(t.Context())
		require.NoError(t, err)
		require.Empty(t, x.Damage)
		n := 0
		for data, err := range seg.Records(t.Context(), x, x.Records) {
			require.NoError(t, err)
			entry, err := x.Entry(n)
			require.NoError(t, err)
			all = append(all, storedRecord{seg.Group, slices.Clone(data), entry})
			n++
		}
	}
	return all
}

// expandRecord gives what a record says, by readers of its format that are not ours.
func expandRecord(t testing.TB, cfg *Config, record []byte) []expand.Profile {
	if cfg.Format == formatJSON {
		pd, err := (&pprofile.JSONUnmarshaler{DisallowUnknownFields: true}).UnmarshalProfiles(record)
		require.NoError(t, err)
		profiletest.RequireConforms(t, pd)
		return profiletest.Expand(t, pd)
	}
	require.NoError(t, proto.Unmarshal(record, new(profilespb.ProfilesData)))
	profiletest.RequireConformsBytes(t, record)
	expanded, err := expand.Bytes(record)
	require.NoError(t, err)
	return expanded
}

func TestWhatGoesInComesOut(t *testing.T) {
	const seed = 7
	payloads := profiletest.Rounds(t, 5, 100)
	forEachWay(t, func(t *testing.T, cfg *Config) {
		t.Parallel()
		e, _ := startExporter(t, cfg)
		assert.False(t, e.Capabilities().MutatesData, "a receiver of two pipelines would copy each payload")
		assert.Empty(t, list(t, cfg.Directory))
		random := profiletest.NewRand(seed)
		var want [][]expand.Profile
		for i := range payloads {
			pd := profiletest.GenerateProfiles(random)
			expanded := profiletest.Expand(t, pd)
			want = append(want, expanded)
			if i%2 == 0 {
				pd.MarkReadOnly()
			}
			require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
			if i%2 == 0 {
				require.Empty(t, expand.Diff(expanded, profiletest.Expand(t, pd)), "what others share is changed")
			}
		}
		require.NoError(t, e.Shutdown(t.Context()))
		records := plainRecords(t, cfg)
		require.Len(t, records, len(want))
		for i, record := range records {
			require.Empty(t, expand.Diff(want[i], expandRecord(t, cfg, record)), "record %d", i)
		}

		// Our own reader gives the same.
		var again [][]byte
		for _, r := range readStore(t, cfg.Directory) {
			again = append(again, r.data)
		}
		assert.Equal(t, records, again)
	})
}

// TestRetryAfterFileSystemError: the same data is given again, as a caller does, after marshalling has made references of the strings
// of its resources and scopes.
func TestRetryAfterFileSystemError(t *testing.T) {
	forEachWay(t, func(t *testing.T, cfg *Config) {
		cfg.RetryOnFailure.Enabled, cfg.Rotation.MaxRecords = false, 1
		e, _ := startExporter(t, cfg)
		payloads := []pprofile.Profiles{payloadtest.With(profiletest.Small(t), "empty", "")}
		for seed := range uint64(10) {
			payloads = append(payloads, profiletest.GenerateProfiles(profiletest.NewRand(seed)))
		}
		for n, pd := range payloads {
			want := profiletest.Expand(t, pd)
			entry, err := contents.Describe(pd)
			require.NoError(t, err)
			entry.Summaries = slices.Clone(entry.Summaries)
			kept := cfg.Directory + strconv.Itoa(n)
			require.NoError(t, os.Rename(cfg.Directory, kept))
			require.NoError(t, os.WriteFile(cfg.Directory, nil, 0o600))
			for range 2 {
				err := e.ConsumeProfiles(t.Context(), pd)
				require.ErrorContains(t, err, cfg.Directory)
				require.False(t, consumererror.IsPermanent(err), "an error of the disk is retryable")
				_, partial := errors.AsType[xconsumererror.Profiles](err)
				require.False(t, partial, "without groups there are no parts")
			}
			require.NoError(t, os.Remove(cfg.Directory))
			require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
			records := plainRecords(t, cfg)
			require.Len(t, records, 1)
			assert.Empty(t, expand.Diff(want, expandRecord(t, cfg, records[0])))
			stored := readStore(t, cfg.Directory)
			require.Len(t, stored, 1)
			assert.Equal(t, entry.Summaries, stored[0].entry.Summaries)
			require.NoError(t, os.RemoveAll(cfg.Directory))
			require.NoError(t, os.Rename(kept, cfg.Directory))
		}
		require.NoError(t, e.Shutdown(t.Context()))
	})
}

// marshalerFunc is a Marshaler.
type marshalerFunc func(pprofile.Profiles) ([]byte, error)

func (f marshalerFunc) MarshalProfiles(pd pprofile.Profiles) ([]byte, error) { return f(pd) }

func TestPermanentErrors(t *testing.T) {
	for want, marshaler := range map[string]marshalerFunc{
		"convert 0 profiles to proto: broken": func(pprofile.Profiles) ([]byte, error) { return nil, errors.New("broken") },
		"not a protobuf message":              func(pprofile.Profiles) ([]byte, error) { return []byte("\x08\x01"), nil },
	} {
		cfg := newConfig(t)
		e, _, _ := observed(t, cfg)
		e.marshaler = marshaler
		require.NoError(t, e.start(t.Context(), nil))
		err := e.consume(t.Context(), pprofile.NewProfiles())
		assert.True(t, consumererror.IsPermanent(err))
		require.ErrorContains(t, err, want)
		require.NoError(t, e.shutdown(t.Context()))
		require.NoError(t, e.shutdown(t.Context()))
		assert.Empty(t, list(t, cfg.Directory))
	}
}

// No reader opens such a record.
func TestDeepValuesAreRejected_E15(t *testing.T) {
	pd := profiletest.Small(t)
	v := pd.ResourceProfiles().At(0).Resource().Attributes().PutEmpty("deep")
	for range dictionary.MaxDepth + 1 {
		v = v.SetEmptySlice().AppendEmpty()
	}
	cfg := newConfig(t)
	e, _ := startExporter(t, cfg)
	err := e.ConsumeProfiles(t.Context(), pd)
	require.ErrorContains(t, err, `resource_profiles[0].resource: attribute "deep" nests deeper than 64 levels`)
	assert.True(t, consumererror.IsPermanent(err))
	profiletest.Injected(t, "1 values nested too deep")
	require.NoError(t, e.Shutdown(t.Context()))
	assert.Empty(t, list(t, cfg.Directory))
}

func TestLifecycle(t *testing.T) {
	forEachWay(t, func(t *testing.T, cfg *Config) {
		cfg.RetryOnFailure.Enabled = false
		e, _ := newExporter(t, cfg)
		require.ErrorContains(t, e.ConsumeProfiles(t.Context(), pprofile.NewProfiles()), "not started")
		require.NoError(t, e.Shutdown(t.Context()), "before a start")
		assert.NoDirExists(t, cfg.Directory)
		e, _ = newExporter(t, cfg)

		require.NoError(t, os.WriteFile(cfg.Directory, nil, 0o600))
		err := e.Start(t.Context(), componenttest.NewNopHost())
		require.ErrorContains(t, err, cfg.Directory)
		require.NoError(t, e.Shutdown(t.Context()), "after a start that failed")
		require.NoError(t, os.Remove(cfg.Directory))

		for range 3 { // reloads
			e, _ = newExporter(t, cfg)
			require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
			require.NoError(t, e.ConsumeProfiles(t.Context(), pprofile.NewProfiles()), "it is a record, too")
			require.NoError(t, e.Shutdown(t.Context()))
			require.ErrorIs(t, e.ConsumeProfiles(t.Context(), pprofile.NewProfiles()), store.ErrClosed)
		}
		assert.Len(t, closedIn(t, cfg.Directory), 3)
	})
}

// TestFileIsClosedByAge: without another record, and its log line.
func TestFileIsClosedByAge(t *testing.T) {
	cfg := newConfig(t)
	t.Chdir(filepath.Dir(cfg.Directory))
	absolute := cfg.Directory
	cfg.Directory = filepath.Base(absolute)
	inBubble(t, func(t *testing.T) {
		e, logs := newExporter(t, cfg)
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		started := logs.TakeAll()
		require.Len(t, started, 1)
		assert.Equal(t, zapcore.InfoLevel, started[0].Level)
		assert.Equal(t, "Writing profiles to files", started[0].Message)
		assert.Equal(t, map[string]any{"directory": absolute, "format": "proto"}, started[0].ContextMap())
		pd := typed(t, []string{"a", "b"}, "cpu", "heap")
		for range 3 {
			require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		require.True(t, strings.HasSuffix(list(t, cfg.Directory)[0], ".partial"))
		assert.Zero(t, logs.Len(), "no line for each record")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		name := closedIn(t, cfg.Directory)[0].Path
		assert.True(t, strings.HasPrefix(name, "2000/01/01/00/20000101T000000.000Z-") && strings.HasSuffix(name, ".19700101T000000Z-20000101T000000Z.otlp.pb.zst"), name)
		require.Equal(t, 1, logs.Len())
		line := logs.All()[0]
		assert.Equal(t, zapcore.InfoLevel, line.Level)
		assert.Equal(t, "Closed file", line.Message)
		info, err := os.Stat(filepath.Join(cfg.Directory, name))
		require.NoError(t, err)
		fields := line.ContextMap()
		assert.Positive(t, fields["uncompressed_bytes"])
		assert.Less(t, fields["bytes"], info.Size(), "the index is no record")
		delete(fields, "uncompressed_bytes")
		delete(fields, "bytes")
		assert.Equal(t, map[string]any{
			"path": filepath.Join(absolute, name), "reason": "age", "records": int64(2), // one for each profile type
			"profiles": int64(12), "samples": int64(12),
			"services": []any{"a", "b"}, "profile_types": []any{"cpu", "heap"}, "sample_types": []any{"cpu"},
		}, fields)
		require.NoError(t, e.Shutdown(t.Context()))
	})
}
