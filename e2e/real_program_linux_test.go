// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// target is a running Go program, and a proxy before it. What the program has used is read all the time, so that it is known for the time of each
// profile, however busy the machine is.
type target struct {
	t     *testing.T
	pid   int
	url   string // of the program
	proxy *httptest.Server

	mu         sync.Mutex
	most       int       // CPU profiles; later scrapes fail
	cpu, heaps []span    // the profiles
	spent      []reading // seconds of CPU time
	allocated  []reading // bytes
}

// span is a time in nanoseconds since the epoch.
type span struct{ start, end int64 }

// reading is a counter at a time.
type reading struct {
	at    int64
	value float64
}

// startTarget builds and starts the program, of which so many CPU profiles and deltas of heap profiles can be scraped. It ends with the test.
func startTarget(t *testing.T, most int) *target {
	path := filepath.Join(t.TempDir(), "target")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./testdata/target").CombinedOutput()
	require.NoError(t, err, "%s", out)
	command := exec.Command(path)
	printed, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	address, err := bufio.NewReader(printed).ReadString('\n')
	require.NoError(t, err)
	g := &target{t: t, pid: command.Process.Pid, url: "http://" + strings.TrimSpace(address), most: most}
	to, err := url.Parse(g.url)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.ModifyResponse, forward.ErrorLog = g.keepTime, log.New(io.Discard, "", 0)
	g.proxy = httptest.NewServer(forward)
	t.Cleanup(g.proxy.Close)
	g.readAlways(20*time.Millisecond, &g.spent, g.readCPU)
	g.readAlways(200*time.Millisecond, &g.allocated, g.readAllocated)
	return g
}

// keepTime keeps the time of a profile.
func (g *target) keepTime(r *http.Response) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	p, err := profile.ParseData(body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.mu.Lock()
	defer g.mu.Unlock()
	spans, most := &g.heaps, g.most+1 // of the first one there is no delta
	if p.SampleType[len(p.SampleType)-1].Type == "cpu" {
		spans, most = &g.cpu, g.most
	}
	if len(*spans) == most {
		return errors.New("enough profiles")
	}
	*spans = append(*spans, span{p.TimeNanos, p.TimeNanos + p.DurationNanos})
	return nil
}

// isDone reports whether all profiles were scraped, and read until after their end.
func (g *target) isDone() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.cpu) < g.most || len(g.heaps) <= g.most {
		return false
	}
	return last(g.spent).at > last(g.cpu).end && last(g.allocated).at > last(g.heaps).start
}

func last[T any](all []T) T { return all[len(all)-1] }

// readAlways reads a counter until the test ends.
func (g *target) readAlways(every time.Duration, into *[]reading, read func() (float64, error)) {
	ended, wait := make(chan struct{}), sync.WaitGroup{}
	wait.Go(func() {
		for {
			before := time.Now()
			value, err := read()
			at := before.Add(time.Since(before) / 2)
			if err == nil {
				g.mu.Lock()
				*into = append(*into, reading{at.UnixNano(), value})
				g.mu.Unlock()
			}
			select {
			case <-ended:
				return
			case <-time.After(every):
			}
		}
	})
	g.t.Cleanup(func() { close(ended); wait.Wait() })
}

// readCPU reads the time that the program has spent in user and system mode.
func (g *target) readCPU() (seconds float64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		seconds += float64(ticks) / 100 // in this file on all machines
	}
	return seconds, nil
}

// readAllocated reads how many bytes the program has allocated since it started.
func (g *target) readAllocated() (float64, error) {
	response, err := http.Get(g.url + "/debug/vars") // #nosec G107 -- a program of the test
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var vars struct {
		Stats struct{ TotalAlloc float64 } `json:"memstats"`
	}
	err = json.NewDecoder(response.Body).Decode(&vars)
	return vars.Stats.TotalAlloc, err
}

// between returns how much a counter has grown per second, between what was read.
func between(readings []reading, of span) float64 {
	value := func(at int64) float64 {
		i := sort.Search(len(readings)-1, func(i int) bool { return i > 0 && readings[i].at >= at })
		before, after := readings[i-1], readings[i]
		return before.value + (after.value-before.value)*float64(at-before.at)/float64(after.at-before.at)
	}
	return (value(of.end) - value(of.start)) / (float64(of.end-of.start) / 1e9)
}

// truth returns the cores and the bytes per second, as means of the profiles, which are equally far apart, and how long the CPU profiles are.
func (g *target) truth() (cores, bytes, profiled float64) {
	for i, of := range g.cpu {
		cores += between(g.spent, of) / float64(len(g.cpu))
		profiled += float64(of.end-of.start) / 1e9
		bytes += between(g.allocated, span{g.heaps[i].start, g.heaps[i+1].start}) / float64(len(g.cpu))
	}
	return cores, bytes, profiled
}

// TestRatesOfARealProgramAreThoseOfTheSystem_T1 scrapes a Go program. What the page shows is what Linux and Go's runtime counted meanwhile.
func TestRatesOfARealProgramAreThoseOfTheSystem_T1(t *testing.T) {
	parallel(t)
	const scrapes = 3
	of, view, files := startTarget(t, scrapes), freeAddress(t), filepath.Join(t.TempDir(), "profiles")
	started := time.Now()
	configFile := profiletest.WriteFile(t, "config.yaml", fmt.Appendf(nil, `
receivers:
  pprof:
    remote:
      targets: [{endpoint: '%s/debug/pprof', resource_attributes: {service.name: target}}]
      profiles: [cpu, heap]
      collection_interval: 3s
      cpu_duration: 2s
processors: {profiles_dedup: {window: 1s}}
exporters: {profiles_file: {directory: %[2]s}}
extensions: {profiles_view: {directory: %[2]s, endpoint: %[3]s}}
service:
  telemetry: {metrics: {level: none}}
  extensions: [profiles_view]
  pipelines: {profiles: {receivers: [pprof], processors: [profiles_dedup], exporters: [profiles_file]}}
`, of.proxy.URL, files, view))
	c := launch(t, program(t), nil, "--config", configFile)
	c.await(t, "scrapes", of.isDone)

	type row struct {
		Type      string  `json:"type"`
		Sample    string  `json:"sample_type"`
		Profiles  int     `json:"profiles"`
		Rate      float64 `json:"rate"`
		Covered   float64 `json:"covered_seconds"`
		Processes int     `json:"processes"`
	}
	var cpu, heap row
	c.await(t, "all scrapes on the page", func() bool {
		var answer struct{ Services []row }
		query := url.Values{"service": {"target"}, "from": {started.Format(time.RFC3339Nano)}, "to": {time.Now().Format(time.RFC3339Nano)}}
		require.NoError(t, json.Unmarshal([]byte(get(t, "http://"+view+"/api/services?"+query.Encode()).body), &answer))
		for _, row := range answer.Services {
			switch row.Sample {
			case "cpu":
				cpu = row
			case "alloc_space":
				heap = row
			}
		}
		return cpu.Profiles == scrapes && heap.Profiles == scrapes
	})
	of.mu.Lock()
	defer of.mu.Unlock()
	cores, bytes, profiled := of.truth()
	t.Logf("%.3f of %.3f cores, %.1f of %.1f MB/s", cpu.Rate/1e9, cores, heap.Rate/1e6, bytes/1e6)
	assert.InEpsilon(t, cores, cpu.Rate/1e9, 0.1)
	assert.InEpsilon(t, bytes, heap.Rate, 0.1)
	assert.InEpsilon(t, profiled, cpu.Covered, 1e-6)
	assert.Equal(t, []int{1, 1}, []int{cpu.Processes, heap.Processes})
}
