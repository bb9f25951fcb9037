// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// store is a directory with its catalog.
type store struct {
	*Catalog
	t   *testing.T
	dir string
}

func newStore(t *testing.T, maxMemory int64) *store {
	s := &store{t: t, dir: t.TempDir()}
	s.Catalog = New(s.dir, maxMemory, 1<<20, archive.Options{MaxMemory: 64 << 20})
	return s
}

func (s *store) writer() *recordfile.Writer {
	s.t.Helper()
	w, err := recordfile.OpenWriter(recordfile.Options{
		Directory: s.dir, MaxOpen: 10, Levels: 1, Format: recordfile.Format{Content: recordfile.OTLPProto, Compression: recordfile.Zstd},
		Failed: func(err error) { assert.NoError(s.t, err) },
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = w.Close() })
	return w
}

// record is one with a CPU profile.
func record(t *testing.T, service string, at time.Time, value int64) recordfile.Record {
	t.Helper()
	indexed := indexedRecord(t, service, at, value)
	indexed.Summaries, indexed.Labels = nil, nil
	return indexed
}

// indexedRecord is record with what is stored in an index.
func indexedRecord(t *testing.T, service string, at time.Time, value int64) recordfile.Record {
	t.Helper()
	pd := payloadtest.With(payloadtest.Interval(uint64(at.UnixNano()), 10e9, value), "service.name", service)
	r, err := archive.Marshal(&pprofile.ProtoMarshaler{}, pd)
	require.NoError(t, err)
	r.Group = []string{service}
	return r
}

// listAgain lists the files.
func (s *store) listAgain() {
	s.t.Helper()
	s.lists.began = time.Time{}
	require.NoError(s.t, s.Refresh(s.t.Context()))
}

// sum returns the sum by service of a range, by a new list of the files.
func (s *store) sum(from, to time.Time) (sums map[string]int64) {
	s.t.Helper()
	s.listAgain()
	sums = map[string]int64{}
	least := map[recordfile.Key]uint64{}
	found, err := s.Scan(s.t.Context(), from, to, all, func(series *recordfile.Key, profiles []recordfile.Total, next uint64) error {
		for _, p := range profiles {
			assert.GreaterOrEqual(s.t, p.Start, least[*series])
			least[*series] = max(least[*series], min(p.Start, next))
			sums[series.Service] += p.Sum
		}
		return nil
	})
	require.NoError(s.t, err)
	require.Empty(s.t, found.Errors)
	return sums
}

// spoil overwrites the content of the only file of a service, so that it cannot be read again.
func (s *store) spoil(service string) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, service, "profiles-*[tl]"))
	require.NoError(s.t, err)
	require.Len(s.t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(s.t, err)
	f, err := os.OpenFile(files[0], os.O_WRONLY, 0)
	require.NoError(s.t, err)
	_, err = f.Write(make([]byte, info.Size()))
	require.NoError(s.t, errors.Join(err, f.Close()))
	require.NoError(s.t, os.Chtimes(files[0], info.ModTime(), info.ModTime()))
}

func TestAClosedFileIsReadOnce_V5(t *testing.T) {
	s, now := newStore(t, 1<<20), time.Now()
	w := s.writer()
	require.NoError(t, w.Append(record(t, "checkout", now.Add(-time.Minute), 1)))
	require.NoError(t, w.Close())
	from, to := now.Add(-time.Hour), now.Add(time.Hour)
	assert.Equal(t, map[string]int64{"checkout": 1}, s.sum(from, to))
	s.spoil("checkout")
	assert.Equal(t, map[string]int64{"checkout": 1}, s.sum(from, to))
	for _, r := range []struct{ from, to time.Time }{{from, now.Add(-time.Minute)}, {now, to}, {from.Add(-24 * time.Hour), from}} {
		assert.Empty(t, s.sum(r.from, r.to))
	}
}

func TestALateTimeHidesNoOtherProfiles(t *testing.T) {
	s, now := newStore(t, 1<<20), time.Now()
	w := s.writer()
	require.NoError(t, w.Append(record(t, "checkout", now.Add(-3*time.Hour), 1)))
	require.NoError(t, w.Append(record(t, "checkout", time.Unix(0, -1), 2))) // in the year 2554
	require.NoError(t, w.Close())
	s.sum(now.Add(-time.Hour), now.Add(time.Hour)) // reads the file, which was written in this range
	assert.Equal(t, map[string]int64{"checkout": 1}, s.sum(now.Add(-4*time.Hour), now.Add(-2*time.Hour)))
}

// TestProfilesAreFoundWhereverTheyWereWritten: a range has Profiles in files that were written at other times.
func TestProfilesAreFoundWhereverTheyWereWritten(t *testing.T) {
	s, now := newStore(t, 1<<20), time.Now()
	s.ReadingTime = time.Hour
	old := now.Add(-1000 * 24 * time.Hour)
	from, to := old.Add(-time.Hour), old.Add(time.Hour)
	w := s.writer()
	require.NoError(t, w.Append(record(t, "checkout", old, 1)))
	require.NoError(t, w.Append(record(t, "checkout", now, 2)))
	require.NoError(t, w.Append(indexedRecord(t, "cart", old, 4)))
	assert.Equal(t, map[string]int64{"checkout": 1, "cart": 4}, s.sum(from, to), "files are being written")
	require.NoError(t, w.Append(record(t, "checkout", old, 8)))
	assert.Equal(t, map[string]int64{"checkout": 9, "cart": 4}, s.sum(from, to))
	require.NoError(t, w.Close())
	s.spoil("cart") // has an index
	s.Catalog = New(s.dir, s.maxMemory, 1<<20, s.options)
	s.ReadingTime = time.Hour
	assert.Equal(t, map[string]int64{"checkout": 9, "cart": 4}, s.sum(from, to))
	assert.Equal(t, map[string]int64{"checkout": 2}, s.sum(now.Add(-time.Minute), now.Add(time.Minute)))
}

// TestFilesThatWereNotReadAreCounted: a request without time to read such files reads a record.
// TestScanVisitsSeriesByTime: sum checks the order.
func TestScanVisitsSeriesByTime(t *testing.T) {
	s, now, random := newStore(t, 1000), time.Now(), rand.New(rand.NewPCG(1, 2))
	s.ReadingTime = 0
	for range 10 {
		w := s.writer()
		for range 3 {
			require.NoError(t, w.Append(indexedRecord(t, "checkout", now.Add(-time.Duration(random.Int64N(int64(time.Hour)))), 1)))
		}
		require.NoError(t, w.Close())
	}
	for range 3 {
		assert.Equal(t, map[string]int64{"checkout": 30}, s.sum(now.Add(-time.Hour), now))
	}
}

func TestFilesThatWereNotReadAreCounted(t *testing.T) {
	s, now := newStore(t, 1<<20), time.Now()
	s.ReadingTime = -time.Hour
	old := now.Add(-1000 * 24 * time.Hour)
	w := s.writer()
	for range 3 {
		require.NoError(t, w.Append(record(t, "checkout", old, 1)))
	}
	require.NoError(t, w.Append(record(t, "cart", old, 1)))
	require.NoError(t, w.Close())
	for _, want := range []int{1, 1, 1, 0} { // cart, and a record of checkout
		require.NoError(t, s.Refresh(t.Context()))
		var missed Missing
		_, err := s.Source(t.Context(), &query.Selection{From: now.Add(time.Hour), To: now.Add(2 * time.Hour)}, &missed)
		require.NoError(t, err)
		assert.Equal(t, want, missed.Pending)
	}
	assert.Equal(t, map[string]int64{"checkout": 3, "cart": 1}, s.sum(old.Add(-time.Minute), old.Add(time.Minute)))
}

func TestOnlyWhatWasAddedToAFileIsRead_V5(t *testing.T) {
	s, now := newStore(t, 1<<20), time.Now()
	from, to := now.Add(-time.Hour), now.Add(time.Hour)
	w := s.writer()
	for i := range 20 {
		require.NoError(t, w.Append(record(t, "checkout", now.Add(-time.Duration(i)*time.Minute), 1)))
		require.Equal(t, map[string]int64{"checkout": int64(i + 1)}, s.sum(from, to))
		s.spoil("checkout")
	}
	require.NoError(t, w.Close())
	assert.Equal(t, map[string]int64{"checkout": 20}, s.sum(from, to), "it was renamed")
}

// A file may change without a further record: a write that failed was undone, or records were added after the
// file was listed and before it was read.
func TestAnIndexIsNotAddedToTheRecordsThatWereRead_V1(t *testing.T) {
	s, now := newStore(t, 1<<20), time.Now()
	from, to := now.Add(-time.Hour), now.Add(time.Hour)
	w := s.writer()
	require.NoError(t, w.Append(indexedRecord(t, "checkout", now.Add(-time.Minute), 1)))
	require.Equal(t, map[string]int64{"checkout": 1}, s.sum(from, to))

	files, err := filepath.Glob(filepath.Join(s.dir, "checkout", "*.partial"))
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(files[0], now, now.Add(time.Second)))
	s.listAgain() // for a request that reads no file
	require.NoError(t, w.Close())
	assert.Equal(t, map[string]int64{"checkout": 1}, s.sum(from, to))
}

func TestARemovedOrReplacedFileIsNoticed_V1(t *testing.T) {
	s, now := newStore(t, 1<<20), time.Now()
	from, to := now.Add(-time.Hour), now.Add(time.Hour)
	for _, service := range []string{"checkout", "cart"} {
		w := s.writer()
		require.NoError(t, w.Append(record(t, service, now.Add(-time.Minute), 1)))
		require.NoError(t, w.Close())
	}
	require.Equal(t, map[string]int64{"checkout": 1, "cart": 1}, s.sum(from, to))

	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "cart")))
	require.Equal(t, map[string]int64{"checkout": 1}, s.sum(from, to))

	files, err := filepath.Glob(filepath.Join(s.dir, "checkout", "*.zst"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[0], []byte("damaged"), 0o600))
	s.listAgain()
	found, err := s.Scan(t.Context(), from, to, all, func(*recordfile.Key, []recordfile.Total, uint64) error { return nil })
	require.NoError(t, err)
	require.Len(t, found.Errors, 1)
	assert.Contains(t, found.Errors[0].Error(), files[0])
	assert.Less(t, s.details.Load(), int64(1000))
}

func TestDetailsTakeBoundedMemory_V2(t *testing.T) {
	s, now := newStore(t, 10_000), time.Now()
	from, to := now.Add(-time.Hour), now.Add(time.Hour)
	w := s.writer()
	const services = 100
	for i := range services {
		require.NoError(t, w.Append(record(t, fmt.Sprintf("service-%02d", i), now.Add(-time.Minute), 1)))
	}
	require.NoError(t, w.Close())
	for range 3 {
		require.Len(t, s.sum(from, to), services)
		assert.LessOrEqual(t, s.details.Load(), s.maxMemory)
		var held, entries int64
		for _, f := range s.files {
			entries += f.entrySize()
			if f.details != nil {
				held += f.size()
				assert.True(t, s.used.Contains(f))
			}
		}
		assert.Equal(t, held, s.details.Load())
		assert.Equal(t, entries, s.entries.Load())
		assert.Equal(t, held+entries, s.Memory(), "what the catalog keeps")
	}
}

func TestDetailsOfFilesThatWereUsedLeastRecentlyAreDropped(t *testing.T) {
	s, now := newStore(t, 10_000), time.Now()
	for i := range 10 {
		w := s.writer()
		require.NoError(t, w.Append(record(t, fmt.Sprint(i), now.Add(-time.Minute), 1)))
		require.NoError(t, w.Close())
	}
	s.sum(now.Add(-time.Hour), now)
	size := s.files[slices.Sorted(maps.Keys(s.files))[0]].size()
	s.maxMemory = 2 * 5 * size // half of it for entries
	for _, f := range s.files {
		s.drop(f)
	}
	use := func(i int) {
		for path, f := range s.files {
			if filepath.Base(filepath.Dir(path)) == fmt.Sprint(i) {
				_, err := s.use(t.Context(), f, time.Time{})
				require.NoError(t, err)
			}
		}
	}
	for i := range 10 {
		use(i)
		use(0) // again and again
	}
	var held []string
	for path, f := range s.files {
		if f.details != nil {
			held = append(held, filepath.Base(filepath.Dir(path)))
		}
	}
	assert.ElementsMatch(t, []string{"0", "6", "7", "8", "9"}, held)
}

// A request whose client has left does not wait for the one that uses the catalog.
func TestWaitingEndsWithTheRequest(t *testing.T) {
	s, now := newStore(t, 1<<20), time.Now()
	require.NoError(t, s.mu.Acquire(t.Context(), 1))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	require.ErrorIs(t, s.Refresh(ctx), context.Canceled)
	_, err := s.Scan(ctx, now, now, all, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Source(ctx, &query.Selection{}, &Missing{})
	require.ErrorIs(t, err, context.Canceled)
	s.mu.Release(1)
	require.NoError(t, s.Refresh(t.Context()))
}

func all(*recordfile.Key) bool { return true }

// TestFilesThatMayCountTwiceAreNamed_A5: the list of files has the error, and so has each selection.
func TestFilesThatMayCountTwiceAreNamed_A5(t *testing.T) {
	s, now := newStore(t, 1<<20), time.Now()
	w := s.writer()
	require.NoError(t, w.Append(record(t, "checkout", now, 1)))
	require.NoError(t, w.Close())
	files, err := filepath.Glob(filepath.Join(s.dir, "checkout", "*.zst"))
	require.NoError(t, err)
	name, ours := recordfile.ParseName(filepath.Base(files[0]))
	require.True(t, ours)
	name.Span = time.Hour // as if it was compacted, and copied without its manifest
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "checkout", name.String()), content, 0o600))
	require.NoError(t, s.Refresh(t.Context()))
	var missed Missing
	for range 2 {
		_, err = s.Source(t.Context(), &query.Selection{From: now.Add(-time.Hour), To: now.Add(time.Hour)}, &missed)
		require.NoError(t, err)
	}
	require.Len(t, missed.Notes(), 1)
	assert.Contains(t, missed.Notes()[0], name.String()+": the list of the files that it replaces is missing; it may count twice, as do files of its time such as "+filepath.Base(files[0])+" (1 in all)")
	found, err := s.Scan(t.Context(), now.Add(-time.Hour), now.Add(time.Hour), all, func(*recordfile.Key, []recordfile.Total, uint64) error { return nil })
	require.NoError(t, err)
	require.Len(t, found.Errors, 1)
}
