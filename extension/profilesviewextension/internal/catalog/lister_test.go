// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
)

// lists makes lists of one file, whose size counts them, each in the time took.
func lists(took *time.Duration) *lister {
	n := int64(0)
	l := newLister(func(ctx context.Context) ([]archive.File, []error) {
		n++
		select {
		case <-time.After(*took):
		case <-ctx.Done():
			return nil, []error{&archive.StorageError{Err: ctx.Err()}}
		}
		return []archive.File{{Size: n}}, nil
	})
	return &l
}

func number(l *listing) int64 {
	if l == nil {
		return 0
	}
	return l.found[0].Size
}

func TestRequestsWaitForShortListsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := 10 * time.Millisecond
		l := lists(&took)
		defer l.close()
		ctx := t.Context()
		assert.Equal(t, int64(1), number(l.next(ctx, time.Second)))
		assert.Equal(t, int64(0), number(l.next(ctx, time.Second)), "it is recent")
		time.Sleep(time.Second)
		assert.Equal(t, int64(2), number(l.next(ctx, time.Second)), "what was written a second ago is there")
		assert.Equal(t, int64(3), number(l.next(ctx, 0)))

		took = 2 * time.Second
		start := time.Now()
		assert.Equal(t, int64(4), number(l.next(ctx, 0)), "nobody knew that it takes long")
		assert.Equal(t, took, time.Since(start))
		start = time.Now()
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(time.Second / 4) { // as a browser reloads
			l.next(ctx, time.Second)
			assert.Less(t, time.Since(l.began), restFactor*took+took+time.Second)
		}
		assert.Equal(t, start.Add(time.Minute), time.Now(), "no request waits")

		time.Sleep(time.Hour)
		start = time.Now()
		l.next(ctx, time.Second)
		assert.Equal(t, start.Add(took), time.Now(), "nothing new was listed for an hour")
		assert.WithinRange(t, l.began, start, start)

		left, leave := context.WithTimeout(ctx, time.Millisecond)
		defer leave()
		assert.Nil(t, l.next(left, 0))
		time.Sleep(time.Hour)
		start = time.Now()
		l.next(left, time.Second) // it has been made, and is old
		assert.Equal(t, start, time.Now())
		l.next(ctx, time.Second)
		assert.WithinRange(t, l.began, start, start)
	})
}

func TestAListThatFailsKeepsTheLastOne_A11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, 1<<20)
		w := s.writer()
		require.NoError(t, w.Append(record(t, "checkout", time.Now(), 1)))
		require.NoError(t, w.Close())
		failed := func() ([]archive.File, []error) { return nil, []error{&archive.StorageError{Err: errors.New("away")}} }
		answer := func() ([]archive.File, []error) { return archive.Find([]string{s.dir}) }
		s.lists.list = func(context.Context) ([]archive.File, []error) { time.Sleep(time.Minute); return answer() }
		require.NoError(t, s.Refresh(t.Context()))
		for _, fail := range []func() ([]archive.File, []error){failed, func() ([]archive.File, []error) { panic("a fault") }} {
			answer = fail
			time.Sleep(time.Hour)
			require.NoError(t, s.Refresh(t.Context()))
			require.Len(t, s.failed, 1)
			assert.Len(t, s.files, 1)
			assert.Zero(t, s.lists.took, "the next one is soon")
		}
		s.Close()
	})
}

// BenchmarkList lists files as a request does that waits for it: ten times the files take about ten times as long.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{5000, 50_000} {
		dir := b.TempDir()
		for i := range n {
			name := filepath.Join(dir, fmt.Sprintf("service-%03d", i%100), fmt.Sprintf("profiles-20261101T%06d.000Z-%d.otlp.pb.zst", i/100, i))
			if i < 100 {
				require.NoError(b, os.Mkdir(filepath.Dir(name), 0o700))
			}
			require.NoError(b, os.WriteFile(name, nil, 0o600))
		}
		c := New(dir, 1<<20, 1<<20, archive.Options{MaxMemory: 64 << 20})
		b.Run(fmt.Sprintf("files/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.lists.began = time.Time{}
				c.take(c.lists.next(b.Context(), 0))
			}
			b.ReportMetric(float64(c.Memory()), "held-B")
		})
		c.Close()
	}
}
