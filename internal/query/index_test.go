// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"context"
	"errors"
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
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// stored is a directory with files of a few records each.
type stored struct {
	*query.Source

	dir   string
	plain *query.Source // a file of the same records without index
}

// indexed writes a store, of a group if there is one.
func indexed(t testing.TB, format segment.Format, payloads ...pprofile.Profiles) *stored {
	t.Helper()
	for _, pd := range payloads {
		pd.MarkReadOnly() // else marshalling replaces strings by references
	}
	s := &stored{dir: t.TempDir(), plain: source(t, payloads...)}
	s.write(t, format, nil, payloads...)
	s.Source = s.open(t)
	return s
}

// open opens the store, without a cache of another one.
func (s *stored) open(t testing.TB) *query.Source {
	opened, err := store.Open(s.dir, store.ReadOptions{MaxRecord: 128 << 20, MaxDecoded: 256 << 20, Cache: 64 << 20})
	require.NoError(t, err)
	t.Cleanup(opened.Close)
	return &query.Source{
		Stores: []query.Lister{opened}, Options: archive.Options{MaxMemory: 1 << 30}, Failed: func(err error) error { return err },
	}
}

func (s *stored) write(t testing.TB, format segment.Format, group []string, payloads ...pprofile.Profiles) {
	t.Helper()
	var rotation store.Rotation
	if len(payloads) > 3 { // then the records of all files but the last one are joined
		rotation.MaxRecords = 3
	}
	w, err := store.OpenWriter(store.Options{
		Directory: s.dir, Format: format, MaxOpen: 10, Rotation: rotation,
		Failed: func(err error) { t.Error(err) }, FileClosed: func(f store.ClosedFile) { assert.NoError(t, f.IndexError) },
	})
	require.NoError(t, err)
	marshaler := pprofile.Marshaler(&pprofile.ProtoMarshaler{})
	if format == segment.JSON {
		marshaler = &pprofile.JSONMarshaler{}
	}
	for _, pd := range payloads {
		entry, err := contents.Describe(pd)
		require.NoError(t, err)
		data, err := marshaler.MarshalProfiles(pd)
		require.NoError(t, err)
		require.NoError(t, w.Append(store.Record{Data: data, Group: group, Entry: entry}))
	}
	require.NoError(t, w.Close())
}

// files are those of the store.
func (s *stored) files(t testing.TB) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), ".") {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// spoil overwrites records of the only file, but not its index, and returns all of its records.
func (s *stored) spoil(t testing.TB, numbers ...int) []segment.Record {
	t.Helper()
	files := s.files(t)
	require.Len(t, files, 1)
	file, err := os.OpenFile(files[0], os.O_RDWR, 0)
	require.NoError(t, err)
	info, err := file.Stat()
	require.NoError(t, err)
	x, _, err := segment.ReadIndex(file, info.Size(), 1<<20)
	require.NoError(t, err)
	for _, i := range numbers {
		_, err = file.WriteAt([]byte("damaged"), x.Records[i].Offset)
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	return x.Records
}

// requireSameRows compares List and Labels of the store with those of files of which everything is read.
func requireSameRows(t *testing.T, s *stored, selections ...query.Selection) {
	t.Helper()
	for _, sel := range selections {
		got, err := s.List(t.Context(), &sel)
		require.NoError(t, err)
		want, err := s.plain.List(t.Context(), &sel)
		require.NoError(t, err)
		require.Equal(t, want, got, "%+v", sel)
		wantLabels, wantErr := s.plain.Labels(t.Context(), &sel)
		gotLabels, err := s.Labels(t.Context(), &sel)
		require.Equal(t, wantErr, err)
		if err != nil {
			continue
		}
		require.Equal(t, wantLabels.Keys(), gotLabels.Keys(), "%+v", sel)
		for _, key := range wantLabels.Keys() {
			values, _ := wantLabels.Values(key)
			gotValues, _ := gotLabels.Values(key)
			require.ElementsMatch(t, values, gotValues)
		}
	}
}

// selectionsOf returns selections by the services, types and times of rows.
func selectionsOf(t *testing.T, s *stored) []query.Selection {
	t.Helper()
	rows, err := s.plain.List(t.Context(), &query.Selection{})
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
	for i, format := range []segment.Format{segment.Proto, segment.JSON} {
		t.Run(string(format), func(t *testing.T) {
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
		s := indexed(t, segment.Proto, profiletest.CorpusOTLP(t)...)
		requireSameRows(t, s, selectionsOf(t, s)...)
	})
}

func TestListHasSnapshotsAfterIntervals(t *testing.T) {
	snapshot := payloadtest.Snapshot("1", 1e9, 1)
	interval := payloadtest.Snapshot("1", 1e9, 2)
	payloadtest.First(interval).SetDurationNano(1)
	s := indexed(t, segment.Proto, snapshot, interval)
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
	s := indexed(t, segment.Proto,
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

// TestListReadsAnIndexInsteadOfRecords damages a record, which the index does not notice.
func TestListReadsAnIndexInsteadOfRecords(t *testing.T) {
	s := indexed(t, segment.Proto, payload(t, cpu(0, 1)))
	s.spoil(t, 0)
	rows, err := s.List(t.Context(), &query.Selection{})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	assert.EqualValues(t, 1, rows[0].Sum)
	_, err = s.List(t.Context(), &query.Selection{Labels: []*labels.Matcher{labels.Equal("thread", "worker")}})
	require.NoError(t, err, "the index says that no sample has the label")
	_, err = s.List(t.Context(), &query.Selection{Labels: []*labels.Matcher{labels.Equal("k8s.pod.name", "a")}})
	failed, isRecord := errors.AsType[*archive.Error](err)
	require.True(t, isRecord, "a selection by labels needs the record")
	assert.Equal(t, []string{"checkout"}, failed.Services)
}

// TestOnlySelectedRecordsAreRead_V1: damage to a record that is not selected is not noticed.
func TestOnlySelectedRecordsAreRead_V1(t *testing.T) {
	s := indexed(t, segment.Proto, payload(t, cpu(0, 1)), payload(t, cpu(60, 2)), payload(t, cpu(120, 4)))
	records := s.spoil(t, 0, 2)
	n := 0
	require.NoError(t, s.Each(t.Context(), &query.Selection{From: at(60), To: at(120)}, func(r *archive.Record, _ pprofile.Profiles) error {
		n++
		assert.Equal(t, 2, r.Number)
		assert.Equal(t, records[1].Offset, r.Offset)
		return nil
	}))
	assert.Equal(t, 1, n)
	require.Error(t, s.Each(t.Context(), &query.Selection{From: at(0), To: at(120)}, func(*archive.Record, pprofile.Profiles) error { return nil }))
}

// TestGroupsOfOtherServicesAreNotRead: their files cannot be opened.
func TestGroupsOfOtherServicesAreNotRead(t *testing.T) {
	dirs := map[string]string{ // by service: as the exporter names them, also on a system that ignores case
		"checkout": "checkout", "Cart": "%43art", "b\xff": "b%FF", "": "_unset", "5": "_int-5",
		strings.Repeat("long", 50): strings.Repeat("long", 18) + "lon~9a", "of many": "_other",
	}
	for service, dir := range dirs {
		for selected := range dirs {
			for i, sel := range []query.Selection{
				{Services: []string{"none", selected}}, {Labels: []*labels.Matcher{labels.Equal("service_name", dictionary.ValidUTF8(selected))}},
			} {
				accepted := sel.AcceptsGroup(t.Context(), "service.name="+dir+"/k=v")
				if service == selected {
					assert.True(t, accepted, "%s, %d", dir, i)
				} else if !strings.ContainsAny(dir, "~") && !strings.HasPrefix(dir, "_") {
					assert.False(t, accepted, "%s for %s, %d", dir, selected, i)
				}
			}
		}
	}
	all := &query.Selection{Services: []string{"none"}}
	for _, group := range []string{"", "k8s.namespace.name=a", "k8s.namespace.name=a/service.name=b"} {
		assert.True(t, all.AcceptsGroup(t.Context(), group), group)
	}
}

// replacing is a Lister after whose first list the files are replaced, so that they are gone when they are read.
type replacing struct {
	query.Lister

	replace func()
	lists   int
}

func (l *replacing) Live(ctx context.Context, from, to time.Time, accepts func(string) bool) ([]*store.Segment, error) {
	l.lists++
	segments, err := l.Lister.Live(ctx, from, to, accepts)
	if l.lists == 1 {
		l.replace()
	}
	return segments, err
}

// TestFilesThatAreGoneAreListedAgain: each profile counts once, also those that were read of a list before.
func TestFilesThatAreGoneAreListedAgain(t *testing.T) {
	var payloads []pprofile.Profiles
	for i := range 7 { // of three files
		payloads = append(payloads, payload(t, cpu(i, 1<<i)))
	}
	queries := map[string]func(*query.Source) (int64, error){
		"Merge": func(s *query.Source) (int64, error) {
			result, err := s.Merge(t.Context(), &query.Selection{}, true)
			if err != nil {
				return 0, err
			}
			rows, err := source(t, result.Profiles).List(t.Context(), &query.Selection{})
			return rows[0].Sum, err
		},
		"List": func(s *query.Source) (int64, error) {
			rows, err := s.List(t.Context(), &query.Selection{})
			if err != nil {
				return 0, err
			}
			return rows[0].Sum, nil
		},
		"EachSummary": func(s *query.Source) (sum int64, err error) {
			err = query.Repeat(func() error {
				sum = 0
				return s.EachSummary(t.Context(), &query.Selection{}, nil, func(_ []string, of *contents.Summary) error {
					sum += of.Sum
					return nil
				})
			})
			return sum, err
		},
	}
	for name, sum := range queries {
		t.Run(name, func(t *testing.T) {
			s := indexed(t, segment.Proto, payloads...)
			lister := &replacing{Lister: s.Stores[0]}
			lister.replace = func() {
				files := s.files(t)
				require.Len(t, files, 3)
				require.NoError(t, os.Remove(files[1]))
				s.write(t, segment.Proto, nil, payloads[3:6]...)
			}
			gone := 0
			s.Stores[0], s.Gone = lister, func() { gone++ }
			got, err := sum(s.Source)
			require.NoError(t, err)
			assert.EqualValues(t, 1<<7-1, got)
			assert.Equal(t, 2, lister.lists)
			assert.Equal(t, 1, gone)
		})
	}
	t.Run("each time", func(t *testing.T) {
		n := 0
		require.ErrorIs(t, query.Repeat(func() error { n++; return fmt.Errorf("a file: %w", store.ErrGone) }), store.ErrGone)
		assert.Equal(t, 8, n)
	})
}
