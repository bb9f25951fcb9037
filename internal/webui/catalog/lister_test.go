// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// lists makes lists of one file, whose size counts them, each in the time took.
func lists(t *testing.T, took *time.Duration) (get func(ctx context.Context, maxAge time.Duration) int64, l *lister, end func()) {
	n := int64(0)
	ctx, cancel := context.WithCancel(t.Context())
	working := &sync.WaitGroup{}
	l = newLister(ctx, working, func(ctx context.Context) ([]*store.Segment, error) {
		n++
		select {
		case <-time.After(*took):
		case <-ctx.Done():
			return nil, &bucket.StorageError{Err: ctx.Err()}
		}
		return []*store.Segment{{File: layout.File{Size: n}}}, nil
	})
	get = func(ctx context.Context, maxAge time.Duration) int64 {
		list, err := l.get(ctx, maxAge)
		assert.Equal(t, ctx.Err(), err)
		if len(list.found) == 0 {
			return 0
		}
		return list.found[0].Size
	}
	return get, l, func() {
		cancel()
		working.Wait()
	}
}

func TestRequestsWaitForShortListsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := 10 * time.Millisecond
		get, l, end := lists(t, &took)
		defer end()
		ctx := t.Context()
		began := func() time.Time { last, _ := l.look(time.Hour, time.Now()); return last.began }
		assert.Equal(t, int64(1), get(ctx, time.Second))
		assert.Equal(t, int64(1), get(ctx, time.Second), "it is recent")
		time.Sleep(time.Second)
		assert.Equal(t, int64(2), get(ctx, time.Second), "what was written a second ago is there")
		assert.Equal(t, int64(3), get(ctx, 0))

		took = 2 * time.Second
		start := time.Now()
		assert.Equal(t, int64(4), get(ctx, 0), "nobody knew that it takes long")
		assert.Equal(t, took, time.Since(start))
		start = time.Now()
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(time.Second / 4) { // as a browser reloads
			get(ctx, time.Second)
			assert.Less(t, time.Since(began()), restFactor*took+took+time.Second)
		}
		assert.Equal(t, start.Add(time.Minute), time.Now(), "no request waits")
		synctest.Wait()

		time.Sleep(time.Hour)
		start = time.Now()
		n := get(ctx, time.Second)
		assert.Equal(t, start.Add(took), time.Now(), "nothing new was listed for an hour")
		assert.Equal(t, start, began())

		left, leave := context.WithTimeout(ctx, time.Millisecond)
		defer leave()
		assert.Equal(t, n, get(left, 0), "the client leaves")
		time.Sleep(time.Hour)
		start = time.Now()
		assert.Equal(t, n+1, get(left, time.Second), "it has been made, and is old")
		assert.Equal(t, start, time.Now())
		assert.Equal(t, n+2, get(ctx, time.Second))
		assert.Equal(t, start, began())
	})
}

// TestOneListServesAllRequests: those that come while it is made need another one, if it may have begun before what they want to see.
func TestOneListServesAllRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := 50 * time.Millisecond
		get, _, end := lists(t, &took)
		defer end()
		var requests sync.WaitGroup
		for range 100 {
			requests.Go(func() { assert.Equal(t, int64(1), get(t.Context(), time.Second)) })
		}
		time.Sleep(took / 2)
		for range 100 {
			requests.Go(func() { assert.Equal(t, int64(2), get(t.Context(), 0)) })
		}
		requests.Wait()
	})
}

func TestAListThatFailsKeepsTheLastOne_A11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var working sync.WaitGroup
		one := []*store.Segment{{File: layout.File{Path: "a"}}}
		answer := func() ([]*store.Segment, error) { return one, nil }
		l := newLister(t.Context(), &working, func(context.Context) ([]*store.Segment, error) { time.Sleep(time.Minute); return answer() })
		_, err := l.get(t.Context(), time.Second)
		require.NoError(t, err)
		for _, fail := range []func() ([]*store.Segment, error){
			func() ([]*store.Segment, error) { return nil, &bucket.StorageError{Err: errors.New("away")} }, func() ([]*store.Segment, error) { panic("a fault") },
		} {
			answer = fail
			time.Sleep(time.Hour)
			list, err := l.get(t.Context(), time.Second)
			require.NoError(t, err)
			require.Error(t, list.failed)
			assert.Equal(t, one, list.found)
			assert.Zero(t, list.took, "the next one is soon")
		}
		answer = func() ([]*store.Segment, error) { return nil, errors.New("a directory") }
		time.Sleep(time.Hour)
		list, err := l.get(t.Context(), time.Second)
		require.NoError(t, err)
		assert.Empty(t, list.found, "it says what is missing")
		working.Wait()
	})
}

// TestAnExpiredListIsNotUsed: requests wait for another one, however long it takes.
func TestAnExpiredListIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := time.Minute
		get, l, end := lists(t, &took)
		defer end()
		for n := range int64(3) {
			assert.Equal(t, n+1, get(t.Context(), time.Hour))
			l.expire()
		}
	})
}

// A request whose client has left does not wait for the one that lists.
func TestWaitingEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := time.Hour
		get, _, end := lists(t, &took)
		defer end()
		start := time.Now()
		for wait := range 3 {
			ctx, leave := context.WithTimeout(t.Context(), time.Duration(wait)*time.Second)
			assert.Zero(t, get(ctx, time.Second))
			leave()
		}
		assert.Equal(t, 3*time.Second, time.Since(start))
	})
}

// BenchmarkList lists the last quarter of an hour of a store as a request does that waits for it, and all of it: ten times the files take
// about ten times as long.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{5000, 50_000} {
		dir, now := b.TempDir(), time.Now().UTC()
		for i := range n { // of 100 services, n / 100 hours
			end := now.Add(-time.Duration(i/100) * time.Hour)
			hour := filepath.Join(dir, fmt.Sprintf("service.name=service-%03d", i%100), end.Format(layout.HourPath))
			require.NoError(b, os.MkdirAll(hour, 0o700))
			bounds := layout.Bounds{}
			bounds.Add(uint64(end.Add(-time.Minute).UnixNano()), uint64(end.UnixNano()), end)
			name := layout.WrittenBase(end.Format(layout.CreatedTime)+"-0123456789ab", &bounds, segment.Proto)
			require.NoError(b, os.WriteFile(filepath.Join(hour, name), nil, 0o600))
		}
		for _, run := range []struct {
			name string
			from time.Time
		}{{"recent", now.Add(-15 * time.Minute)}, {"all", time.Time{}}} {
			b.Run(fmt.Sprintf("%s/files/%d", run.name, n), func(b *testing.B) {
				c, _ := newCatalog(b, dir)
				found := 0
				b.ReportAllocs()
				for b.Loop() {
					c.Expire()
					segments, err := (&query.Selection{From: run.from}).Live(b.Context(), c)
					require.NoError(b, err)
					found = len(segments)
				}
				b.ReportMetric(float64(found), "files")
				b.ReportMetric(float64(c.Memory()), "held-B")
			})
		}
	}
}
