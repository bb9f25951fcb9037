// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// directory is one that one process writes to and compacts.
type directory struct {
	t       *testing.T
	dir     string
	now     time.Time
	process *process
	format  segment.Format

	damaged, skipped []string
}

func newDirectory(t *testing.T) *directory {
	return &directory{t: t, dir: t.TempDir(), now: begin.Add(10 * time.Minute), process: &process{}, format: segment.Proto}
}

func (d *directory) open(change ...func(*store.Options)) *store.Writer {
	options := store.Options{
		Directory: d.dir, Format: d.format, MaxOpen: 10, OpenDir: d.process.openDir, Now: func() time.Time { return d.now },
		Failed: func(err error) { assert.NoError(d.t, err) },
	}
	for _, c := range change {
		c(&options)
	}
	w, err := store.OpenWriter(options)
	require.NoError(d.t, err)
	return w
}

// write writes a file with records that end now.
func (d *directory) write(ids ...int) {
	d.t.Helper()
	w := d.open()
	for _, id := range ids {
		require.NoError(d.t, w.Append(newRecord(d.t, d.format, "checkout", id, d.now.Add(-time.Second), d.now)))
	}
	require.NoError(d.t, w.Close())
}

func (d *directory) compactor(change ...func(*compact.Options)) *compact.Compactor {
	options := compact.Options{
		Directory: d.dir, After: 30 * time.Minute, Resolutions: []time.Duration{time.Minute, 10 * time.Minute}, MaxMemory: 64 << 20,
		Compacted: func(compact.Result) {},
		Skipped:   func(path string, _ error) { d.skipped = append(d.skipped, path) },
		Damaged:   func(path string) { d.damaged = append(d.damaged, path) },
		Now:       func() time.Time { return d.now }, OpenDir: d.process.openDir,
	}
	for _, c := range change {
		c(&options)
	}
	return compact.New(options)
}

func (d *directory) compact() {
	d.t.Helper()
	require.NoError(d.t, d.compactor().Run(d.t.Context()))
}

// levels counts the segments of each level that are not damaged ones.
func (d *directory) levels() (levels [3]int) {
	for _, name := range paths(d.t, d.dir) {
		if f, ok := layout.ParsePath(name); ok && !strings.HasPrefix(name, layout.DamagedDir) {
			levels[f.Level]++
		}
	}
	return levels
}

func (d *directory) counts() map[int]int { return readAll(d.t, openStore(d.t, d.dir)) }

func TestPaths(t *testing.T) {
	for path, want := range map[string]layout.Level{
		"service.name=checkout/2026/11/28/14/20261128T140000.000Z-0123456789ab.20261128T135959Z-20261128T140100Z.otlp.pb.zst": layout.Written,
		"2026/11/28/14/20261128T140000.000Z-0123456789ab.20261128T135959Z-20261128T140100Z.otlp.jsonl":                        layout.Written,
		"service.name=checkout/2026/11/28/14/20261128T140000.000Z-0123456789ab.otlp.pb.zst.partial":                           layout.Written,
		"a=b/c=d/2026/11/28/14_0123456789ab.20261128T135959Z-20261128T140100Z.otlp.pb.zst":                                    layout.Hour,
		"a=b/2026/11/28_0123456789ab.20261128T000000Z-20261129T000000Z.otlp.pb.zst":                                           layout.Day,
	} {
		f, ok := layout.ParsePath(path)
		require.True(t, ok, path)
		require.Equal(t, want, f.Level, path)
		require.Equal(t, strings.HasSuffix(path, layout.PartialSuffix), f.Partial)
		require.Equal(t, 28, f.Partition.Day())
	}
	for _, path := range []string{
		"service.name=checkout/2026/11/28/14/20261128T140000.000Z-0123456789ab.otlp.pb.zst",
		"service.name=checkout/2026/13/28/14/20261128T140000.000Z-0123456789ab.otlp.pb.zst.partial",
		"damaged/service.name=x/2026/11/28_0123456789ab.20261128T000000Z-20261129T000000Z.otlp.pb.zst",
		"a=b/2026/11/28/14_0123456789ab.making", "a=b/2026/28_0123456789ab.20261128T000000Z-20261129T000000Z.otlp.pb.zst", "x.pprof", "",
	} {
		_, ok := layout.ParsePath(path)
		require.False(t, ok, path)
	}
}

func TestAFileKeepsItsNameAndHasAnIndex(t *testing.T) {
	d := newDirectory(t)
	w := d.open()
	require.NoError(t, w.Append(newRecord(t, d.format, "checkout", 1, d.now.Add(-90*time.Minute), d.now.Add(-time.Minute))))
	partial := paths(t, d.dir)
	require.Len(t, partial, 1)
	require.Equal(t, once(1), d.counts(), "it is read while it is written")
	require.NoError(t, w.Close())
	closed := paths(t, d.dir)
	require.Len(t, closed, 1)
	stem := strings.TrimSuffix(partial[0], ".otlp.pb.zst"+layout.PartialSuffix)
	require.Equal(t, stem+".20261119T224000Z-20261120T000900Z.otlp.pb.zst", closed[0])
	require.Len(t, profiletest.ReadRecords(t, filepath.Join(d.dir, closed[0])), 1)
	file, err := os.Open(filepath.Join(d.dir, closed[0]))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	info, err := file.Stat()
	require.NoError(t, err)
	_, _, err = segment.ReadIndex(file, info.Size(), 1<<20)
	require.NoError(t, err)
}

func TestJSONHasLines(t *testing.T) {
	d := newDirectory(t)
	d.format = segment.JSON
	d.write(1, 2)
	require.Equal(t, once(1, 2), d.counts())
	require.Len(t, profiletest.ReadRecords(t, filepath.Join(d.dir, paths(t, d.dir)[0])), 2)
	d.now = begin.Add(2 * time.Hour)
	d.compact()
	require.Equal(t, once(1, 2), d.counts())
	require.Equal(t, [3]int{0, 1, 0}, d.levels())
}

func TestRecordsGoToTheLaterOfClockAndEnd(t *testing.T) {
	d := newDirectory(t)
	ahead := 0
	w := d.open(func(o *store.Options) { o.RecordAhead = func(store.Record) { ahead++ } })
	for id, end := range map[int]time.Duration{1: -30 * time.Hour, 2: 0, 3: 5 * time.Hour, 4: 40 * time.Hour} {
		require.NoError(t, w.Append(newRecord(t, d.format, "checkout", id, d.now.Add(end-time.Second), d.now.Add(end))))
	}
	untimed := newRecord(t, d.format, "checkout", 5, time.Time{}, time.Time{})
	require.NoError(t, w.Append(untimed))
	require.NoError(t, w.Close())
	require.Equal(t, 1, ahead)
	var dirs []string
	for _, name := range paths(t, d.dir) {
		dirs = append(dirs, strings.TrimPrefix(filepath.Dir(name), "service.name=checkout/"))
	}
	require.Equal(t, []string{"2026/11/20/00", "2026/11/20/05", "2026/11/21/00"}, dirs)
	require.Equal(t, once(1, 2, 3, 4, 5), d.counts())
	// Queries of a time find what is of this time.
	s := openStore(t, d.dir)
	for from, want := range map[time.Duration]int{-31 * time.Hour: 3, 0: 3, 4 * time.Hour: 2, 41 * time.Hour: 0} {
		segments, err := s.Live(t.Context(), d.now.Add(from), d.now.Add(100*time.Hour), nil)
		require.NoError(t, err)
		require.Len(t, segments, want, "from %v", from)
	}
}

func TestAClockThatStepsBackIntoACompactedHour(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	d.now = begin.Add(2 * time.Hour)
	d.compact()
	d.now = begin.Add(20 * time.Minute)
	d.write(2)
	require.Equal(t, once(1, 2), d.counts())
	require.Contains(t, strings.Join(paths(t, d.dir), " "), "2026/11/20/01/", "the next hour")
	d.now = begin.Add(30 * time.Hour)
	d.compact()
	require.Equal(t, [3]int{0, 0, 1}, d.levels())
	d.now = begin.Add(20 * time.Minute)
	d.write(3)
	require.Equal(t, once(1, 2, 3), d.counts())
	require.Equal(t, [3]int{1, 0, 1}, d.levels())
	require.Contains(t, strings.Join(paths(t, d.dir), " "), "2026/11/21/00/", "the next day")
}

// Files that are there after their hour was made count, and become part of the day.
func TestLateAndRecoveredFilesGoIntoTheDay(t *testing.T) {
	d := newDirectory(t)
	d.write(1, 2)
	late := paths(t, d.dir)[0]
	content, err := os.ReadFile(filepath.Join(d.dir, late))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(d.dir, "service.name=checkout")))
	d.write(3)
	d.now = begin.Add(2 * time.Hour)
	d.compact()
	require.Equal(t, once(3), d.counts())
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(d.dir, late)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, late), content, 0o600)) // restored from a backup
	require.Equal(t, once(1, 2, 3), d.counts())
	d.compact()
	require.Equal(t, [3]int{1, 1, 0}, d.levels())
	d.now = begin.Add(30 * time.Hour)
	d.compact()
	require.Equal(t, [3]int{0, 0, 1}, d.levels())
	require.Equal(t, once(1, 2, 3), d.counts())
}

func TestDamagedInputsGoToTheirDirectory(t *testing.T) {
	d := newDirectory(t)
	d.write(1, 2, 3)
	name := paths(t, d.dir)[0]
	content, err := os.ReadFile(filepath.Join(d.dir, name))
	require.NoError(t, err)
	x, _, err := segment.ReadIndex(strings.NewReader(string(content)), int64(len(content)), 1<<20)
	require.NoError(t, err)
	content[x.Records[1].Offset+x.Records[1].Length/2] ^= 0xff
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, name), content, 0o600))
	require.Equal(t, once(1, 3), d.counts())
	d.now = begin.Add(2 * time.Hour)
	d.compact()
	require.Equal(t, once(1, 3), d.counts())
	require.Equal(t, []string{name}, d.damaged)
	stored, err := os.ReadFile(filepath.Join(d.dir, layout.DamagedDir, name))
	require.NoError(t, err)
	require.Equal(t, content, stored)
	require.Equal(t, [3]int{0, 1, 0}, d.levels())

	// Retention removes it as other files, by the time of its last write, and waits for no upload.
	moved, removed := filepath.Join(d.dir, layout.DamagedDir, name), map[string]int64{}
	require.NoError(t, os.Chtimes(moved, d.now, d.now))
	for _, age := range []time.Duration{time.Hour, time.Hour + time.Second} {
		require.Empty(t, removed)
		require.FileExists(t, moved)
		w := d.open(func(o *store.Options) {
			o.Retention = store.Retention{MaxAge: time.Hour}
			o.Keep = func(string) bool { return true }
			o.FileRemoved = func(path string, size int64) { removed[path] = size }
			o.Now = func() time.Time { return d.now.Add(age) }
		})
		w.Maintain()
		require.NoError(t, w.Close())
	}
	require.Equal(t, map[string]int64{layout.DamagedDir + "/" + name: int64(len(content))}, removed)
	require.NoDirExists(t, filepath.Join(d.dir, layout.DamagedDir))
	require.Equal(t, [3]int{0, 1, 0}, d.levels())
}

// TestADamagedListOfInputsDoublesNothing_A5: a byte of a compacted file is damaged before its inputs are removed.
func TestADamagedListOfInputsDoublesNothing_A5(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	d.write(2)
	d.now = begin.Add(2 * time.Hour)
	d.process.before = func(call string) error {
		if strings.HasPrefix(call, "Remove service.name=checkout/2026/11/20/00/") {
			return errKilled
		}
		return nil
	}
	require.Error(t, d.compactor().Run(t.Context()))
	require.Equal(t, [3]int{2, 1, 0}, d.levels())
	d.process = &process{}
	var made string
	for _, name := range paths(t, d.dir) {
		if f, _ := layout.ParsePath(name); f.Level == layout.Hour {
			made = filepath.Join(d.dir, name)
		}
	}
	content, err := os.ReadFile(made)
	require.NoError(t, err)
	for at := range content {
		damaged := slices.Clone(content)
		damaged[at] ^= 0x55
		require.NoError(t, os.WriteFile(made, damaged, 0o600))
		for id, n := range d.counts() {
			require.Equal(t, 1, n, "record %d, byte %d", id, at)
		}
	}
	// If both lists are damaged, readers say so, and nothing is removed.
	damaged := slices.Clone(content)
	damaged[10] ^= 0x55
	damaged[len(damaged)-1] ^= 0x55
	require.NoError(t, os.WriteFile(made, damaged, 0o600))
	_, err = openStore(t, d.dir).Live(t.Context(), begin, begin.Add(time.Hour), nil)
	require.ErrorContains(t, err, "may count twice")
	d.compact()
	d.now = begin.Add(30 * time.Hour)
	d.compact()
	require.Equal(t, [3]int{2, 1, 0}, d.levels())
	require.NotEmpty(t, d.skipped)
}

// A file that cannot be read now, or with which a sum would be beyond int64, stays as it is.
func TestInputsThatCannotBeReadStay(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	d.write(2)
	unreadable := paths(t, d.dir)[0]
	w := d.open()
	for range 2 {
		pd := newPayload("checkout", 3, d.now.Add(-time.Second), d.now)
		pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).Values().SetAt(0, math.MaxInt64-10)
		entry, err := contents.Describe(pd)
		require.NoError(t, err)
		data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
		require.NoError(t, err)
		require.NoError(t, w.Append(store.Record{Data: data, Group: []string{"service.name=checkout"}, Entry: entry}))
	}
	require.NoError(t, w.Close())
	d.now = begin.Add(2 * time.Hour)
	d.process.before = func(call string) error {
		if call == "OpenToRead "+unreadable {
			return &fs.PathError{Op: "open", Path: unreadable, Err: syscall.EACCES}
		}
		return nil
	}
	d.compact()
	require.Equal(t, [3]int{2, 1, 0}, d.levels())
	require.Len(t, d.skipped, 2)
	d.process.before = nil
	d.now = begin.Add(30 * time.Hour)
	d.compact()
	require.Equal(t, [3]int{1, 0, 1}, d.levels(), "the sum still does not fit")
}

// TestAForeignFileOfACompactedName_A5: it is not replaced, and nothing that it does not name is removed.
func TestAForeignFileOfACompactedName_A5(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	id := ""
	d.process.before = func(call string) error {
		if name, is := strings.CutPrefix(call, "Create 00_"); is {
			id = strings.TrimSuffix(name, layout.MakingSuffix)
			foreign := fmt.Sprintf("00_%s.20261120T000959Z-20261120T001000Z.otlp.pb.zst", id)
			return os.WriteFile(filepath.Join(d.dir, "service.name=checkout/2026/11/20", foreign), []byte("foreign"), 0o600)
		}
		return nil
	}
	d.now = begin.Add(2 * time.Hour)
	require.ErrorIs(t, d.compactor().Run(t.Context()), fs.ErrExist)
	d.process.before = nil
	d.compact()
	require.Equal(t, [3]int{1, 1, 0}, d.levels())
	require.NotEmpty(t, d.skipped)
	_, err := openStore(t, d.dir).Live(t.Context(), begin, begin.Add(time.Hour), nil)
	require.ErrorContains(t, err, "may count twice")
}

func TestRetention(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	d.now = begin.Add(2 * time.Hour)
	d.process.before = func(call string) error { // the inputs stay
		if strings.HasPrefix(call, "Remove service.name=checkout/2026/11/20/00/") {
			return errKilled
		}
		return nil
	}
	require.Error(t, d.compactor().Run(t.Context()))
	d.process = &process{}
	require.Equal(t, [3]int{1, 1, 0}, d.levels())
	d.write(2)
	var removed []string
	w := d.open(func(o *store.Options) {
		o.Retention = store.Retention{MaxFiles: 1}
		o.FileRemoved = func(path string, _ int64) { removed = append(removed, path) }
	})
	w.Maintain()
	require.NoError(t, w.Close())
	require.Equal(t, once(2), d.counts(), "an expired file does not come back as its inputs")
	require.Len(t, removed, 2)
	w = d.open(func(o *store.Options) {
		o.Retention = store.Retention{MaxAge: time.Hour}
		o.Keep = func(path string) bool { return strings.Contains(path, "never") }
	})
	d.now = begin.Add(4 * time.Hour)
	w.Maintain()
	require.NoError(t, w.Close())
	require.Empty(t, d.counts())
	require.NoDirExists(t, filepath.Join(d.dir, "service.name=checkout"))
}

// A slot of a service that takes more than a record may is divided, so that the reader and the compactor with the least memory read it.
func TestCompactedRecordsAreReadWithLittleMemory(t *testing.T) {
	const instances, samples = 20, 5000
	d := newDirectory(t)
	w := d.open()
	for i := range instances {
		pd := newPayload("checkout", i, d.now.Add(-time.Second), d.now)
		rp := pd.ResourceProfiles().At(0)
		rp.Resource().Attributes().PutInt("service.instance.id", int64(i))
		p := rp.ScopeProfiles().At(0).Profiles().At(0)
		for k := range samples - 1 { // with stacks of their own, as equal ones are summed
			dict := pd.Dictionary()
			stack := dict.StackTable().AppendEmpty()
			stack.LocationIndices().FromRaw(slices.Repeat([]int32{1}, k%50+2))
			sample := p.Samples().AppendEmpty()
			p.Samples().At(0).CopyTo(sample)
			sample.SetStackIndex(int32(dict.StackTable().Len() - 1))
			sample.AttributeIndices().Append(int32(dict.AttributeTable().Len()))
			a := dict.AttributeTable().AppendEmpty()
			a.SetKeyStrindex(1)
			a.Value().SetInt(int64(k))
		}
		entry, err := contents.Describe(pd)
		require.NoError(t, err)
		require.NoError(t, w.Append(store.Record{Data: profiletest.Proto(t, pd), Group: []string{"service.name=checkout"}, Entry: entry}))
	}
	require.NoError(t, w.Close())
	d.now = begin.Add(2 * time.Hour)
	d.compact()
	require.Equal(t, [3]int{0, 1, 0}, d.levels())
	d.now = begin.Add(25 * time.Hour)
	require.NoError(t, d.compactor(func(o *compact.Options) { o.MaxMemory = 16 << 20 }).Run(t.Context()))
	require.Empty(t, d.skipped)
	require.Equal(t, [3]int{0, 0, 1}, d.levels())
	s, err := store.Open(d.dir, store.ReadOptions{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	segments, err := s.Since(t.Context(), time.Time{}, nil)
	require.NoError(t, err)
	index, err := segments[0].Index(t.Context())
	require.NoError(t, err)
	require.Greater(t, len(index.Records), 1)
	total := 0
	for data, err := range segments[0].Records(t.Context(), index, index.Records) {
		require.NoError(t, err)
		pd, err := store.Decode(segment.Proto, data, segment.MaxRecordMemory)
		require.NoError(t, err)
		total += pd.SampleCount()
	}
	require.Equal(t, instances*samples, total)
}

// TestLiveHasTheFilesOfARangeOnly: those with Profiles in it, of any range. What is around a range is for queries to ask for.
func TestLiveHasTheFilesOfARangeOnly(t *testing.T) {
	d := newDirectory(t)
	const files, every = 12, 10 * time.Minute
	for i := range files {
		d.now = begin.Add(time.Duration(i) * every)
		d.write(i)
	}
	s := openStore(t, d.dir)
	all, err := s.Live(t.Context(), time.Time{}, begin.AddDate(1, 0, 0), nil)
	require.NoError(t, err)
	require.Len(t, all, files)
	random := profiletest.NewRand(1)
	for range 100 {
		from := begin.Add(time.Duration(random.Int64N(int64(files * every))))
		to := from.Add(time.Duration(random.Int64N(int64(time.Hour))))
		var want, got []string
		for _, of := range all {
			if !of.End.Before(from) && !of.Start.After(to) {
				want = append(want, of.Path)
			}
		}
		live, err := s.Live(t.Context(), from, to, nil)
		require.NoError(t, err)
		for _, of := range live {
			got = append(got, of.Path)
		}
		require.Equal(t, want, got, "from %v to %v", from, to)
	}
}
