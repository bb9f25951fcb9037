// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// stalledThreads are threads of a service that run for half of each 10 ms and wait for the network in the other one, for two seconds. The
// first one waits for a lock for 300 ms after a second.
func stalledThreads(t *testing.T, at time.Time, threads int) pprofile.Profiles {
	t.Helper()
	p := expand.Profile{
		Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: "checkout"}}},
		Type:     "goroutine_time", Unit: "nanoseconds", Shape: expand.ShapeBoth, Time: uint64(at.UnixNano()), Duration: 2e9,
	}
	for thread := range threads {
		samples := map[string]*expand.Sample{}
		add := func(state, reason string, from, length time.Duration, stack ...string) {
			s := samples[reason]
			if s == nil {
				s = &expand.Sample{Sum: big.NewInt(0), Attributes: []expand.Attribute{
					{Key: timing.ReasonAttribute, Value: reason}, {Key: timing.StateAttribute, Value: state},
					{Key: timing.TimestampMarksAttribute, Value: timing.MarksStart}, {Key: "thread.name", Value: fmt.Sprint("worker-", thread)},
				}}
				for _, name := range stack {
					s.Stack = append(s.Stack, &expand.Frame{Lines: []expand.Line{{Function: name}}})
				}
				samples[reason] = s
				p.Samples = append(p.Samples, s)
			}
			s.Points = append(s.Points, expand.Point{Timestamp: uint64(at.Add(from).UnixNano()), Value: int64(length)})
		}
		for i := range 200 {
			from := time.Duration(i) * 10 * time.Millisecond
			switch {
			case thread == 0 && i == 100:
				add(timing.Blocked, timing.Lock, from, 300*time.Millisecond, "sync.(*Mutex).Lock", "main.store", "main.handle")
			case thread > 0 || i < 100 || i >= 130:
				add(timing.Running, "work", from, 5*time.Millisecond, "main.encode", "main.handle")
				add(timing.Blocked, timing.Network, from+5*time.Millisecond, 5*time.Millisecond, "net.(*conn).Read", "main.handle")
			}
		}
	}
	return profiletest.Build(t, p)
}

// tracedSpans are spans of two services in one trace: with time on and off the CPU, and waiting for a lock.
func tracedSpans(t *testing.T, at time.Time) pprofile.Profiles {
	t.Helper()
	var all []expand.Profile
	for i, service := range []string{"orders", "cart"} {
		p := expand.Profile{
			Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: service}}},
			Type:     "goroutine_time", Unit: "nanoseconds", Shape: expand.ShapeBoth, Time: uint64(at.UnixNano()), Duration: 1e9,
		}
		for span := range 8 {
			from := at.Add(time.Duration(100*span+50*i) * time.Millisecond)
			for k, state := range [][2]string{{timing.Running, ""}, {timing.Blocked, timing.Network}, {timing.Blocked, timing.Lock}} {
				length := time.Duration(10*(1+(span+k)%3)) * time.Millisecond
				s := &expand.Sample{
					Sum: big.NewInt(0), Points: []expand.Point{{Timestamp: uint64(from.UnixNano()), Value: int64(length)}},
					Link: fmt.Sprintf("%s/%016x", browsedTrace, 16*i+span+1), Stack: []*expand.Frame{{Lines: []expand.Line{{Function: "main.handle"}}}},
					Attributes: []expand.Attribute{
						{Key: timing.StateAttribute, Value: state[0]}, {Key: timing.TimestampMarksAttribute, Value: timing.MarksStart}, {Key: "thread.id", Value: int64(span)},
					},
				}
				if state[1] != "" {
					s.Attributes = append(s.Attributes, expand.Attribute{Key: timing.ReasonAttribute, Value: state[1]})
				}
				p.Samples = append(p.Samples, s)
				from = from.Add(length)
			}
		}
		all = append(all, p)
	}
	return profiletest.Build(t, all...)
}

// runTimeline runs a Collector that receives OTLP, and returns the address of its page.
func runTimeline(t *testing.T) (c *collector, view string, push func(pprofile.Profiles)) {
	t.Helper()
	address, otlp, view, files := freeAddress(t), freeAddress(t), freeAddress(t), filepath.Join(t.TempDir(), "profiles")
	c = run(t, address, files, fmt.Sprintf(`
receivers:
  pprof: {server: {endpoint: %s}}
  otlp: {protocols: {http: {endpoint: %s}}}
exporters: {profiles_file: {directory: %s}}
extensions: {profiles_view: {endpoint: %s, directory: %s}}
service:
  extensions: [profiles_view]
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [pprof, otlp], exporters: [profiles_file]}}
`, address, otlp, files, view, files))
	return c, "http://" + view, func(pd pprofile.Profiles) {
		t.Helper()
		status, said, err := postOTLP("http://"+otlp+otlpPath, profiletest.Proto(t, pd))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status, said)
	}
}

// awaitText waits until an element contains a text.
func (b *chromium) awaitText(selector, part string) {
	b.t.Helper()
	text := ""
	require.Eventually(b.t, func() bool {
		text = evaluate[string](b, fmt.Sprintf(`(document.querySelector(%q) || document.body).textContent`, selector))
		return strings.Contains(text, part)
	}, patience, 50*time.Millisecond, "%s lacks %q", selector, part)
	_ = text
}

// point is a place in an element, as parts of its width and height.
type point struct{ x, y float64 }

// gesture presses the mouse at the first point of an element, moves it to the others, and releases it at the last one. Of one point it only
// moves there.
func (b *chromium) gesture(selector string, points ...point) {
	b.t.Helper()
	box := evaluate[[]float64](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()`, selector))
	send := func(kind input.DispatchMouseEventType, at point) {
		parameters := input.DispatchMouseEventParams{Type: kind, X: box[0] + at.x*box[2], Y: box[1] + at.y*box[3]}
		if len(points) > 1 {
			parameters.Button, parameters.ClickCount = input.MouseButtonLeft, 1
		}
		_, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, parameters)
		require.NoError(b.t, err)
	}
	if len(points) == 1 {
		send(input.DispatchMouseEventTypeMouseMoved, points[0])
		return
	}
	send(input.DispatchMouseEventTypeMousePressed, points[0])
	for _, at := range points[1:] {
		send(input.DispatchMouseEventTypeMouseMoved, at)
	}
	send(input.DispatchMouseEventTypeMouseReleased, points[len(points)-1])
}

// TestTimelineInABrowser_V3 finds a stall of 300 ms by mouse and by keyboard.
func TestTimelineInABrowser_V3(t *testing.T) {
	parallel(t)
	b := startBrowser(t)
	c, view, push := runTimeline(t)
	at := time.Now().Add(-20 * time.Second).Truncate(time.Second)
	push(stalledThreads(t, at, 3))
	c.await(t, "the service in the page", func() bool { return strings.Contains(get(t, view+"/api/services").body, `"checkout"`) })
	address := func(from, to time.Duration) string {
		return view + "/timeline?" + url.Values{"service": {"checkout"}, "from": {at.Add(from).Format(time.RFC3339Nano)}, "to": {at.Add(to).Format(time.RFC3339Nano)}}.Encode()
	}
	b.open(address(-10*time.Second, 15*time.Second))
	b.awaitText("#heat-sum", "1,141 samples of type goroutine_time")
	b.awaitText("#lanes-count", "1 to 3 of 3 lanes")
	b.awaitText("#states", "blocked: lock")
	b.check("timeline", true)

	// By mouse: a drag over lanes zooms, moving over the lane shows its stack, a click opens the flame chart.
	width := evaluate[float64](b, `document.getElementById('lanes').clientWidth`)
	lane := func(part float64) point { return point{(280 + part*(width-281)) / width, 0.95} } // the last lane, beside its name
	before := evaluate[string](b, `location.search`)
	require.Eventually(t, func() bool { // a page that is loading the lanes of another width has none to drag over
		if evaluate[string](b, `location.search`) == before {
			b.gesture("#lanes", lane(0.38), lane(0.4), lane(0.46))
		}
		return evaluate[string](b, `location.search`) != before
	}, patience, time.Second, "a drag does not zoom")
	assert.True(t, evaluate[bool](b, `new URLSearchParams(location.search).get('from') === new URLSearchParams([...document.querySelectorAll('.bar option.zoomed')].filter(o => o.selected)[0].value).get('from')`), "the form has the zoomed range")
	b.awaitText("#states", "blocked: network")
	b.open(address(0, 2*time.Second))
	b.awaitText("#lanes-count", "3 lanes")
	b.gesture("#lanes", lane(0.6))
	b.awaitText("#lane-at", "worker-0: blocked: lock, 300 ms")
	b.awaitText("#lane-at", "main.store")
	b.gesture("#lanes", lane(0.6), lane(0.6))
	b.awaitText("#flamechart-status", "341 events")
	b.awaitText("#flamechart-of", "worker-0")

	// A drag over cells shows the flame graph of their samples: the column and the row with the start of the stall.
	b.open(address(-10*time.Second, 15*time.Second))
	b.awaitText("#heat-sum", "1,141 samples")
	cell := func(column, row float64) point {
		return point{(46 + (column+0.5)/25*(width-48)) / width, (204 - (row+0.5)*4) / 224}
	}
	b.follow("a drag over cells", func() { b.gesture("#heat", cell(11, 0), cell(11, 3), cell(11, 12)) })
	require.Contains(t, evaluate[string](b, `location.search`), "cells=11-11%2C0-12")
	b.awaitText("#selected", "105 samples")
	b.awaitText("#functions", "main.store")
	b.click(`//a[@id="cells-rest"]`)
	b.awaitText("#selected", "in the rest, which is the base")
	b.check("timeline cells", true)

	// The spans of a trace are on one axis, and each leads to what it did.
	push(tracedSpans(t, at))
	c.await(t, "the other service", func() bool { return strings.Contains(get(t, view+"/api/services").body, `"cart"`) })
	b.open(view + "/trace/" + browsedTrace)
	b.requireText("trace", "Spans with samples", "0000000000000001", "waiting for a lock")
	require.Equal(t, 16, evaluate[int](b, `document.querySelectorAll('.extents .locked').length`))
	b.check("trace spans", true)
	b.click(`//a[text()="Timeline of the trace"]`)
	b.awaitText("#lanes-count", "16 lanes")

	// By keyboard.
	b.open(address(0, 2*time.Second))
	b.awaitText("#lanes-count", "3 lanes")
	b.do(chromedp.Focus(chromedp.CSS("#lanes")))
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	for range 55 {
		b.do(chromedp.KeyEvent(kb.ArrowRight))
	}
	b.awaitText("#lane-at", "worker-0: blocked: lock, 300 ms")
	b.do(chromedp.KeyEvent("+"))
	b.awaitText("#shown", "(1 s)")
	b.awaitText("#lane-at", "worker-0: blocked: lock")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.awaitText("#flamechart-status", "events")
	b.check("timeline zoomed", true)
	b.do(chromedp.NavigateBack())
	b.awaitText("#shown", "(2 s)")
}

// TestTimelineOfAMillionEvents draws many events without a long task in the browser.
func TestTimelineOfAMillionEvents(t *testing.T) {
	parallel(t)
	b := startBrowser(t)
	c, view, push := runTimeline(t)
	at := time.Now().Add(-5 * time.Minute).Truncate(time.Second)
	const threads, rounds = 50, 50
	for i := range rounds {
		push(stalledThreads(t, at.Add(time.Duration(i)*2*time.Second), threads))
	}
	query := url.Values{"service": {"checkout"}, "from": {at.Format(time.RFC3339Nano)}, "to": {at.Add(2 * rounds * time.Second).Format(time.RFC3339Nano)}}
	c.await(t, "all samples", func() bool {
		return strings.Contains(get(t, view+"/api/services?"+query.Encode()).body, fmt.Sprintf(`"profiles":%d`, rounds))
	})
	b.open(view + "/")
	b.do(chromedp.Navigate(view + "/timeline?" + query.Encode()))
	evaluate[bool](b, `window.long = [], new PerformanceObserver(list => window.long.push(...list.getEntries().map(e => e.duration))).observe({type: 'longtask', buffered: true}), true`)
	b.awaitText("#heat-sum", fmt.Sprintf("%s samples", "997,050"))
	b.awaitText("#lanes-count", "1 to 30 of 50 lanes")
	for _, key := range []string{"+", "-", kb.ArrowDown, kb.ArrowRight, kb.Enter} {
		b.do(chromedp.Focus(chromedp.CSS("#lanes")), chromedp.KeyEvent(key))
		b.awaitText("#lanes-count", "of 50 lanes")
		time.Sleep(300 * time.Millisecond)
	}
	for i := range 20 {
		b.gesture("#lanes", point{0.3 + float64(i)/40, 0.5})
	}
	// Other tests take the processors meanwhile, so that the time of a loop of about 20 ms is measured beside the tasks.
	spins := evaluate[[]float64](b, `Array.from({length: 9}, () => {
		const start = performance.now();
		let sum = 0;
		for (let i = 0; i < 2e7; i++) sum += i % 7;
		return performance.now() - start + 0 * sum;
	}).sort((a, b) => a - b)`)
	long := evaluate[[]float64](b, `window.long`)
	t.Logf("tasks %.0f ms, loops %.0f ms", long, spins)
	for _, task := range long {
		assert.Less(t, task, max(200, 8*spins[len(spins)/2]), "milliseconds of a task; a loop takes %.0f", spins)
	}
}
