// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	oldcompact "github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// sums are the sums of some records by key.
type sums map[contents.Key][3]int64

func (s sums) add(t *testing.T, pd pprofile.Profiles) {
	summaries, err := contents.Summarize(pd)
	require.NoError(t, err)
	for i := range summaries {
		n := s[summaries[i].Key]
		s[summaries[i].Key] = [3]int64{n[0] + int64(summaries[i].Profiles), n[1] + int64(summaries[i].Samples), n[2] + summaries[i].Sum}
	}
}

// TestTheOldStoreHasTheSameSums: random payloads at random times, in the packages that this one replaces and in this one, before and after hours
// and days are compacted.
func TestTheOldStoreHasTheSameSums(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 4, 200)) {
		r := profiletest.NewRand(seed)
		old, d := t.TempDir(), newDirectory(t)
		now := d.now
		clock := func() time.Time { return now }
		format := recordfile.Format{Content: recordfile.OTLPProto, Compression: recordfile.Zstd}
		oldWriter, err := recordfile.OpenWriter(recordfile.Options{
			Directory: old, Format: format, MaxOpen: 10, Rotation: recordfile.Rotation{MaxRecords: 3}, Now: clock,
			Failed: func(err error) { require.NoError(t, err) },
		})
		require.NoError(t, err)
		writer := d.open(func(o *store.Options) { o.Now, o.Rotation = clock, store.Rotation{MaxRecords: 3} })
		payloads := sums{}
		for range 30 {
			now = now.Add(time.Duration(r.Int64N(int64(10 * time.Minute))))
			profiles := profiletest.GenerateExpanded(r)
			for i := range profiles {
				p := &profiles[i]
				move := uint64(now.UnixNano()) - p.Time - p.Duration // it ends now: hours are then the same ones
				p.Time += move
				for _, s := range p.Samples {
					for k := range s.Points {
						s.Points[k].Timestamp = p.Time
					}
				}
				if p.Shape == expand.ShapeValues && r.IntN(2) == 0 {
					p.Type = "inuse_space" // a snapshot
				}
			}
			pd := profiletest.Build(t, profiles...)
			payloads.add(t, pd)
			pd.MarkReadOnly()
			oldRecord, err := archive.Marshal(&pprofile.ProtoMarshaler{}, pd)
			require.NoError(t, err)
			require.NoError(t, oldWriter.Append(oldRecord))
			entry, err := contents.Describe(pd)
			require.NoError(t, err)
			require.NoError(t, writer.Append(store.Record{Data: oldRecord.Data, Entry: entry}))
		}
		require.NoError(t, oldWriter.Close())
		require.NoError(t, writer.Close())
		compactor, oldCompactor := d.compactor(func(o *compact.Options) { o.Now = clock }), oldcompact.New(oldcompact.Options{
			Directory: old, Format: format, After: 30 * time.Minute, MaxMemory: 64 << 20, Now: clock,
			Into:      []oldcompact.Level{{Into: time.Hour, Resolution: time.Minute}, {Into: 24 * time.Hour, Resolution: 10 * time.Minute}},
			Compacted: func(oldcompact.Result) {}, Skipped: func(_ []string, err error) { require.NoError(t, err) },
		})
		require.Equal(t, payloads, d.sums())
		require.Equal(t, payloads, oldSums(t, old))
		for _, later := range []time.Duration{24 * time.Hour, 48 * time.Hour} {
			now = begin.Add(later + 2*time.Hour)
			if later == 24*time.Hour {
				now = begin.Add(later)
			}
			require.NoError(t, compactor.Run(t.Context()))
			for range 4 {
				require.NoError(t, oldCompactor.Run(t.Context()))
				now = now.Add(2 * time.Minute)
			}
			require.Equal(t, oldSums(t, old), d.sums(), fmt.Sprintf("seed %d, after %v", seed, later))
		}
		require.Equal(t, [3]int{0, 0, 1}, d.levels())
		require.Empty(t, d.skipped)
	}
}

func (d *directory) sums() sums {
	all := sums{}
	segments, err := openStore(d.t, d.dir).Live(d.t.Context(), begin.AddDate(-1, 0, 0), begin.AddDate(1, 0, 0), nil)
	require.NoError(d.t, err)
	for _, s := range segments {
		x, err := s.Index(d.t.Context())
		require.NoError(d.t, err)
		for data, err := range s.Records(d.t.Context(), x.Records) {
			require.NoError(d.t, err)
			pd, err := store.Decode(s.Format, data, 64<<20)
			require.NoError(d.t, err)
			all.add(d.t, pd)
		}
	}
	return all
}

func oldSums(t *testing.T, dir string) sums {
	all := sums{}
	files, failed := archive.Find([]string{dir})
	require.Empty(t, failed)
	options := archive.Options{MaxMemory: 512 << 20}
	for _, file := range files {
		if filepath.Base(file.Path)[0] == '.' {
			continue
		}
		for record, err := range options.Records(t.Context(), file, archive.Part{}) {
			require.NoError(t, err)
			pd, err := record.Profiles()
			require.NoError(t, err)
			all.add(t, pd)
		}
	}
	return all
}
