// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/goleak"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/objectstore"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// format is that of the files.
var format = recordfile.Format{Content: recordfile.OTLPProto, Compression: recordfile.Zstd}

// write writes the payloads into files of three records with an index.
func write(t testing.TB, dir string, group []string, payloads ...pprofile.Profiles) {
	t.Helper()
	writeAt(t, time.Now(), dir, group, payloads...)
}

// writeAt is write at a time.
func writeAt(t testing.TB, at time.Time, dir string, group []string, payloads ...pprofile.Profiles) {
	t.Helper()
	w, err := recordfile.OpenWriter(recordfile.Options{
		Directory: dir, Format: format, MaxOpen: 8, Rotation: recordfile.Rotation{MaxRecords: 3},
		Failed: func(err error) { t.Error(err) }, Now: func() time.Time { return at },
	})
	require.NoError(t, err)
	for _, pd := range payloads {
		record, err := archive.Marshal(&pprofile.ProtoMarshaler{}, pd)
		require.NoError(t, err)
		record.Group = group
		require.NoError(t, w.Append(record))
	}
	require.NoError(t, w.Close())
}

// directory has files of all kinds.
func directory(t testing.TB) string {
	t.Helper()
	dir, r := t.TempDir(), profiletest.NewRand(7)
	var payloads []pprofile.Profiles
	for range 8 {
		payloads = append(payloads, profiletest.GenerateProfiles(r))
	}
	write(t, dir, nil, payloads...)
	write(t, dir, []string{"a"}, payloads[:2]...)
	write(t, dir, []string{"a-b"}, payloads[2:4]...)
	for name, data := range map[string][]byte{
		"a/contrib.bin": profiletest.Prefixed(profiletest.Proto(t, payloads[0]), profiletest.Proto(t, payloads[1])),
		"one.json":      profiletest.JSON(t, payloads[4]),
		"one.gz":        profiletest.Gzip(t, profiletest.Proto(t, payloads[5])),
		"stacks.folded": []byte("main;run 12\nmain;stop 3\n"),
		".hidden":       []byte("main 1\n"),
		".h/x.folded":   []byte("main 1\n"),
		"empty":         {},
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	return dir
}

func options() archive.Options { return archive.Options{MaxMemory: 64 << 20} }

// open finds the files of paths with a new Reader.
func open(t testing.TB, memory int64, paths ...string) ([]archive.File, *archive.Stats) {
	t.Helper()
	stats := &archive.Stats{}
	r := objectstore.NewReader(memory, stats)
	t.Cleanup(r.Close)
	files, failed := r.Find(context.Background(), paths)
	require.Empty(t, failed)
	return files, stats
}

// content describes files and their records without their directory.
func content(t testing.TB, root string, files []archive.File) (lines []string) {
	t.Helper()
	o := options()
	for _, f := range files {
		lines = append(lines, fmt.Sprint(strings.TrimPrefix(f.Path, root), " ", f.Size, " ", o.StoredIndex(t.Context(), f) != nil))
		for record, err := range o.Records(t.Context(), f, archive.Part{}) {
			if err != nil {
				lines = append(lines, strings.TrimPrefix(err.Error(), root))
				continue
			}
			lines = append(lines, fmt.Sprintf("%d %d %d %s %x", record.Number, record.Offset, record.End, record.Encoding, record.Data))
		}
	}
	return lines
}

func TestObjectsReadAsFiles(t *testing.T) {
	dir := directory(t)
	local, _ := archive.Find([]string{dir})
	want := content(t, dir, local)
	check := func(t *testing.T, path func(string) string) {
		for _, memory := range []int64{1, 16 << 20} { // a cache that holds nothing, and one that holds all
			remote, _ := open(t, memory, path("deep/dir"), path("/deep/dir/"))
			assert.Equal(t, want, content(t, "s3://"+s3test.Bucket+"/deep/dir", remote))
		}
		all, _ := open(t, 1<<20, path(""))
		assert.Len(t, all, len(local))
		one, _ := open(t, 1<<20, path("deep/dir/"+strings.TrimPrefix(filepath.ToSlash(local[0].Path), filepath.ToSlash(dir)+"/")))
		require.Len(t, one, 1, "the path of a file")
		assert.Equal(t, local[0].Index, one[0].Index)
		none, _ := open(t, 1<<20, path("deep/di"))
		assert.Empty(t, none)
		both, _ := open(t, 1<<20, path("deep"), dir)
		assert.Len(t, both, 2*len(local))
	}
	t.Run("fake", func(t *testing.T) {
		s := s3test.New(t)
		s.PageSize = 3
		s.PutDirectory(t, dir, "deep/dir")
		check(t, s.Path)
	})
	t.Run("MinIO", func(t *testing.T) {
		endpoint, client := s3test.MinIO(t)
		s3test.PutDirectory(t, client, dir, "deep/dir")
		check(t, func(prefix string) string { return s3test.Path(endpoint, prefix) })
	})
}

// source reads all of a path.
func source(files []archive.File) *query.Source {
	return &query.Source{Files: files, Options: options(), Failed: func(err error) error { return err }}
}

// TestQueriesReadFewBytes: of ten services one is read, from files of a service each, and from files with records of all.
func TestQueriesReadFewBytes(t *testing.T) {
	for name, grouped := range map[string]bool{"files by service": true, "records by service": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var all []pprofile.Profiles
			for n := range 30 { // a file has three records
				service := fmt.Sprint("service-", n%10)
				pd := payloadtest.With(payloadtest.ManyStacks(6_000, byte(n)), "service.name", service)
				if all = append(all, pd); grouped {
					write(t, dir, []string{service}, pd)
				}
			}
			if !grouped {
				write(t, dir, nil, all...)
			}
			s := s3test.New(t)
			s.PutDirectory(t, dir, "p")
			total := 0
			for _, data := range s.Objects() {
				total += len(data)
			}
			files, stats := open(t, 16<<20, s.Path("p"))
			sel := &query.Selection{Services: []string{"service-3"}}
			got, err := source(files).Merge(t.Context(), sel, false)
			require.NoError(t, err)
			local, _ := archive.Find([]string{dir})
			want, err := source(local).Merge(t.Context(), sel, false)
			require.NoError(t, err)
			assert.Equal(t, profiletest.Proto(t, want.Profiles), profiletest.Proto(t, got.Profiles))
			assert.Less(t, int(stats.Bytes.Load()), total*20/100, "of %d", total)
			assert.LessOrEqual(t, int(stats.Requests.Load()), 1+len(files)+3, "a listing, the indexes, and the records of the service")
			requests := stats.Requests.Load()
			_, err = source(files).Merge(t.Context(), sel, false)
			require.NoError(t, err)
			assert.Equal(t, requests, stats.Requests.Load(), "the cache has all")
		})
	}
}

func TestNeighbouringRecordsAreReadInOneRequest(t *testing.T) {
	var ranges []string
	s := s3test.New(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	s.Put("p/file", data)
	s.Fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if text := r.Header.Get("Range"); text != "" {
			ranges = append(ranges, text)
		}
		return false
	}
	files, _ := open(t, 16<<20, s.Path("p"))
	parts := []archive.Part{{Start: 10, End: 20}, {Start: 100_000, End: 100_001}, {Start: 900_000, End: 1 << 20}}
	files[0].Object.Fetch(t.Context(), parts)
	assert.Equal(t, []string{"bytes=0-131071", "bytes=884736-1048575"}, ranges)
	for _, part := range parts {
		got := make([]byte, part.End-part.Start)
		_, err := files[0].Object.Reader(t.Context(), part.End).ReadAt(got, part.Start)
		require.NoError(t, err)
		assert.Equal(t, data[part.Start:part.End], got)
	}
	files[0].Object.Fetch(t.Context(), []archive.Part{{}})
	assert.Equal(t, []string{"bytes=131072-884735"}, ranges[2:], "only those that are missing")
}

// TestErrorsOfStores: each names bucket, key and operation, and none the secret.
func TestErrorsOfStores(t *testing.T) {
	answer := func(header http.Header, status int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Range") == "" {
				return false
			}
			maps.Copy(w.Header(), header)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
			return true
		}
	}
	const denied = "<Error><Code>AccessDenied</Code><Message>Text of the server</Message></Error>"
	for name, test := range map[string]struct {
		fault  func(http.ResponseWriter, *http.Request) bool
		change func(*s3test.Server)
		want   string
		gone   bool
	}{
		"access denied": {fault: answer(nil, http.StatusForbidden, denied), want: "get s3://profiles/p/file: Text of the server (AccessDenied)"},
		"removed":       {change: func(s *s3test.Server) { s.Remove("p/file") }, want: "s3://profiles/p/file: file does not exist", gone: true},
		"changed":       {change: func(s *s3test.Server) { s.Put("p/file", []byte("main;other 12\n")) }, want: "s3://profiles/p/file: file does not exist", gone: true},
		"truncated": {
			fault: answer(http.Header{"Content-Range": {"bytes 0-12/13"}, "Content-Length": {"13"}}, http.StatusPartialContent, "main"),
			want:  "get s3://profiles/p/file: unexpected EOF",
		},
		"wrong size": {
			fault: answer(http.Header{"Content-Range": {"bytes 0-4/5"}}, http.StatusPartialContent, "main "),
			want:  `s3://profiles/p/file: the response is "bytes 0-4/5": must be bytes 0-12/13`,
		},
		"no ranges": {
			fault: answer(nil, http.StatusOK, "main;run 123\n"),
			want:  `s3://profiles/p/file: the response is "": must be bytes 0-12/13`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s3test.New(t)
			s.Put("p/file", []byte("main;run 123\n"))
			s.Fault = test.fault
			files, _ := open(t, 1<<20, s.Path("p"))
			if test.change != nil {
				test.change(s)
			}
			o := options()
			var errs []error
			for _, err := range o.Records(t.Context(), files[0], archive.Part{}) {
				errs = append(errs, err)
			}
			require.Len(t, errs, 1)
			assert.ErrorContains(t, errs[0], test.want)
			assert.Equal(t, test.gone, errors.Is(errs[0], fs.ErrNotExist))
			assert.NotContains(t, errs[0].Error(), s3test.Secret)
		})
	}
}

func TestErrorsOfLists(t *testing.T) {
	s := s3test.New(t)
	s.Put("p/file", []byte("main 1\n"))
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, test := range map[string]struct {
		path, want  string
		environment []string
	}{
		"no bucket":      {strings.Replace(s.Path("p"), "profiles", "other-bucket", 1), "list s3://other-bucket/p/: The specified bucket does not exist (NoSuchBucket)", nil},
		"wrong key":      {s.Path("p"), "list s3://profiles/p/: The Access Key Id you provided does not exist", []string{"AWS_ACCESS_KEY_ID", "unknown"}},
		"no credentials": {s.Path("p"), "list s3://profiles/p/: The Access Key Id you provided does not exist", []string{"AWS_ACCESS_KEY_ID", ""}},
		"no server":      {s3test.Path(closed.URL, "p"), "connection refused", nil},
		"a secret":       {"s3://user:" + s3test.Secret + "@profiles/p", "the URL has a user or password", nil},
		"a parameter":    {"s3://profiles/p?secret=" + s3test.Secret, `the URL has the parameter "secret": must be endpoint or region`, nil},
		"a path":         {"s3://profiles/p?endpoint=http://host/path", "endpoint has a path or query", nil},
		"no name":        {"s3:///p", `bucket is ""`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.environment != nil {
				t.Setenv(test.environment[0], test.environment[1])
			}
			r := objectstore.NewReader(1<<20, &archive.Stats{})
			defer r.Close()
			files, failed := r.Find(t.Context(), []string{test.path})
			assert.Empty(t, files)
			require.Len(t, failed, 1)
			assert.ErrorContains(t, failed[0], test.want)
			assert.NotContains(t, failed[0].Error(), s3test.Secret)
			_, isStorage := errors.AsType[*archive.StorageError](failed[0])
			assert.True(t, isStorage)
		})
	}
}

func TestThrottledAndBrokenRequestsAreSentAgain(t *testing.T) {
	s := s3test.New(t)
	s.Put("p/file", []byte("main;run 123\n"))
	var requests atomic.Int64
	s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		switch n := requests.Add(1); {
		case n%3 == 1:
			s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
		case n%3 == 2 && r.Header.Get("Range") != "":
			w.Header().Set("Content-Range", "bytes 0-12/13")
			w.Header().Set("Content-Length", "13")
			_, _ = w.Write([]byte("main"))
		default:
			return false
		}
		return true
	}
	files, _ := open(t, 1<<20, s.Path("p"))
	got, err := io.ReadAll(io.NewSectionReader(files[0].Object.Reader(t.Context(), 13), 0, 13))
	require.NoError(t, err)
	assert.Equal(t, "main;run 123\n", string(got))
}

func TestCancelledQueriesEndAtOnce(t *testing.T) {
	s := s3test.New(t)
	s.Put("p/file", []byte("main;run 123\n"))
	entered := make(chan struct{}, 100)
	s.Fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") == "" {
			return false
		}
		entered <- struct{}{}
		select { // no answer
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
		return true
	}
	files, _ := open(t, 1<<20, s.Path("p"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err := source(files).List(ctx, &query.Selection{})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestTheCacheIsBounded(t *testing.T) {
	s := s3test.New(t)
	for n := range 20 {
		s.Put(fmt.Sprint("p/", n), bytes.Repeat([]byte("main 1\n"), 20_000))
	}
	r := objectstore.NewReader(300_000, &archive.Stats{})
	defer r.Close()
	files, failed := r.Find(t.Context(), []string{s.Path("p")})
	require.Empty(t, failed)
	_, err := source(files).List(t.Context(), &query.Selection{})
	require.NoError(t, err)
	assert.LessOrEqual(t, r.Memory(), int64(300_000))
	assert.Positive(t, r.Memory())
}

// TestCredentialsComeFromTheSharedFile, and the endpoint from the environment.
func TestCredentialsComeFromTheSharedFile(t *testing.T) {
	s := s3test.New(t)
	s.Put("p/file", []byte("main 1\n"))
	path := profiletest.WriteFile(t, "credentials", []byte("[other]\naws_access_key_id = test-access-key\naws_secret_access_key = "+s3test.Secret+"\n"))
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": path, "AWS_PROFILE": "other", "AWS_ENDPOINT_URL": s.URL,
	} {
		t.Setenv(key, value)
	}
	files, _ := open(t, 1<<20, "s3://"+s3test.Bucket+"/p")
	assert.Len(t, files, 1)
}

// TestCredentialsStayWithTheServer_A3: neither signed requests of a store nor those for credentials follow a redirect to another host.
func TestCredentialsStayWithTheServer_A3(t *testing.T) {
	thief, stolen := profiletest.Thief(t)
	redirecting := s3test.New(t)
	redirecting.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		assert.NotEmpty(t, r.Header.Get("Authorization"))
		http.Redirect(w, r, thief+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		return true
	}
	find := func(path string) error {
		r := objectstore.NewReader(1<<20, &archive.Stats{})
		defer r.Close()
		_, failed := r.Find(t.Context(), []string{path})
		require.NotEmpty(t, failed)
		return errors.Join(failed...)
	}
	err := find(redirecting.Path("p"))
	assert.NotContains(t, err.Error(), s3test.Secret)

	plain := s3test.New(t)
	plain.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no", http.StatusForbidden)
		return true
	}
	asked := 0
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		assert.Equal(t, s3test.Secret, r.Header.Get("Authorization"))
		http.Redirect(w, r, thief, http.StatusTemporaryRedirect)
	}))
	defer metadata.Close()
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "none"), "AWS_EC2_METADATA_DISABLED": "",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": metadata.URL, "AWS_CONTAINER_AUTHORIZATION_TOKEN": s3test.Secret,
	} {
		t.Setenv(key, value)
	}
	_ = find("s3://" + s3test.Bucket + "/p?endpoint=" + plain.URL)
	assert.Positive(t, asked)
	assert.Empty(t, stolen())
}
