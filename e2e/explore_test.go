// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// explored is a CPU profile of ten seconds with a recursion, and a function of one name in two files.
func explored(t *testing.T, start time.Time, seconds map[string]int64) []byte {
	t.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 10_000_000,
		TimeNanos: start.UnixNano(), DurationNanos: 10e9,
	}
	known := map[string]*profile.Location{}
	for _, stack := range slices.Sorted(maps.Keys(seconds)) {
		sample := &profile.Sample{Value: []int64{seconds[stack] * 1e8}}
		for frame := range strings.SplitSeq(stack, ";") {
			if known[frame] == nil {
				name, file, _ := strings.Cut(frame, "@")
				f := &profile.Function{ID: uint64(len(known) + 1), Name: name, Filename: file}
				known[frame] = &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
				p.Function, p.Location = append(p.Function, f), append(p.Location, known[frame])
			}
			sample.Location = append([]*profile.Location{known[frame]}, sample.Location...)
		}
		p.Sample = append(p.Sample, sample)
	}
	return profiletest.Gzip(t, profiletest.Pprof(t, p))
}

// TestExploreByGestures does with the page what a person does who looks for a hot function, a regression and a canary.
func TestExploreByGestures(t *testing.T) {
	parallel(t)
	b := startBrowser(t)
	f := flameGraph{b}
	c, addresses := runDefaultConfig(t)
	view := "http://" + addresses["localhost:4041"]
	now := time.Now()
	for minute := range 12 {
		for pod := range 3 {
			version, work := "stable", int64(30)
			if pod == 2 {
				version, work = "canary", 60
			}
			c.pushWith(t, url.Values{"service.name": {"checkout"}, "profile_type": {"cpu"}, "service.version": {version}, "service.instance.id": {fmt.Sprint("pod-", pod)}},
				explored(t, now.Add(-time.Duration(minute)*time.Minute-20*time.Second), map[string]int64{
					"main;serve;work": work, "main;walk;walk;walk;visit": 10, "main;helper@a.go;x": 5, "main;helper@b.go;x": 5, "main;serve;parse": 10,
				}))
		}
	}
	c.await(t, "the service in the page", func() bool {
		return strings.Contains(get(t, view+"/api/services?service=checkout").body, `"profiles":36`)
	})
	at := func(part float64) time.Time { // a time in the range of the chart
		from, to := evaluate[float64](b, `Number(document.querySelector('.chart').dataset.from)`), evaluate[float64](b, `Number(document.querySelector('.chart').dataset.to)`)
		return time.UnixMilli(int64(from + part*(to-from)))
	}
	shown := func() (from, to time.Time) { return at(0), at(1) }

	// A click on the chart of the list opens the service at that time, and a click on a slot of its chart what is under it.
	b.open(view)
	middle := at(0.6)
	b.follow("a click on the chart of the list", func() { b.drag(0.6, 0.6) })
	from, to := shown()
	assert.WithinRange(t, middle, from, to)
	assert.LessOrEqual(t, to.Sub(from), time.Minute)
	b.requireText("a slot", "checkout", "work")
	b.open(view + "/?service=checkout&type=cpu&from=-15m")
	f.awaitText("#details", "(all)")
	middle = at(0.5)
	b.follow("a click on a slot", func() { b.drag(0.5, 0.5) })
	from, to = shown()
	assert.WithinRange(t, middle, from, to)
	b.follow("zooming out", func() { b.do(chromedp.Click(chromedp.Search(`//a[.='Zoom out']`))) })
	wider, _ := shown()
	assert.True(t, wider.Before(from))

	// By keyboard, two slots.
	b.open(view + "/?service=checkout&type=cpu&from=-15m")
	f.awaitText("#details", "(all)")
	b.do(chromedp.Focus(".chart.main"), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
	b.do(chromedp.KeyEvent(kb.ArrowLeft, chromedp.KeyModifiers(8))) // Shift
	assert.Contains(t, f.awaitText(".readout", " to "), ":")
	b.follow("Enter on two slots", func() { b.do(chromedp.KeyEvent(kb.Enter)) })
	from, to = shown()
	assert.LessOrEqual(t, to.Sub(from), 2*time.Minute)
	assert.Greater(t, to.Sub(from), time.Minute)
	b.open(view + "/?service=checkout&type=cpu&from=-15m")
	f.awaitText("#details", "(all)")
	b.follow("a drag over the chart", func() { b.drag(0.2, 0.8) })

	// The table is sorted by a click on a head, and filtered by the search, which the address keeps with the zoom.
	b.open(view + "/?service=checkout&type=cpu&from=-15m")
	f.awaitText("#details", "(all)")
	firstRow := func() string {
		return evaluate[string](b, `document.querySelector('#functions tbody tr').textContent.replace(/\s+/g, ' ')`)
	}
	assert.Contains(t, firstRow(), "work")
	b.do(chromedp.Click(chromedp.Search(`//table[@id='functions']//button[.='Total']`)))
	assert.Contains(t, firstRow(), "main")
	b.do(chromedp.Click(chromedp.Search(`//table[@id='functions']//button[.='Total']`)))
	assert.Equal(t, "ascending", evaluate[string](b, `document.querySelector('#functions [aria-sort]').getAttribute('aria-sort')`))
	f.find("PARSE|visit")
	assert.Contains(t, f.awaitText("#matches", "2 functions"), "Total ")
	assert.Equal(t, 2, evaluate[int](b, `document.querySelectorAll('#functions tbody tr').length`))
	b.do(chromedp.Focus("#canvas"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	f.awaitText("#path", "serve")
	address := resultOf(b, chromedp.Location())
	assert.Regexp(t, `\?service=checkout&type=cpu&from=-15m#zoom=main&zoom=serve&search=PARSE%7Cvisit$`, address)
	b.open("about:blank")
	b.open(address)
	f.awaitText("#path", "serve")
	f.awaitText("#matches", "2 functions")
	b.choose("Range", "Last 1 h")
	f.awaitText("#path", "serve")
	assert.Contains(t, resultOf(b, chromedp.Location()), "from=-1h")
	b.do(chromedp.Click("#reset"))
	f.awaitText("#functions caption", "Functions: 9")

	// Recursion, files and names.
	assert.Len(t, evaluate[[]string](b, `[...document.querySelectorAll('#functions .name')].map(e => e.textContent).filter(n => n === 'helper')`), 2)
	b.do(chromedp.Click("#merge"))
	f.awaitText("#functions caption", "Functions: 8")
	assert.Contains(t, evaluate[string](b, `[...document.querySelectorAll('#functions tbody tr')].find(r => r.textContent.includes('helper')).textContent.replace(/\s+/g, ' ')`), "36 s")
	visit := func() int { return f.rowOf("visit") }
	assert.Equal(t, 5, visit())
	b.do(chromedp.Click("#collapse"))
	require.Eventually(t, func() bool { return visit() == 3 }, patience, 50*time.Millisecond)
	assert.Contains(t, resultOf(b, chromedp.Location()), "merge=on&collapse=on")
	b.do(chromedp.Evaluate[chromedp.Void](`document.execCommand = kind => { window.copied = kind === 'copy' && document.activeElement.value; return true; }; Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.copied = text; }}}); undefined`))
	b.do(chromedp.Focus("#canvas"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent("c"))
	f.awaitText("#copied", "Copied")
	assert.Equal(t, "serve", evaluate[string](b, `window.copied`))
	b.do(chromedp.Click("#sandwich"))
	f.awaitText("#path", "callers and callees of serve")
	b.check("explore-sandwich", true)

	// A refresh shows new profiles and keeps the zoom.
	b.open(view + "/?service=checkout&type=cpu&from=-15m&refresh=10s#zoom=main&zoom=walk")
	f.awaitText("#path", "walk")
	c.pushWith(t, url.Values{"service.name": {"checkout"}, "profile_type": {"cpu"}, "service.instance.id": {"pod-9"}}, explored(t, time.Now().Add(-11*time.Second), map[string]int64{"main;walk;fresh": 50}))
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(f.row(3), func(box string) bool { return strings.HasPrefix(box, "fresh\n") })
	}, 3*patience, 200*time.Millisecond, "no refresh")
	f.awaitText("#path", "walk")

	// A canary, by group and against the others.
	b.open(view + "/?service=checkout&type=cpu&from=-15m&to=-30s")
	b.choose("Group by", "service_version")
	b.requireText("versions", "By service_version", "canary", "stable")
	assert.Equal(t, 2, evaluate[int](b, `document.querySelectorAll('.plot .stepped').length`))
	b.check("explore-groups", true)
	b.click(`//tr[.//bdi[.='canary']]//a[.='Against the others']`)
	b.requireText("the canary", "for each process: 0.90 cores, before 0.60 cores", "+50 %")
	f.awaitText("#details", "base")
	b.do(chromedp.Click("#beside"))
	require.Eventually(t, func() bool {
		return len(f.row(0)) == 1 && len(f.row(1)) == 1 && strings.Count(strings.Join(f.row(2), "\n"), "serve") > 0
	}, patience, 50*time.Millisecond)
	b.check("explore-canary", true)

	// Date pickers have the time of the browser's zone.
	_, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	require.NoError(t, err)
	b.open(view + "/?service=checkout&type=cpu")
	b.do(chromedp.Click(".times summary"))
	picked := ""
	require.Eventually(t, func() bool {
		picked = evaluate[string](b, `document.querySelector('[name=from_at]').value`)
		return picked != ""
	}, patience, 20*time.Millisecond)
	zone := time.FixedZone("", 5*3600+1800)
	local, err := time.ParseInLocation("2006-01-02T15:04:05", (picked + ":00")[:len("2006-01-02T15:04:05")], zone) // a full minute has no seconds
	require.NoError(t, err, picked)
	assert.WithinDuration(t, time.Now().Add(-15*time.Minute), local, time.Minute)
	start := now.Add(-10 * time.Minute).Truncate(time.Second)
	b.follow("picking a time", func() {
		evaluate[bool](b, fmt.Sprintf(`(() => { const at = document.querySelector('[name=from_at]'); at.value = %q; at.dispatchEvent(new Event('input', {bubbles: true})); document.querySelector('.bar').requestSubmit(); return true; })()`,
			start.In(zone).Format("2006-01-02T15:04:05")))
	})
	address, err = url.QueryUnescape(resultOf(b, chromedp.Location()))
	require.NoError(t, err)
	assert.Contains(t, address, "from="+start.UTC().Format("2006-01-02T15:04:05"))
	b.check("explore", true)

	// Without JavaScript, the page lists functions and downloads.
	_, err = chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	page := get(t, view+"/?service=checkout&type=cpu&from=-1h").body
	assert.Contains(t, page, `<bdi class="name">work</bdi>`)
	assert.Contains(t, page, `href="/api/profile?`)
}

// TestABrowserSignsIn_D7: where clients need a token, a person enters it once.
func TestABrowserSignsIn_D7(t *testing.T) {
	parallel(t)
	b := startBrowser(t)
	all := env{"DATA_DIR": t.TempDir(), "TOKEN_FILE": profiletest.WriteFile(t, "token", []byte("s3cret\n")), "WINDOW": "200ms"}
	for _, listen := range []string{"PPROF_LISTEN", "OTLP_GRPC_LISTEN", "OTLP_HTTP_LISTEN", "VIEW_LISTEN"} {
		all[listen] = freeAddress(t)
	}
	c := runConfig(t, program(t), "auth.yaml", all, quick["auth.yaml"]...)
	got, err := ask(http.MethodPost, "http://"+all["PPROF_LISTEN"]+"/v1/pprof?service.name=checkout&profile_type=cpu",
		explored(t, time.Now().Add(-20*time.Second), map[string]int64{"main;work": 50}), "Authorization", "Bearer s3cret")
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, got.status)
	view := "http://" + all["VIEW_LISTEN"]
	c.await(t, "the service", func() bool {
		got, err := ask(http.MethodGet, view+"/api/services", nil, "Authorization", "Bearer s3cret")
		return err == nil && strings.Contains(got.body, "checkout")
	})
	forgive := func() { // the browser logs each 401
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = slices.DeleteFunc(b.faults, func(fault string) bool { return strings.Contains(fault, "status of 401") })
	}
	enter := func(token string) {
		b.do(chromedp.SendKeys(`[name=token]`, token))
		b.follow("signing in", func() { b.do(chromedp.Click(chromedp.Search(`//button[.='Sign in']`))) })
		forgive()
	}
	b.open(view + "/?service=checkout")
	forgive()
	b.requireText("the form", "Sign in", "Token")
	b.check("signin", true)
	enter("wrong")
	b.requireText("a wrong token", "The token is not accepted.")
	enter("s3cret")
	b.requireText("the service", "work", "0.50 cores", "Sign out")
	assert.Equal(t, view+"/?service=checkout", resultOf(b, chromedp.Location()))
	assert.Empty(t, evaluate[string](b, `document.cookie`), "no script reads the token")
	b.check("signed-in", true)
	b.follow("signing out", func() { b.do(chromedp.Click(chromedp.Search(`//button[.='Sign out']`))) })
	b.open(view)
	forgive()
	b.requireText("the form again", "Sign in")
}
