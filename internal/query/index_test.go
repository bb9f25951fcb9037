// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// indexed writes files of a few records each, with indexes, and returns a Source of them.
func indexed(t *testing.T, format recordfile.Format, payloads ...pprofile.Profiles) *query.Source {
	t.Helper()
	dir := t.TempDir()
	w, err := recordfile.OpenWriter(recordfile.Options{
		Directory: dir, Format: format, MaxOpen: 1, Rotation: recordfile.Rotation{MaxRecords: 3},
		Failed: func(err error) { t.Error(err) }, FileClosed: func(f recordfile.ClosedFile) { assert.NoError(t, f.IndexError) },
	})
	require.NoError(t, err)
	for _, pd := range payloads {
		marshaler := pprofile.Marshaler(&pprofile.ProtoMarshaler{})
		if format.Content == recordfile.OTLPJSON {
			marshaler = &pprofile.JSONMarshaler{}
		}
		record, err := archive.Marshal(marshaler, pd)
		require.NoError(t, err)
		require.NotEmpty(t, record.Summaries)
		require.NoError(t, w.Append(record))
	}
	require.NoError(t, w.Close())
	files, failed := archive.Find([]string{dir})
	require.Empty(t, failed)
	return &query.Source{
		Files: files, Options: archive.Options{MaxMemory: 1 << 30}, Failed: func(err error) error { return err },
	}
}

// withoutIndexes returns the files as links in another directory.
func withoutIndexes(t *testing.T, s *query.Source) *query.Source {
	t.Helper()
	dir, plain := t.TempDir(), *s
	plain.Files = nil
	for _, f := range s.Files {
		path := filepath.Join(dir, filepath.Base(f.Path))
		require.NoError(t, os.Link(f.Path, path))
		plain.Files = append(plain.Files, archive.File{Path: path, Size: f.Size})
	}
	return &plain
}

func countIndexed(s *query.Source) (n int) {
	for _, f := range s.Files {
		if s.Options.StoredIndex(context.Background(), f) != nil {
			n++
		}
	}
	return n
}

// requireSameRows compares List by indexes with List by files.
func requireSameRows(t *testing.T, s *query.Source, selections ...query.Selection) {
	t.Helper()
	plain := withoutIndexes(t, s)
	require.Equal(t, len(s.Files), countIndexed(s))
	require.Zero(t, countIndexed(plain))
	for _, sel := range selections {
		got, err := s.List(t.Context(), &sel)
		require.NoError(t, err)
		want, err := plain.List(t.Context(), &sel)
		require.NoError(t, err)
		require.Equal(t, want, got, "%+v", sel)
	}
}

// selectionsOf returns selections by the services, types and times of rows.
func selectionsOf(t *testing.T, s *query.Source) []query.Selection {
	t.Helper()
	rows, err := withoutIndexes(t, s).List(t.Context(), &query.Selection{})
	require.NoError(t, err)
	selections := []query.Selection{{}, {Services: []string{"none"}}}
	for i, row := range rows {
		if i == 3 {
			break
		}
		middle := time.Unix(0, int64(row.Start/2+row.End/2))
		selections = append(selections,
			query.Selection{Services: []string{row.Service}}, query.Selection{Types: []string{row.SampleType}},
			query.Selection{From: time.Unix(0, int64(row.Start))}, query.Selection{To: time.Unix(0, int64(row.Start))},
			query.Selection{From: middle}, query.Selection{To: middle, Types: []string{row.Type}},
			query.Selection{From: time.Unix(0, int64(row.Start)), To: time.Unix(0, int64(row.End)+1)})
	}
	return selections
}

var indexedFormats = []recordfile.Format{
	{Content: recordfile.OTLPProto}, {Content: recordfile.OTLPProto, Compression: recordfile.Gzip}, {Content: recordfile.OTLPProto, Compression: recordfile.Zstd},
	{Content: recordfile.OTLPJSON}, {Content: recordfile.OTLPJSON, Compression: recordfile.Gzip}, {Content: recordfile.OTLPJSON, Compression: recordfile.Zstd},
}

// withoutLargeValues keeps sums below those that are saturated, which depend on the order of values.
func withoutLargeValues(pd pprofile.Profiles) pprofile.Profiles {
	for p := range sampletypes.ProfilesOf(pd) {
		for _, s := range p.Samples().All() {
			for i, v := range s.Values().All() {
				s.Values().SetAt(i, v>>20)
			}
		}
	}
	return pd
}

func TestListByIndexEqualsListByFile(t *testing.T) {
	for i, format := range indexedFormats {
		t.Run(fmt.Sprint(format.Content, format.Compression), func(t *testing.T) {
			var payloads []pprofile.Profiles
			random := profiletest.NewRand(7)
			for range 40 {
				payloads = append(payloads, withoutLargeValues(profiletest.GenerateProfiles(random)))
			}
			s := indexed(t, format, payloads...)
			selections := selectionsOf(t, s)
			if i > 0 {
				selections = selections[:4] // formats differ in how records are decoded only
			}
			requireSameRows(t, s, selections...)
		})
	}
	t.Run("corpus", func(t *testing.T) {
		s := indexed(t, indexedFormats[2], profiletest.CorpusOTLP(t)...)
		requireSameRows(t, s, selectionsOf(t, s)...)
	})
}

func TestListHasSnapshotsAfterIntervals(t *testing.T) {
	snapshot := payloadtest.Snapshot("1", 1e9, 1)
	interval := payloadtest.Snapshot("1", 1e9, 2)
	payloadtest.First(interval).SetDurationNano(1)
	s := indexed(t, recordfile.Format{Content: recordfile.OTLPProto}, snapshot, interval)
	for range 20 {
		rows, err := s.List(t.Context(), &query.Selection{})
		require.NoError(t, err)
		require.Len(t, rows, 2)
		require.False(t, rows[0].Snapshot)
		require.True(t, rows[1].Snapshot)
	}
}

func TestListByIndexEqualsListByFileInTimeRanges(t *testing.T) {
	stamped := cpu(5, 3)
	stamped.timestamps = []int{5, 8, 12}
	s := indexed(t, indexedFormats[0],
		payload(t, cpu(0, 1), cpu(10, 2), heap("a", 0, 5), heap("b", 3, 7)),
		payload(t, heap("a", 20, 2), heap("a", 12, 9), heap("a", 20, 3)),
		payload(t, stamped, cpu(30, 8)), payload(t, cpu(31, 1), heap("b", 1, 4)))
	var selections []query.Selection
	for cut := range 45 {
		selections = append(selections, query.Selection{From: at(cut)}, query.Selection{To: at(cut)},
			query.Selection{From: at(cut), To: at(cut + 9), Types: []string{"inuse_space"}}, query.Selection{From: at(cut), Labels: []*labels.Matcher{labels.Equal("k8s.pod.name", "a")}})
	}
	requireSameRows(t, s, selections...)
}

// TestListReadsAnIndexInsteadOfTheFile replaces the content of a file, which its index does not notice.
func TestListReadsAnIndexInsteadOfTheFile(t *testing.T) {
	s := indexed(t, indexedFormats[0], payload(t, cpu(0, 1)))
	require.NoError(t, os.WriteFile(s.Files[0].Path, make([]byte, s.Files[0].Size), 0o600))
	rows, err := s.List(t.Context(), &query.Selection{})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	assert.EqualValues(t, 1, rows[0].Sum)
	_, err = s.List(t.Context(), &query.Selection{Labels: []*labels.Matcher{labels.Equal("thread", "worker")}})
	require.NoError(t, err, "the index says that no sample has the label")
	_, err = s.List(t.Context(), &query.Selection{Labels: []*labels.Matcher{labels.Equal("k8s.pod.name", "a")}})
	assert.Error(t, err, "a selection by labels needs the file")
}

// TestOnlySelectedRecordsAreRead_V1: damage to a record that is not selected is not noticed.
func TestOnlySelectedRecordsAreRead_V1(t *testing.T) {
	for name, format := range map[string]recordfile.Format{
		"zstd":         {Content: recordfile.OTLPProto, Compression: recordfile.Zstd},
		"uncompressed": {Content: recordfile.OTLPProto},
		"gzip lines":   {Content: recordfile.OTLPJSON, Compression: recordfile.Gzip},
		"lines":        {Content: recordfile.OTLPJSON},
	} {
		t.Run(name, func(t *testing.T) {
			s := indexed(t, format, payload(t, cpu(0, 1)), payload(t, cpu(60, 2)), payload(t, cpu(120, 4)))
			require.Len(t, s.Files, 1)
			records, err := s.Options.StoredIndex(t.Context(), s.Files[0]).Records()
			require.NoError(t, err)
			file, err := os.OpenFile(s.Files[0].Path, os.O_WRONLY, 0)
			require.NoError(t, err)
			for _, r := range []int{0, 2} {
				_, err = file.WriteAt([]byte("damaged"), records[r].Offset)
				require.NoError(t, err)
			}
			require.NoError(t, file.Close())

			n := 0
			require.NoError(t, s.Each(t.Context(), &query.Selection{From: at(60), To: at(120)}, func(r *archive.Record, _ pprofile.Profiles) error {
				n++
				assert.Equal(t, 2, r.Number)
				assert.Equal(t, records[1].Offset, r.Offset)
				return nil
			}))
			assert.Equal(t, 1, n)
			require.Error(t, s.Each(t.Context(), &query.Selection{From: at(0), To: at(120)}, func(*archive.Record, pprofile.Profiles) error { return nil }))
		})
	}
}
