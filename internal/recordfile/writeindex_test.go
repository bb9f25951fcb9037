// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
)

func indexedRecord(content Content, id, size int) Record {
	return Record{Data: newRecord(content, id, size), Summaries: []Summary{
		{Key: Key{Service: "checkout", SampleType: "cpu"}, Total: Total{Start: 10, Latest: 10, End: 20, Profiles: 1, Samples: id, Sum: int64(id)}},
	}}
}

func TestClosedFileHasIndex(t *testing.T) {
	forEachFormat(t, func(t *testing.T, format Format) {
		dir := t.TempDir()
		w := openTestWriter(t, dir, Options{Format: format})
		for id := range 5 {
			require.NoError(t, w.Append(indexedRecord(format.Content, id, 100)))
		}
		require.Len(t, list(t, dir), 1, "there is no index before the file is closed")
		require.NoError(t, w.Close())
		assert.True(t, w.indexes.TryAcquire(maxIndexes))

		names := list(t, dir)
		require.Len(t, names, 2)
		require.Equal(t, names[0]+IndexSuffix, names[1])
		info, err := os.Stat(filepath.Join(dir, names[1]))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		x := parseIndex(t, filepath.Join(dir, names[0]))
		require.Len(t, x.Totals, 1)
		assert.EqualValues(t, 0+1+2+3+4, x.Totals[0].Sum)
		records, err := x.Records()
		require.NoError(t, err)

		r := openReader(t, filepath.Join(dir, names[0]))
		defer r.Close()
		require.Len(t, records, 5)
		for _, got := range records {
			assert.Equal(t, r.Offset(), got.Offset)
			record, err := r.Next()
			require.NoError(t, err)
			id, _ := recordID(format.Content, record, 0)
			assert.Equal(t, int64(id), got.Summaries[0].Sum)
			assert.Equal(t, r.Offset(), got.Offset+got.Length)
		}
	})
}

// parseIndex reads the index of a file.
func parseIndex(t *testing.T, path string) *Index {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	data, err := os.ReadFile(path + IndexSuffix)
	require.NoError(t, err)
	x, err := ParseIndex(data, info.Size(), 1<<20)
	require.NoError(t, err)
	return x
}

// TestFilesWithoutIndex: a crash before or after a file got its name leaves none, and so does a record without summaries.
func TestFilesWithoutIndex(t *testing.T) {
	dir := t.TempDir()
	format := allFormats[2]
	name := Name{Sequence: 1, Format: format, Partial: true}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name.String()), fileOf(t, format, 3, 100), 0o600))
	w := openTestWriter(t, dir, Options{Format: format, Rotation: Rotation{MaxRecords: 3}})
	for _, record := range []Record{
		indexedRecord(OTLPProto, 4, 100), plainRecord(OTLPProto, 5, 100), indexedRecord(OTLPProto, 6, 100), indexedRecord(OTLPProto, 7, 100),
	} {
		require.NoError(t, w.Append(record))
	}
	require.NoError(t, w.Close())
	assert.True(t, w.indexes.TryAcquire(maxIndexes))
	names := list(t, dir)
	require.Len(t, names, 4, "three files and the index of one")
	assert.Equal(t, names[2]+IndexSuffix, names[3])
	assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7}, readAll(t, dir, 100))
}

// TestIndexThatCannotBeWrittenFailsNoRecord lets each call fail that the index takes.
func TestIndexThatCannotBeWrittenFailsNoRecord(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		f := &faults{}
		closing := false
		var failed, indexFailed []error
		w, err := openWriter(dir, Options{
			Format: allFormats[0], OpenDir: f.openDir, Failed: func(err error) { failed = append(failed, err) },
			FileClosed: func(f ClosedFile) {
				closing = false
				if f.IndexError != nil {
					indexFailed = append(indexFailed, f.IndexError)
				}
			},
		})
		require.NoError(t, err)
		require.NoError(t, w.Append(indexedRecord(OTLPProto, 1, 100)))
		calls := 0
		f.before = func(call) error {
			if entries, err := filepath.Glob(filepath.Join(dir, "*.pb")); err == nil && len(entries) == 1 && closing {
				if calls++; calls == n {
					return syscall.ENOSPC
				}
			}
			return nil
		}
		closing = true
		err = w.Close()
		f.before = nil
		if n == 1 {
			require.ErrorIs(t, err, syscall.ENOSPC, "the sync of the directory comes first, and is not of the index")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, []int{1}, readAll(t, dir, 100))
		assert.True(t, w.indexes.TryAcquire(maxIndexes))
		for _, err := range indexFailed {
			assert.ErrorIs(t, err, syscall.ENOSPC)
			assert.ErrorContains(t, err, ".pb.index")
		}
		if len(indexFailed) > 0 {
			assert.Empty(t, failed)
			assert.Len(t, list(t, dir), 1, "nothing is left of the index")
		}
		if calls < n {
			assert.Greater(t, n, 3)
			return
		}
	}
}

// TestRetentionCountsAndRemovesIndexes: they are a part of their files' sizes. One without a file is removed.
func TestRetentionCountsAndRemovesIndexes(t *testing.T) {
	dir, now, removed := t.TempDir(), time.Unix(1_700_000_000, 0), int64(0)
	w := openTestWriter(t, dir, Options{
		Format: allFormats[0], Levels: 1, Rotation: Rotation{MaxRecords: 1}, MaxOpen: 2, Now: func() time.Time { return now },
		FileRemoved: func(_ string, size int64) { removed += size },
	})
	for id, group := range [][]string{{"a"}, nil, nil, nil} {
		record := indexedRecord(OTLPProto, id, 100)
		record.Group = group
		require.NoError(t, w.Append(record))
		now = now.Add(time.Second)
	}
	total := func() (size int64) {
		require.NoError(t, filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
			require.NoError(t, err)
			if info, err := entry.Info(); err == nil && !entry.IsDir() {
				size += info.Size()
			}
			return nil
		}))
		return size
	}
	before := total()
	w.options.Retention.MaxTotalSize = before * 3 / 4
	orphan := strings.Replace(list(t, dir)[2], "20231114", "20221114", 1)
	for _, name := range []string{orphan, "notes.index"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	w.Maintain()
	assert.Equal(t, before-removed, total())
	names := list(t, dir)
	require.Len(t, names, 7, "three files, their indexes and the file of another name: %v", names)
	assert.Equal(t, "notes.index", names[0])
	for i := 1; i < len(names); i += 2 {
		assert.Equal(t, names[i]+IndexSuffix, names[i+1])
	}
	assert.Equal(t, []int{1, 2, 3}, readAll(t, dir, 100))
}

// TestRecordsOfManyValuesAreKept_A1: whatever the index does, no record takes the place of another one.
func TestRecordsOfManyValuesAreKept_A1(t *testing.T) {
	for name, values := range map[string][]int{
		"8 of 130": {130, 130, 130, 130, 130, 130, 130, 130}, "280 in two": {140, 140}, "a smaller set": {250, 300, 1}, "at once": {500},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := openTestWriter(t, dir, Options{Format: allFormats[2]})
			first, want := 0, []int{}
			for id, n := range values {
				record := indexedRecord(OTLPProto, id+1, 100)
				record.Labels = labelSet("pod", first, n)
				require.NoError(t, w.Append(record))
				first, want = first+n, append(want, id+1)
			}
			require.NoError(t, w.Close())
			assert.Equal(t, want, readAll(t, dir, 100))
			assert.True(t, w.indexes.TryAcquire(maxIndexes))
			names := list(t, dir)
			require.Len(t, names, 2)
			records, err := parseIndex(t, filepath.Join(dir, names[0])).Records()
			require.NoError(t, err)
			assert.Len(t, records, len(values))
		})
	}
}

// TestUsedUpIndexesAreReported: the files of one Writer share the memory for indexes. A file says why its index is missing or incomplete.
func TestUsedUpIndexesAreReported(t *testing.T) {
	dir := t.TempDir()
	var missing, complete atomic.Int64 // files are closed concurrently
	w := openTestWriter(t, dir, Options{Format: allFormats[2], Levels: 1, MaxOpen: 400, OpenDir: (&faults{noSync: true}).openDir, FileClosed: func(f ClosedFile) {
		if f.IndexError != nil {
			assert.ErrorIs(t, f.IndexError, ErrIndexMemory)
			missing.Add(1)
		} else {
			complete.Add(1)
		}
	}})
	const groups = 400
	for id := range groups {
		record := indexedRecord(OTLPProto, id, 100)
		record.Group, record.Labels = []string{fmt.Sprint("g", id)}, labels.NewSet(1<<20)
		for label := range 5 {
			record.Labels.Merge(labelSet(fmt.Sprint("label", label), 0, 200))
		}
		require.NoError(t, w.Append(record))
	}
	require.NoError(t, w.Close())
	assert.Positive(t, missing.Load())
	assert.Greater(t, complete.Load(), int64(200), "what fits is kept")
	assert.EqualValues(t, groups, missing.Load()+complete.Load())
	assert.Len(t, readTree(t, dir, 100), groups)
	assert.True(t, w.indexes.TryAcquire(maxIndexes))
}
