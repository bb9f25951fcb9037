// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/objectstore"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// replacing adds a file with the records of the first two files of a directory of three, and its manifest.
func replacing(t testing.TB, dir string) (file string, replaced []string) {
	t.Helper()
	files := closedFiles(t, dir)
	names := oldestFirst(files)
	require.Len(t, names, 3)
	first, ours := recordfile.ParseName(names[0])
	require.True(t, ours)
	first.Sequence, first.Span = first.Sequence+1000, time.Hour
	file, replaced = first.String(), names[:2]
	require.NoError(t, os.WriteFile(filepath.Join(dir, "."+file+".replaces"), recordfile.Manifest(replaced), 0o600))
	data := slices.Concat(files[names[0]], files[names[1]]) // frames, one after the other
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), data, 0o600))
	return file, replaced
}

func threeFiles(t testing.TB) string {
	dir, r := t.TempDir(), profiletest.NewRand(5)
	for range 3 {
		write(t, dir, nil, profiletest.GenerateProfiles(r), profiletest.GenerateProfiles(r))
	}
	return dir
}

// records returns how often a reader of a path has each record.
func records(t testing.TB, path string) map[string]int {
	files, _ := open(t, 1<<20, path)
	o, found := options(), map[string]int{}
	for _, f := range files {
		for record, err := range o.Records(t.Context(), f, archive.Part{}) {
			require.NoError(t, err)
			found[string(record.Data)]++
		}
	}
	return found
}

// TestReadersSeeReplacedFilesOnce reads at each step of a replacement, which a fault ends at any request and which is then done again.
func TestReadersSeeReplacedFilesOnce(t *testing.T) {
	for _, lost := range []bool{false, true} {
		happened := true
		for n := 1; happened; n++ {
			s, dir := s3test.New(t), threeFiles(t)
			s.PageSize = 2
			uploadOf(s.URL, dir).run(t, never)
			want := records(t, s.Path("host/1"))
			require.Len(t, want, 6)
			file, replaced := replacing(t, dir)

			var reading, second atomic.Bool
			var requests atomic.Int64
			fails := func(r *http.Request) bool {
				if reading.Load() || second.Load() {
					return false
				}
				if r.Method == http.MethodPut || r.Method == http.MethodDelete {
					reading.Store(true)
					assert.Equal(t, want, records(t, s.Path("host/1")), "before %s %s", r.Method, r.URL.Path)
					reading.Store(false)
				}
				return requests.Add(1) == int64(n)
			}
			breakRequests(s, lost, fails)
			uploadOf(s.URL, dir).run(t, always)
			happened = requests.Load() >= int64(n)
			second.Store(true)
			uploadOf(s.URL, dir).run(t, never)
			reading.Store(true)
			assert.Equal(t, want, records(t, s.Path("host/1")))
			objects := s.Objects()
			assert.Contains(t, objects, "host/1/"+file)
			for _, name := range replaced {
				assert.NotContains(t, objects, "host/1/"+name)
				assert.NotContains(t, objects, "host/1/"+name+recordfile.IndexSuffix)
			}
			assert.Contains(t, objects, "host/1/"+file+".replaces", "as long as the file")
			events := s.Events()
			at := func(event string) int { return slices.Index(events, event) }
			stored := at("PUT host/1/" + file)
			assert.Less(t, at("PUT host/1/"+file+".replaces"), stored)
			assert.Less(t, stored, at("DELETE host/1/"+replaced[0]))
			assert.Equal(t, -1, at("DELETE host/1/"+file+".replaces"))
		}
	}
}

// TestALargeManifestIsRead: it names as many files as one may replace. One that cannot be read is waited for.
func TestALargeManifestIsRead(t *testing.T) {
	s, dir := s3test.New(t), threeFiles(t)
	file, replaced := replacing(t, dir)
	for n := len(replaced); n < recordfile.MaxReplaced; n++ {
		replaced = append(replaced, recordfile.Name{Sequence: 999_999_999_999, Span: 24 * time.Hour, Format: format}.String())
	}
	manifest := filepath.Join(dir, "."+file+".replaces")
	require.NoError(t, os.Remove(manifest))
	require.NoError(t, os.Symlink(dir, manifest))
	u := uploadOf(s.URL, dir)
	u.run(t, func(error) bool { return len(u.failed) == 3 })
	assert.Len(t, u.uploaded, 3)
	assert.NotContains(t, s.Objects(), "host/1/"+file)
	require.NoError(t, os.Remove(manifest))
	s.PutDirectory(t, dir, "p")
	content := recordfile.Manifest(replaced)
	assert.LessOrEqual(t, len(content), recordfile.MaxManifest)
	s.Put("p/"+file+".replaces", content)
	files, _ := open(t, 1<<20, s.Path("p"))
	assert.Len(t, files, 2)
}

// TestManifestsOfReaders: a manifest counts only with its file, and names files beside it only.
func TestManifestsOfReaders(t *testing.T) {
	s, dir := s3test.New(t), threeFiles(t)
	file, replaced := replacing(t, dir)
	s.PutDirectory(t, dir, "a/b")
	s.PutDirectory(t, dir, "a/c")
	s.Remove("a/c/" + file)
	s.Put("a/b/."+file+".replaces", recordfile.Manifest(append([]string{"../c/" + replaced[0], file, "other"}, replaced...)))
	s.Put("a/c/"+replaced[0]+".replaces", nil) // is damaged
	files, _ := open(t, 1<<20, s.Path("a"))
	var got []string
	for _, f := range files {
		got = append(got, strings.TrimPrefix(f.Path, "s3://profiles/a/"))
	}
	assert.Len(t, got, 2+3)
	for _, name := range replaced {
		assert.NotContains(t, got, "b/"+name)
		assert.Contains(t, got, "c/"+name)
	}
}

// TestAManifestThatCannotBeReadIsReported_A5: each file counts, and an error says that some may count twice.
func TestAManifestThatCannotBeReadIsReported_A5(t *testing.T) {
	s, dir := s3test.New(t), threeFiles(t)
	file, replaced := replacing(t, dir)
	for name, content := range map[string][]byte{
		"is missing": nil, "is damaged": recordfile.Manifest(replaced)[1:], "has 1048577 bytes": make([]byte, recordfile.MaxManifest+1),
	} {
		prefix := strings.ReplaceAll(name, " ", "-")
		s.PutDirectory(t, dir, prefix)
		s.Remove(prefix + "/." + file + ".replaces")
		if content != nil {
			s.Put(prefix+"/"+file+".replaces", content)
		}
		r := objectstore.NewReader(1<<20, &archive.Stats{})
		defer r.Close()
		files, failed := r.Find(t.Context(), []string{s.Path(prefix)})
		assert.Len(t, files, 4)
		require.Len(t, failed, 1, name)
		assert.ErrorContains(t, failed[0], "s3://profiles/"+prefix+"/"+file+": the list of the files that it replaces "+name)
		assert.ErrorContains(t, failed[0], "; it may count twice, as do files of its time such as "+replaced[0]+" (3 in all)")
	}
}

// TestHostileManifestsAreBounded_A5: 40 of 16 MiB are not read, and of 40 of 1 MiB no more than 16.
func TestHostileManifestsAreBounded_A5(t *testing.T) {
	s, dir := s3test.New(t), threeFiles(t)
	const hostile = 40
	for _, size := range []int{16 << 20, recordfile.MaxManifest} {
		content := []byte(strings.Repeat("a\n", size/2))
		prefix := fmt.Sprint("p", size)
		for i := range hostile {
			group := fmt.Sprintf("%s/group-%02d", prefix, i)
			s.PutDirectory(t, dir, group)
			name := recordfile.Name{Time: time.Now().Add(-time.Hour), Span: 24 * time.Hour, Format: format}.String()
			s.Put(group+"/"+name, []byte{0})
			s.Put(group+"/"+name+".replaces", content)
		}
		stats := &archive.Stats{}
		r := objectstore.NewReader(1<<20, stats)
		defer r.Close()
		var failed []error
		allocated := profiletest.AllocatedBy(func() { _, failed = r.Find(t.Context(), []string{s.Path(prefix)}) })
		require.Len(t, failed, hostile)
		assert.LessOrEqual(t, stats.Bytes.Load(), int64(16<<20))
		assert.Less(t, allocated, uint64(100<<20))
	}
}

// TestAListThatTakesSeveralRequests: files are replaced between any two of them.
func TestAListThatTakesSeveralRequests(t *testing.T) {
	for n := 1; n < 10; n++ {
		s, dir := s3test.New(t), threeFiles(t)
		s.PutDirectory(t, dir, "p")
		want := records(t, s.Path("p"))
		file, replaced := replacing(t, dir)
		s.PageSize = 1
		lists := 0
		s.Fault = func(_ http.ResponseWriter, r *http.Request) bool {
			if !r.URL.Query().Has("list-type") {
				return false
			}
			if lists++; lists == n {
				s.Put("p/"+file+".replaces", recordfile.Manifest(replaced))
				s.Put("p/"+file, s3test.Files(t, dir)[file])
			}
			return false
		}
		assert.Equal(t, want, records(t, s.Path("p")), "before list %d", n)
	}
}

// TestCompactedFilesReplaceTheirInputs: the bucket has the same sums as the directory, before and after its files are compacted.
func TestCompactedFilesReplaceTheirInputs(t *testing.T) {
	dir, r, old := t.TempDir(), profiletest.NewRand(13), time.Now().Add(-5*time.Hour).Truncate(time.Hour)
	for n := range 4 {
		writeAt(t, old.Add(time.Duration(n)*time.Minute), dir, nil, profiletest.GenerateProfiles(r))
	}
	s := s3test.New(t)
	sums := func(files []archive.File) []query.Row {
		rows, err := source(files).List(t.Context(), &query.Selection{})
		require.NoError(t, err)
		return rows
	}
	same := func() {
		t.Helper()
		local, _ := archive.Find([]string{dir})
		remote, _ := open(t, 1<<20, s.Path("host/1"))
		assert.Len(t, remote, len(local))
		assert.Equal(t, sums(local), sums(remote))
	}
	uploadOf(s.URL, dir).run(t, never)
	same()
	require.NoError(t, compact.New(compact.Options{
		Directory: dir, Format: format, After: time.Hour, MaxMemory: 64 << 20,
		Into:      []compact.Level{{Into: time.Hour, Resolution: time.Minute}},
		Compacted: func(compact.Result) {}, Skipped: func(paths []string, err error) { t.Error(paths, err) },
	}).Run(t.Context()))
	u, stored := uploadOf(s.URL, dir), time.Time{}
	u.Uploaded = func(string, int64) { stored = u.Now() }
	u.run(t, never)
	assert.Greater(t, u.Now().Sub(stored), 2*time.Minute, "readers may still have a list with the replaced files")
	same()
	remote, _ := open(t, 1<<20, s.Path("host/1"))
	require.Len(t, remote, 1)
	assert.Contains(t, remote[0].Path, ".1h0m0s.")
	assert.Len(t, s.Objects(), 3, "the file, its index and its manifest")
	other := s3test.New(t)
	once := uploadOf(other.URL, dir)
	once.run(t, never)
	assert.Len(t, once.uploaded, 1, "replaced files are not uploaded")
	assert.Equal(t, s.Objects(), other.Objects())
}
