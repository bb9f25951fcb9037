// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// A directory of a group, year, month, day or hour has what the store has of it, whatever is left of what a compacted file was made of, also
// in a bucket.
func TestADirectoryInsideAStoreCountsOnce(t *testing.T) {
	d, server := newDirectory(t), s3test.New(t)
	at := func(hour int) time.Time { return begin.Add(time.Duration(hour)*time.Hour + 10*time.Minute) }
	for hour := range 3 {
		d.now = at(hour)
		d.write(hour)
	}
	w := d.open()
	require.NoError(t, w.Append(newRecord(t, d.format, "cart", 9, d.now.Add(-time.Second), d.now)))
	require.NoError(t, w.Close())
	inputs := map[string][]byte{}
	keep := func() {
		clear(inputs)
		for _, name := range paths(t, d.dir) {
			content, err := os.ReadFile(filepath.Join(d.dir, name))
			require.NoError(t, err)
			inputs[name] = content
		}
	}
	restore := func() {
		for name, content := range inputs {
			require.NoError(t, os.MkdirAll(filepath.Join(d.dir, filepath.Dir(name)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(d.dir, name), content, 0o600))
		}
	}
	check := func(inside string, want map[int]int) {
		t.Helper()
		prefix := "prod/" + d.now.Format(time.DateTime) // of a store that is not at the root of the bucket, as it is now
		server.PutDirectory(t, d.dir, prefix)
		for _, location := range []string{filepath.Join(d.dir, inside), server.Path(path.Join(prefix, inside))} {
			s, err := store.OpenPart(location, store.ReadOptions{Cache: 1 << 20})
			require.NoError(t, err)
			require.Equal(t, want, readAll(t, s), location)
			s.Close()
		}
	}
	const group = "service.name=checkout"
	dated := func(at time.Time, format string) string { return group + "/" + at.Format(format) }
	checkAll := func() {
		t.Helper()
		check("", once(0, 1, 2, 9))
		for _, inside := range []string{group, dated(begin, "2006"), dated(begin, layout.MonthPath), dated(begin, layout.DayPath)} {
			check(inside, once(0, 1, 2))
		}
	}
	checkAll()
	for hour := range 3 {
		check(dated(at(hour), layout.HourPath), once(hour))
	}
	keep()
	d.now = at(2).Add(30 * time.Minute) // hours 0 and 1 are compacted
	d.compact()
	restore()
	require.Equal(t, [3]int{4, 2, 0}, d.levels())
	checkAll()
	for hour := range 3 {
		check(dated(at(hour), layout.HourPath), once(hour))
	}
	d.now = at(3).Add(30 * time.Minute) // hour 2, and what the others were made of is removed
	d.compact()
	keep()
	d.now = at(30)
	d.compact()
	restore()
	require.Equal(t, [3]int{0, 4, 2}, d.levels())
	checkAll()

	s, err := store.Open(d.dir, store.ReadOptions{MaxRecord: 1 << 20, MaxDecoded: 1 << 20, Cache: 1 << 20, Inside: []string{dated(begin, layout.MonthPath), "service.name=cart", group}})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.Equal(t, once(0, 1, 2, 9), readAll(t, s), "of several directories, each once")

	// A year beside groups has none of theirs.
	record := newRecord(t, d.format, "", 7, d.now.Add(-time.Second), d.now)
	record.Group = nil
	w = d.open()
	require.NoError(t, w.Append(record))
	require.NoError(t, w.Close())
	check(begin.Format("2006"), once(7))
	check(dated(begin, "2006"), once(0, 1, 2))
}

// A prefix that is named as a date is a root if years or groups are in it, and otherwise inside of one.
func TestRootOfAPrefix(t *testing.T) {
	server := s3test.New(t)
	for _, key := range []string{
		"a/2026/11/28_x.otlp.pb.zst", "a/service.name=cart/2026/11/28/14/x.otlp.pb.zst", "b/2026/11/service.name=cart/2026/11/28/14/x.otlp.pb.zst",
		"c/2026/2025/12/31_x.otlp.pb.zst", "2026/11/28/14_x.otlp.pb.zst",
	} {
		server.Put(key, nil)
	}
	for prefix, want := range map[string][2]string{
		"":                               {"", ""},
		"a":                              {"a", ""},
		"a/":                             {"a", ""},
		"a/2026/11/28/14":                {"a", "2026/11/28/14"},
		"a/2026/11/28":                   {"a", "2026/11/28"},
		"a/2026/11/":                     {"a", "2026/11"},
		"a/2026":                         {"a", "2026"},
		"a/2026/13":                      {"a/2026/13", ""},
		"a/2026/11/28/14/15":             {"a/2026/11/28/14/15", ""},
		"a/service.name=cart":            {"a/service.name=cart", ""},
		"a/service.name=cart/2026/11/28": {"a/service.name=cart", "2026/11/28"},
		"b/2026":                         {"b", "2026"},
		"b/2026/11":                      {"b/2026/11", ""},
		"b/2026/11/service.name=cart/2026/11/28/14": {"b/2026/11/service.name=cart", "2026/11/28/14"},
		"c/2026":       {"c/2026", ""},
		"c/2026/2025":  {"c/2026", "2025"},
		"2026/11/28":   {"", "2026/11/28"},
		"nothing/2026": {"nothing", "2026"},
	} {
		root, inside := store.RootOf(server.Path(prefix))
		at, err := bucket.ParseURL(root)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{at.Prefix, inside}, prefix)
		require.Equal(t, server.URL, at.Endpoint)
	}
	requests := server.Requests()
	store.RootOf(server.Path("a/service.name=cart"))
	require.Equal(t, requests, server.Requests())
	// Without an answer, the reader of the store says so.
	root, inside := store.RootOf(s3test.Path("http://localhost:1", "a/2026"))
	require.Equal(t, []string{s3test.Path("http://localhost:1", "a"), "2026"}, []string{root, inside})
	root, inside = store.RootOf("s3://x")
	require.Equal(t, []string{"s3://x", ""}, []string{root, inside}, "Open says what is wrong with it")
}

// A directory is the root of a store if no Writer has opened one above it, whatever its name.
func TestRootOf(t *testing.T) {
	d := newDirectory(t)
	above := filepath.Join(d.dir, "2026", "11", "28", "env=prod")
	root := filepath.Join(above, "service.name=checkout")
	d.dir = root
	d.write(1)
	for _, directory := range []string{root, above, filepath.Dir(above), t.TempDir(), filepath.Join(root, "2026"), "/", "/2026/11"} {
		got, inside := store.RootOf(directory)
		require.Equal(t, directory, got)
		require.Empty(t, inside)
	}
	hour := filepath.Dir(paths(t, root)[0])
	got, inside := store.RootOf(filepath.Join(root, hour))
	require.Equal(t, root, got)
	require.Equal(t, hour, inside)
}

// A Writer in a directory that another one has as a group opens its own: the paths of its files are below its directory.
func TestOpenIsOfTheDirectoryItself(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	d.dir = filepath.Join(d.dir, "env=prod")
	d.write(2)
	files, _, err := openStore(t, d.dir).Files(t.Context())
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, "service.name=checkout", files[0].Group)
	root, inside := store.RootOf(filepath.Join(d.dir, files[0].Group))
	require.Equal(t, []string{d.dir, files[0].Group}, []string{root, inside})
}
