// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// pipes is a network in memory, for tests in a bubble of synctest. All addresses lead to one server.
type pipes chan net.Conn

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipes) Accept() (net.Conn, error) {
	if conn, open := <-p; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// serveOver serves the requests of b's scraper, for any host. The caller calls stop, in the same
// bubble.
func serveOver(t *testing.T, b *testReceiver, handler http.Handler) (stop func()) {
	t.Helper()
	network := make(pipes)
	server := &http.Server{Handler: handler}
	served := make(chan error)
	go func() { served <- server.Serve(network) }()
	configured := b.scraper.NewClient
	b.scraper.NewClient = func(ctx context.Context, host component.Host) (*http.Client, error) {
		client, err := configured(ctx, host)
		if err == nil {
			client.Transport = &http.Transport{DialContext: network.dial}
		}
		return client, err
	}
	return func() {
		assert.NoError(t, server.Close())
		assert.ErrorIs(t, <-served, http.ErrServerClosed)
	}
}

// targetsYAML configures scrapes of many hosts.
func targetsYAML(keys string, hosts ...string) string {
	var yaml strings.Builder
	yaml.WriteString("remote:\n  " + strings.ReplaceAll(strings.TrimSpace(keys), "\n", "\n  ") + "\n  targets:\n")
	for _, host := range hosts {
		fmt.Fprintf(&yaml, "    - endpoint: http://%s\n", host)
	}
	return yaml.String()
}

const scrapes = "otelcol_receiver_pprof_scrapes"

// outcomes counts the scrapes of a target by outcome.
func (b *testReceiver) outcomes(target string) map[string]int {
	b.t.Helper()
	counts := map[string]int{}
	found, err := b.telemetry.GetMetric(scrapes)
	require.NoError(b.t, err)
	for _, point := range found.Data.(metricdata.Sum[int64]).DataPoints {
		if name, _ := point.Attributes.Value("target"); name.AsString() == target {
			outcome, _ := point.Attributes.Value("outcome")
			counts[outcome.AsString()] += int(point.Value)
		}
	}
	return counts
}

// up is the health of each target, which has one profile.
func (b *testReceiver) up() map[string]int64 {
	b.t.Helper()
	return b.counts("otelcol_receiver_pprof_target_up", "target")
}

func respond(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body)
}

// hijack takes the connection over, writes to it, and closes it.
func hijack(w http.ResponseWriter, text string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}

// badTarget is a target that serves no valid profile.
type badTarget struct {
	outcome string
	serve   http.HandlerFunc
}

func badTargets(profile []byte) map[string]badTarget {
	drip := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte{0x0a})
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(time.Second):
			}
		}
	}
	return map[string]badTarget{
		"hangs": {"timeout", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"hangs-inside": {"timeout", func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(profile[:9])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		"drips":  {"timeout", drip},
		"resets": {"unreachable", func(w http.ResponseWriter, _ *http.Request) { hijack(w, "") }},
		"resets-inside": {"body", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc")
		}},
		"short": {"body", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(profile)+1, profile))
		}},
		"long": {"malformed", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(profile)-1, profile))
		}},
		"garbage": {"unreachable", func(w http.ResponseWriter, _ *http.Request) { hijack(w, "SSH-2.0-OpenSSH_9.9\r\n") }},
		"loops":   {"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"/x", http.StatusFound) }},
		"elsewhere": {"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://other.example"+r.URL.Path, http.StatusFound)
		}},
		"html": {"malformed", func(w http.ResponseWriter, _ *http.Request) { respond(w, "text/html; charset=utf-8", []byte("<html>")) }},
		"debug-text": {"malformed", func(w http.ResponseWriter, _ *http.Request) {
			respond(w, "text/plain; charset=utf-8", []byte("heap profile: 1: 2"))
		}},
		"json": {"malformed", func(w http.ResponseWriter, _ *http.Request) { respond(w, "application/problem+json", []byte("{}")) }},
		"text": {"malformed", func(w http.ResponseWriter, _ *http.Request) {
			respond(w, "application/octet-stream", []byte("heap profile: 1: 2"))
		}},
		"not-found": {"status", http.NotFound},
		"fails": {"status", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "in use\x1b of "+r.URL.RequestURI()+strings.Repeat("!", 1<<20), http.StatusInternalServerError)
		}},
		"no-content": {"status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		"empty":      {"malformed", func(http.ResponseWriter, *http.Request) {}},
		"cut":        {"malformed", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(profile[:len(profile)-5]) }},
		"endless": {"too_large", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}},
		"announces": {"too_large", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(1<<40))
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
	}
}

// Of 100 targets, some are bad, in all known ways. In ten cycles, no good one misses a scrape, and each
// scrape ends by its timeout. Secrets are in no log and no metric, whatever the error is.
func TestBadTargets_R14_R16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			targets = 100
			cycles  = 10
			timeout = 30 * time.Second
		)
		profile := profiletest.Gzip(t, profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3)))
		bad := badTargets(profile)
		kinds := slices.Sorted(maps.Keys(bad))
		serves := map[string]http.HandlerFunc{}
		outcome := map[string]string{}
		var hosts, endpoints []string
		for i := range targets {
			host := fmt.Sprintf("good-%d", i)
			if i < 30 {
				kind := kinds[i%len(kinds)]
				host = fmt.Sprintf("%s-%d", kind, i)
				serves[host], outcome[host] = bad[kind].serve, bad[kind].outcome
			} else {
				serves[host], outcome[host] = func(w http.ResponseWriter, _ *http.Request) { respond(w, "application/octet-stream", profile) }, "success"
			}
			hosts, endpoints = append(hosts, host), append(endpoints, host+"?token=s3cret")
		}
		next := &sink{t: t}
		keys := "profiles: [goroutine]\nmax_decompressed_size: 2MiB\nheaders: {Authorization: s3cret}\n"
		b := newTestReceiver(t, targetsYAML(keys, endpoints...)+"\nmax_in_flight: 4MiB", next)
		var mu sync.Mutex
		var longest time.Duration
		elsewhere := false
		defer serveOver(t, b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serve := serves[r.Host]
			if serve == nil {
				elsewhere = true
				return
			}
			begin := time.Now()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, time.Since(begin))
			}()
			serve(w, r)
		}))()
		require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
		// At some moment of each interval; the last ones take their timeout.
		time.Sleep(cycles*time.Minute + timeout)
		for _, host := range hosts {
			counts := b.outcomes("http://" + host + "/debug/pprof")
			assert.GreaterOrEqual(t, counts[outcome[host]], cycles, host)
			assert.LessOrEqual(t, counts[outcome[host]], cycles+1, host)
			assert.Len(t, counts, 1, "%s: %v", host, counts)
			health := int64(0)
			if outcome[host] == "success" {
				health = 1
			}
			assert.Equal(t, health, b.up()["http://"+host+"/debug/pprof"], host)
		}
		stopping := time.Now()
		require.NoError(t, b.Shutdown(t.Context()))
		assert.LessOrEqual(t, time.Since(stopping), time.Second, "Shutdown")
		mu.Lock()
		assert.LessOrEqual(t, longest, timeout+100*time.Millisecond, "the longest scrape")
		mu.Unlock()
		assert.False(t, elsewhere, "a redirect to another host was followed")
		assert.Zero(t, b.inFlight.InUse())

		profiletest.Injected(t, fmt.Sprintf("%d targets of which 30 are bad, %d profiles of the good ones", targets, len(next.AllProfiles())))
		// Each is logged once, not in each cycle.
		logged := b.logs.FilterMessageSnippet("Scrape failed; further")
		assert.Equal(t, 30, logged.Len())
		b.requireNoSecrets("s3cret")
		fails := hosts[slices.Index(kinds, "fails")]
		const body = "in use\\x1b of /debug/pprof/goroutine?token="
		assert.Equal(t, `status 500, want 200: "`+body+strings.Repeat("!", 200-len(body)+len(`\x1b`)-1)+`"`,
			logged.FilterField(zap.String("target", "http://"+fails+"/debug/pprof")).All()[0].ContextMap()["error"])
	})
}

// A scrape that hangs does not delay Shutdown.
func TestScrapeStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestReceiver(t, targetsYAML("profiles: [cpu, heap]", "a", "b"), &sink{t: t})
		asked := make(chan struct{}, 4)
		defer serveOver(t, b, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-r.Context().Done()
		}))()
		require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
		<-asked
		begin := time.Now()
		require.NoError(t, b.Shutdown(t.Context()))
		assert.LessOrEqual(t, time.Since(begin), time.Second)
		assert.Empty(t, b.counts(scrapes, "outcome"), "an unfinished scrape has no outcome")
	})
}

// counters serves a heap, mutex and goroutine profile that grow, as net/http/pprof
// does.
type counters struct {
	t     *testing.T
	mu    sync.Mutex
	base  int64 // of all counters, 1 at the start of the process
	asked []string
}

func (c *counters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.URL.RequestURI())
	c.base++
	p := profiletest.HeapPprof(10*c.base, 1000*c.base, c.base%3+1, 100)
	p.TimeNanos = time.Now().UnixNano()
	switch {
	case strings.HasSuffix(r.URL.Path, "/mutex"):
		p.SampleType = p.SampleType[:2]
		p.SampleType[0].Type, p.SampleType[1].Type, p.SampleType[1].Unit = "contentions", "delay", "nanoseconds"
		p.Sample[0].Value = p.Sample[0].Value[:2]
		p.DefaultSampleType = ""
	case strings.HasSuffix(r.URL.Path, "/profile"), strings.HasSuffix(r.URL.Path, "/goroutine"):
		p = profiletest.CPUPprof("/bin/app", 1)
	}
	respond(w, "application/octet-stream", profiletest.Gzip(c.t, profiletest.Pprof(c.t, p)))
}

func TestScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &sink{t: t}
		b := newTestReceiver(t, "resource_attributes: {host.name: here, service.name: common}\n"+`
remote:
  profiles: [cpu, heap, mutex]
  cpu_duration: 7s
  targets: [{endpoint: 'http://a:6060/?token=1', resource_attributes: {service.name: own}}]`, next)
		target := &counters{t: t}
		defer serveOver(t, b, target)()
		b.runFor(2 * time.Minute)

		assert.ElementsMatch(t, []string{
			"/debug/pprof/profile?seconds=7&token=1", "/debug/pprof/heap?token=1", "/debug/pprof/mutex?token=1",
			"/debug/pprof/profile?seconds=7&token=1", "/debug/pprof/heap?token=1", "/debug/pprof/mutex?token=1",
		}, target.asked)
		counts := map[string]int{}
		for _, a := range arrivals(t, next.AllProfiles()...) {
			counts[a.kind+" "+a.sampleType+" "+a.temporality]++
			if a.kind != "cpu" && a.temporality == "delta" {
				assert.Equal(t, time.Minute, a.duration)
			}
		}
		assert.Equal(t, map[string]int{
			"cpu samples delta": 2, "cpu cpu delta": 2,
			"heap inuse_space instant": 2, "heap inuse_objects instant": 2,
			"heap alloc_space delta": 1, "heap alloc_objects delta": 1,
			"mutex contentions delta": 1, "mutex delay delta": 1,
		}, counts)
		for _, pd := range next.AllProfiles() {
			assert.Equal(t, map[string]any{
				"service.name": "own", "host.name": "here", "service.instance.id": "a:6060", "process.executable.name": "app",
			}, pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
		}
		again := 0
		for _, n := range next.idsOf() {
			again += n - 1
		}
		assert.LessOrEqual(t, again, 2, "only the CPU profiles are equal")
	})
}

// The profile is that of a program of Go 1.26, built with GOEXPERIMENT=goroutineleakprofile, in which three goroutines
// send to a channel without a receiver, and two with a label wait for a WaitGroup. Most targets do not have it.
func TestGoroutineLeaksAreScrapedFromTargetsThatHaveThem(t *testing.T) {
	leaks, err := os.ReadFile("testdata/goroutineleak.pb.gz")
	require.NoError(t, err)
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "new" || r.URL.Path != "/debug/pprof/goroutineleak" {
			http.NotFound(w, r)
			return
		}
		respond(w, "application/octet-stream", leaks)
	})
	synctest.Test(t, func(t *testing.T) {
		next := &sink{t: t}
		b := newTestReceiver(t, targetsYAML("profiles: [goroutineleak]", "new", "old"), next)
		defer serveOver(t, b, serve)()
		require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(time.Minute)
		all := arrivals(t, next.only())
		assert.Equal(t, []arrived{{kind: "goroutineleak", sampleType: "goroutineleak", unit: "count", temporality: "instant", value: 5, time: all[0].time}}, all)
		assert.Equal(t, map[string]int64{"success": 1}, b.counts(scrapes, "outcome"))
		assert.Equal(t, map[string]int64{"http://new/debug/pprof": 1}, b.up())
		require.NoError(t, b.Shutdown(t.Context()))
		assert.Equal(t, 1, b.logs.FilterMessage("Skipped a profile that the target does not have").Len())
		assert.Zero(t, b.logs.FilterMessageSnippet("Scrape failed").Len())
	})
	synctest.Test(t, func(t *testing.T) { // the only profile of endpoint
		b := newTestReceiver(t, "remote: {endpoint: http://old/debug/pprof/goroutineleak}", &sink{t: t})
		defer serveOver(t, b, serve)()
		b.runFor(time.Minute)
		assert.Equal(t, map[string]int64{"status": 1}, b.counts(scrapes, "outcome"))
	})
}

// endpoint is requested as it is.
func TestScrapeOfOneURL(t *testing.T) {
	for query, want := range map[string]struct{ asked, kind, temporality string }{
		"/debug/pprof/heap":           {"/debug/pprof/heap", "heap", "instant"},
		"/debug/pprof/heap?seconds=3": {"/debug/pprof/heap?seconds=3", "heap", "delta"},
		"/debug/pprof/profile":        {"/debug/pprof/profile?seconds=10", "cpu", "delta"},
		"/custom/profiles/mine?x=1":   {"/custom/profiles/mine?x=1", "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			next := &sink{t: t}
			b := newTestReceiver(t, "remote: {endpoint: 'http://a"+query+"'}", next)
			target := &counters{t: t}
			defer serveOver(t, b, target)()
			b.runFor(time.Minute)
			assert.Equal(t, []string{want.asked}, target.asked)
			for _, a := range arrivals(t, next.AllProfiles()...) {
				assert.Equal(t, want.kind, a.kind)
				assert.Equal(t, want.temporality, a.temporality, a.sampleType)
			}
		})
	}
}

// A panic of the pipeline ends neither the process nor the scraping.
func TestScrapeCarriesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &sink{t: t}
		calls := 0
		b := newTestReceiver(t, targetsYAML("profiles: [goroutine]", "a"), consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
			if calls++; calls == 1 {
				explode()
			}
			return next.ConsumeProfiles(ctx, pd)
		}))
		defer serveOver(t, b, &counters{t: t})()
		b.runFor(2 * time.Minute)
		assert.Len(t, next.AllProfiles(), 1)
		assert.Equal(t, map[string]int64{"success": 1, "panic": 1}, b.counts(scrapes, "outcome"))
		assert.Equal(t, 1, b.logs.FilterMessage("Scrape succeeded again").Len())
		b.assertPanicLogged()
	})
}

// Credentials are sent to the target only, and not to hosts that it redirects to.
func TestCredentialsStay_R15(t *testing.T) {
	var mu sync.Mutex
	stolen := http.Header{}
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(stolen, r.Header)
	}))
	defer thief.Close()
	seen := make(chan http.Header, 100)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/goroutine"):
			http.Redirect(w, r, r.URL.Path+"/moved", http.StatusTemporaryRedirect)
		case strings.HasSuffix(r.URL.Path, "/moved"):
			seen <- r.Header
			respond(w, "application/octet-stream", profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1)))
		default:
			http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusPermanentRedirect)
		}
	}))
	defer target.Close()
	next := &sink{t: t}
	b := startTestReceiver(t, `
remote:
  collection_interval: 20ms
  timeout: 10s
  headers: {Authorization: Bearer s3cret, X-Api-Key: s3cret}
  profiles: [heap, goroutine]
  targets: [{endpoint: '`+target.URL+`/?token=s3cret'}]`, next)
	got := <-seen
	assert.Equal(t, "Bearer s3cret", got.Get("Authorization"), "the same host is followed")
	require.Eventually(t, func() bool {
		return b.counts(scrapes, "outcome")["redirect"] > 2 && b.counts(scrapes, "outcome")["success"] > 2
	}, time.Minute, time.Millisecond)
	require.NoError(t, b.Shutdown(t.Context()))
	mu.Lock()
	defer mu.Unlock()
	assert.Empty(t, stolen)
	b.requireNoSecrets("s3cret")
	profiletest.Injected(t, fmt.Sprintf("%d redirects to another host", b.counts(scrapes, "outcome")["redirect"]))
}

// requireNoSecrets looks for a secret in all logs and metrics of b.
func (b *testReceiver) requireNoSecrets(secret string) {
	b.t.Helper()
	for _, entry := range b.logs.All() {
		assert.NotContains(b.t, fmt.Sprint(entry.Message, entry.ContextMap()), secret)
	}
	var metrics metricdata.ResourceMetrics
	require.NoError(b.t, b.telemetry.Reader.Collect(context.Background(), &metrics))
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			assert.NotContains(b.t, fmt.Sprintf("%+v", m), secret)
		}
	}
}
