// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mount follows the redirect of /flamegraph and returns the directory of pprof's pages.
func (s *site) mount(query string) string {
	s.t.Helper()
	w := s.get("/flamegraph?" + query)
	require.Equal(s.t, http.StatusFound, w.Code, w.Body)
	return strings.TrimSuffix(w.Header().Get("Location"), "/flamegraph")
}

func TestFlameGraphShowsTheSelection(t *testing.T) {
	s := newSite(t)
	minute := s.now.Add(-time.Minute)
	checkout, cart := cpu("checkout", minute, 2e9), cpu("cart", minute, 1e9)
	checkout.function, cart.function = "checkout.pay", "cart.add"
	s.write(payload(t, checkout, cart))

	pages := s.mount("service=checkout&type=cpu&from=-15m")
	for _, path := range []string{"/flamegraph", "/top", "/peek?f=pay", "/flamegraph?si=cpu"} {
		page := s.get(pages + path).Body.String()
		assert.Contains(t, page, "checkout.pay", path)
		assert.NotContains(t, page, "cart.add", path)
		assert.Contains(t, page, "<title>service checkout type cpu ", path)
		assert.Contains(t, page, `<a href="/?from=`, "the way back")
	}
	assert.Equal(t, "flamegraph", s.get(pages+"/").Header().Get("Location"))
	assert.Equal(t, http.StatusOK, s.get(pages+"/download").Code)

	s.now = s.now.Add(time.Hour)
	assert.Contains(t, s.get(pages+"/flamegraph").Body.String(), "checkout.pay", "the selection has absolute times")
}

// TestRowsOpenTheirSampleType: pprof shows the default one otherwise.
func TestRowsOpenTheirSampleType(t *testing.T) {
	s := newSite(t)
	var profiles []sent
	for _, sampleType := range []string{"alloc_space", "inuse_space"} {
		p := heap("checkout", "a", s.now.Add(-time.Minute), 1000)
		p.sampleType, p.trace = sampleType, exampleTrace
		profiles = append(profiles, p)
	}
	s.write(payload(t, profiles...))
	for _, path := range []string{"/?service=checkout", "/trace/" + exampleTrace} {
		assert.Contains(t, s.page(path), "type=heap&amp;si=inuse_space", path)
	}
	assert.Contains(t, s.page("/?service=checkout"), "type=heap&amp;si=alloc_space")
	w := s.get("/flamegraph?service=checkout&type=heap&si=alloc_space")
	assert.Regexp(t, `/flamegraph\?si=alloc_space$`, w.Header().Get("Location"))
	assert.Contains(t, s.get(w.Header().Get("Location")).Body.String(), "<h1>alloc_space</h1>")
}

func TestFlameGraphIsCreatedAgainAfterItWasEvicted(t *testing.T) {
	s := newSite(t)
	var profiles []sent
	for i := range 4 {
		profiles = append(profiles, cpu(fmt.Sprint("service-", i), s.now.Add(-time.Minute), 1e9))
	}
	s.write(payload(t, profiles...))
	var pages []string
	for i := range 4 {
		pages = append(pages, s.mount(fmt.Sprint("service=service-", i)))
	}
	show := func(i int) { require.Equal(t, http.StatusOK, s.get(pages[i]+"/flamegraph").Code) }
	show(0)
	s.mounts.maxMemory = s.mounts.memory.Load()*2 + 1
	show(1)
	show(0)
	show(2)
	assert.Equal(t, 2, s.mounts.held.Len())
	assert.Contains(t, s.mounts.held.Keys()[0], "service=service-0", "it was used after the other")
	show(1)
	show(3)
	assert.Equal(t, 2, s.mounts.held.Len())
}

// TestPagesKeepNoMoreThanTheyCount: neither parameters nor other spellings of a selection fill the memory.
func TestPagesKeepNoMoreThanTheyCount(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 1e9)))
	path := func(query string) string { return "/p/" + base64.RawURLEncoding.EncodeToString([]byte(query)) }
	long := strings.Repeat("x", maxParameter)
	for _, rejected := range []string{path("junk=" + long), path("service=" + long + "x"), path(strings.Repeat("service="+long+"&", 4))} {
		assert.Equal(t, http.StatusBadRequest, s.get(rejected+"/flamegraph").Code)
	}
	assert.Zero(t, s.mounts.memory.Load())
	for _, spelling := range []string{path("service=checkout"), path("&&service=%63heckout"), path("service=checkout") + strings.Repeat("%0A", maxParameters)} {
		assert.Equal(t, http.StatusOK, s.get(spelling+"/flamegraph").Code)
	}
	assert.Equal(t, 1, s.mounts.held.Len())
	s.get(path("service=checkout&service="+long) + "/flamegraph")
	assert.Greater(t, s.mounts.memory.Load(), int64(2*pagesSize+textFactor*maxParameter))
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
	_, link, _ := strings.Cut(page, `together: <a href="/flamegraph?`)
	link, _, _ = strings.Cut(link, `"`)
	together := s.get(s.mount(strings.ReplaceAll(link, "&amp;", "&")) + "/top").Body.String()
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
	_, checkout, _ := strings.Cut(page, "<bdi>checkout</bdi></th>")
	assert.Contains(t, checkout, "00f067aa0ba902b7")
	assert.NotContains(t, checkout, "00f067aa0ba902b8", "it is a span of cart")
	assert.Equal(t, 2, strings.Count(checkout, ">4 s<"), "of the service, and of its only span")

	link := regexp.MustCompile(`href="/flamegraph\?([^"]*span_id=00f067aa0ba902b8[^"]*)&amp;si=cpu"`).FindStringSubmatch(page)
	require.NotNil(t, link)
	top := s.get(s.mount(html.UnescapeString(link[1])) + "/top").Body.String()
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
		mount := s.mount("service=" + text)
		for _, path := range []string{"/?q=" + text, "/?service=" + text, "/?q=" + text + "&from=" + text, mount + "/flamegraph", mount + "/top", mount + "/peek?f=.", mount + "/graph"} {
			if w := s.get(path); w.Code != http.StatusNotImplemented {
				assert.Less(t, w.Code, http.StatusInternalServerError, "%.200q %s", path, w.Body)
				pages = append(pages, w.Body.String())
			}
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
	assert.Contains(t, s.get("/?service="+url.QueryEscape(adversarial[len(adversarial)-1])).Body.String(), "<title>Profiles of &lt;/title&gt;&lt;/style&gt;&lt;b&gt;</title>")
}

// TestNoFileOfTheHostIsServed_V6: the functions of the profiles are in /etc/passwd.
func TestNoFileOfTheHostIsServed_V6(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 2e9)))
	pages := s.mount("service=checkout")
	for _, path := range []string{"/source?f=main", "/disasm?f=main", "/saveconfig?config=x", "/deleteconfig?config=x", "/weblist?f=main", "/source/../source?f=main"} {
		for _, prefix := range []string{pages, "", "/p"} {
			w := s.get(prefix + path)
			assert.Equal(t, http.StatusNotFound, w.Code, prefix+path)
			assert.NotContains(t, w.Body.String(), "root:")
		}
	}
	for _, path := range []string{"/flamegraph", "/top", "/peek?f=main"} {
		page := s.get(pages + path).Body.String()
		assert.NotContains(t, page, "root:")
		assert.True(t, path == "/flamegraph" || strings.Contains(page, "#list, #disasm, #config"), "the menu entries are hidden")
	}
	for _, selection := range []string{"!!", "JXp6", ""} { // no base64, no query, nothing
		assert.Equal(t, http.StatusNotFound, s.get("/p/"+selection+"/flamegraph").Code, selection)
	}
}

func TestGraphNeedsGraphviz(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 2e9)))
	pages := s.mount("service=checkout")
	if _, err := exec.LookPath("dot"); err == nil {
		w := s.get(pages + "/graph")
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		assert.Contains(t, w.Body.String(), "<svg")
		assert.Contains(t, w.Body.String(), `href="./flamegraph?`)
		assert.Equal(t, http.StatusBadRequest, s.get(pages+"/graph?f=(").Code)
	}
	t.Setenv("PATH", t.TempDir())
	w := s.get(pages + "/graph")
	assert.Equal(t, http.StatusNotImplemented, w.Code)
	assert.Contains(t, w.Body.String(), "install it on the machine of this server")
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
	s.settings.MaxMemory = 64 << 20
	s.mounts.maxMemory = 2 << 20
	pages := s.mount("service=checkout")
	page := s.get(pages + "/flamegraph").Body.String()
	assert.Contains(t, page, "To fit into max_memory, the smallest samples are left out: ")
	assert.Contains(t, page, "function-2999")
	assert.NotContains(t, page, "function-10\"")
	assert.LessOrEqual(t, s.mounts.memory.Load(), s.mounts.maxMemory)

	s.settings.MaxMemory = 32 << 10 // no sample fits
	s.mounts.held.Purge()
	w := s.get(pages + "/flamegraph")
	assert.Equal(t, http.StatusUnprocessableEntity, w.Code)
	assert.Contains(t, w.Body.String(), "the selection takes too much memory: select less, by service, type or time, or raise max_memory")
}
