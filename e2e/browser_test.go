// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// chromium is a headless Chromium. It collects what a page must not do: errors in the console,
// exceptions and dialogs.
type chromium struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

func startBrowser(t *testing.T) *chromium {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium: install Debian's package chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // a time limit here would be that of the browser
		t.Fatal(err)
	}
	ctx, done := context.WithTimeout(ctx, 5*patience)
	t.Cleanup(done)
	b := &chromium{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.fault(fmt.Sprintf("exception: %s %s", e.ExceptionDetails.Text, e.ExceptionDetails.Exception.Description))
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError {
				b.fault(fmt.Sprintf("console: %s", e.Args[0].Value))
			}
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.EntryLevelError {
				b.fault("log: " + e.Entry.Text + " " + e.Entry.URL)
			}
		case *page.EventJavascriptDialogOpening:
			b.fault("dialog: " + e.Message)
			go func() {
				_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
			}()
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, cdplog.Enable, cdp.Empty{})
	}
	require.NoError(t, err)
	return b
}

func (b *chromium) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, text)
}

func (b *chromium) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...), "faults: %q", b.faults)
}

// resultOf returns the value of an action.
func resultOf[T any](b *chromium, action chromedp.Action[T]) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, action)
	require.NoError(b.t, err, "faults: %q", b.faults)
	return value
}

// evaluate returns the value of a script.
func evaluate[T any](b *chromium, script string) T {
	b.t.Helper()
	return resultOf(b, chromedp.Evaluate[T](script))
}

// screen is a size of the window, with light or dark colors.
type screen struct {
	width  int64
	scheme string
}

var screens = []screen{{1280, "light"}, {390, "dark"}, {1280, "dark"}, {390, "light"}}

func (b *chromium) show(s screen) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(s.width, 900))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.scheme}},
	})
	require.NoError(b.t, err)
}

// check checks the current page: no fault, no horizontal scrolling, all controls by keyboard, and with own also
// accessibility. Pages of pprof have their own colors. With SCREENSHOTS it leaves a picture there.
func (b *chromium) check(name string, own bool) {
	b.t.Helper()
	for i, s := range screens {
		b.show(s)
		assert.LessOrEqual(b.t, evaluate[int64](b, `document.documentElement.scrollWidth - window.innerWidth`), int64(0), "pixels by which %s is wider than a window of %d", name, s.width)
		assert.False(b.t, evaluate[bool](b, `[...document.querySelectorAll('.header')].some(e => e.scrollHeight > e.clientHeight)`), "%s: the menus cover the page in a window of %d", name, s.width)
		if own && i < 2 { // each width, and each scheme
			b.checkAccessibility(fmt.Sprintf("%s at %d, %s", name, s.width, s.scheme))
		}
		b.checkKeyboard(fmt.Sprintf("%s at %d", name, s.width))
		if directory := os.Getenv("SCREENSHOTS"); directory != "" {
			picture := resultOf(b, chromedp.FullScreenshot(100))
			file := filepath.Join(directory, fmt.Sprintf("%s-%d-%s.png", name, s.width, s.scheme))
			require.NoError(b.t, os.WriteFile(file, picture, 0o600))
		}
	}
	b.show(screens[0])
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.t.Errorf("%s: %s", name, fault)
	}
	b.faults = nil
}

// checkAccessibility runs axe-core, which the Makefile fetches.
func (b *chromium) checkAccessibility(name string) {
	b.t.Helper()
	axe, err := os.ReadFile(filepath.Join("..", "bin", "axe.min.js"))
	if err != nil {
		require.Empty(b.t, os.Getenv("E2E_REQUIRE"), "make bin/axe.min.js: %v", err)
		return
	}
	b.do(chromedp.Evaluate[chromedp.Void](string(axe) + `; window.violations = null; axe.run().then(r => {
		window.violations = r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.html.slice(0, 200)));
	}, e => { window.violations = [String(e)]; }); undefined`))
	var violations []string
	require.Eventually(b.t, func() bool {
		done := evaluate[bool](b, `!!window.violations`)
		if done {
			violations = evaluate[[]string](b, `window.violations`)
		}
		return done
	}, patience, 20*time.Millisecond, "axe-core does not finish")
	assert.Empty(b.t, violations, "%s: faults of accessibility", name)
}

// checkKeyboard presses Tab until each control that is visible, or in a menu, had the focus.
func (b *chromium) checkKeyboard(name string) {
	b.t.Helper()
	controls := evaluate[int](b, `(() => {
		window.reached = new Set();
		const shown = e => e && getComputedStyle(e).display !== 'none';
		const inMenu = e => e.closest('.submenu') && shown(e) && shown(e.closest('.menu-item'));
		window.controls = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary, [tabindex]')].filter(e => e.checkVisibility() && e.getClientRects().length || inMenu(e));
		document.addEventListener('focusin', e => window.reached.add(e.target));
		document.activeElement.blur();
		return window.controls.length;
	})()`)
	var missed []string
	for range 2 { // a busy browser may lose a key
		for range controls + 3 {
			b.do(chromedp.KeyEvent(kb.Tab))
		}
		missed = evaluate[[]string](b, `document.activeElement.blur(), window.controls.filter(e => !window.reached.has(e)).map(e => e.outerHTML.slice(0, 100))`)
		if len(missed) == 0 {
			break
		}
	}
	assert.Empty(b.t, missed, "%s: Tab does not reach %q", name, missed)
}

// open opens an address and waits for the page.
func (b *chromium) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address), chromedp.WaitReady("body"))
}

// click clicks on what an XPath finds and waits for the next page.
func (b *chromium) click(xpath string) {
	b.t.Helper()
	b.follow("a click on "+xpath, func() { b.do(chromedp.Click(chromedp.Search(xpath))) })
}

// follow does what leads to another page, and waits for it.
func (b *chromium) follow(what string, act func()) {
	b.t.Helper()
	evaluate[bool](b, `window.old = true`)
	act()
	deadline := time.Now().Add(patience)
	for {
		arrived, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`!window.old && document.readyState === 'complete'`))
		if arrived {
			return
		}
		require.False(b.t, time.Now().After(deadline), "no page after %s: %v", what, err)
		time.Sleep(20 * time.Millisecond)
	}
}

// drag drags the mouse over a part of the first chart.
func (b *chromium) drag(from, to float64) {
	b.t.Helper()
	box := evaluate[[]float64](b, `(() => { const r = document.querySelector('.plot').getBoundingClientRect(); return [r.left, r.top + r.height / 2, r.width]; })()`)
	for _, step := range []struct {
		kind input.DispatchMouseEventType
		at   float64
	}{{input.DispatchMouseEventTypeMousePressed, from}, {input.DispatchMouseEventTypeMouseMoved, to}, {input.DispatchMouseEventTypeMouseReleased, to}} {
		_, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: step.kind, X: box[0] + step.at*box[2], Y: box[1], Button: input.MouseButtonLeft, ClickCount: 1,
		})
		require.NoError(b.t, err)
	}
}

// choose selects an option of the bar with the mouse, and waits for the next page.
func (b *chromium) choose(label, option string) {
	b.t.Helper()
	b.follow("choosing "+option, func() {
		evaluate[bool](b, fmt.Sprintf(`(() => {
			const select = [...document.querySelectorAll('.bar label')].find(e => e.firstChild.textContent.trim() === %q).querySelector('select');
			select.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}));
			select.selectedIndex = [...select.options].findIndex(o => o.text === %q);
			return select.dispatchEvent(new Event('change', {bubbles: true}));
		})()`, label, option))
	})
}

func (b *chromium) requireText(page string, parts ...string) {
	b.t.Helper()
	text := evaluate[string](b, `document.body.textContent`)
	for _, part := range parts {
		assert.Contains(b.t, text, part, "%s lacks %q:\n%.2000s", page, part, text)
	}
}

const (
	malformedName = `<script>alert("broken")</script>`
	browsedTrace  = "0af7651916cd43dd8448eb211c80319c"
)

// browsedProfile is a CPU profile of ten seconds, with a trace in one sample.
func browsedProfile(t *testing.T, start time.Time, seconds int64, functions ...string) []byte {
	t.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:     10_000_000,
		TimeNanos:  start.UnixNano(), DurationNanos: 10e9,
	}
	for i, name := range functions {
		f := &profile.Function{ID: uint64(i + 1), Name: name, Filename: "/etc/passwd"}
		l := &profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: f, Line: 1}}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{
			Location: append([]*profile.Location{l}, p.Location[:min(i, 1)]...),
			Value:    []int64{seconds * 100, seconds * 1e9},
			Label:    map[string][]string{"handler": {malformedName}},
		})
	}
	p.Sample[0].Label["trace_id"], p.Sample[0].Label["span_id"] = []string{browsedTrace}, []string{"00f067aa0ba902b7"}
	return profiletest.Gzip(t, profiletest.Pprof(t, p))
}

// TestQuickstartInABrowser_V3 goes from the first push to the flame graph, to what ran in a trace and to
// what changed since yesterday. Names that are markup are text on each page.
func TestQuickstartInABrowser_V3(t *testing.T) {
	parallel(t)
	b := startBrowser(t)
	c, addresses := runDefaultConfig(t)
	view := "http://" + addresses["localhost:4041"]

	b.open(view)
	b.requireText("the first page", "Profiles")
	b.check("empty", true)

	now := time.Now()
	long := strings.Repeat("long", 1250)
	for _, service := range []string{"checkout", malformedName, long} {
		for _, start := range []time.Time{now.Add(-24 * time.Hour), now.Add(-20 * time.Second)} {
			seconds := int64(1)
			if start.After(now.Add(-time.Hour)) {
				seconds = 3
			}
			query := url.Values{"service.name": {service}, "profile_type": {"cpu"}}
			body := browsedProfile(t, start, seconds, "main.handle", malformedName, "main.encode")
			c.pushWith(t, query, body)
		}
	}
	c.await(t, "the services in the page", func() bool {
		body := get(t, view+"/api/services").body
		return strings.Count(body, `"checkout"`) > 0 && strings.Contains(body, "longlong")
	})

	b.open(view)
	b.requireText("the overview", "checkout", malformedName, "longlong")
	b.check("overview", true)

	b.click(`//th/a[contains(., 'checkout')]`)
	b.requireText("the service", "checkout", "main.handle", malformedName, "0.90 cores")
	b.check("service", true)

	b.open(view + "/trace/" + browsedTrace)
	b.requireText("the trace", "checkout", malformedName)
	b.check("trace", true)
	b.click(`//tbody[.//th[contains(., 'checkout')]]//a[.='Flame graph']`)
	b.requireText("the flame graph of the trace", "main.handle")

	b.open(view)
	b.choose("Compare with", "24 h ago")
	b.requireText("the comparison", "Before", "Change")
	b.check("compare", true)
	b.click(`//th/a[contains(., 'checkout')]`)
	b.requireText("the difference", "main.handle", "Base", "Change", "200 %")
	b.check("difference", true)

	b.open(view)
	b.choose("Range", "Last 24 h")
	b.requireText("a day", "checkout")

	_, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	require.NoError(t, err)
	b.open(view)
	zoned := func(at time.Time) string { return at.In(time.FixedZone("", 5*3600+1800)).Format("2006-01-02 15:") }
	b.requireText("a page of India", " GMT+5:30", zoned(time.Now().Add(-15*time.Minute)))
	b.follow("a drag over a chart", func() { b.drag(0.25, 0.75) })
	assert.Regexp(t, `from=[^&]*Z&to=[^&]*Z`, resultOf(b, chromedp.Location()))
	from, to := evaluate[float64](b, `Number(document.querySelector('.chart')?.dataset.from || 0)`), evaluate[float64](b, `Number(document.querySelector('.chart')?.dataset.to || 0)`)
	assert.LessOrEqual(t, to-from, float64((11 * time.Minute).Milliseconds()))
}
