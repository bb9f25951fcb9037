// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"bytes"
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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

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

	now       time.Time
	compactor *compact.Compactor
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
		record, err := archive.Marshal(&pprofile.ProtoMarshaler{}, pd)
		require.NoError(h.t, err)
		record.Group = group
		require.NoError(h.t, w.Append(record))
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
			payloads = append(payloads, profiletest.Build(h.t, profiles...))
		}
		h.write(at.Add(time.Duration(r.IntN(50))*time.Second), group, payloads...)
	}
}

func (h *history) options() compact.Options {
	return compact.Options{
		Directory: h.dir, Levels: h.levels, Format: format, After: time.Hour, MaxMemory: 64 << 20,
		Into:      []compact.Level{{Into: time.Hour, Resolution: time.Minute}, {Into: 24 * time.Hour, Resolution: 10 * time.Minute}},
		Compacted: func(result compact.Result) { h.results = append(h.results, result) },
		Skipped:   func(paths []string, _ error) { h.skipped = append(h.skipped, paths...) },
		Now:       func() time.Time { return h.now },
	}
}

// start starts another process, which has forgotten all.
func (h *history) start(change ...func(*compact.Options)) {
	options := h.options()
	for _, c := range change {
		c(&options)
	}
	h.compactor = compact.New(options)
}

// run compacts what is due at a time.
func (h *history) run(now time.Time) {
	h.t.Helper()
	if h.compactor == nil {
		h.start()
	}
	h.now = now
	require.NoError(h.t, h.compactor.Run(h.t.Context()))
}

// finish makes what is due at a time, and removes the inputs.
func (h *history) finish(now time.Time) {
	h.t.Helper()
	for range 4 {
		h.run(now)
		now = now.Add(2 * time.Minute)
	}
}

// names are those of all files, also hidden ones, without indexes and manifests. Each file that replaces others has a manifest.
func (h *history) names() (names []string) {
	h.t.Helper()
	require.NoError(h.t, filepath.WalkDir(h.dir, func(path string, entry fs.DirEntry, err error) error {
		if _, isManifest := recordfile.ManifestOf(entry.Name()); err != nil || isManifest {
			return err
		}
		if !entry.IsDir() && !strings.HasSuffix(path, recordfile.IndexSuffix) && entry.Name() != ".compact.lock" {
			name, _ := filepath.Rel(h.dir, path)
			names = append(names, name)
		}
		if parsed, ours := recordfile.ParseName(entry.Name()); ours && parsed.Span > 0 {
			assert.FileExists(h.t, filepath.Join(filepath.Dir(path), recordfile.ManifestName(entry.Name())))
		}
		return nil
	}))
	return names
}

// sums is what queries show of a range: by all that tells samples apart, but for times, and by kind and steps of a length.
func (h *history) sums(service string, from, to time.Time, step ...time.Duration) map[string]string {
	h.t.Helper()
	sums, err := h.query(service, from, to, step...)
	require.NoError(h.t, err)
	return sums
}

func (h *history) query(service string, from, to time.Time, step ...time.Duration) (map[string]string, error) {
	files, failed := archive.Find([]string{h.dir})
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	source := &query.Source{Files: files, Options: archive.Options{MaxMemory: 1 << 30}, Failed: func(err error) error { return err }}
	sel := &query.Selection{From: from, To: to}
	if service != "" {
		sel.Services = []string{service}
	}
	sums := map[string]string{}
	result, err := source.Merge(h.t.Context(), sel, false)
	if errors.Is(err, query.ErrEmpty) {
		return sums, nil
	}
	if err != nil {
		return nil, err
	}
	profiles, err := expand.Profiles(result.Profiles)
	if err != nil {
		return nil, err
	}
	samples := map[string]*expand.Sample{}
	for _, p := range expand.Normalize(profiles, expand.Options{SameCode: true}) {
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
	for key, s := range samples {
		slices.SortFunc(s.Points, expand.Point.Compare)
		sums[key] = fmt.Sprint(s.Sum, s.Points)
	}
	rows, err := source.List(h.t.Context(), sel)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		sums[fmt.Sprint(row.Kind)] = fmt.Sprint(row.Sum)
	}
	for _, length := range step {
		if err := addSteps(h.t.Context(), sums, source, sel, query.Steps{From: from, Length: length, Count: int(to.Sub(from) / length)}); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// addSteps adds the sums of each step.
func addSteps(ctx context.Context, sums map[string]string, source *query.Source, sel *query.Selection, steps query.Steps) error {
	type place struct {
		step int
		key  contents.Key
	}
	totals := map[place]*contents.Summary{}
	err := source.EachStep(ctx, sel, steps, nil, func(step int, _ []string, of *contents.Summary) error {
		if known := totals[place{step, of.Key}]; known != nil {
			known.Add(of)
		} else {
			own := *of
			totals[place{step, of.Key}] = &own
		}
		return nil
	})
	for at, total := range totals {
		sums[fmt.Sprint(at)] = fmt.Sprint(total.Sum)
	}
	return err
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
				before = append(before, h.sums(s.service, s.from, s.to, resolution))
			}
			require.NotEmpty(t, before[0])
			compacted()
			for i, s := range all {
				require.Empty(t, difference(before[i], h.sums(s.service, s.from, s.to, resolution)), "seed %d: %v", seed, s)
			}
		}
		check(time.Minute, func() { h.run(begin.Add(4 * time.Hour)) })
		assert.Len(t, h.results, 2, "two hours")
		check(time.Minute, func() { h.finish(begin.Add(4 * time.Hour)) })
		assert.Equal(t, []string{"profiles-20261120T000000.000Z-000001.1h0m0s.otlp.pb.zst", "profiles-20261120T010000.000Z-000002.1h0m0s.otlp.pb.zst"}, h.names())
		check(10*time.Minute, func() { h.finish(begin.Add(25 * time.Hour)) })
		assert.Equal(t, []string{"profiles-20261120T000000.000Z-000003.24h0m0s.otlp.pb.zst"}, h.names())
	}
}

// TestOnlyWhatIsDueIsCompacted: a bucket that has ended less than After ago stays, and so do files that are being written.
func TestOnlyWhatIsDueIsCompacted(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(1), begin.Add(59*time.Minute), 2)
	h.run(begin.Add(2 * time.Hour).Add(-time.Second))
	assert.Empty(t, h.results)
	h.run(begin.Add(2 * time.Hour))
	require.Len(t, h.results, 1)
	assert.Equal(t, 1, h.results[0].Inputs)
	h.run(begin.Add(2 * time.Hour))
	assert.Len(t, h.results, 1, "it is compacted once")
}

func TestGroupsAreCompactedApart(t *testing.T) {
	h := newHistory(t)
	h.levels = 2
	r := profiletest.NewRand(2)
	for _, group := range [][]string{{"a", "x"}, {"a", "y"}, {"b", "x"}} {
		h.writeRandom(r, begin, 3, group...)
	}
	want := h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))
	h.finish(begin.Add(3 * time.Hour))
	assert.Len(t, h.results, 3)
	h.finish(begin.Add(30 * time.Hour))
	assert.Empty(t, difference(want, h.sums("", begin.Add(-time.Hour), begin.Add(time.Hour))))
	assert.Len(t, h.names(), 3)
	for _, name := range h.names() {
		assert.Regexp(t, `^[ab]/[xy]/profiles-20261120T000000.000Z-000002.24h0m0s`, name)
	}
}

// TestBadInputsStay: the others are compacted, and each bad one is named once.
func TestBadInputsStay(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(3), begin, 5)
	names := h.names()
	for _, bad := range []int{1, 3} {
		path := filepath.Join(h.dir, names[bad])
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data[len(data)/2] ^= 1
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	invalid := profiletest.GenerateProfiles(profiletest.NewRand(3))
	invalid.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).AttributeIndices().Append(1 << 20)
	h.write(begin.Add(20*time.Minute), nil, invalid)
	for minute := range 3 {
		large := payloadtest.Interval(uint64(begin.UnixNano()), 1e9, 1<<62)
		h.write(begin.Add(time.Duration(30+minute)*time.Minute), nil, large)
	}
	h.write(begin.Add(40*time.Minute), nil, pprofile.NewProfiles())
	h.finish(begin.Add(3 * time.Hour))
	require.Len(t, h.results, 1)
	assert.Equal(t, 5, h.results[0].Inputs, "three random ones, a large sum, and an empty one")
	left := h.names()
	require.Len(t, left, 6)
	for _, name := range left[1:] {
		assert.Contains(t, h.skipped, filepath.Join(h.dir, name))
	}
	assert.Len(t, h.skipped, 5)

	h.write(begin.Add(26*time.Hour), nil, pprofile.NewProfiles())
	h.finish(begin.Add(29 * time.Hour))
	assert.Len(t, h.skipped, 6, "nothing is made of files without profiles")
	assert.Len(t, h.results, 2, "the day")
}

// TestInputsRemovedByRetention: a file that is gone is no error, and the others are compacted.
func TestInputsRemovedByRetention(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(3), begin, 3)
	names, removed := h.names(), false
	h.start(func(o *compact.Options) {
		o.OpenDir = hooked(func(call string) error {
			if strings.HasPrefix(call, "Lstat "+names[1]) && !removed {
				removed = true
				return os.Remove(filepath.Join(h.dir, names[1]))
			}
			return nil
		})
	})
	h.run(begin.Add(3 * time.Hour))
	require.Len(t, h.results, 1)
	assert.Equal(t, 2, h.results[0].Inputs)
	assert.Empty(t, h.skipped)
}

// TestTwoProcessesCompactOneDirectory: each file is made once.
func TestTwoProcessesCompactOneDirectory(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(12), begin.Add(55*time.Minute), 10)
	want := h.sums("", begin, begin.Add(2*time.Hour))
	h.now = begin.Add(4 * time.Hour)
	var made atomic.Int32
	var processes sync.WaitGroup
	for range 2 {
		processes.Go(func() {
			options := h.options()
			options.Compacted = func(compact.Result) { made.Add(1) }
			c := compact.New(options)
			for range 20 {
				assert.NoError(t, c.Run(t.Context()))
			}
		})
	}
	processes.Wait()
	assert.EqualValues(t, 2, made.Load())
	assert.Empty(t, difference(want, h.sums("", begin, begin.Add(2*time.Hour))))
}

// TestACancelledRunLeavesTheInputs: it ends at once, whatever it does.
func TestACancelledRunLeavesTheInputs(t *testing.T) {
	from, to := begin.Add(-time.Hour), begin.Add(time.Hour)
	for calls := 0; ; calls += 3 {
		h := newHistory(t)
		h.writeRandom(profiletest.NewRand(5), begin, 3)
		want, names := h.sums("", from, to), h.names()
		ctx, cancel := context.WithCancel(t.Context())
		n, after := 0, 0
		h.start(func(o *compact.Options) {
			o.OpenDir = hooked(func(call string) error {
				if n++; n == calls {
					cancel()
				}
				if ctx.Err() != nil && strings.HasPrefix(call, "Lstat profiles-") {
					after++
				}
				return nil
			})
		})
		h.now = begin.Add(3 * time.Hour)
		if calls == 0 {
			cancel()
		}
		_ = h.compactor.Run(ctx)
		assert.LessOrEqual(t, after, 2, "inputs that were opened afterwards")
		if len(h.results) == 0 {
			assert.Equal(t, names, h.names(), "cancelled at call %d", calls)
		}
		assert.Empty(t, difference(want, h.sums("", from, to)))
		cancel()
		if n < calls {
			assert.Len(t, h.results, 1)
			return
		}
	}
}

// TestAFullDiskIsRetriedLater: the inputs stay, no result is left, and attempts get rarer until there is room.
func TestAFullDiskIsRetriedLater(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(5), begin, 3)
	from, to := begin.Add(-time.Hour), begin.Add(time.Hour)
	want, names, full, attempts := h.sums("", from, to), h.names(), true, 0
	h.start(func(o *compact.Options) {
		o.OpenDir = hooked(func(call string) error {
			if full && strings.HasPrefix(call, "WriteAt") {
				attempts++
				return syscall.ENOSPC
			}
			return nil
		})
	})
	h.now = begin.Add(3 * time.Hour)
	for range 60 {
		err := h.compactor.Run(t.Context())
		assert.True(t, err == nil || errors.Is(err, syscall.ENOSPC), err)
		assert.Equal(t, names, h.names())
		h.now = h.now.Add(time.Minute)
	}
	assert.Equal(t, 6, attempts, "after 0, 1, 3, 7, 15 and 31 minutes")
	assert.Empty(t, difference(want, h.sums("", from, to)))
	full = false
	h.run(h.now.Add(time.Hour))
	assert.Len(t, h.results, 1)
	assert.Empty(t, h.skipped)
	assert.Empty(t, difference(want, h.sums("", from, to)))
}

// TestLockedInputsAreRemovedLater: a reader in another process may read them. Until then the file of the hour, whose manifest
// is needed, is not part of the day.
func TestLockedInputsAreRemovedLater(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(6), begin, 2)
	names := h.names()
	from, to := begin.Add(-time.Hour), begin.Add(time.Hour)
	want := h.sums("", from, to)
	dir, err := recordfile.OpenDir(h.dir)
	require.NoError(t, err)
	reader, err := dir.Open(names[0])
	require.NoError(t, err)
	require.NoError(t, reader.Lock())
	h.finish(begin.Add(3 * time.Hour))
	h.finish(begin.Add(30 * time.Hour))
	assert.Contains(t, h.names(), names[0])
	assert.NotContains(t, h.names(), names[1])
	assert.Len(t, h.results, 1)
	assert.Empty(t, difference(want, h.sums("", from, to)))
	require.NoError(t, errors.Join(reader.Close(), dir.Close()))
	h.finish(begin.Add(31 * time.Hour))
	h.finish(begin.Add(32 * time.Hour))
	assert.Len(t, h.results, 2)
	assert.Len(t, h.names(), 1)
	assert.Empty(t, difference(want, h.sums("", from, to)))
}

// TestTheClockMayBeSet: inputs stay for a minute after their result was made, whatever the times of files say.
func TestTheClockMayBeSet(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(6), begin, 2)
	from, to := begin.Add(-time.Hour), begin.Add(time.Hour)
	want := h.sums("", from, to)
	h.run(begin.Add(3 * time.Hour))
	for _, now := range []time.Duration{30 * time.Minute, -time.Hour, 90 * time.Second, 3 * time.Hour} {
		h.start()
		h.run(begin.Add(now)) // another process, by another clock
		h.run(begin.Add(now + 59*time.Second))
		assert.Len(t, h.names(), 3, "two inputs and their result")
		assert.Empty(t, difference(want, h.sums("", from, to)))
	}
	h.run(begin)
	h.run(begin.Add(59 * time.Second))
	assert.Len(t, h.names(), 3, "set back")
	h.run(begin.Add(60 * time.Second))
	assert.Len(t, h.names(), 1)
	h.run(begin.Add(119 * time.Second))
	assert.Len(t, h.names(), 1)
	h.run(begin.Add(120 * time.Second))
	assert.Len(t, h.names(), 1)
	assert.Empty(t, difference(want, h.sums("", from, to)))
}

// TestLateFilesGetNamesOfTheirOwn: a name that a manifest may have is not used again.
func TestLateFilesGetNamesOfTheirOwn(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(6), begin.Add(5*time.Hour), 2)
	h.finish(begin.Add(8 * time.Hour))
	h.run(begin.Add(30 * time.Hour)) // the day, which has the hour in its manifest
	require.Len(t, h.results, 2)
	h.writeRandom(profiletest.NewRand(7), begin.Add(5*time.Hour), 2)
	from, to := begin, begin.Add(24*time.Hour)
	want := h.sums("", from, to)
	for i := range 10 {
		h.run(begin.Add(30*time.Hour + time.Duration(i)*time.Minute))
		assert.Empty(t, difference(want, h.sums("", from, to)))
	}
	assert.Len(t, h.results, 4)
	assert.Equal(t, []string{"profiles-20261120T000000.000Z-000002.24h0m0s.otlp.pb.zst", "profiles-20261120T000000.000Z-000004.24h0m0s.otlp.pb.zst"}, h.names())
}

// TestFilesWhoseManifestMustStayAreNoInputs: of an hour that was not uploaded, the bucket still has the minutes, which only its
// manifest names.
func TestFilesWhoseManifestMustStayAreNoInputs(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(6), begin, 2)
	h.run(begin.Add(3 * time.Hour))
	require.Len(t, h.results, 1)
	hour, keep := filepath.Base(h.results[0].Path), true
	h.start(func(o *compact.Options) { o.Keep = func(name string) bool { return keep && name == hour } })
	for hours := range 3 {
		h.finish(begin.Add(30 * time.Hour).Add(time.Duration(hours) * time.Hour))
		assert.Len(t, h.results, 1)
		assert.Equal(t, []string{hour}, h.names())
	}
	keep = false
	h.finish(begin.Add(40 * time.Hour))
	assert.Len(t, h.results, 2)
}

// TestQueriesDuringCompactionAreExact: readers list and read at any time while files are made and removed, as long as they use no
// list for longer than a minute.
func TestQueriesDuringCompactionAreExact(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(7), begin.Add(50*time.Minute), 20)
	from, to := begin, begin.Add(2*time.Hour)
	want := h.sums("", from, to)
	queries, passed := make(chan struct{}), make(chan struct{}) // a query starts, and the clock passes a minute
	var readers sync.WaitGroup
	readers.Go(func() {
		for range queries {
			for reading := true; reading; {
				sums, err := h.query("", from, to)
				assert.NoError(t, err)
				assert.Empty(t, difference(want, sums))
				select {
				case <-passed:
					reading = false
				default:
				}
			}
		}
	})
	for _, after := range []time.Duration{4 * time.Hour, 30 * time.Hour} {
		for i := range 4 {
			queries <- struct{}{}
			h.run(begin.Add(after + time.Duration(2*i)*time.Minute))
			passed <- struct{}{}
		}
	}
	close(queries)
	readers.Wait()
	assert.Len(t, h.results, 3)
	assert.Len(t, h.names(), 1)
}

func TestALargeBucketBecomesSeveralRecords(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(8), begin, 10)
	from, to := begin.Add(-time.Hour), begin.Add(time.Hour)
	want := h.sums("", from, to)
	h.start(func(o *compact.Options) { o.MaxMemory = 1 << 20 }) // a window of 256 KiB
	h.run(begin.Add(3 * time.Hour))
	require.Len(t, h.results, 1)
	several := h.results[0].Records
	assert.Empty(t, difference(want, h.sums("", from, to)))

	var others [2][]byte // depend on the inputs only
	for i := range others {
		other := newHistory(t)
		other.writeRandom(profiletest.NewRand(8), begin, 10)
		other.run(begin.Add(3 * time.Hour))
		assert.Greater(t, several, other.results[0].Records)
		var err error
		others[i], err = os.ReadFile(other.results[0].Path)
		require.NoError(t, err)
	}
	assert.True(t, bytes.Equal(others[0], others[1]))
}
