// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	deltapprof "github.com/grafana/pyroscope-go/godeltaprof/http/pprof"
	"github.com/stretchr/testify/assert"
)

// allocation is a size in bytes that the runtime always samples.
const allocation = 1 << 20

var allocated [][]byte

//go:noinline
func allocateForScrapes(n int) {
	for range n {
		allocated = append(allocated, make([]byte, allocation))
	}
}

// requests counts requests by path.
type requests struct {
	http.Handler
	mu     sync.Mutex
	byPath map[string]int
}

func (r *requests) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.Handler.ServeHTTP(w, request)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byPath[request.URL.Path]++
}

// more waits for n more requests of each path.
func (r *requests) more(t *testing.T, c *collector, n int, paths ...string) {
	t.Helper()
	counts := func() (all []int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, path := range paths {
			all = append(all, r.byPath[path])
		}
		return all
	}
	before := counts()
	c.await(t, fmt.Sprintf("%d scrapes of %q", n, paths), func() bool {
		for i, now := range counts() {
			if now < before[i]+n {
				return false
			}
		}
		return true
	})
}

// TestScrapeOfGo scrapes this process by net/http/pprof and by godeltaprof. Both report the bytes
// that a function allocates between two scrapes exactly.
func TestScrapeOfGo(t *testing.T) {
	defer func() { allocated = nil }()
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/delta/delta_heap", deltapprof.Heap)
	target := &requests{Handler: mux, byPath: map[string]int{}}
	server := httptest.NewServer(target)
	defer server.Close()
	address, files := freeAddress(t), filepath.Join(t.TempDir(), "profiles")
	c := run(t, address, files, fmt.Sprintf(`
receivers:
  pprof:
    server: {endpoint: %s}
    remote:
      collection_interval: 500ms
      targets:
        - endpoint: %s
          resource_attributes: {service.name: counted here}
          profiles: [heap, goroutine, mutex, block, threadcreate]
        - endpoint: %s/delta
          resource_attributes: {service.name: counted there}
          profiles: [delta_heap]
exporters:
  profiles_file: {directory: %s}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [pprof], exporters: [profiles_file]}
`, address, server.URL, server.URL, files))
	paths := []string{"/debug/pprof/heap", "/delta/delta_heap"}
	target.more(t, c, 1, append(paths, "/debug/pprof/goroutine", "/debug/pprof/mutex", "/debug/pprof/block", "/debug/pprof/threadcreate")...)
	const n = 20
	allocateForScrapes(n)
	for range 3 { // the heap profile is that of the garbage collection before the last
		runtime.GC()
	}
	target.more(t, c, 3, paths...)
	c.stop(t)

	sums := map[string]int64{}
	for _, e := range readProfiles(t, c.files) {
		for _, sample := range e.Samples {
			if e.Type == "alloc_space" && hasFunction(sample, "allocateForScrapes") {
				sums[serviceName(e)] += sample.Sum.Int64()
			}
		}
	}
	for _, service := range []string{"counted here", "counted there"} {
		// The slice grows in the same function.
		if got := sums[service]; got < n*allocation || got > n*allocation+allocation/64 {
			t.Errorf("%s: %d bytes were allocated, want %d and little more", service, got, n*allocation)
		}
	}
	assert.Equal(t, sums["counted there"], sums["counted here"])
}
