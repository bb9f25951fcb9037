// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// clock is a clock that only tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 10, 23, 30, 123e6, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestWriteAndRead(t *testing.T) {
	const size = 200
	forEachFormat(t, func(t *testing.T, format Format) {
		dir := filepath.Join(t.TempDir(), "made", "too")
		var finished []ClosedFile
		w := openTestWriter(t, dir, Options{
			Format: format, Now: newClock().Now, FileClosed: func(f ClosedFile) { finished = append(finished, f) },
		})
		assert.Empty(t, list(t, dir), "no file without a record")
		raw := int64(0)
		for id := 1; id <= 5; id++ {
			record := newRecord(format.Content, id, size)
			raw += int64(len(record))
			require.NoError(t, w.Append(Record{Data: record, Samples: 10 * id, Summaries: []Summary{{Total: Total{Profiles: 2}}}}))
		}
		{
			name := "profiles-20261121T102330.123Z-000001." + formatName(format)
			require.Equal(t, []string{name + ".partial"}, list(t, dir))
			// What is being written can be read already.
			assert.Equal(t, []int{1, 2, 3, 4, 5}, readFile(t, filepath.Join(dir, name+".partial"), format.Content, size))
			require.NoError(t, w.Close())
			require.Equal(t, []string{name, name + IndexSuffix}, list(t, dir))
			info, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			assert.Equal(t, []ClosedFile{{
				Path: filepath.Join(dir, name), Reason: ByShutdown, Records: 5, Profiles: 10, Samples: 150, Size: info.Size(), Raw: raw,
			}}, finished)
		}
		require.NoError(t, w.Close())
		assert.Equal(t, []int{1, 2, 3, 4, 5}, readAll(t, dir, size))
		assert.Equal(t, ErrClosed, w.Append(plainRecord(format.Content, 1, size)))
		w.Tick()
		require.NoError(t, w.Close(), "closing again does nothing")
	})
}

// TestClosedFileNamesWhatIsInIt: each name once, and not all of many.
func TestClosedFileNamesWhatIsInIt(t *testing.T) {
	var f ClosedFile
	for i := range 30 {
		f.add(Record{Summaries: []Summary{
			{Key: Key{Service: fmt.Sprint("service-", i), Type: "cpu", SampleType: "samples"}},
			{Key: Key{Service: fmt.Sprint("service-", i), SampleType: "cpu"}},
		}}, 1)
	}
	assert.Len(t, f.Services, 20)
	assert.Equal(t, []string{"cpu"}, f.ProfileTypes)
	assert.Equal(t, []string{"samples", "cpu"}, f.SampleTypes)
}

func TestNoFileWithoutARecord(t *testing.T) {
	forEachFormat(t, func(t *testing.T, format Format) {
		dir := t.TempDir()
		w := openTestWriter(t, dir, Options{Format: format, Levels: 2})
		w.Tick()
		for _, record := range [][]byte{nil, {}, []byte("\n"), []byte("{\n}"), []byte("\x08\x01"), []byte("\x0a\x05abc"), []byte("text")} {
			require.ErrorIs(t, w.Append(Record{Data: record}), ErrInvalidRecord, "%q", record)
			require.ErrorIs(t, w.Append(Record{Data: record, Group: []string{"a"}}), ErrInvalidRecord, "%q", record)
		}
		for _, name := range []string{"", "..", "a/b", "/"} {
			require.ErrorIs(t, w.Append(plainRecord(format.Content, 1, 1, "a", name)), ErrInvalidRecord, name)
		}
		require.NoError(t, w.Close())
		assert.Empty(t, list(t, dir))
	})
}

func TestRotationOfFiles_E13(t *testing.T) {
	const size = 100
	format := allFormats[0]
	length := int64(len(newRecord(format.Content, 1, size)) + 4)
	for name, tt := range map[string]struct {
		rotation Rotation
		sizes    []int // of the records, in multiples of size
		want     [][]int
		reason   Reason
	}{
		"records":                         {Rotation{MaxRecords: 2}, []int{1, 1, 1, 1, 1}, [][]int{{1, 2}, {3, 4}, {5}}, ByRecords},
		"size, exactly":                   {Rotation{MaxSize: 2 * length}, []int{1, 1, 1, 1, 1}, [][]int{{1, 2}, {3, 4}, {5}}, BySize},
		"size, not quite":                 {Rotation{MaxSize: 2*length - 1}, []int{1, 1, 1}, [][]int{{1}, {2}, {3}}, BySize},
		"E13 a record larger than a file": {Rotation{MaxSize: 2 * length}, []int{1, 9, 1, 1}, [][]int{{1}, {2}, {3, 4}}, BySize},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var finished []ClosedFile
			w := openTestWriter(t, dir, Options{
				Format: format, Rotation: tt.rotation, FileClosed: func(f ClosedFile) { finished = append(finished, f) },
			})
			for i, n := range tt.sizes {
				require.NoError(t, w.Append(plainRecord(format.Content, i+1, n*size)))
			}
			require.NoError(t, w.Close())
			var got [][]int
			for i, name := range list(t, dir) {
				assert.Equal(t, filepath.Join(dir, name), finished[i].Path)
				if i < len(finished)-1 {
					assert.Equal(t, tt.reason, finished[i].Reason)
				}
				got = append(got, readFile(t, filepath.Join(dir, name), format.Content, -1))
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestAgeNeedsNoRecord(t *testing.T) {
	format := allFormats[2]
	dir := t.TempDir()
	clock := newClock()
	w := openTestWriter(t, dir, Options{Format: format, Rotation: Rotation{MaxAge: time.Minute}, Now: clock.Now})
	require.NoError(t, w.Append(plainRecord(format.Content, 1, 10)))
	clock.step(59 * time.Second)
	require.NoError(t, w.Append(plainRecord(format.Content, 2, 10)))
	w.Tick()
	assert.Equal(t, []string{"profiles-20261121T102330.123Z-000001.otlp.pb.zst.partial"}, list(t, dir))
	clock.step(time.Second)
	w.Tick()
	assert.Equal(t, []string{"profiles-20261121T102330.123Z-000001.otlp.pb.zst"}, list(t, dir))
	clock.step(time.Hour)
	w.Tick()
	assert.Len(t, list(t, dir), 1, "no file without a record")
	clock.step(-24 * time.Hour)
	require.NoError(t, w.Append(plainRecord(format.Content, 3, 10)))
	w.Tick()
	assert.Equal(t, "profiles-20261121T102330.123Z-000002.otlp.pb.zst.partial", list(t, dir)[1])
	clock.step(time.Minute)
	require.NoError(t, w.Append(plainRecord(format.Content, 4, 10)), "Append rotates by age, too")
	require.NoError(t, w.Close())
	assert.Len(t, list(t, dir), 3)
	assert.Equal(t, []int{1, 2, 3, 4}, readAll(t, dir, 10))
}

// syncs counts what is synced.
type syncs struct{ files, dirs int }

func (s *syncs) add(c call) error {
	switch c.op {
	case "sync":
		s.files++
	case "Sync":
		s.dirs++
	}
	return nil
}

func TestSyncModes(t *testing.T) {
	for _, tt := range []struct {
		sync                               Sync
		first, second, early, late, closed syncs
	}{
		{SyncNone, syncs{}, syncs{}, syncs{}, syncs{}, syncs{1, 1}},
		{SyncInterval, syncs{}, syncs{}, syncs{}, syncs{1, 1}, syncs{1, 2}},
		{SyncRecord, syncs{1, 1}, syncs{2, 1}, syncs{2, 1}, syncs{2, 1}, syncs{2, 2}},
	} {
		t.Run(fmt.Sprint(tt.sync), func(t *testing.T) {
			var count syncs
			f := faults{before: count.add}
			clock := newClock()
			w := openTestWriter(t, t.TempDir(), Options{
				Format: allFormats[2], Sync: tt.sync, SyncInterval: 10 * time.Second, Now: clock.Now, OpenDir: f.openDir,
			})
			require.NoError(t, w.Append(plainRecord(OTLPProto, 1, 10)))
			assert.Equal(t, tt.first, count)
			clock.step(time.Second)
			require.NoError(t, w.Append(plainRecord(OTLPProto, 2, 10)))
			assert.Equal(t, tt.second, count)
			clock.step(7 * time.Second)
			w.Tick()
			assert.Equal(t, tt.early, count, "8 s after the first record")
			clock.step(time.Second)
			w.Tick()
			w.Tick()
			assert.Equal(t, tt.late, count, "9 s after, a later Tick could be too late")
			require.NoError(t, w.Close())
			assert.Equal(t, tt.closed, count)
		})
	}
}

// TestFailedSyncEndsTheFile_E1: after it the system may have dropped data that another sync would not miss.
func TestFailedSyncEndsTheFile_E1(t *testing.T) {
	dir, full := t.TempDir(), false
	f := faults{before: func(c call) error {
		if full && c.op == "sync" {
			return syscall.ENOSPC
		}
		return nil
	}}
	var closed []ClosedFile
	w := openTestWriter(t, dir, Options{
		Format: allFormats[0], Sync: SyncRecord, FileClosed: func(f ClosedFile) { closed = append(closed, f) },
		OpenDir: f.openDir,
		Failed:  func(err error) { require.ErrorIs(t, err, syscall.ENOSPC) },
	})
	for id := 1; id <= 3; id++ {
		full = id == 2
		err := w.Append(plainRecord(OTLPProto, id, 10))
		require.Equal(t, full, errors.Is(err, syscall.ENOSPC))
	}
	require.NoError(t, w.Close())
	require.Len(t, closed, 2)
	assert.Equal(t, ByError, closed[0].Reason)
	read := readAll(t, dir, 10)
	assert.Equal(t, []int{1, 3}, read)
	profiletest.Account(t, "1 failed sync", 2, len(read), 0)
}

// TestChangedByOthers_E6 changes files and directories under a Writer.
func TestChangedByOthers_E6(t *testing.T) {
	const size = 50
	for name, tt := range map[string]struct {
		change   func(t *testing.T, dir, partial string)
		readable []int // in the directory, of 1 and 2 before the change, 3 and 4 behind it
	}{
		"file deleted": {func(t *testing.T, _, partial string) { require.NoError(t, os.Remove(partial)) }, []int{3, 4}},
		"file moved": {func(t *testing.T, dir, partial string) {
			require.NoError(t, os.Rename(partial, filepath.Join(dir, "other")))
		}, []int{3, 4}},
		"file cut": {func(t *testing.T, _, partial string) { require.NoError(t, os.Truncate(partial, 0)) }, []int{3, 4}},
		"file replaced": {func(t *testing.T, _, partial string) {
			require.NoError(t, os.Remove(partial))
			require.NoError(t, os.WriteFile(partial, []byte("someone else's"), 0o600))
		}, []int{3, 4}},
		"file written to": {func(t *testing.T, _, partial string) {
			f, err := os.OpenFile(partial, os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteString("someone else's")
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}, []int{3, 4}},
		"file chmod":        {func(t *testing.T, _, partial string) { require.NoError(t, os.Chmod(partial, 0o000)) }, []int{1, 2, 3, 4}},
		"directory removed": {func(t *testing.T, dir, _ string) { require.NoError(t, os.RemoveAll(dir)) }, []int{3, 4}},
		"directory moved":   {func(t *testing.T, dir, _ string) { require.NoError(t, os.Rename(dir, dir+"-moved")) }, []int{3, 4}},
		"directory replaced": {func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Rename(dir, dir+"-moved"))
			require.NoError(t, os.Mkdir(dir, 0o700))
		}, []int{3, 4}},
	} {
		for _, format := range []Format{allFormats[0], allFormats[5]} {
			t.Run(name+" "+formatName(format), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "dir")
				failures, open := 0, descriptors(t)
				w := openTestWriter(t, dir, Options{Format: format, Failed: func(error) { failures++ }})
				for id := 1; id <= 2; id++ {
					require.NoError(t, w.Append(plainRecord(format.Content, id, size)))
				}
				partial := filepath.Join(dir, list(t, dir)[0])
				tt.change(t, dir, partial)
				for id := 3; id <= 4; id++ {
					require.NoError(t, w.Append(plainRecord(format.Content, id, size)))
				}
				if name == "file replaced" {
					data, err := os.ReadFile(partial)
					require.NoError(t, err)
					assert.Equal(t, "someone else's", string(data))
				}
				require.NoError(t, w.Close())
				assert.Equal(t, open, descriptors(t))
				readable := readAll(t, dir, size)
				assert.Equal(t, tt.readable, readable)
				after := slices.DeleteFunc(readable, func(id int) bool { return id < 3 })
				profiletest.Account(t, "1 changes by others", 2, len(after), 0)
				assert.Equal(t, name != "file chmod", failures > 0)
				if name == "directory moved" || name == "directory replaced" {
					assert.Equal(t, []int{1, 2}, readAll(t, dir+"-moved", size), "finished where it is")
				}
			})
		}
	}
}

// TestRestarts_E5: nothing that exists is changed by 100 restarts.
func TestRestarts_E5(t *testing.T) {
	const size = 50
	dir := t.TempDir()
	before := map[string]string{}
	var want []int
	for round := range profiletest.Rounds(t, 100, 100) {
		format := allFormats[round%len(allFormats)]
		// Without a moving clock the names are the same again and again.
		w := openTestWriter(t, dir, Options{Format: format, Now: newClock().Now})
		require.NoError(t, w.Append(plainRecord(format.Content, round, size)))
		require.NoError(t, w.Close())
		want = append(want, round)
		for _, name := range list(t, dir) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			if old, known := before[name]; known {
				require.Equal(t, old, string(data), name)
			}
			before[name] = string(data)
		}
		require.Len(t, before, round+1)
	}
	got := readAll(t, dir, size)
	assert.ElementsMatch(t, want, got)
	profiletest.Account(t, fmt.Sprintf("%d restarts", len(want)), len(want), len(got), 0)
}

// TestManyWriters_E7: 16 goroutines of 2 Writers in one directory, many rotations, a
// clock that goes back, and a reader of what is finished.
func TestManyWriters_E7(t *testing.T) {
	const size = 100
	each := profiletest.Rounds(t, 50, 250) // of each goroutine: 1,000 files
	forEachFormat(t, func(t *testing.T, format Format) {
		t.Parallel()
		dir := t.TempDir()
		clock := newClock()
		var mu sync.Mutex
		finished := 0
		open := func() *Writer {
			return openTestWriter(t, dir, Options{
				Format: format, Rotation: Rotation{MaxRecords: 4}, Now: clock.Now,
				FileClosed: func(ClosedFile) { mu.Lock(); finished++; mu.Unlock() },
				OpenDir:    (&faults{noSync: true}).openDir,
			})
		}
		writers := []*Writer{open(), open()}
		stop := make(chan struct{})
		var reading, writing sync.WaitGroup
		steps := 0
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					clock.step(-time.Millisecond)
					steps++
					writers[0].Tick()
					for _, name := range list(t, dir) {
						if parsed, ok := ParseName(name); ok && !parsed.Partial && rand.IntN(50) == 0 {
							assert.NotEmpty(t, readFile(t, filepath.Join(dir, name), format.Content, size))
						}
					}
				}
			}
		})
		want := []int{}
		for g := range 16 {
			for i := range each {
				want = append(want, g*each+i)
			}
			writing.Go(func() {
				for i := range each {
					assert.NoError(t, writers[g%2].Append(plainRecord(format.Content, g*each+i, size)))
				}
			})
		}
		writing.Wait()
		close(stop)
		reading.Wait()
		for _, w := range writers {
			require.NoError(t, w.Close())
		}
		got := readAll(t, dir, size)
		slices.Sort(got)
		assert.Equal(t, want, got, "each record once")
		assert.Len(t, list(t, dir), finished)
		assert.GreaterOrEqual(t, finished, 16*each/4)
		testWithTool(t, dir, format.Compression)
		profiletest.Account(t, fmt.Sprintf("%d rotations of 2 writers by 16 goroutines, %d steps back of the clock", finished, steps), len(want), len(got), 0)
	})
}

// testWithTool lets the compressor's own tool check all files.
func testWithTool(t *testing.T, dir string, compression Compression) {
	tool := map[Compression]string{Gzip: "gzip", Zstd: "zstd"}[compression]
	if tool == "" {
		return
	}
	t.Run(tool+" -t", func(t *testing.T) {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("%s is not installed", tool)
		}
		args := []string{"-t"}
		for _, name := range list(t, dir) {
			args = append(args, filepath.Join(dir, name))
		}
		out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
		require.NoError(t, err, string(out))
	})
}
