// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package contents

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestEntriesAreReadAsTheyWereDescribed(t *testing.T) {
	r := profiletest.NewRand(1)
	b := NewBuilder(nil)
	var want []*Entry
	var encoded [][]byte
	all := &labels.Set{}
	for range 30 {
		e, err := Describe(profiletest.GenerateProfiles(r))
		require.NoError(t, err)
		encoded = append(encoded, b.Add(e))
		all.Merge(e.Labels)
		e.Labels = nil
		want = append(want, e)
	}
	encoded = append(encoded, b.Add(nil))
	want = append(want, &Entry{Incomplete: true})
	all.Merge(nil)
	tables, err := ParseTables(b.Tables())
	require.NoError(t, err)
	for i := range want {
		got, err := tables.Entry(encoded[i])
		require.NoError(t, err)
		require.Equal(t, want[i], got)
	}
	text, err := all.MarshalJSON()
	require.NoError(t, err)
	got, err := tables.Labels.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, string(text), string(got))
}

// TestWhatHasNoRoomIsIncomplete: memory that Builders share is never exceeded, and is free after them.
func TestWhatHasNoRoomIsIncomplete(t *testing.T) {
	const room = 64 << 10
	memory := semaphore.NewWeighted(room)
	for range 3 {
		builders := []*Builder{NewBuilder(memory), NewBuilder(memory)}
		incomplete := 0
		for i := range 400 {
			set := labels.NewSet(labels.MaxSize)
			for k := range 3 {
				text := fmt.Sprint("value-", i, "-", k)
				require.NoError(t, set.UnmarshalJSON([]byte(`{"labels":{"key":["`+text+`"]}}`)))
			}
			e := &Entry{Start: 1, End: 2, Samples: 3, Labels: set, Summaries: []Summary{{Key: Key{Service: fmt.Sprint("service-", i)}, Total: Total{Profiles: 1}}}}
			b := builders[i%2]
			data := b.Add(e)
			tables, err := ParseTables(b.Tables())
			require.NoError(t, err)
			got, err := tables.Entry(data)
			require.NoError(t, err)
			require.Equal(t, []any{e.Start, e.End, e.Samples}, []any{got.Start, got.End, got.Samples})
			if got.Incomplete {
				incomplete++
			} else {
				require.Equal(t, e.Summaries, got.Summaries)
			}
		}
		require.Positive(t, incomplete)
		for _, b := range builders {
			b.Release()
		}
		require.True(t, memory.TryAcquire(room))
		memory.Release(room)
	}
}

func FuzzTables(f *testing.F) {
	b := NewBuilder(nil)
	e, err := Describe(profiletest.GenerateProfiles(profiletest.NewRand(1)))
	require.NoError(f, err)
	data := b.Add(e)
	f.Add(b.Tables(), data)
	f.Fuzz(func(_ *testing.T, tables, entry []byte) {
		if parsed, err := ParseTables(tables); err == nil {
			_, _ = parsed.Entry(entry)
		}
	})
}
