// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/goleak"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begin is the start of a day.
var begin = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

var format = recordfile.Format{Content: recordfile.OTLPProto, Compression: recordfile.Zstd}

// history is a directory of files.
type history struct {
	t       *testing.T
	dir     string
	levels  int
	results []compact.Result
	skipped []string
}

func newHistory(t *testing.T) *history { return &history{t: t, dir: t.TempDir()} }

// write writes a file that was created at a time.
func (h *history) write(at time.Time, group []string, payloads ...pprofile.Profiles) {
	h.t.Helper()
	w, err := recordfile.OpenWriter(recordfile.Options{
		Directory: h.dir, Levels: h.levels, Format: format, MaxOpen: 10, Now: func() time.Time { return at },
		Failed: func(err error) { assert.NoError(h.t, err) },
	})
	require.NoError(h.t, err)
	for _, pd := range payloads {
		summaries, err := recordfile.Summarize(pd)
		require.NoError(h.t, err)
		of := labels.Of(pd)
		require.NoError(h.t, w.Append(recordfile.Record{Data: profiletest.Proto(h.t, pd), Group: group, Summaries: summaries, Labels: of}))
	}
	require.NoError(h.t, w.Close())
}

// writeRandom writes files of about n minutes from a time on.
func (h *history) writeRandom(r *rand.Rand, from time.Time, n int, group ...string) {
	h.t.Helper()
	for minute := range n {
		at := from.Add(time.Duration(minute) * time.Minute)
		var payloads []pprofile.Profiles
		for range 1 + r.IntN(2) {
			profiles := profiletest.GenerateExpanded(r)
			for i := range profiles {
				p := &profiles[i]
				move := uint64(at.Add(-time.Duration(r.Int64N(int64(2*time.Minute)))).UnixNano()) - p.Time
				p.Time += move
				for _, s := range p.Samples {
					for k := range s.Points {
						s.Points[k].Timestamp += move
					}
				}
				if p.Shape == expand.ShapeValues && r.IntN(2) == 0 {
					p.Type = "inuse_space" // a snapshot
				}
			}
			pd, err := expand.Build(profiles)
			require.NoError(h.t, err)
			payloads = append(payloads, pd)
		}
		h.write(at.Add(time.Duration(r.IntN(50))*time.Second), group, payloads...)
	}
}

func (h *history) options(now time.Time) compact.Options {
	return compact.Options{
		Directory: h.dir, Levels: h.levels, Format: format, After: time.Hour, MaxMemory: 64 << 20,
		Into:      []compact.Level{{Into: time.Hour, Resolution: time.Minute}, {Into: 24 * time.Hour, Resolution: 10 * time.Minute}},
		Compacted: func(result compact.Result) { h.results = append(h.results, result) },
		Skipped:   func(path string, _ error) { h.skipped = append(h.skipped, path) },
		Now:       func() time.Time { return now },
	}
}

// run compacts what is due at a time. A second call removes the inputs, as the manifests are older than a minute for it.
func (h *history) run(now time.Time) {
	h.t.Helper()
	require.NoError(h.t, compact.New(h.options(now)).Run(h.t.Context()))
}

// names are those of all files, also hidden ones, without indexes.
func (h *history) names() (names []string) {
	h.t.Helper()
	require.NoError(h.t, filepath.WalkDir(h.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, recordfile.IndexSuffix) && entry.Name() != ".compact.lock" {
			name, _ := filepath.Rel(h.dir, path)
			names = append(names, name)
		}
		return err
	}))
	return names
}

// sums is what a query shows of a range: by all that tells samples apart, but for times.
func (h *history) sums(service string, from, to time.Time) map[string]string {
	h.t.Helper()
	files, failed := archive.Find([]string{h.dir})
	require.Empty(h.t, failed)
	source := &query.Source{Files: files, Options: archive.Options{MaxMemory: 1 << 30}, Failed: func(err error) error { return err }}
	sel := &query.Selection{From: from, To: to}
	if service != "" {
		sel.Services = []string{service}
	}
	result, err := source.Merge(h.t.Context(), sel, false)
	if errors.Is(err, query.ErrEmpty) {
		return map[string]string{}
	}
	require.NoError(h.t, err)
	profiles, err := expand.Profiles(result.Profiles)
	require.NoError(h.t, err)
	samples := map[string]*expand.Sample{}
	for _, p := range profiles {
		p.Scope.Version = "" // a query leaves it out of scopes with snapshots
		for _, s := range p.Samples {
			key := fmt.Sprint(p.Resource, p.Scope, p.Type, p.Unit, p.PeriodType, p.PeriodUnit, p.Period, p.Attributes, p.Shape, s.Identity())
			if known := samples[key]; known != nil {
				known.Sum.Add(known.Sum, s.Sum)
				known.Points = append(known.Points, s.Points...)
			} else {
				samples[key] = s
			}
		}
	}
	sums := map[string]string{}
	for key, s := range samples {
		slices.SortFunc(s.Points, expand.Point.Compare)
		sums[key] = fmt.Sprint(s.Sum, s.Points)
	}
	return sums
}

// difference says how sums differ.
func difference(want, got map[string]string) (differ []string) {
	for key, sum := range want {
		if got[key] != sum && len(differ) < 3 {
			differ = append(differ, fmt.Sprintf("%s: want %s, got %q", key, sum, got[key]))
		}
	}
	if len(got) > len(want) && len(differ) == 0 {
		differ = append(differ, fmt.Sprintf("%d more", len(got)-len(want)))
	}
	return differ
}

// TestQueriesOverWholeSlotsStayTheSame: intervals, snapshots, timestamps and links of several services, before, after the first
// and after the second level.
func TestQueriesOverWholeSlotsStayTheSame(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 2, 300)) {
		r := profiletest.NewRand(seed)
		h := newHistory(t)
		h.writeRandom(r, begin.Add(52*time.Minute), 16)
		type span struct {
			service  string
			from, to time.Time
		}
		spans := func(resolution time.Duration) (all []span) {
			all = append(all, span{"", begin, begin.Add(24 * time.Hour)})
			for range 8 {
				start := begin.Add(50 * time.Minute).Add(time.Duration(r.IntN(int(30*time.Minute/resolution))) * resolution)
				all = append(all, span{[]string{"", "service-0", "service-3"}[r.IntN(3)], start, start.Add(time.Duration(1+r.IntN(20)) * resolution)})
			}
			return all
		}
		check := func(resolution time.Duration, compacted func()) {
			all := spans(resolution)
			var before []map[string]string
			for _, s := range all {
				before = append(before, h.sums(s.service, s.from, s.to))
			}
			require.NotEmpty(t, before[0])
			compacted()
			for i, s := range all {
				require.Empty(t, difference(before[i], h.sums(s.service, s.from, s.to)), "seed %d: %v", seed, s)
			}
		}
		check(time.Minute, func() { h.run(begin.Add(4 * time.Hour)) })
		assert.Len(t, h.results, 2, "two hours")
		check(time.Minute, func() { h.run(time.Now().Add(2 * time.Hour)) }) // removes the inputs, and makes the day
		check(10*time.Minute, func() { h.run(time.Now().Add(2 * time.Hour)) })
		assert.Equal(t, []string{"profiles-20261120T000000.000Z-000001.24h0m0s.otlp.pb.zst"}, h.names())
	}
}

// TestOnlyWhatIsDueIsCompacted: a bucket that has ended less than After ago stays, and so do files that are being written.
func TestOnlyWhatIsDueIsCompacted(t *testing.T) {
	h := newHistory(t)
	r := profiletest.NewRand(1)
	h.writeRandom(r, begin.Add(59*time.Minute), 2)
	h.run(begin.Add(2 * time.Hour).Add(-time.Second))
	assert.Empty(t, h.results)
	h.run(begin.Add(2 * time.Hour))
	require.Len(t, h.results, 1)
	assert.Equal(t, 1, h.results[0].Inputs)
	h.run(begin.Add(2 * time.Hour))
	assert.Len(t, h.results, 1, "it is compacted once")

	h.writeRandom(r, begin.Add(30*time.Minute), 1) // a late one
	want := h.sums("", begin, begin.Add(3*time.Hour))
	h.run(begin.Add(2 * time.Hour))
	require.Len(t, h.results, 2)
	assert.Contains(t, h.results[1].Path, "profiles-20261120T000000.000Z-000002.1h0m0s")
	assert.Empty(t, difference(want, h.sums("", begin, begin.Add(3*time.Hour))))
}

func TestGroupsAreCompactedApart(t *testing.T) {
	h := newHistory(t)
	h.levels = 2
	r := profiletest.NewRand(2)
	for _, group := range [][]string{{"a", "x"}, {"a", "y"}, {"b", "x"}} {
		h.writeRandom(r, begin, 3, group...)
	}
	want := h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))
	h.run(begin.Add(3 * time.Hour))
	assert.Len(t, h.results, 3)
	h.run(time.Now().Add(time.Hour))
	h.run(time.Now().Add(time.Hour))
	assert.Empty(t, difference(want, h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))))
	for _, name := range h.names() {
		assert.Regexp(t, `^[ab]/[xy]/profiles-20261120T000000.000Z-000001.24h0m0s`, name)
	}
}

// TestDamagedInputsStay: the others are compacted, and the damaged one is named once.
func TestDamagedInputsStay(t *testing.T) {
	h := newHistory(t)
	r := profiletest.NewRand(3)
	h.writeRandom(r, begin, 3)
	names := h.names()
	path := filepath.Join(h.dir, names[1])
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o600))
	c := compact.New(h.options(begin.Add(3 * time.Hour)))
	for range 2 {
		require.NoError(t, c.Run(t.Context()))
	}
	assert.Equal(t, []string{path}, h.skipped)
	require.Len(t, h.results, 1)
	assert.Equal(t, 2, h.results[0].Inputs)
	h.run(time.Now().Add(time.Hour))
	assert.Contains(t, h.names(), names[1])
}

func TestASecondProcessWaits(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(4), begin, 2)
	dir, err := recordfile.OpenDir(h.dir)
	require.NoError(t, err)
	lock, err := dir.Create(".compact.lock")
	require.NoError(t, err)
	require.NoError(t, lock.Lock())
	h.run(begin.Add(3 * time.Hour))
	assert.Empty(t, h.results)
	require.NoError(t, errors.Join(lock.Close(), dir.Close()))
	h.run(begin.Add(3 * time.Hour))
	assert.Len(t, h.results, 1)
}

func TestCancelledRunLeavesTheInputs(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(5), begin, 5)
	want := h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))
	names := h.names()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = compact.New(h.options(begin.Add(3 * time.Hour))).Run(ctx)
	assert.Equal(t, names, h.names())
	assert.Empty(t, difference(want, h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))))
}

// TestLockedInputsAreRemovedLater: a reader in another process may read them.
func TestLockedInputsAreRemovedLater(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(6), begin, 2)
	names := h.names()
	want := h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))
	h.run(begin.Add(3 * time.Hour))
	dir, err := recordfile.OpenDir(h.dir)
	require.NoError(t, err)
	reader, err := dir.Open(names[0])
	require.NoError(t, err)
	require.NoError(t, reader.Lock())
	later := time.Now().Add(5 * time.Minute)
	options := h.options(later)
	options.Into = options.Into[:1]
	require.NoError(t, compact.New(options).Run(t.Context()))
	assert.Contains(t, h.names(), names[0])
	assert.NotContains(t, h.names(), names[1])
	assert.Empty(t, difference(want, h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))))
	require.NoError(t, errors.Join(reader.Close(), dir.Close()))
	require.NoError(t, compact.New(options).Run(t.Context()))
	assert.Len(t, h.names(), 1)
}

// TestFilesWhoseManifestMustStayAreNoInputs: of an hour that was not uploaded, the bucket still has the minutes, which only its
// manifest names.
func TestFilesWhoseManifestMustStayAreNoInputs(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(6), begin, 2)
	h.run(begin.Add(3 * time.Hour))
	require.Len(t, h.results, 1)
	hour := filepath.Base(h.results[0].Path)
	options := h.options(time.Now().Add(5 * time.Minute))
	options.Keep = func(name string) bool { return name == hour }
	for range 2 {
		require.NoError(t, compact.New(options).Run(t.Context()))
		assert.Len(t, h.results, 1)
		assert.ElementsMatch(t, []string{hour, archive.ManifestName(hour)}, h.names())
	}
	options.Keep = nil
	require.NoError(t, compact.New(options).Run(t.Context()))
	assert.Len(t, h.results, 2)
}

// TestQueriesDuringCompactionAreExact: readers list and read while files are compacted and removed.
func TestQueriesDuringCompactionAreExact(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(7), begin, 20)
	from, to := begin.Add(-time.Hour), begin.Add(2*time.Hour)
	want := h.sums("", from, to)
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for reading := true; reading; {
			select {
			case <-done:
				reading = false
			default:
			}
			assert.Empty(t, difference(want, h.sums("", from, to)))
		}
	})
	h.run(begin.Add(3 * time.Hour))
	close(done)
	readers.Wait()
}

func TestALargeBucketBecomesSeveralRecords(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(8), begin, 10)
	want := h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))
	options := h.options(begin.Add(3 * time.Hour))
	options.MaxMemory = 1 << 20 // a window of 256 KiB
	require.NoError(t, compact.New(options).Run(t.Context()))
	require.Len(t, h.results, 1)
	assert.Greater(t, h.results[0].Records, 6, "more than the services")
	assert.Empty(t, difference(want, h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))))
}
