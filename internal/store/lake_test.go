// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/upload"
)

// lakeFiles are the Parquet files of a directory whose segments exist.
func lakeFiles(t testing.TB, directory string) (committed []lake.File) {
	root, err := layout.OpenDir(directory)
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	files, err := lake.List(root)
	require.NoError(t, err)
	for _, f := range lake.Closed(files) {
		is, err := f.IsCommitted(root)
		require.NoError(t, err)
		if is {
			committed = append(committed, f)
		}
	}
	return committed
}

// readLake adds the values of the samples of all Parquet files by the names of their functions, and those of all processes.
func readLake(t testing.TB, directory string) (counts map[int]int, processes int64) {
	counts = map[int]int{}
	for _, f := range lakeFiles(t, directory) {
		name := filepath.Join(directory, filepath.FromSlash(f.Path))
		if strings.HasPrefix(f.Path, lake.ProcessesDir+"/") {
			rows, err := parquet.ReadFile[lake.Process](name)
			require.NoError(t, err)
			for i := range rows {
				processes += rows[i].Value
			}
			continue
		}
		rows, err := parquet.ReadFile[lake.Sample](name)
		require.NoError(t, err)
		for i := range rows {
			id, err := strconv.Atoi(strings.TrimPrefix(rows[i].Stack[0], "function-"))
			require.NoError(t, err)
			counts[id] += int(rows[i].Value)
		}
	}
	return counts, processes
}

// countSegment adds the values of the records of a segment.
func countSegment(t testing.TB, seg *store.Segment) map[int]int {
	counts := map[int]int{}
	x, err := seg.Index(t.Context())
	require.NoError(t, err)
	for data, err := range seg.Records(t.Context(), x, x.Records) {
		require.NoError(t, err)
		countIDs(t, counts, seg.Format, data)
	}
	return counts
}

// withParquet lets a compactor write Parquet. Partitions without it are in leftOut.
func withParquet(leftOut *[]string, removed *int, retention lake.Retention) func(*compact.Options) {
	return func(o *compact.Options) {
		o.Parquet = &compact.Parquet{
			Retention: retention, Written: func(string, lake.Written) {}, Removed: func(string, int64) { *removed++ },
			LeftOut: func(partition string, _ error) { *leftOut = append(*leftOut, partition) },
		}
	}
}

func TestHoursAreWrittenAsParquet(t *testing.T) {
	d := newDirectory(t)
	d.write(1, 2)
	d.now = begin.Add(70 * time.Minute)
	d.write(3)
	d.now = begin.Add(2 * time.Hour)
	var leftOut []string
	var removed int
	compactor := d.compactor(withParquet(&leftOut, &removed, lake.Retention{}))
	require.NoError(t, compactor.Run(t.Context()))
	counts, processes := readLake(t, d.dir)
	require.Equal(t, once(1, 2), counts)
	require.EqualValues(t, 2, processes)
	files := lakeFiles(t, d.dir)
	require.Len(t, files, 2)
	require.Equal(t, "parquet/service.name=checkout/date=2026-11-20", path.Dir(files[0].Path))
	require.Equal(t, "parquet_processes/service.name=checkout/date=2026-11-20", path.Dir(files[1].Path))
	require.True(t, strings.HasPrefix(path.Base(files[0].Path), "00_"), files[0].Path)
	require.Equal(t, once(1, 2, 3), d.counts(), "readers of the store ignore Parquet")

	// A file that was put back comes too late for its hour, and becomes part of the day.
	d.now = begin.Add(11 * time.Hour)
	d.write(4)
	late := d.now
	d.now = begin.Add(13 * time.Hour)
	require.NoError(t, d.compactor(withParquet(&leftOut, &removed, lake.Retention{})).Run(t.Context()))
	d.now = late
	w := d.open()
	name := newRecord(t, d.format, "checkout", 5, d.now.Add(-time.Second), d.now)
	require.NoError(t, w.Append(name))
	require.NoError(t, w.Close())
	for _, written := range paths(t, d.dir) { // the writer has taken the next hour
		if strings.Contains(written, "/12/") {
			hour := filepath.Join(d.dir, filepath.Dir(filepath.Dir(written)), "11")
			require.NoError(t, os.MkdirAll(hour, 0o700))
			require.NoError(t, os.Rename(filepath.Join(d.dir, written), filepath.Join(hour, filepath.Base(written))))
		}
	}
	d.now = begin.Add(30 * time.Hour)
	require.NoError(t, d.compactor(withParquet(&leftOut, &removed, lake.Retention{})).Run(t.Context()))
	require.Equal(t, [3]int{0, 0, 1}, d.levels())
	counts, processes = readLake(t, d.dir)
	require.Equal(t, once(1, 2, 3, 4, 5), counts)
	require.EqualValues(t, 5, processes)
	require.Empty(t, leftOut)
}

// TestErrorsOfParquet_L1: an hour waits a day for its Parquet files, and is in the store all the time.
func TestErrorsOfParquet_L1(t *testing.T) {
	for _, permanent := range []bool{false, true} {
		d := newDirectory(t)
		d.write(1, 2)
		d.now = begin.Add(2 * time.Hour)
		var leftOut []string
		var removed int
		compactor := d.compactor(withParquet(&leftOut, &removed, lake.Retention{}))
		table := filepath.Join(d.dir, lake.ProcessesDir)
		require.NoError(t, os.WriteFile(table, nil, 0o600)) // where a directory must be
		for range 3 {
			err := compactor.Run(t.Context())
			_, ofParquet := errors.AsType[*lake.Error](err)
			require.True(t, ofParquet, err)
			require.ErrorContains(t, err, "parquet_processes")
			require.Equal(t, [3]int{1, 0, 0}, d.levels())
			require.Equal(t, once(1, 2), d.counts())
			require.Empty(t, lakeFiles(t, d.dir))
			d.now = d.now.Add(time.Hour)
		}
		want, levels := once(), [3]int{0, 1, 0}
		if permanent {
			d.now, levels = begin.Add(26*time.Hour), [3]int{0, 0, 1}
		} else {
			require.NoError(t, os.Remove(table))
			want = once(1, 2)
		}
		require.NoError(t, compactor.Run(t.Context()))
		require.Equal(t, levels, d.levels())
		require.Equal(t, once(1, 2), d.counts())
		require.Len(t, leftOut, map[bool]int{false: 0, true: 1}[permanent])
		if permanent {
			require.NoError(t, os.Remove(table))
		}
		counts, _ := readLake(t, d.dir)
		require.Equal(t, want, counts)
	}
}

// TestAFullDiskLeavesNoParquet_L1: what was begun is removed.
func TestAFullDiskLeavesNoParquet_L1(t *testing.T) {
	d := newDirectory(t)
	d.write(1, 2)
	d.now = begin.Add(2 * time.Hour)
	var leftOut []string
	var removed int
	for at := range 12 { // the calls that write
		calls := 0
		d.process.before = func(call string) error {
			if call != "WriteAt" {
				return nil
			}
			if calls++; calls > at {
				return syscall.ENOSPC
			}
			return nil
		}
		if d.compactor(withParquet(&leftOut, &removed, lake.Retention{})).Run(t.Context()) == nil {
			require.Positive(t, at)
			break
		}
		for _, name := range paths(t, d.dir) {
			_, ofStore := layout.ParsePath(name)
			_, ofLake := lake.ParsePath(name)
			require.True(t, ofStore || ofLake, name)
		}
		require.Equal(t, [3]int{1, 0, 0}, d.levels())
	}
	d.process.before = nil
	require.NoError(t, d.compactor(withParquet(&leftOut, &removed, lake.Retention{})).Run(t.Context()))
	counts, _ := readLake(t, d.dir)
	require.Equal(t, once(1, 2), counts)
}

func TestRetentionOfParquet(t *testing.T) {
	for name, limit := range map[string]func(size int64) lake.Retention{
		"age":  func(int64) lake.Retention { return lake.Retention{MaxAge: 30 * time.Hour} },
		"size": func(size int64) lake.Retention { return lake.Retention{MaxTotalSize: size * 2 / 3} },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory(t)
			var leftOut []string
			var removed int
			for day := range 3 {
				d.now = begin.Add(time.Duration(day)*24*time.Hour + 10*time.Minute)
				d.write(day)
				d.now = d.now.Add(2 * time.Hour)
				require.NoError(t, d.compactor(withParquet(&leftOut, &removed, lake.Retention{})).Run(t.Context()))
			}
			size := int64(0)
			for _, f := range lakeFiles(t, d.dir) {
				size += f.Size
			}
			d.now = begin.Add(60 * time.Hour)
			require.NoError(t, d.compactor(withParquet(&leftOut, &removed, limit(size))).Run(t.Context()))
			counts, _ := readLake(t, d.dir)
			require.Equal(t, once(1, 2), counts)
			assert.Equal(t, 2, removed)
			_, err := os.Lstat(filepath.Join(d.dir, lake.Dir(lake.SamplesDir, "service.name=checkout", begin)))
			require.ErrorIs(t, err, os.ErrNotExist, "the directory of the day")
			require.Equal(t, once(0, 1, 2), d.counts())
		})
	}
}

// TestParquetIsUploadedOnceItsSegmentExists_L1: a file leaves the directory when the bucket has it, also if a response is lost, and old objects are
// removed. Before the segment has its name, the file may be made again.
func TestParquetIsUploadedOnceItsSegmentExists_L1(t *testing.T) {
	server := s3test.New(t)
	var lost atomic.Int64
	server.Lost = func(r *http.Request) bool { return r.Method == http.MethodPut && lost.Add(-1) == 0 }
	d := newDirectory(t)
	d.write(1, 2)
	d.now = begin.Add(2 * time.Hour)
	var leftOut []string
	var removed, uploads int
	u, failed := d.uploader(server, func(o *upload.Options) {
		o.Parquet = &upload.Parquet{MaxAge: 48 * time.Hour, Uploaded: func(string, int64) { uploads++ }}
		o.Concurrency = 1
	})
	tables := func() (n int) {
		for key := range server.Objects() {
			if _, ok := lake.ParsePath(strings.TrimPrefix(key, "prod/")); ok {
				n++
			}
		}
		return n
	}
	d.process.before = func(call string) error {
		if strings.HasPrefix(call, "Rename 00_") { // that of the segment, after those of both tables
			return errKilled
		}
		return nil
	}
	require.ErrorIs(t, d.compactor(withParquet(&leftOut, &removed, lake.Retention{})).Run(t.Context()), errKilled)
	require.NoError(t, u.Upload(t.Context()))
	require.Zero(t, tables())
	d.process = &process{}
	d.now = begin.Add(20 * time.Minute)
	d.write(3) // the hour is not compacted yet
	d.now = begin.Add(3 * time.Hour)
	require.NoError(t, d.compactor(withParquet(&leftOut, &removed, lake.Retention{})).Run(t.Context()))
	counts, _ := readLake(t, d.dir)
	require.Equal(t, once(1, 2, 3), counts)
	require.Len(t, lakeFiles(t, d.dir), 2)

	lost.Store(3)
	for range 3 {
		_ = u.Upload(t.Context())
	}
	require.Equal(t, 2, tables())
	require.Equal(t, 2, uploads)
	require.Empty(t, lakeFiles(t, d.dir))
	require.Empty(t, *failed)
	require.Equal(t, once(1, 2, 3), readAll(t, openStore(t, server.Path("prod"))))

	d.now = begin.Add(73 * time.Hour)
	require.NoError(t, u.Upload(t.Context()))
	require.Zero(t, tables())
	require.Equal(t, once(1, 2, 3), readAll(t, openStore(t, server.Path("prod"))), "segments have a retention of their own")
}
