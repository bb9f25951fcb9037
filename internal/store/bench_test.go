// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// BenchmarkLive lists all of a store. Ten times the files take at most 12 times as long.
func BenchmarkLive(b *testing.B) {
	for _, files := range []int{5_000, 50_000} {
		b.Run(fmt.Sprint(files, " files"), func(b *testing.B) {
			dir := b.TempDir()
			const each = 50 // files of an hour
			for i := range files {
				hour := begin.Add(time.Duration(i/each) * time.Hour)
				stem := fmt.Sprintf("%s-%012x", hour.Format(layout.CreatedTime), i)
				bounds := layout.Bounds{Start: uint64(hour.UnixNano()), End: uint64(hour.Add(time.Minute).UnixNano())}
				name := filepath.Join(dir, "service.name=checkout", hour.Format(layout.HourPath), layout.WrittenBase(stem, &bounds, segment.Proto))
				if i%each == 0 {
					require.NoError(b, os.MkdirAll(filepath.Dir(name), 0o700))
				}
				require.NoError(b, os.WriteFile(name, nil, 0o600))
			}
			s := openStore(b, dir)
			for b.Loop() {
				segments, err := s.Live(b.Context(), begin, begin.AddDate(1, 0, 0), nil)
				require.NoError(b, err)
				require.Len(b, segments, files)
			}
		})
	}
}

// BenchmarkAppend writes records of several groups in turn: with more groups than open files, a record takes at most twice as long.
func BenchmarkAppend(b *testing.B) {
	for _, groups := range []int{16, 160} {
		b.Run(fmt.Sprint(groups, " groups, 50 open files"), func(b *testing.B) {
			d := &directory{dir: b.TempDir(), now: begin}
			w, err := store.OpenWriter(store.Options{
				Directory: d.dir, Format: segment.Proto, MaxOpen: 50, Now: func() time.Time { return begin }, Failed: func(err error) { b.Error(err) },
			})
			require.NoError(b, err)
			records := make([]store.Record, groups)
			for i := range records {
				records[i] = newRecord(b, segment.Proto, fmt.Sprint("service-", i), i, begin, begin)
				require.NoError(b, w.Append(records[i]))
			}
			i := 0
			for b.Loop() {
				if err := w.Append(records[i%groups]); err != nil {
					b.Fatal(err)
				}
				i++
			}
			require.NoError(b, w.Close())
		})
	}
}
