// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/upload"
)

// uploader returns an Uploader of a directory, and what it reports.
func (d *directory) uploader(server *s3test.Server, change ...func(*upload.Options)) (*upload.Uploader, *[]error) {
	var mu sync.Mutex
	failed := &[]error{}
	options := upload.Options{
		Location: bucket.Location{Endpoint: server.URL, Bucket: s3test.Bucket, Prefix: "prod"}, Directory: d.dir, Timeout: 10 * time.Second,
		Uploaded: func(string, int64) {}, Removed: func(string) {}, Waiting: func(int) {},
		Failed: func(err error, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			*failed = append(*failed, err)
		},
		Now: func() time.Time { return d.now },
	}
	for _, c := range change {
		c(&options)
	}
	u, err := upload.New(options)
	require.NoError(d.t, err)
	d.t.Cleanup(u.Close)
	return u, failed
}

// TestObjectsAreFilesOfTheDirectory: at each step of a directory, the bucket has the same profiles after a pass, and while a pass goes on
// a reader sees nothing twice.
func TestObjectsAreFilesOfTheDirectory(t *testing.T) {
	server := s3test.New(t)
	d := newDirectory(t)
	u, failed := d.uploader(server)
	remote := openStore(t, server.Path("prod"))
	pass := func(want map[int]int) {
		t.Helper()
		require.NoError(t, u.Upload(t.Context()))
		require.Equal(t, want, readAll(t, remote))
		require.Equal(t, want, d.counts())
	}
	d.write(1)
	d.write(2)
	pass(once(1, 2))
	d.now = begin.Add(70 * time.Minute)
	d.write(3)
	d.now = begin.Add(3 * time.Hour)
	d.compact()
	pass(once(1, 2, 3))
	require.Len(t, server.Objects(), 2)
	u, _ = d.uploader(server) // after a restart
	d.now = begin.Add(30 * time.Hour)
	d.compact()
	pass(once(1, 2, 3))
	require.Len(t, server.Objects(), 1)
	before := len(server.Events())
	u, _ = d.uploader(server)
	pass(once(1, 2, 3))
	require.Len(t, server.Events(), before, "nothing is uploaded again")
	require.Empty(t, *failed)
	u, _ = d.uploader(server, func(o *upload.Options) { o.MaxAge = time.Hour })
	require.NoError(t, u.Upload(t.Context()))
	require.Empty(t, server.Objects())
}

// TestAnUploadEndsAnywhere: requests fail, or their responses are lost, one after the other, and the process is started again. A reader
// of the bucket sees each record once as soon as it was uploaded.
func TestAnUploadEndsAnywhere(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("lost ", lost), func(t *testing.T) {
			server := s3test.New(t)
			var mu sync.Mutex
			left := -1 // changes until the fault; negative is none
			fails := func(r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				if r.Method == http.MethodGet || r.Method == http.MethodHead || left < 0 {
					return false
				}
				left--
				return left < 0
			}
			if lost {
				server.Lost = fails
			} else {
				server.Fault = func(w http.ResponseWriter, r *http.Request) bool {
					if !fails(r) {
						return false
					}
					s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
					return true
				}
			}
			for fault := range 6 {
				for key := range server.Objects() {
					server.Remove(key)
				}
				d := newDirectory(t)
				remote := openStore(t, server.Path("prod"))
				uploaded := map[int]int{}
				for step := range 4 {
					switch step {
					case 0:
						d.write(1)
						d.write(2)
					case 1:
						d.now = begin.Add(70 * time.Minute)
						d.write(3)
					case 2:
						d.now = begin.Add(3 * time.Hour)
						d.compact()
					case 3:
						d.now = begin.Add(30 * time.Hour)
						d.compact()
					}
					mu.Lock()
					left = fault
					mu.Unlock()
					u, _ := d.uploader(server)
					_ = u.Upload(t.Context())
					counts := readAll(t, remote)
					for id, n := range counts {
						require.Equal(t, 1, n, "record %d, fault %d, step %d", id, fault, step)
					}
					for id := range uploaded {
						require.Equal(t, 1, counts[id], "record %d, fault %d, step %d", id, fault, step)
					}
					mu.Lock()
					left = -1
					mu.Unlock()
					u, _ = d.uploader(server)
					require.NoError(t, u.Upload(t.Context()))
					uploaded = readAll(t, remote)
					require.Equal(t, d.counts(), uploaded)
				}
				require.Len(t, server.Objects(), 1)
			}
		})
	}
}

// TestReadersOfABucketThatChanges_A4: readers see each record that was in the bucket before they listed, once.
func TestReadersOfABucketThatChanges_A4(t *testing.T) {
	server := s3test.New(t)
	server.PageSize = 3
	d := newDirectory(t)
	u, _ := d.uploader(server)
	var mu sync.Mutex
	uploaded := map[int]int{}
	remote := openStore(t, server.Path("prod"))
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			mu.Lock()
			before := uploaded
			mu.Unlock()
			counts := readAll(t, remote)
			for id := range before {
				assert.Equal(t, 1, counts[id], "record %d", id)
			}
			for id, n := range counts {
				assert.Equal(t, 1, n, "record %d", id)
			}
		}
	})
	rounds := profiletest.Rounds(t, 40, 2000)
	for id := range rounds {
		d.write(id)
		d.now = d.now.Add(25 * time.Minute)
		if id%3 == 0 {
			d.compact()
		}
		require.NoError(t, u.Upload(t.Context()))
		counts := d.counts()
		mu.Lock()
		uploaded = counts
		mu.Unlock()
	}
	close(done)
	readers.Wait()
}

// An object of another content with a file's name stays, and what the file would replace counts.
func TestAForeignObject_A5(t *testing.T) {
	server := s3test.New(t)
	d := newDirectory(t)
	u, failed := d.uploader(server)
	d.write(1)
	require.NoError(t, u.Upload(t.Context()))
	d.now = begin.Add(2 * time.Hour)
	d.compact()
	name := paths(t, d.dir)[0]
	server.Put("prod/"+name, []byte("foreign"))
	require.NoError(t, u.Upload(t.Context()))
	require.Len(t, *failed, 1)
	_, isConflict := errors.AsType[*bucket.ConflictError]((*failed)[0])
	require.True(t, isConflict)
	require.Len(t, server.Objects(), 2)
	require.True(t, u.Waits(name))
	require.Equal(t, []byte("foreign"), server.Objects()["prod/"+name])
}

// TestTwoGatewaysOnOnePrefix: neither touches what the other one uploaded.
func TestTwoGatewaysOnOnePrefix(t *testing.T) {
	server := s3test.New(t)
	first, second := newDirectory(t), newDirectory(t)
	for i, d := range []*directory{first, second} {
		d.write(2*i+1, 2*i+2)
		u, _ := d.uploader(server)
		require.NoError(t, u.Upload(t.Context()))
	}
	for _, d := range []*directory{first, second} {
		for _, at := range []time.Duration{2 * time.Hour, 30 * time.Hour} {
			d.now = begin.Add(at)
			d.compact()
			u, _ := d.uploader(server)
			require.NoError(t, u.Upload(t.Context()))
			require.Equal(t, once(1, 2, 3, 4), readAll(t, openStore(t, server.Path("prod"))))
		}
	}
	require.Len(t, server.Objects(), 2)
}

// The index of an object is one range request, and its records are one more.
func TestFewRequests(t *testing.T) {
	server := s3test.New(t)
	d := newDirectory(t)
	d.write(1, 2, 3)
	content, err := os.ReadFile(filepath.Join(d.dir, paths(t, d.dir)[0]))
	require.NoError(t, err)
	server.Put("prod/"+paths(t, d.dir)[0], content)
	s := openStore(t, server.Path("prod"))
	segments, err := s.Live(t.Context(), d.now, d.now, nil)
	require.NoError(t, err)
	require.Len(t, segments, 1)
	before := server.Requests()
	_, err = segments[0].Index(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, server.Requests()-before)
	_, err = segments[0].Index(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, server.Requests()-before, "it is cached")
}

func TestErrorsOfBucketsAreNoEmptyResults(t *testing.T) {
	server := s3test.New(t)
	server.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		s3test.Fail(w, http.StatusForbidden, "AccessDenied", "Access Denied")
		return true
	}
	s := openStore(t, server.Path("prod"))
	_, err := s.Live(t.Context(), begin, begin, nil)
	require.True(t, bucket.IsStorageError(err))
	require.NotContains(t, err.Error(), s3test.Secret)
	require.NotContains(t, err.Error(), "http")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Live(ctx, begin, begin, nil)
	require.Error(t, err)
}

// TestADayWaitsForTheBucket: what an hour was made of is in the bucket, and the hour is not. Without the hour, the day would not say so.
func TestADayWaitsForTheBucket(t *testing.T) {
	server := s3test.New(t)
	d := newDirectory(t)
	u, _ := d.uploader(server)
	d.write(1)
	require.NoError(t, u.Upload(t.Context()))
	d.now = begin.Add(30 * time.Hour)
	c := d.compactor(func(o *compact.Options) { o.Ready = func(path string) bool { return !u.Waits(path) } })
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, [3]int{0, 1, 0}, d.levels())
	require.NoError(t, u.Upload(t.Context()))
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, [3]int{0, 0, 1}, d.levels())
	require.NoError(t, u.Upload(t.Context()))
	require.Equal(t, once(1), readAll(t, openStore(t, server.Path("prod"))))
	require.Len(t, server.Objects(), 1)
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
	list := func(location string) error {
		_, err := openStore(t, location).Live(t.Context(), time.Time{}, begin, nil)
		return err
	}
	err := list(redirecting.Path("p"))
	require.Error(t, err)
	require.NotContains(t, err.Error(), s3test.Secret)
	d := newDirectory(t)
	d.write(1)
	u, _ := d.uploader(redirecting)
	require.Error(t, u.Upload(t.Context()))

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
	require.Error(t, list("s3://"+s3test.Bucket+"/p?endpoint="+plain.URL))
	require.Positive(t, asked)
	require.Empty(t, stolen())
}
