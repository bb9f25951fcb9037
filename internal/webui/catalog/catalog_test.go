// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// newCatalog returns one that lists files each time.
func newCatalog(t testing.TB, dir string) (*Catalog, *Missing) {
	t.Helper()
	c, err := New(dir, Memory{Lists: 64 << 20, Indexes: 1 << 20}, archive.Options{MaxMemory: 64 << 20})
	require.NoError(t, err)
	c.MaxAge = 0
	t.Cleanup(c.Close)
	return c, &Missing{}
}

func newWriter(t *testing.T, dir string, now func() time.Time) *store.Writer {
	t.Helper()
	w, err := store.OpenWriter(store.Options{
		Directory: dir, MaxOpen: 10, Format: segment.Proto, Failed: func(err error) { assert.NoError(t, err) }, Now: now,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// record is one with a CPU profile of ten seconds.
func record(t *testing.T, service string, at time.Time, value int64) store.Record {
	t.Helper()
	pd := payloadtest.With(payloadtest.Interval(uint64(at.UnixNano()), 10e9, value), "service.name", service)
	entry, err := contents.Describe(pd)
	require.NoError(t, err)
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	return store.Record{Data: data, Entry: entry, Group: []string{layout.GroupDir("service.name", layout.GroupName(service))}}
}

// scanned returns the sum by service of a range.
func scanned(t *testing.T, c *Catalog, from, to time.Time) map[string]int64 {
	t.Helper()
	sums, missed := map[string]int64{}, &Missing{}
	require.NoError(t, query.Repeat(func() error {
		clear(sums)
		return c.Scan(t.Context(), &query.Selection{From: from, To: to}, nil, all, missed, func(of *query.Times, in *contents.Total) error {
			if in != nil {
				sums[of.Service] += in.Sum
			}
			return nil
		})
	}))
	require.Empty(t, missed.Failed)
	return sums
}

func all(*contents.Key) bool { return true }

// TestScanHasTheSumsOfAnyRange: files are being written, closed, and far back, and the range is compared with all profiles.
func TestScanHasTheSumsOfAnyRange(t *testing.T) {
	random, dir, now := profiletest.NewRand(3), t.TempDir(), time.Now().Add(-90*24*time.Hour)
	type profile struct {
		service string
		at      time.Time
		value   int64
	}
	var written []profile
	c, _ := newCatalog(t, dir)
	for range 6 {
		w := newWriter(t, dir, func() time.Time { return now })
		for range 20 {
			p := profile{fmt.Sprint("service-", random.IntN(3)), now.Add(-time.Duration(random.Int64N(int64(2 * time.Hour)))), random.Int64N(100)}
			require.NoError(t, w.Append(record(t, p.service, p.at, p.value)))
			written = append(written, p)
			if random.IntN(4) == 0 {
				from := time.Now().Add(-time.Duration(random.Int64N(int64(100 * 24 * time.Hour))))
				to := from.Add(time.Duration(random.Int64N(int64(100 * 24 * time.Hour))))
				want := map[string]int64{}
				for _, p := range written {
					if !p.at.Before(from) && p.at.Before(to) {
						want[p.service] += p.value
					}
				}
				require.Equal(t, want, scanned(t, c, from, to), "from %v to %v", from, to)
			}
		}
		require.NoError(t, w.Close())
		now = now.Add(15 * 24 * time.Hour)
	}
}

// TestPartitionsBeforeTheRangeAreNotListed: they are not even directories.
func TestPartitionsBeforeTheRangeAreNotListed(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	w := newWriter(t, dir, nil)
	require.NoError(t, w.Append(record(t, "checkout", now.Add(-time.Minute), 1)))
	require.NoError(t, w.Close())
	year := filepath.Join(dir, "service.name=checkout", "2020")
	require.NoError(t, os.Mkdir(year, 0o700))
	if os.Getuid() == 0 { // may read any directory
		require.NoError(t, os.MkdirAll(filepath.Join(year, "01", "01"), 0o700))
	} else {
		require.NoError(t, os.Chmod(year, 0))
		t.Cleanup(func() { _ = os.Chmod(year, 0o700) })
	}
	c, _ := newCatalog(t, dir)
	for days, far := range map[int]reach{0: 0, 1: 5, 365: 14, 20_000: 19, 50_000: allTime} {
		assert.Equal(t, far, reachOf(now.Add(-time.Duration(days)*24*time.Hour), now), "%d days", days)
	}
	for _, from := range []time.Time{now.Add(-time.Hour), now.Add(-100 * 24 * time.Hour)} {
		segments, err := (&query.Selection{From: from}).Live(t.Context(), c)
		require.NoError(t, err)
		assert.Len(t, segments, 1)
	}
	_, err := (&query.Selection{}).Live(t.Context(), c)
	if os.Getuid() != 0 {
		require.ErrorIs(t, err, fs.ErrPermission)
	}
}

// TestFilesThatAreGoneAreListedAgain: the list is as old as it may be.
func TestFilesThatAreGoneAreListedAgain(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	c, _ := newCatalog(t, dir)
	c.MaxAge = time.Hour
	from, to := now.Add(-time.Hour), now.Add(time.Hour)
	write := func(value int64) {
		w := newWriter(t, dir, nil)
		require.NoError(t, w.Append(record(t, "checkout", now.Add(-time.Minute), value)))
		require.NoError(t, w.Close())
	}
	write(1)
	assert.Equal(t, map[string]int64{"checkout": 1}, scanned(t, c, from, to))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "service.name=checkout")))
	write(2)
	assert.Equal(t, map[string]int64{"checkout": 1}, scanned(t, c, from, to), "list and index are known")
	missed := &Missing{}
	result, err := c.Source(missed).Merge(t.Context(), &query.Selection{From: from, To: to}, true)
	require.NoError(t, err)
	require.Empty(t, missed.Failed)
	assert.EqualValues(t, 2, payloadtest.First(result.Profiles).Samples().At(0).Values().At(0))
	assert.Equal(t, map[string]int64{"checkout": 2}, scanned(t, c, from, to))
}

// TestMemoryCountsListsAndIndexes, which are dropped when they are more than their share.
func TestMemoryCountsListsAndIndexes_V2(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	w := newWriter(t, dir, nil)
	for i := range 100 {
		require.NoError(t, w.Append(record(t, fmt.Sprintf("service-%02d", i), now.Add(-time.Minute), 1)))
	}
	require.NoError(t, w.Close())
	for _, share := range []int64{1 << 20, 10_000} {
		c, err := New(dir, Memory{Lists: share, Indexes: share}, archive.Options{MaxMemory: 64 << 20})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		assert.Zero(t, c.Memory())
		for _, back := range []time.Duration{time.Minute, 2 * time.Hour, 2 * time.Minute, 100 * time.Hour} {
			require.Len(t, scanned(t, c, now.Add(-back), now), 100)
		}
		lists := 0
		for _, l := range c.lists.Values() {
			assert.Greater(t, l.size(), int64(100*len("service.name=service-00/2026/11/28/14/")))
			lists++
		}
		if share < 1<<20 {
			assert.Equal(t, 1, lists)
			assert.LessOrEqual(t, c.store.Memory(), share)
		} else {
			assert.Equal(t, 3, lists)
			assert.Greater(t, c.store.Memory(), int64(10_000))
		}
		assert.Equal(t, c.sizeOfLists()+c.store.Memory(), c.Memory())
	}
}

// TestFilesThatMayCountTwiceAreNamed_A5: each selection has the error.
func TestFilesThatMayCountTwiceAreNamed_A5(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	w := newWriter(t, dir, nil)
	require.NoError(t, w.Append(record(t, "checkout", now.Add(-time.Minute), 1)))
	require.NoError(t, w.Close())
	c, missed := newCatalog(t, dir)
	segments, err := (&query.Selection{}).Live(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, segments, 1)
	path := segments[0].Name()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	hour, name := filepath.Dir(path), filepath.Base(path)
	_, rest, found := strings.Cut(name[len(layout.CreatedTime):], ".") // after the ID
	require.True(t, found)
	compacted := hour + "_0123456789ab." + rest // as if it was made of the hour, with a damaged index
	require.NoError(t, os.WriteFile(compacted, content[:len(content)-1], 0o600))
	sel := &query.Selection{From: now.Add(-time.Hour), To: now}
	for range 2 {
		require.NoError(t, c.Scan(t.Context(), sel, nil, all, missed, func(*query.Times, *contents.Total) error { return nil }))
		_, err := c.Source(missed).List(t.Context(), sel)
		require.NoError(t, err)
	}
	notes := strings.Join(missed.Notes(), "\n")
	assert.Contains(t, notes, filepath.Base(compacted)+": what it was made of may count twice")
	assert.Equal(t, 1, strings.Count(notes, "count twice"), notes)
}
