// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	pb "github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

// remote is a Page over a prefix, at the time of a site.
func (s *site) remote(url string) *site {
	s.t.Helper()
	r := &site{t: s.t, now: s.now}
	r.serve(url, 256<<20)
	return r
}

// filled is a site with some services.
func filled(t *testing.T) *site {
	s := newSite(t)
	for n := range 5 {
		at := s.now.Add(-time.Duration(n+1) * time.Minute)
		s.write(payload(t, cpu("checkout", at, int64(n)), cpu("cart", at, 7), heap("cart", "1", at, 9)))
	}
	s.writeUndescribed(payload(t, cpu("plain", s.now.Add(-time.Minute), 3)))
	return s
}

func TestObjectStoreAnswersAsDirectory(t *testing.T) {
	local := filled(t)
	check := func(t *testing.T, url string) {
		remote := local.remote(url)
		for _, path := range []string{
			"/api/services", "/api/services?service=cart", "/api/services?from=-3m", "/api/profile?service=checkout&type=cpu",
			"/api/profile?service=plain&from=-2h", "/?service=cart&type=cpu", "/",
		} {
			want, got := local.get(path), remote.get(path)
			assert.Equal(t, want.Code, got.Code, path)
			assert.Equal(t, strings.ReplaceAll(want.Body.String(), local.dir, url), got.Body.String(), path)
		}
		request := &pb.SelectMergeStacktracesRequest{ProfileTypeID: typeCPU, LabelSelector: `{service_name="checkout"}`, Start: local.now.Add(-time.Hour).UnixMilli(), End: local.now.UnixMilli()}
		assert.Equal(t, must[pb.SelectMergeStacktracesResponse](local.querier(), "SelectMergeStacktraces", request).String(),
			must[pb.SelectMergeStacktracesResponse](remote.querier(), "SelectMergeStacktraces", request).String())
	}
	t.Run("fake", func(t *testing.T) {
		s := s3test.New(t)
		s.PutDirectory(t, local.dir, "p")
		check(t, s.Path("p"))
		remote := local.remote(s.Path("p"))
		first := s.Requests()
		remote.get("/?service=cart&type=cpu")
		second := s.Requests()
		assert.LessOrEqual(t, second-first, 1+5+6, "a listing, the indexes, and the files")
		remote.get("/?service=cart&type=cpu")
		assert.Equal(t, second, s.Requests(), "the cache has all")
	})
	t.Run("MinIO", func(t *testing.T) {
		endpoint, client := s3test.MinIO(t)
		s3test.PutDirectory(t, client, local.dir, "p")
		check(t, s3test.Path(endpoint, "p"))
	})
}

// TestOutageOfTheObjectStore: a page needs the store only for what it has not read, and recovers.
func TestOutageOfTheObjectStore(t *testing.T) {
	local := filled(t)
	large := cpu("cart", local.now.Add(-time.Minute), 7)
	for range 40_000 { // 1 MB that cannot be compressed by much: the records are not read together with their index
		large.function += rand.Text()
	}
	local.write(payload(t, large))
	var away atomic.Bool
	s := s3test.New(t)
	s.PutDirectory(t, local.dir, "p")
	s.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		if away.Load() {
			s3test.Fail(w, http.StatusForbidden, "AccessDenied", "Access Denied.")
		}
		return away.Load()
	}
	remote := local.remote(s.Path("p"))
	away.Store(true)
	response := remote.get("/api/services")
	require.Equal(t, http.StatusOK, response.Code)
	assert.Contains(t, response.Body.String(), "list s3://profiles/p/: Access Denied. (AccessDenied)", "the list has no files yet")
	away.Store(false)
	remote.catalog.MaxAge = 0
	path := "/api/services?service=cart"
	assert.Equal(t, local.get(path).Body.String(), remote.get(path).Body.String())
	away.Store(true)
	remote.catalog.MaxAge = 0
	got := remote.get(path).Body.String()
	assert.Contains(t, got, `"sum":42`, "as before")
	assert.Contains(t, got, "AccessDenied")
	response = remote.get("/api/profile?service=cart&type=cpu")
	assert.Equal(t, http.StatusBadGateway, response.Code)
	assert.Contains(t, response.Body.String(), "get s3://profiles/p/20")
	away.Store(false)
	assert.Equal(t, http.StatusOK, remote.get("/api/profile?service=cart&type=cpu").Code)
	assert.NotContains(t, got+response.Body.String(), s3test.Secret)
}
