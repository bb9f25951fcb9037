// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package s3test is for tests: a small server of the part of S3's protocol that internal/objectstore uses, which can have faults, and a
// real MinIO server if there is one.
package s3test

import (
	"cmp"
	"crypto/md5" // #nosec G501 -- the ETags of S3
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Bucket is the one that there is. Secret is the key of the credentials that SetEnvironment sets.
const (
	Bucket = "profiles"
	Secret = "do-not-log-this-secret" // #nosec G101 -- of tests
)

// Server has objects in memory.
type Server struct {
	URL string
	// PageSize is how many objects a response lists.
	PageSize int
	// Fault answers a request, or returns false if the request has none. Set it before the first request.
	Fault func(http.ResponseWriter, *http.Request) bool
	// Lost reports whether the response of a request is lost, after the request was done. Set it before the first request.
	Lost func(*http.Request) bool

	requests atomic.Int64
	mu       sync.Mutex
	objects  map[string]object
	events   []string
}

type object struct {
	data     []byte
	modified time.Time
	sum      string // the metadata
}

func (o *object) etag() string {
	sum := md5.Sum(o.data) // #nosec G401 -- as S3
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// New starts a Server, and sets credentials.
func New(t *testing.T) *Server {
	s := &Server{PageSize: 1000, objects: map[string]object{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	SetEnvironment(t)
	return s
}

// SetEnvironment sets credentials, and no others.
func SetEnvironment(t *testing.T) {
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test-access-key", "AWS_SECRET_ACCESS_KEY": Secret, "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "", "AWS_REGION": "us-east-1", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(key, value)
	}
}

// Path is the URL of a prefix.
func (s *Server) Path(prefix string) string { return Path(s.URL, prefix) }

// Path is the URL of a prefix on a server.
func Path(endpoint, prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?endpoint=" + url.QueryEscape(endpoint)
}

// Requests is how many requests there were.
func (s *Server) Requests() int { return int(s.requests.Load()) }

// Put stores an object.
func (s *Server) Put(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = object{data: data, modified: time.Now()}
}

// PutDirectory stores the files of a directory.
func (s *Server) PutDirectory(t *testing.T, dir, prefix string) {
	for name, data := range Files(t, dir) {
		s.Put(prefix+"/"+name, data)
	}
}

// Files reads the files below a directory, by name.
func Files(t testing.TB, dir string) map[string][]byte {
	files := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	}))
	return files
}

// Remove removes an object.
func (s *Server) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

// Objects returns the content of all objects, by key.
func (s *Server) Objects() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]byte{}
	for key, o := range s.objects {
		all[key] = o.data
	}
	return all
}

// Events returns the changes: "PUT key" and "DELETE key", in order.
func (s *Server) Events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	if s.Fault != nil && s.Fault(w, r) {
		return
	}
	if s.Lost != nil && s.Lost(r) {
		defer panic(http.ErrAbortHandler)
		w = httptest.NewRecorder()
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o, exists := s.objects[key]; {
	case !strings.Contains(r.Header.Get("Authorization"), "test-access-key/"):
		Fail(w, http.StatusForbidden, "InvalidAccessKeyId", "The Access Key Id you provided does not exist in our records.")
	case bucket != Bucket:
		Fail(w, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	case key == "" && r.URL.Query().Has("location"):
		_, _ = io.WriteString(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">us-east-1</LocationConstraint>`)
	case key == "":
		s.list(w, r.URL.Query())
	case r.Method == http.MethodPut:
		s.put(w, r, key)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		s.events = append(s.events, "DELETE "+key)
		w.WriteHeader(http.StatusNoContent)
	case !exists:
		Fail(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	default:
		get(w, r, &o)
	}
}

// Fail answers with an error as S3 does.
func Fail(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, message)
}

func get(w http.ResponseWriter, r *http.Request, o *object) {
	w.Header().Set("ETag", o.etag())
	w.Header().Set("X-Amz-Meta-Sha256", o.sum)
	w.Header().Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	from, to := 0, len(o.data)
	if match := r.Header.Get("If-Match"); match != "" && match != o.etag() {
		Fail(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
		return
	}
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		first, last, _ := strings.Cut(text, "-")
		from, _ = strconv.Atoi(first)
		end, _ := strconv.Atoi(last)
		if to = min(to, end+1); from >= to {
			Fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable")
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(o.data)))
	}
	w.Header().Set("Content-Length", strconv.Itoa(to-from))
	if to-from < len(o.data) || r.Header.Get("Range") != "" {
		w.WriteHeader(http.StatusPartialContent)
	}
	if r.Method == http.MethodGet {
		_, _ = w.Write(o.data[from:to])
	}
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, key string) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	sum := sha256.Sum256(data)
	_, exists := s.objects[key]
	switch {
	case r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]):
		Fail(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	case exists && r.Header.Get("If-None-Match") == "*":
		Fail(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	default:
		o := object{data, time.Now(), r.Header.Get("X-Amz-Meta-Sha256")}
		s.objects[key] = o
		s.events = append(s.events, "PUT "+key)
		w.Header().Set("ETag", o.etag())
	}
}

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string
	EncodingType          string
	Contents              []listed
	CommonPrefixes        []commonPrefix
}

type commonPrefix struct{ Prefix string }

type listed struct {
	Key, LastModified, ETag string
	Size                    int
}

func (s *Server) list(w http.ResponseWriter, query url.Values) {
	var page listing
	var o object
	var last string // key
	encode := func(key string) string { return key }
	if query.Get("encoding-type") == "url" {
		page.EncodingType, encode = "url", url.QueryEscape
	}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(key, query.Get("prefix")) || key <= cmp.Or(query.Get("continuation-token"), query.Get("start-after")) {
			continue
		}
		if len(page.Contents) == s.PageSize && query.Get("delimiter") == "" {
			page.IsTruncated, page.NextContinuationToken = true, last
			break
		}
		if delimiter := query.Get("delimiter"); delimiter != "" {
			rest := strings.TrimPrefix(key, query.Get("prefix"))
			if name, _, isDirectory := strings.Cut(rest, delimiter); isDirectory {
				if prefix := (commonPrefix{encode(query.Get("prefix") + name + delimiter)}); !slices.Contains(page.CommonPrefixes, prefix) {
					page.CommonPrefixes = append(page.CommonPrefixes, prefix)
				}
				continue
			}
		}
		o, last = s.objects[key], key
		page.Contents = append(page.Contents, listed{encode(key), o.modified.UTC().Format(time.RFC3339), o.etag(), len(o.data)})
	}
	_ = xml.NewEncoder(w).Encode(page)
}
