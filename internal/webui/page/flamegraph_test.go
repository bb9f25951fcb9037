// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlameGraphShowsTheSelection(t *testing.T) {
	s := newSite(t)
	minute := s.now.Add(-time.Minute)
	checkout, cart := cpu("checkout", minute, 2e9), cpu("cart", minute, 1e9)
	checkout.function, cart.function = "checkout.pay", "cart.add"
	s.write(payload(t, checkout, cart))

	w := s.get("/?service=checkout&type=cpu&from=-15m")
	page := w.Body.String()
	assert.Contains(t, page, `<bdi class="name">checkout.pay</bdi>`, "without a script, too")
	assert.NotContains(t, page, "cart.add")
	assert.Contains(t, page, "<title>checkout · Profiles</title>")
	assert.Contains(t, page, `<a href="/?from=-15m">Profiles</a>`, "the way back")
	assert.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
	require.Len(t, s.follow(page, `href="(/api/profile\?[^"]*)"`), 1)

	page = s.page("/?type=cpu")
	assert.Contains(t, page, "checkout.pay")
	assert.Contains(t, page, "cart.add")
	assert.Contains(t, page, "</a> of all services</h1>")
	assert.Contains(t, page, `<b class="value">0.30 cores</b> 2 processes, 0.15 cores each`)
	assert.Contains(t, page, `<caption>By service</caption>`)
}

// TestTypesOpenTheirSampleType: a type opens the sample type that stands for it.
func TestTypesOpenTheirSampleType(t *testing.T) {
	s := newSite(t)
	var profiles []sent
	for i, sampleType := range []string{"alloc_space", "inuse_space"} {
		p := heap("checkout", "a", s.now.Add(-time.Minute), int64(i+1)*1024)
		p.sampleType, p.trace = sampleType, exampleTrace
		profiles = append(profiles, p)
	}
	s.write(payload(t, profiles...))
	page := s.page("/?service=checkout")
	assert.Contains(t, page, `<b class="value">2 KiB</b>`)
	assert.Contains(t, page, `<option value="type=heap" selected>heap: inuse_space</option>`)
	assert.Contains(t, page, `<option value="type=heap%3Aalloc_space">heap: alloc_space</option>`)
	assert.Equal(t, page, s.page("/?service=checkout"))
	for typ, sum := range map[string]string{"heap": "2 KiB", "heap:alloc_space": "1 KiB", "alloc_space": "1 KiB", "heap&trace_id=" + exampleTrace: "2 KiB"} {
		page = s.page("/?service=checkout&type=" + typ)
		assert.Contains(t, page, `<b class="value">`+sum+`</b>`, typ)
		assert.Contains(t, page, `"self":[[0,`+map[string]string{"1 KiB": "1024", "2 KiB": "2048"}[sum]+`]]`, typ)
	}
}

func TestTraceShowsWhatRanAcrossServices(t *testing.T) {
	s := newSite(t)
	first, second := cpu("checkout", s.now.Add(-time.Minute), 2e9), cpu("cart", s.now.Add(-30*time.Minute), 1e9)
	first.trace, second.trace = exampleTrace, exampleTrace
	first.function, second.function = "checkout.pay", "cart.add"
	s.write(payload(t, first, second), payload(t, cpu("frontend", s.now.Add(-time.Minute), 1e9)))

	page := s.page("/trace/" + exampleTrace)
	for _, text := range []string{"checkout", "cart", "2 s<", "1 s<", "flame graph of <bdi>cpu</bdi>"} {
		assert.Contains(t, page, text)
	}
	assert.NotContains(t, page, "<bdi>frontend")
	_, link, _ := strings.Cut(page, `together: <a href="`)
	link, _, _ = strings.Cut(link, `"`)
	together := s.page(html.UnescapeString(link))
	assert.Contains(t, together, "checkout.pay")
	assert.Contains(t, together, "cart.add")

	first.typ, first.sampleType = "", ""
	s.write(payload(t, first))
	assert.Contains(t, s.page("/trace/"+exampleTrace), `flame graph of <span class="small">(no name)</span></a>`)

	assert.Contains(t, s.page("/trace/0102030405060708090a0b0c0d0e0f10"), "No samples of this trace")
	w := s.get("/trace/12")
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Contains(t, w.Body.String(), "must be 32 hex digits")
	w = s.get("/trace?id=+" + strings.ToUpper(exampleTrace))
	assert.Equal(t, "/trace/"+exampleTrace+"?", w.Header().Get("Location"))
}

func TestTraceShowsTheSpansOfEachService(t *testing.T) {
	s := newSite(t)
	s.settings.TraceURL = "https://tempo.example.com/trace/{trace_id}?x=1"
	var profiles []sent
	for i, span := range []string{"00f067aa0ba902b7", "00f067aa0ba902b8", "00f067aa0ba902b7"} {
		p := cpu("checkout", s.now.Add(-time.Minute), int64(i+1)*1e9)
		p.trace, p.span, p.function = exampleTrace, span, fmt.Sprint("function-", i)
		profiles = append(profiles, p)
	}
	profiles[1].service = "cart"
	s.write(payload(t, profiles...))
	page := s.page("/trace/" + exampleTrace)
	assert.Contains(t, page, `href="https://tempo.example.com/trace/`+exampleTrace+`?x=1"`)
	assert.Equal(t, 2, strings.Count(page, ">4 s<"), "of the service, and of its only span")
	_, spans, _ := strings.Cut(page, `<table class="spans">`)
	_, checkout, _ := strings.Cut(spans, "<bdi>checkout</bdi></th>")
	assert.Contains(t, checkout, "00f067aa0ba902b7")
	assert.NotContains(t, checkout, "00f067aa0ba902b8", "it is a span of cart")

	link := regexp.MustCompile(`href="(/\?[^"]*span_id=00f067aa0ba902b8[^"]*)"`).FindStringSubmatch(page)
	require.NotNil(t, link)
	top := s.page(html.UnescapeString(link[1]))
	assert.Contains(t, top, "function-1")
	assert.NotContains(t, top, "function-2")
}

// adversarial are names that a page must show as text.
var adversarial = []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'; alert(1); '`, "a\x00b", "{{.}}", strings.Repeat("long ", 1000), "javascript:alert(1)",
	`x" URL="javascript:alert(1)" image="/etc/passwd" y="`, "</title></style><b>"}

func TestNamesAreText_V3(t *testing.T) {
	s := newSite(t)
	var pages []string
	for _, name := range adversarial {
		p := cpu(name, s.now.Add(-time.Minute), 1e9)
		p.function, p.label, p.typ, p.sampleType, p.trace = name, name, name, name, exampleTrace
		s.write(payload(t, p))
	}
	for _, name := range adversarial {
		text := url.QueryEscape(name)
		assert.Equal(t, http.StatusBadRequest, s.get("/?q="+text+"&from="+text).Code)
		for _, query := range []string{"q=" + text, "service=" + text, "q=" + text + "&from=" + text, "type=%3A" + text, "by=thread&service=" + text, "label=thread%3D" + text,
			"service=none&label=" + text, "service=" + text + "&base_label=thread%3D" + text, "by=" + text} {
			w := s.get("/?" + query)
			assert.Less(t, w.Code, http.StatusInternalServerError, "%.200q %s", query, w.Body)
			pages = append(pages, w.Body.String())
		}
	}
	pages = append(pages, s.page("/trace/"+exampleTrace), s.page("/"))
	for _, page := range pages {
		for _, markup := range []string{"<script>alert", "<img src=x", `href="javascript:`, "</title></style>", "\x00"} {
			assert.NotContains(t, page, markup)
		}
	}
	overview := pages[len(pages)-1]
	assert.Contains(t, overview, "&lt;script&gt;alert(1)&lt;/script&gt;")
	assert.Contains(t, overview, strings.Repeat("long ", 1000), "the full name is there")
	assert.Contains(t, s.get("/?service="+url.QueryEscape(adversarial[len(adversarial)-1])).Body.String(), "<title>&lt;/title&gt;&lt;/style&gt;&lt;b&gt; · Profiles</title>")
}

// TestNoFileOfTheHostIsServed_V6: the functions of the profiles are in /etc/passwd.
func TestNoFileOfTheHostIsServed_V6(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 2e9)))
	for _, path := range []string{"/source?f=main", "/disasm?f=main", "/saveconfig?config=x", "/deleteconfig?config=x", "/weblist?f=main", "/source/../source?f=main", "/top", "/flamegraph"} {
		w := s.get(path)
		assert.Equal(t, http.StatusNotFound, w.Code, path)
	}
	assert.NotContains(t, s.page("/?service=checkout"), "root:")
}

func TestPagesArePrunedToTheMemoryLimit_V2(t *testing.T) {
	s := newSite(t)
	var profiles []sent
	for i := range 3000 {
		p := cpu("checkout", s.now.Add(-time.Minute), int64(i+1)*1e6)
		p.function = fmt.Sprintf("function-%d", i)
		profiles = append(profiles, p)
	}
	s.write(payload(t, profiles...))
	s.settings.MaxMemory = 32 << 20
	page := s.page("/?service=checkout")
	assert.Contains(t, page, "To fit into max_memory, the smallest samples are left out: ")
	assert.Contains(t, page, "function-2999")
	assert.NotContains(t, page, "function-10\"")

	s.settings.MaxMemory = 8 << 10 // no sample fits
	w := s.get("/?service=checkout")
	assert.Equal(t, http.StatusUnprocessableEntity, w.Code)
	assert.Contains(t, w.Body.String(), "select less, by service, type or time")
}
