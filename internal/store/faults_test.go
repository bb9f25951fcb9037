// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// TestMoreGroupsThanOpenFiles_A10: a file of each group is written, whatever is open.
func TestMoreGroupsThanOpenFiles_A10(t *testing.T) {
	d := newDirectory(t)
	w := d.open(func(o *store.Options) { o.MaxOpen, o.Sync = 5, store.SyncRecord })
	want := map[int]int{}
	for id := range 40 {
		require.NoError(t, w.Append(newRecord(t, d.format, fmt.Sprint("service-", id%16), id, d.now, d.now)))
		want[id] = 1
		require.LessOrEqual(t, len(d.process.open), 2*(5+1))
	}
	require.Len(t, paths(t, d.dir), 16)
	w.Tick()
	w.CloseDue()
	require.NoError(t, w.Close())
	require.Len(t, paths(t, d.dir), 16)
	require.Equal(t, want, d.counts())
}

func TestGroupsDoNotWaitForEachOthersSync_A10(t *testing.T) {
	d := newDirectory(t)
	w := d.open(func(o *store.Options) { o.MaxOpen, o.Sync = 2, store.SyncRecord })
	syncing, proceed := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	first.Store(true)
	d.process.before = func(call string) error {
		if call == "SyncFile" && first.CompareAndSwap(true, false) {
			d.process.mu.Unlock()
			close(syncing)
			<-proceed
			d.process.mu.Lock()
		}
		return nil
	}
	done := make(chan error)
	slow := newRecord(t, d.format, "slow", 1, d.now, d.now)
	go func() { done <- w.Append(slow) }()
	<-syncing
	for id := 2; id < 10; id++ {
		require.NoError(t, w.Append(newRecord(t, d.format, fmt.Sprint("service-", id), id, d.now, d.now)))
	}
	close(proceed)
	require.NoError(t, <-done)
	require.NoError(t, w.Close())
	require.Len(t, d.counts(), 9)
}

// TestFailingCalls_E1 lets each call of the file system fail, alone, with the next ones, and until the end, and requires that what is
// readable is what was acknowledged, and that nothing fails once the fault is gone.
func TestFailingCalls_E1(t *testing.T) {
	for _, format := range []segment.Format{segment.Proto, segment.JSON} {
		for _, length := range []int{1, 3, math.MaxInt32} {
			stride := 5
			if full, _ := profiletest.Soak(t); full {
				stride = 1
			}
			for from := length % stride; ; from += stride {
				d := newDirectory(t)
				d.format = format
				calls, failed, fails := 0, 0, true
				d.process.before = func(string) error {
					calls++
					if fails && calls > from && calls <= from+length {
						failed++
						return syscall.EIO
					}
					return nil
				}
				options := func(o *store.Options) {
					o.Failed, o.Sync, o.Rotation, o.MaxOpen = func(error) {}, store.SyncRecord, store.Rotation{MaxRecords: 3}, 1
				}
				w, err := store.OpenWriter(store.Options{
					Directory: d.dir, Format: format, OpenDir: d.process.openDir, Now: func() time.Time { return d.now }, Failed: func(error) {},
					Sync: store.SyncRecord, Rotation: store.Rotation{MaxRecords: 3}, MaxOpen: 1,
				})
				if err != nil {
					fails = false
					w = d.open(options)
				}
				want := map[int]int{}
				add := func(id int) error {
					err := w.Append(newRecord(t, format, fmt.Sprint("service-", id/5%2), id, d.now, d.now))
					if err == nil {
						want[id] = 1
					}
					return err
				}
				for id := range 8 {
					if add(id) != nil {
						require.Positive(t, failed)
					}
					if id%3 == 0 {
						w.Tick()
						w.CloseDue()
						w.Maintain()
					}
				}
				fails = false
				w.Maintain()
				for id := 100; id < 104; id++ {
					require.NoError(t, add(id), "the fault is gone")
				}
				w.Tick()
				w.CloseDue()
				require.NoError(t, w.Close(), "the fault is gone")
				require.Equal(t, want, d.counts(), "calls from %d, %d of them, %s", from, length, format)
				for _, name := range paths(t, d.dir) {
					require.False(t, strings.HasSuffix(name, layout.PartialSuffix), "%s is left", name)
				}
				if failed == 0 {
					require.Greater(t, from, 20)
					break
				}
			}
		}
	}
}

func TestAFullDiskCostsTheIndexOnly_E1(t *testing.T) {
	d := newDirectory(t)
	var closed store.ClosedFile
	w := d.open(func(o *store.Options) { o.FileClosed = func(f store.ClosedFile) { closed = f } })
	require.NoError(t, w.Append(newRecord(t, d.format, "checkout", 1, d.now, d.now)))
	d.process.before = func(call string) error {
		if call == "WriteAt" {
			return syscall.ENOSPC
		}
		return nil
	}
	require.NoError(t, w.Close())
	require.ErrorIs(t, closed.IndexError, syscall.ENOSPC)
	require.Equal(t, once(1), d.counts())
	require.Len(t, profiletest.ReadRecords(t, closed.Path), 1)
}

// A file or directory that another process moves or removes costs nothing that comes after.
func TestMovedAndRemovedDirectories_E6(t *testing.T) {
	d := newDirectory(t)
	failures := 0
	w := d.open(func(o *store.Options) { o.Failed = func(error) { failures++ } })
	record := func(id int) store.Record { return newRecord(t, d.format, "checkout", id, d.now, d.now) }
	require.NoError(t, w.Append(record(1)))
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(filepath.Join(d.dir, "service.name=checkout"), moved))
	require.NoError(t, w.Append(record(2)))
	require.Equal(t, once(2), d.counts())
	require.NoError(t, os.RemoveAll(filepath.Join(d.dir, "service.name=checkout")))
	require.NoError(t, w.Append(record(3)))
	require.NoError(t, w.Close())
	require.Equal(t, once(3), d.counts())
	require.GreaterOrEqual(t, failures, 2)
	require.Len(t, paths(t, moved), 1)
}

func TestRecoveryKeepsCompleteRecords(t *testing.T) {
	d := newDirectory(t)
	w := d.open()
	for id := 1; id <= 3; id++ {
		require.NoError(t, w.Append(newRecord(t, d.format, "checkout", id, d.now, d.now)))
	}
	d.process.kill()
	d.process = &process{}
	name := filepath.Join(d.dir, paths(t, d.dir)[0])
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, content[:len(content)-5], 0o600))
	require.Equal(t, once(1, 2), d.counts())
	var recovered store.RecoveredFile
	require.NoError(t, d.open(func(o *store.Options) { o.FileRecovered = func(f store.RecoveredFile) { recovered = f } }).Close())
	require.Equal(t, 2, recovered.Records)
	require.Positive(t, recovered.Truncated)
	require.Equal(t, once(1, 2), d.counts())
	require.True(t, exists(recovered.Path))
}

// A rename links the file under its other name, and then removes the first one.
func TestAKillBetweenTheStepsOfARename(t *testing.T) {
	d := newDirectory(t)
	w := d.open(func(o *store.Options) { o.Failed = func(error) {} })
	require.NoError(t, w.Append(newRecord(t, d.format, "checkout", 1, d.now, d.now)))
	require.NoError(t, w.Append(newRecord(t, d.format, "checkout", 2, time.Time{}, time.Time{})))
	d.process.before = func(call string) error {
		if from, is := strings.CutPrefix(call, "Rename "); is {
			dir := filepath.Join(d.dir, "service.name=checkout/2026/11/20/00")
			to := strings.TrimSuffix(from, ".otlp.pb.zst.partial") + ".19700101T000000Z-20261120T001000Z.otlp.pb.zst"
			require.NoError(t, os.Link(filepath.Join(dir, from), filepath.Join(dir, to)))
			return errKilled
		}
		return nil
	}
	require.Error(t, w.Close())
	require.Len(t, paths(t, d.dir), 2)
	require.Equal(t, once(1, 2), d.counts())
	d.process = &process{}
	d.now = begin.Add(2 * time.Hour) // recovery would give it another name now, as a record has no time
	d.compact()
	require.Equal(t, [3]int{0, 1, 0}, d.levels())
	require.Equal(t, once(1, 2), d.counts())
}

func TestGroupsBeyondTheLimitShareOne(t *testing.T) {
	d := newDirectory(t)
	limit := func(o *store.Options) { o.MaxGroups = 2 }
	for range 2 {
		w := d.open(limit)
		w.Maintain()
		for id := range 5 {
			require.NoError(t, w.Append(newRecord(t, d.format, fmt.Sprint("service-", id), id, d.now, d.now)))
		}
		require.NoError(t, w.Close())
	}
	entries, err := os.ReadDir(d.dir)
	require.NoError(t, err)
	var groups []string
	for _, entry := range entries {
		if entry.IsDir() {
			groups = append(groups, entry.Name())
		}
	}
	require.Equal(t, []string{"service.name=_other", "service.name=service-0", "service.name=service-1"}, groups)
}

// Nothing is opened to be skipped, and only what is since the time is listed.
func TestListingIsInProportionToTheTime(t *testing.T) {
	dir := t.TempDir()
	const services, days = 10, 200
	for service := range services {
		for day := range days {
			at := begin.AddDate(0, 0, -day)
			f := fmt.Sprintf("service.name=s%d/%s_0123456789ab.%s-%s.otlp.pb.zst", service, at.Format(layout.DayPath), at.Format(layout.BoundTime), at.AddDate(0, 0, 1).Format(layout.BoundTime))
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte("not to be opened"), 0o600))
		}
	}
	s := openStore(t, dir)
	segments, err := s.Live(t.Context(), begin.Add(time.Hour), begin.Add(2*time.Hour), func(group string) bool { return group == "service.name=s3" })
	require.NoError(t, err)
	require.Len(t, segments, 1)
	list := func(from time.Time) time.Duration {
		began := time.Now()
		_, err := s.Live(t.Context(), from, begin.AddDate(0, 0, 1), nil)
		require.NoError(t, err)
		return time.Since(began)
	}
	all, last := list(begin.AddDate(-1, 0, 0)), min(list(begin), list(begin))
	t.Logf("a year %v, a day %v", all, last)
	require.Less(t, last, all/2)
}

func TestAppendRejectsWhatNoFileCanHold(t *testing.T) {
	d := newDirectory(t)
	w := d.open()
	for _, record := range []store.Record{
		{}, {Data: []byte("no message")}, {Data: []byte{0x0a, 0}, Group: []string{".."}}, {Data: []byte{0x0a, 0}, Group: []string{"checkout"}},
	} {
		require.ErrorIs(t, w.Append(record), segment.ErrInvalidRecord)
	}
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Append(newRecord(t, d.format, "checkout", 1, d.now, d.now)), store.ErrClosed)
	require.Empty(t, paths(t, d.dir))
}

func TestPanicsOfTheBackgroundAreErrors_A11(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	d.now = begin.Add(2 * time.Hour)
	faulty := true
	c := d.compactor(func(o *compact.Options) {
		o.Compacted = func(compact.Result) {
			if faulty {
				panic("a fault")
			}
		}
	})
	var panicked *panics.Error
	require.ErrorAs(t, c.Run(t.Context()), &panicked)
	require.Contains(t, string(panicked.Stack), "faults_test.go")
	faulty = false
	d.now = d.now.Add(time.Hour)
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, once(1), d.counts())
	require.Equal(t, [3]int{0, 1, 0}, d.levels())
}

// TestAFaultOfOnePartitionDelaysNoOther_L1: it is tried again after 1, 2, 4 minutes and so on, the others as soon as they are due. A fault
// of the store's directory delays all.
func TestAFaultOfOnePartitionDelaysNoOther_L1(t *testing.T) {
	const hour = "service.name=a/2026/11/20/00"
	backoff := []int{0, 1, 3, 7, 15, 31} // minutes
	for name, test := range map[string]struct {
		fails func(call string) error
		tried []int  // minutes
		waits string // the path of partitions that are not compacted
	}{
		"Parquet of a group": {func(call string) error {
			if strings.HasPrefix(call, "OpenDir parquet_processes/service.name=a/") {
				return syscall.EACCES
			}
			return nil
		}, []int{0, 1, 3, 7, 15, 30, 31, 33}, "service.name=a/"}, // the second hour is another partition
		"a group": {func(call string) error {
			if call == "OpenChild service.name=a" {
				return syscall.EACCES
			}
			return nil
		}, backoff, "service.name=a/"},
		"an hour": {func(call string) error {
			if strings.HasPrefix(call, "OpenToRead "+hour) {
				panic("a fault")
			}
			return nil
		}, backoff, hour},
		"the directory": {func(call string) error {
			if call == "OpenDir " {
				return syscall.EIO
			}
			return nil
		}, backoff, "service.name="},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory(t)
			write := func(ids ...int) {
				w := d.open()
				for i, service := range []string{"a", "b"} {
					require.NoError(t, w.Append(newRecord(t, d.format, service, ids[i], d.now.Add(-time.Second), d.now)))
				}
				require.NoError(t, w.Close())
			}
			write(1, 2)
			d.now = begin.Add(70 * time.Minute)
			write(3, 4)
			var leftOut []string
			var removed int
			compactor := d.compactor(withParquet(&leftOut, &removed, lake.Retention{}))
			d.process.before = test.fails
			var tried []int
			first := begin.Add(2 * time.Hour) // the first hour is due, and the second one after half an hour
			for minute := range 35 {
				d.now = first.Add(time.Duration(minute) * time.Minute)
				if compactor.Run(t.Context()) != nil {
					tried = append(tried, minute)
				}
				requireCompacted(t, d, test.waits)
			}
			require.Equal(t, test.tried, tried)
			require.Equal(t, once(1, 2, 3, 4), d.counts())
			d.process.before = nil
			d.now = first.Add(3 * time.Hour)
			require.NoError(t, compactor.Run(t.Context()))
			requireCompacted(t, d, "no path")
			require.Equal(t, once(1, 2, 3, 4), d.counts())
			require.Empty(t, leftOut)
		})
	}
}

// requireCompacted requires that the hours that are due are compacted, but those of paths that start with waits.
func requireCompacted(t *testing.T, d *directory, waits string) {
	t.Helper()
	for _, name := range paths(t, d.dir) {
		f, ok := layout.ParsePath(name)
		if ok && f.Level == layout.Written && !d.now.Before(f.Partition.Add(90*time.Minute)) {
			require.True(t, strings.HasPrefix(name, waits), "%s at %s", name, d.now)
		}
	}
}

// TestAPanicOfOneGroupLeavesTheOthers_A11: neither Tick nor Close ends, or leaves a lock.
func TestAPanicOfOneGroupLeavesTheOthers_A11(t *testing.T) {
	d := newDirectory(t)
	faulty, failed := "", []error{}
	w := d.open(func(o *store.Options) {
		o.Rotation.MaxAge, o.Failed = time.Minute, func(err error) { failed = append(failed, err) }
		o.FileClosed = func(f store.ClosedFile) {
			if faulty != "" && strings.Contains(f.Path, faulty) {
				panic("a fault")
			}
		}
	})
	write := func(id int) {
		for i, service := range []string{"a", "b", "c"} {
			require.NoError(t, w.Append(newRecord(t, d.format, service, id+i, d.now, d.now)))
		}
	}
	write(0)
	faulty, d.now = "=b/", d.now.Add(2*time.Minute)
	w.Tick()
	w.CloseDue()
	var panicked *panics.Error
	require.Len(t, failed, 1)
	require.ErrorAs(t, failed[0], &panicked)
	write(3)
	require.ErrorAs(t, w.Close(), &panicked)
	require.Len(t, closedIn(t, d.dir), 6)
	require.Equal(t, once(0, 1, 2, 3, 4, 5), d.counts())
}

// A clock that is set back by more than a file's age does not keep the file open, or its records off the disk.
func TestAClockThatIsSetBackClosesFiles(t *testing.T) {
	d := newDirectory(t)
	w := d.open(func(o *store.Options) {
		o.Sync, o.SyncInterval, o.Rotation.MaxAge = store.SyncInterval, 5*time.Second, 30*time.Minute
	})
	require.NoError(t, w.Append(newRecord(t, d.format, "checkout", 1, d.now, d.now)))
	synced := 0
	d.process.before = func(call string) error {
		if call == "SyncFile" {
			synced++
		}
		return nil
	}
	d.now = d.now.Add(-10 * time.Minute)
	w.Tick()
	w.CloseDue()
	require.Equal(t, 1, synced)
	d.now = d.now.Add(-30 * time.Minute)
	w.Tick()
	w.CloseDue()
	f, ok := layout.ParsePath(paths(t, d.dir)[0])
	require.True(t, ok)
	require.False(t, f.Partial)
	require.NoError(t, w.Close())
}
