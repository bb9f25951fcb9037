// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/objectstore"
	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// closed is a directory with files in two levels. One has no index, and there are others that are not closed files.
func closed(t testing.TB) string {
	t.Helper()
	dir, r := t.TempDir(), profiletest.NewRand(3)
	write(t, dir, nil, profiletest.GenerateProfiles(r), profiletest.GenerateProfiles(r), profiletest.GenerateProfiles(r), profiletest.GenerateProfiles(r))
	write(t, dir, []string{"cart"}, profiletest.GenerateProfiles(r))
	files := closedFiles(t, dir)
	for name := range files {
		if strings.HasPrefix(name, "cart/") && strings.HasSuffix(name, recordfile.IndexSuffix) {
			require.NoError(t, os.Remove(filepath.Join(dir, filepath.FromSlash(name))))
		}
	}
	first := oldestFirst(files)[0]
	data := files[first]
	for _, name := range []string{first + recordfile.PartialSuffix, ".hidden/" + first, "deep/deeper/" + first, "other.txt", "lost.index"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.FromSlash(path.Dir(name))), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), data, 0o600))
	}
	return dir
}

// closedFiles are those that an Uploader uploads.
func closedFiles(t testing.TB, dir string) map[string][]byte {
	files := s3test.Files(t, dir)
	for name := range files {
		if base := path.Base(name); !strings.HasPrefix(base, "profiles-") || strings.HasSuffix(base, recordfile.PartialSuffix) || strings.HasPrefix(name, ".") || strings.Count(name, "/") > 1 {
			delete(files, name)
		}
	}
	return files
}

// oldestFirst returns the names of closed files without their indexes: those in the directory before those in subdirectories.
func oldestFirst(files map[string][]byte) (names []string) {
	for name := range files {
		if _, ours := recordfile.ParseName(path.Base(name)); ours {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	return names
}

// breakRequests makes requests fail, or only their responses be lost.
func breakRequests(s *s3test.Server, lost bool, fails func(*http.Request) bool) {
	if lost {
		s.Lost = fails
		return
	}
	s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		failed := fails(r)
		if failed {
			s3test.Fail(w, http.StatusForbidden, "AccessDenied", "Access Denied.")
		}
		return failed
	}
}

// upload is one life of an Uploader.
type upload struct {
	objectstore.UploadOptions

	uploaded, removed []string
	failed            []error
	delays            []time.Duration
	waiting           int
}

func uploadOf(endpoint, dir string) *upload {
	var clock sync.Mutex
	now := time.Now()
	u := &upload{UploadOptions: objectstore.UploadOptions{
		Location:  objectstore.Location{Endpoint: endpoint, Bucket: s3test.Bucket, Prefix: "/host/1/"},
		Directory: dir, Levels: 1, Timeout: time.Minute, Interval: time.Millisecond, Concurrency: 1,
		Now: func() time.Time { // an index is not waited for
			clock.Lock()
			defer clock.Unlock()
			now = now.Add(3 * time.Second)
			return now
		},
	}}
	u.Uploaded = func(path string, _ int64) { u.uploaded = append(u.uploaded, path) }
	u.Removed = func(key string) { u.removed = append(u.removed, key) }
	return u
}

// run uploads until no file waits, and removes what is old, or until stop returns true for an error.
func (u *upload) run(t testing.TB, stop func(error) bool) *objectstore.Uploader {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended, passes := false, 0
	end := func() { ended = true; cancel() }
	u.Waiting = func(n int) {
		passes++
		if u.waiting = n; n == 0 && (u.MaxAge == 0 || passes == 2) { // old objects are removed after the first
			end()
		}
	}
	u.Failed = func(err error, after time.Duration) {
		u.failed, u.delays = append(u.failed, err), append(u.delays, after)
		assert.NotContains(t, err.Error(), s3test.Secret)
		if stop(err) {
			end()
		}
	}
	uploader, err := objectstore.NewUploader(u.UploadOptions)
	require.NoError(t, err)
	uploader.Run(ctx)
	require.True(t, ended, "not complete after a minute: %v", u.failed)
	return uploader
}

func never(error) bool  { return false }
func always(error) bool { return true }

// withPrefix adds the prefix of the options to the names.
func withPrefix(files map[string][]byte) map[string][]byte {
	objects := map[string][]byte{}
	for name, data := range files {
		objects["host/1/"+name] = data
	}
	return objects
}

func TestClosedFilesAreUploadedAfterTheirIndexes(t *testing.T) {
	dir := closed(t)
	s := s3test.New(t)
	u := uploadOf(s.URL, dir)
	uploader := u.run(t, never)
	assert.Equal(t, withPrefix(closedFiles(t, dir)), s.Objects())
	require.Len(t, u.uploaded, 3)
	for _, path := range u.uploaded {
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		assert.False(t, uploader.Waits(filepath.ToSlash(name)))
		assert.False(t, uploader.Forget(path))
		assert.True(t, uploader.Forget(path))
	}
	assert.True(t, uploader.Waits("unknown"))
	var last time.Time
	events := s.Events()
	for i, event := range events {
		key := strings.TrimPrefix(event, "PUT ")
		name, ours := recordfile.ParseName(path.Base(key))
		if !ours {
			continue
		}
		assert.False(t, name.Time.Before(last), "the oldest first")
		last = name.Time
		if _, indexed := s.Objects()[key+recordfile.IndexSuffix]; indexed {
			assert.Equal(t, event+recordfile.IndexSuffix, events[i-1])
		}
	}
	again := uploadOf(s.URL, dir)
	again.run(t, never)
	assert.Empty(t, again.uploaded, "a restart uploads nothing again")
	assert.Equal(t, events, s.Events())
}

func TestFilesAreUploadedConcurrently(t *testing.T) {
	dir, r := t.TempDir(), profiletest.NewRand(9)
	for n := range 20 {
		write(t, dir, []string{fmt.Sprint("service-", n)}, profiletest.GenerateProfiles(r))
	}
	s := s3test.New(t)
	var now, most atomic.Int64
	s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		most.Store(max(most.Load(), now.Add(1))) // approximately
		defer now.Add(-1)
		time.Sleep(time.Millisecond)
		if failed := r.Method == http.MethodPut && strings.Contains(r.URL.Path, "service-7/") && most.Load() < 100; failed {
			most.Store(100)
			s3test.Fail(w, http.StatusInternalServerError, "InternalError", "Try again.")
			return true
		}
		return false
	}
	u := uploadOf(s.URL, dir)
	u.Concurrency = 0
	var mu sync.Mutex
	u.Uploaded = func(path string, _ int64) {
		mu.Lock()
		defer mu.Unlock()
		u.uploaded = append(u.uploaded, path)
	}
	u.run(t, never)
	assert.Equal(t, withPrefix(closedFiles(t, dir)), s.Objects())
	assert.Len(t, u.uploaded, 20)
	assert.Len(t, u.failed, 1)
	assert.Greater(t, int(most.Load()), 1)
}

func TestUploadToMinIO(t *testing.T) {
	dir := closed(t)
	endpoint, client := s3test.MinIO(t)
	u := uploadOf(endpoint, dir)
	u.run(t, never)
	before, _ := open(t, 1<<20, s3test.Path(endpoint, "host/1"))
	assert.Len(t, before, len(u.uploaded))

	// The names are taken by another Collector.
	other := t.TempDir()
	for name, data := range closedFiles(t, dir) {
		if !strings.Contains(name, "/") && !strings.HasSuffix(name, recordfile.IndexSuffix) {
			require.NoError(t, os.WriteFile(filepath.Join(other, name), append(slices.Clone(data), data...), 0o600))
		}
	}
	second := uploadOf(endpoint, other)
	conflicts := 0
	second.run(t, func(err error) bool {
		conflict, isConflict := errors.AsType[*objectstore.ConflictError](err)
		require.True(t, isConflict, err)
		assert.Contains(t, conflict.Error(), "put s3://profiles/host/1/profiles-")
		conflicts++
		return conflicts == 2
	})
	assert.Empty(t, second.uploaded)
	after, _ := open(t, 1<<20, s3test.Path(endpoint, "host/1"))
	assert.Equal(t, content(t, "", before), content(t, "", after), "nothing was replaced")

	expired := uploadOf(endpoint, t.TempDir())
	expired.MaxAge = time.Minute
	expired.Now = func() time.Time { return time.Now().Add(time.Hour) }
	expired.run(t, never)
	assert.Len(t, expired.removed, 3)
	for o := range client.ListObjects(t.Context(), s3test.Bucket, minio.ListObjectsOptions{Recursive: true}) {
		t.Error(o.Key)
	}
}

// TestUploadSurvivesEveryFault ends an Uploader at each of its requests, before or after the server has done it, and starts another one.
func TestUploadSurvivesEveryFault(t *testing.T) {
	dir := closed(t)
	want := withPrefix(closedFiles(t, dir))
	for _, lost := range []bool{false, true} {
		for n := int64(1); ; n++ {
			s := s3test.New(t)
			var count atomic.Int64
			breakRequests(s, lost, func(*http.Request) bool { return count.Add(1) == n })
			uploadOf(s.URL, dir).run(t, always) // the transport itself sends some requests again
			for key, data := range s.Objects() {
				assert.Equal(t, want[key], data)
				index, has := want[key+recordfile.IndexSuffix]
				assert.Equal(t, has, s.Objects()[key+recordfile.IndexSuffix] != nil, "readers never miss an index")
				assert.Equal(t, index, s.Objects()[key+recordfile.IndexSuffix])
			}
			happened := count.Load() >= n
			uploadOf(s.URL, dir).run(t, never)
			assert.Equal(t, want, s.Objects())
			events := slices.Sorted(slices.Values(s.Events()))
			assert.Equal(t, events, slices.Compact(slices.Clone(events)), "no object is written twice")
			if !happened {
				assert.Greater(t, n, int64(8))
				break
			}
		}
	}
}

func TestUploadDrainsAfterAnOutage(t *testing.T) {
	dir := closed(t)
	s := s3test.New(t)
	var requests atomic.Int64
	s.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		if requests.Add(1) > 12 {
			return false
		}
		s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
		return true
	}
	u := uploadOf(s.URL, dir)
	u.Interval = 10 * time.Microsecond // is the first delay
	u.run(t, never)
	assert.Equal(t, withPrefix(closedFiles(t, dir)), s.Objects())
	require.Len(t, u.failed, 12)
	assert.ErrorContains(t, u.failed[0], "s3://profiles/host/1/: Please reduce your request rate. (SlowDown)")
	assert.Greater(t, u.delays[11], 5*u.delays[0], "backoff")
}

func TestUploadsThatAServerDamagesAreSentAgain(t *testing.T) {
	for name, damage := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"content": func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				r.Body = io.NopCloser(strings.NewReader("something else"))
			}
			return false
		},
		"size": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodHead {
				return false
			}
			w.Header().Set("ETag", `"0"`)
			w.Header().Set("Content-Length", "7")
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := closed(t)
			s := s3test.New(t)
			var times atomic.Int64
			s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPut && r.Method != http.MethodHead || times.Load() >= 5 {
					return false
				}
				if r.Method == http.MethodHead || name == "content" {
					times.Add(1)
				}
				return damage(w, r)
			}
			u := uploadOf(s.URL, dir)
			u.run(t, never)
			assert.Equal(t, withPrefix(closedFiles(t, dir)), s.Objects())
			assert.NotEmpty(t, u.failed)
		})
	}
}

// TestAFileThatCannotBeReadDoesNotStopTheOthers.
func TestAFileThatCannotBeReadDoesNotStopTheOthers(t *testing.T) {
	dir := closed(t)
	name := oldestFirst(closedFiles(t, dir))[0]
	oldest := filepath.Join(dir, name)
	s := s3test.New(t)
	s.Put("host/1/"+name, []byte("of another Collector"))
	u := uploadOf(s.URL, dir)
	uploader := u.run(t, func(error) bool { return len(u.uploaded) == 2 || u.waiting == 3 && len(u.failed) > 3 })
	assert.NotContains(t, u.uploaded, oldest)
	assert.True(t, uploader.Waits(name))
	assert.Equal(t, "of another Collector", string(s.Objects()["host/1/"+name]))
}

// TestAPanicOfAnUploadIsAnError_A11: other files are uploaded, and this one later.
func TestAPanicOfAnUploadIsAnError_A11(t *testing.T) {
	s, dir := s3test.New(t), closed(t)
	u, panicked := uploadOf(s.URL, dir), false
	uploaded := u.Uploaded
	u.Uploaded = func(path string, bytes int64) {
		if !panicked {
			panicked = true
			panic(path)
		}
		uploaded(path, bytes)
	}
	u.run(t, never)
	require.Len(t, u.failed, 1)
	var reported *panics.Error
	require.ErrorAs(t, u.failed[0], &reported)
	assert.Equal(t, withPrefix(closedFiles(t, dir)), s.Objects())
}

func TestOldObjectsAreRemovedByTheTimeInTheirNames(t *testing.T) {
	s := s3test.New(t)
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	name := func(age time.Duration) string {
		return recordfile.Name{Time: now.Add(-age), Sequence: 1, Format: format}.String()
	}
	compacted := recordfile.Name{Time: now.Add(-150 * time.Minute), Sequence: 1, Format: format, Span: 2 * time.Hour}.String()
	kept := []string{"host/1/" + compacted, "host/1/" + name(59*time.Minute), "host/1/" + name(59*time.Minute) + ".index", "host/2/" + name(2*time.Hour), "host/1/other.txt", "host/1/a/b/" + name(2*time.Hour), "x/" + name(2*time.Hour)}
	old := []string{"host/1/" + name(61*time.Minute), "host/1/" + name(61*time.Minute) + ".index", "host/1/cart/" + name(2*time.Hour), "host/1/" + name(3*time.Hour) + ".index"}
	for _, key := range slices.Concat(kept, old) {
		s.Put(key, []byte("x"))
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name(2*time.Hour)), []byte("x"), 0o600))
	u := uploadOf(s.URL, dir)
	u.MaxAge, u.Now = time.Hour, func() time.Time { return now }
	u.run(t, never)
	assert.Zero(t, u.waiting, "a file that is too old for the bucket does not wait")
	assert.Empty(t, u.failed)
	assert.Len(t, s.Objects(), len(kept))
	for _, key := range kept {
		assert.Contains(t, s.Objects(), key)
	}
	assert.ElementsMatch(t, []string{"s3://profiles/" + old[0], "s3://profiles/" + old[2]}, u.removed)
	events := s.Events()
	assert.Less(t, slices.Index(events, "DELETE "+old[0]), slices.Index(events, "DELETE "+old[1]), "a file before its index")
	assert.Empty(t, u.uploaded)
}

func TestUploadersRejectWrongLocations(t *testing.T) {
	s3test.SetEnvironment(t)
	_, err := objectstore.NewUploader(uploadOf("http://localhost/path", t.TempDir()).UploadOptions)
	assert.EqualError(t, err, "endpoint has a path or query: must be a host or a URL such as https://s3.eu-west-1.amazonaws.com")
	assert.NoError(t, objectstore.CheckEndpoint("endpoint", "minio.example.com:9000"))
	assert.Error(t, objectstore.CheckBucket("bucket", "Upper"))
}
