// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// TestAPanicOfAnIndexLeavesItOut_A1: the record is safe, and the index can be made again.
func TestAPanicOfAnIndexLeavesItOut_A1(t *testing.T) {
	dir, closed := t.TempDir(), []ClosedFile{}
	w, err := OpenWriter(Options{
		Directory: dir, Format: "otlp.pb.zst", MaxOpen: 10, Failed: func(err error) { assert.NoError(t, err) },
		FileClosed: func(f ClosedFile) { closed = append(closed, f) },
	})
	require.NoError(t, err)
	record := func() Record {
		pd := profiletest.Small(t)
		entry, err := contents.Describe(pd)
		require.NoError(t, err)
		return Record{Data: profiletest.Proto(t, pd), Entry: entry}
	}
	for n := range 3 {
		require.NoError(t, w.Append(record()))
		for _, g := range w.groups {
			if n == 0 {
				g.file.index.Release()
				g.file.index = &contents.Builder{} // cannot keep a key
			}
		}
	}
	require.NoError(t, w.Close())
	require.Len(t, closed, 1)
	require.Equal(t, 3, closed[0].Records)
	var panicked *panics.Error
	require.ErrorAs(t, closed[0].IndexError, &panicked)
	assert.Contains(t, string(panicked.Stack), "Builder")
	require.True(t, w.memory.TryAcquire(maxIndexes), "no memory is taken any more")

	s, err := Open(dir, ReadOptions{MaxRecord: 16 << 20, MaxDecoded: 64 << 20, Cache: 1 << 20})
	require.NoError(t, err)
	defer s.Close()
	segments, err := s.Live(t.Context(), time.Time{}, time.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	require.Len(t, segments, 1)
	x, err := segments[0].Index(t.Context())
	require.NoError(t, err)
	require.Len(t, x.Records, 3)
	require.Empty(t, x.Damage)
}
