// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// BenchmarkHistory makes a flame graph of one of eight services, each with 120 windows of CPU and heap an hour: over 24 hours of
// plain files, of a file that compaction made of the same windows, and of seven such files (161,280 windows of CPU). Cold is the first
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
			files, stats, peak := []archive.File(nil), &archive.Stats{}, uint64(0)
			graph := func() time.Duration {
				start := time.Now()
				if files == nil {
					var failed []error
					files, failed = archive.Find([]string{run.directory})
					require.Empty(b, failed)
				}
				s := &query.Source{Files: files, Options: archive.Options{MaxMemory: 512 << 20, Stats: stats}, Failed: func(err error) error { return err }}
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
				files = nil
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
			b.ReportMetric(float64(stats.Bytes.Load())/1e6/float64(len(colds)+len(warms)), "read-MB")
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

// writeDay writes the files of a day, of a minute each, as the exporter does behind a window of 30 seconds. Each sixth of the day has
// the same windows.
func writeDay(b *testing.B, directory string) {
	const windowLength, distinct = 30 * time.Second, 4 * time.Hour
	now := historyBegin
	w, err := recordfile.OpenWriter(recordfile.Options{
		Directory: directory, Format: recordfile.Format{Content: recordfile.OTLPProto, Compression: recordfile.Zstd}, MaxOpen: 1,
		Rotation: recordfile.Rotation{MaxRecords: 2}, Now: func() time.Time { return now }, Failed: func(err error) { require.NoError(b, err) },
	})
	require.NoError(b, err)
	var programs []*program
	for seed := range uint64(8) {
		programs = append(programs, newProgram(seed, 2000, 500))
	}
	options := &merge.Options{SlotLength: windowLength, Snapshots: merge.SnapshotsKeep, SnapshotSampleTypes: sampletypes.SnapshotSampleTypes}
	var windows [][]byte
	for at := historyBegin; at.Before(historyBegin.Add(distinct)); at = at.Add(windowLength) {
		window := merge.NewWindow(options)
		for i, p := range programs {
			for _, heap := range []bool{false, true} {
				payload, err := merge.Check(p.window(b, 100, heap, at.Add(time.Duration(i)*time.Second)), options)
				require.NoError(b, err)
				require.NoError(b, window.Add(payload))
			}
		}
		windows = append(windows, profiletest.Proto(b, window.Emit("")))
	}
	for ; now.Before(historyBegin.Add(24 * time.Hour)); now = now.Add(windowLength) {
		since := now.Sub(historyBegin)
		pd := profiletest.Unmarshal(b, windows[int(since/windowLength)%len(windows)])
		for p := range sampletypes.ProfilesOf(pd) {
			p.SetTime(p.Time() + pcommon.Timestamp(since.Truncate(distinct)))
		}
		record, err := archive.Marshal(&pprofile.ProtoMarshaler{}, pd)
		require.NoError(b, err)
		require.NoError(b, w.Append(record))
	}
	require.NoError(b, w.Close())
}

// compactDay makes a file of a day in another directory.
func compactDay(b *testing.B, plain, compacted string) time.Duration {
	names, err := os.ReadDir(plain)
	require.NoError(b, err)
	for _, entry := range names {
		require.NoError(b, os.Link(filepath.Join(plain, entry.Name()), filepath.Join(compacted, entry.Name())))
	}
	now := historyBegin.Add(48 * time.Hour)
	options := compact.Options{
		Directory: compacted, Format: recordfile.Format{Content: recordfile.OTLPProto, Compression: recordfile.Zstd}, MaxMemory: 64 << 20,
		Into:      []compact.Level{{Into: time.Hour, Resolution: time.Minute}, {Into: 24 * time.Hour, Resolution: 10 * time.Minute}},
		Compacted: func(compact.Result) {}, Skipped: func(paths []string, err error) { require.NoError(b, err, paths) },
		Now: func() time.Time { return now },
	}
	compactor, start := compact.New(options), time.Now()
	for range 6 { // makes the hours, removes the minutes and their manifests, makes the day
		require.NoError(b, compactor.Run(b.Context()))
		now = now.Add(2 * time.Minute)
	}
	took := time.Since(start)
	files, failed := archive.Find([]string{compacted})
	require.Empty(b, failed)
	require.Len(b, files, 1)
	return took
}

// repeatDay puts the files of a directory into another one, so many times.
func repeatDay(b *testing.B, day, into string, times int) {
	files, err := os.ReadDir(day)
	require.NoError(b, err)
	for n := range times {
		require.NoError(b, os.Mkdir(filepath.Join(into, strconv.Itoa(n)), 0o700))
		for _, file := range files {
			require.NoError(b, os.Link(filepath.Join(day, file.Name()), filepath.Join(into, strconv.Itoa(n), file.Name())))
		}
	}
}

// sizeOf is that of all files.
func sizeOf(b *testing.B, directory string) (size int64) {
	files, failed := archive.Find([]string{directory})
	require.Empty(b, failed)
	for _, f := range files {
		size += f.Size
	}
	return size
}
