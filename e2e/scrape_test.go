// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// startWith runs the program with additional sections of the pprof receiver, these processors,
// storage in dir, and one file per payload.
func startWith(t *testing.T, dir, sections, processors string) *collector {
	t.Helper()
	address, files := freeAddress(t), filepath.Join(t.TempDir(), "profiles")
	storage := filepath.Join(dir, "storage")
	if err := os.MkdirAll(storage, 0o700); err != nil {
		t.Fatal(err)
	}
	return run(t, address, files, fmt.Sprintf(`
extensions:
  file_storage:
    directory: %s
receivers:
  pprof:
    server:
      endpoint: %s
%s
processors:
  profiles_dedup:
    window: 1h
exporters:
  profiles_file:
    directory: %s
    compression: none
    rotation: {max_records: 1}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles:
      receivers: [pprof]
      processors: %s
      exporters: [profiles_file]
`, storage, address, sections, files, processors))
}

// await waits until done returns true, and fails with the logs after patience.
func (c *collector) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	c.awaitFor(t, patience, what, done)
}

// awaitFor is await with another patience.
func (c *collector) awaitFor(t *testing.T, patience time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after %s\n%s", what, patience, c.kill())
		}
	}
}

// totals sums the values in the files by service and sample type.
func (c *collector) totals(t *testing.T) map[string]int64 {
	t.Helper()
	return totalsOf(readProfiles(t, c.files))
}

// growing serves a CPU profile and a cumulative heap profile that grows, a few times each.
type growing struct {
	t          *testing.T
	mu         sync.Mutex
	cpus, heap int
}

const served = 3

func (g *growing) enough() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cpus > served && g.heap > served+2
}

func (g *growing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &profile.Profile{TimeNanos: time.Now().UnixNano()}
	switch {
	case r.URL.Path == "/debug/pprof/profile" && r.URL.Query().Get("seconds") == "1":
		if g.cpus++; g.cpus > served {
			http.Error(w, "enough", http.StatusServiceUnavailable)
			return
		}
		p.SampleType = []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}
		p.Sample = []*profile.Sample{{Value: []int64{7}}}
	case r.URL.Path == "/debug/pprof/heap":
		g.heap++
		n := int64(min(g.heap, served))
		p.SampleType = []*profile.ValueType{{Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_space", Unit: "bytes"}}
		p.Sample = []*profile.Sample{{Value: []int64{1000 * n, 0}}, {Value: []int64{0, 3}, NumLabel: map[string][]int64{"bytes": {3}}}}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(compressed(g.t, pprofBytes(g.t, p)))
}

// TestScrape checks that files hold the scraped intervals, and the growth of cumulative values. A
// window sums intervals and keeps snapshots separate.
func TestScrape(t *testing.T) {
	parallel(t)
	for _, processors := range []string{"[]", "[profiles_dedup]"} {
		t.Run(processors, func(t *testing.T) {
			parallel(t)
			target := &growing{t: t}
			server := httptest.NewServer(target)
			defer server.Close()
			c := startWith(t, t.TempDir(), fmt.Sprintf(`
    remote:
      collection_interval: 1100ms
      cpu_duration: 1s
      profiles: [cpu, heap]
      targets:
        - endpoint: %s
          resource_attributes: {service.name: scraped}
`, server.URL), processors)
			c.await(t, "scrapes", target.enough)
			c.stop(t)
			got := c.totals(t)
			if got["scraped cpu"] != 7*served {
				t.Errorf("cpu is %d, want %d", got["scraped cpu"], 7*served)
			}
			if want := int64(1000 * (served - 1)); got["scraped alloc_space"] != want {
				t.Errorf("alloc_space is %d, want the growth since the first scrape, %d", got["scraped alloc_space"], want)
			}
			if got["scraped inuse_space"] < 3*served {
				t.Errorf("inuse_space is %d, want 3 for each of at least %d scrapes", got["scraped inuse_space"], served)
			}
			profiles := map[string]int{}
			for _, e := range readProfiles(t, c.files) {
				profiles[e.Type]++
			}
			if merged := profiles["cpu"] == 1 && profiles["alloc_space"] == 1; merged != (processors != "[]") || profiles["inuse_space"] < served {
				t.Errorf("there are %v profiles by type", profiles)
			}
		})
	}
}

// TestFilesAreReadOnce restarts the program: it reads only new files.
func TestFilesAreReadOnce(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	write := func(service string, value int64) {
		path := filepath.Join(dir, "in", service, fmt.Sprint(value)+".pb.gz")
		content := compressed(t, pprofBytes(t, &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
			Sample:     []*profile.Sample{{Value: []int64{value}}},
		}))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	sections := fmt.Sprintf(`
    file:
      include: ["%s/in/*/*.pb.gz"]
      path_attributes: '(?P<service_name>[^/]+)/[^/]+$'
      poll_interval: 50ms
      storage: file_storage
`, dir)
	finished := func(c *collector) int {
		names, err := filepath.Glob(filepath.Join(c.files, "*.otlp.pb"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	requireTotals := func(c *collector, want map[string]int64) {
		t.Helper()
		if got := c.totals(t); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the files hold %v, want %v", got, want)
		}
	}
	c := startWith(t, dir, sections, "[]")
	write("one", 1)
	write("one", 10)
	write("two", 100)
	c.await(t, "three files", func() bool { return finished(c) == 3 })
	c.stop(t)
	requireTotals(c, map[string]int64{"one cpu": 11, "two cpu": 100})

	write("two", 1000)
	c = startWith(t, dir, sections, "[]")
	c.await(t, "the new file", func() bool { return finished(c) == 1 })
	time.Sleep(300 * time.Millisecond) // some polls, in which nothing is read again
	c.stop(t)
	requireTotals(c, map[string]int64{"two cpu": 1000})
}
