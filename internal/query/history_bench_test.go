// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// BenchmarkHistory makes a flame graph of one of eight services, each with 120 windows of CPU and heap an hour: over 24 hours of
// plain files, of a file that compaction made of the same windows, and of seven such files (161,280 windows of CPU). Each service has a group. Cold is the first
// query of a process that has listed nothing, apart from the cache of the operating system; warm is one that has the list.
func BenchmarkHistory(b *testing.B) {
	plain, compacted, week := b.TempDir(), b.TempDir(), b.TempDir()
	writeDay(b, plain)
	took := compactDay(b, plain, compacted)
	repeatDay(b, compacted, week, 7)
	b.Run("compact/24h", func(b *testing.B) {
		for b.Loop() { // it was done once
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(took.Seconds(), "s")
		b.ReportMetric(float64(sizeOf(b, plain))/1e6, "MB-before")
		b.ReportMetric(float64(sizeOf(b, compacted))/1e6, "MB-after")
	})
	for _, run := range []struct{ name, directory string }{{"plain/24h", plain}, {"compacted/24h", compacted}, {"compacted/7d", week}} {
		b.Run(run.name, func(b *testing.B) {
			var opened *store.Store
			peak := uint64(0)
			graph := func() time.Duration {
				start := time.Now()
				if opened == nil {
					var err error
					opened, err = store.Open(run.directory, store.ReadOptions{MaxRecord: 64 << 20, MaxDecoded: 128 << 20, Cache: 64 << 20})
					require.NoError(b, err)
				}
				s := &query.Source{
					Stores: []query.Lister{opened}, Options: archive.Options{MaxMemory: 512 << 20}, Failed: func(err error) error { return err },
				}
				result, err := s.Merge(context.Background(), &query.Selection{
					Services: []string{"service-3"}, Types: []string{"process_cpu:cpu:nanoseconds:cpu:nanoseconds"}, From: historyBegin, To: historyBegin.Add(24 * time.Hour),
				}, true)
				require.NoError(b, err)
				p, err := result.Pprof(b.Context())
				require.NoError(b, err)
				require.Greater(b, len(p.Sample), 1000)
				return time.Since(start)
			}
			var colds, warms []time.Duration
			for b.Loop() {
				opened = nil
				runtime.GC()
				stop := watchHeap(&peak)
				colds = append(colds, graph())
				stop()
				if run.directory != plain { // it takes long enough
					warms = append(warms, graph())
				}
			}
			slices.Sort(colds)
			slices.Sort(warms)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(colds[len(colds)/2].Seconds()*1000, "cold-ms")
			if len(warms) > 0 {
				b.ReportMetric(warms[len(warms)/2].Seconds()*1000, "warm-ms")
			}
			b.ReportMetric(float64(peak)/1e6, "peak-heap-MB")
		})
	}
}

var historyBegin = time.Date(2026, 11, 9, 0, 0, 0, 0, time.UTC)

// watchHeap raises peak to the largest heap until stop is called.
func watchHeap(peak *uint64) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			*peak = max(*peak, m.HeapAlloc)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() { close(done); <-ended }
}

// writeDay writes the files of a day, of ten minutes each, as the exporter does behind a window of 30 seconds. Each sixth of the day has
// the same windows.
func writeDay(b *testing.B, directory string) {
	const windowLength, distinct = 30 * time.Second, 4 * time.Hour
	now := historyBegin
	w, err := store.OpenWriter(store.Options{
		Directory: directory, Format: segment.Proto, MaxOpen: 10, Rotation: store.Rotation{MaxRecords: 20}, Now: func() time.Time { return now },
		Failed: func(err error) { require.NoError(b, err) },
	})
	require.NoError(b, err)
	options := &merge.Options{SlotLength: windowLength, Snapshots: merge.SnapshotsKeep, SnapshotSampleTypes: sampletypes.SnapshotSampleTypes}
	for seed := range uint64(8) {
		p, windows := newProgram(seed, 2000, 500), [][]byte(nil)
		for at := historyBegin; at.Before(historyBegin.Add(distinct)); at = at.Add(windowLength) {
			window := merge.NewWindow(options)
			for _, heap := range []bool{false, true} {
				payload, err := merge.Check(p.window(b, 100, heap, at.Add(time.Duration(seed)*time.Second)), options)
				require.NoError(b, err)
				require.NoError(b, window.Add(payload))
			}
			windows = append(windows, profiletest.Proto(b, window.Emit("")))
		}
		group := []string{layout.GroupDir("service.name", fmt.Sprint("service-", seed))}
		for now = historyBegin; now.Before(historyBegin.Add(24 * time.Hour)); now = now.Add(windowLength) {
			since := now.Sub(historyBegin)
			pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(windows[int(since/windowLength)%len(windows)])
			require.NoError(b, err)
			for p := range sampletypes.ProfilesOf(pd) {
				p.SetTime(p.Time() + pcommon.Timestamp(since.Truncate(distinct)))
			}
			record := store.Record{Group: group}
			pd.MarkReadOnly()
			record.Entry, err = contents.Describe(pd)
			require.NoError(b, err)
			record.Data, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
			require.NoError(b, err)
			require.NoError(b, w.Append(record))
		}
	}
	require.NoError(b, w.Close())
}

// linkFiles links the files of a directory, with the hour or day of their partition, into another one.
func linkFiles(b *testing.B, from, into string, rename func(string) string) (size int64) {
	require.NoError(b, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		info, err := entry.Info()
		require.NoError(b, err)
		size += info.Size()
		if into == "" {
			return nil
		}
		name, err := filepath.Rel(from, path)
		require.NoError(b, err)
		name = filepath.Join(into, rename(name))
		require.NoError(b, os.MkdirAll(filepath.Dir(name), 0o700))
		return os.Link(path, name)
	}))
	return size
}

// compactDay makes a file of a day of each service in another directory.
func compactDay(b *testing.B, plain, compacted string) time.Duration {
	linkFiles(b, plain, compacted, func(name string) string { return name })
	now := historyBegin.Add(48 * time.Hour)
	compactor, start := compact.New(compact.Options{
		Directory: compacted, After: time.Minute, Resolutions: []time.Duration{time.Minute, 10 * time.Minute}, MaxMemory: 64 << 20,
		Compacted: func(compact.Result) {}, Skipped: func(path string, err error) { require.NoError(b, err, path) },
		Damaged: func(path string) { require.Fail(b, path) }, Now: func() time.Time { return now },
	}), time.Now()
	for range 3 { // makes the hours and the day, and removes what they were made of
		require.NoError(b, compactor.Run(b.Context()))
	}
	return time.Since(start)
}

// repeatDay puts the files of a directory into another one, as those of so many days.
func repeatDay(b *testing.B, day, into string, times int) {
	for n := range times {
		linkFiles(b, day, into, func(name string) string {
			return strings.Replace(name, "/11/09_", fmt.Sprintf("/11/%02d_", 9+n), 1)
		})
	}
}

// sizeOf is that of all files.
func sizeOf(b *testing.B, directory string) int64 { return linkFiles(b, directory, "", nil) }
