// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/goleak"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const exampleTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

// sent describes a Profile with one sample.
type sent struct {
	service, typ, sampleType, unit string
	instance, version              string // of the resource
	at                             time.Time
	duration                       time.Duration
	value                          int64
	function, caller               string
	trace, span, label             string
	period, periodUnit             string // its type
}

func cpu(service string, at time.Time, value int64) sent {
	return sent{service: service, typ: "cpu", sampleType: "cpu", unit: "nanoseconds", at: at, duration: 10 * time.Second, value: value}
}

func heap(service, instance string, at time.Time, value int64) sent {
	return sent{service: service, typ: "heap", sampleType: "inuse_space", unit: "bytes", instance: instance, at: at, value: value}
}

func payload(t testing.TB, profiles ...sent) pprofile.Profiles {
	t.Helper()
	var expanded []expand.Profile
	for _, p := range profiles {
		sample := &expand.Sample{
			Stack: []*expand.Frame{{Lines: []expand.Line{{Function: cmp.Or(p.function, "main"), Filename: "/etc/passwd", Line: 1}}}},
			Sum:   big.NewInt(p.value),
		}
		if p.caller != "" {
			sample.Stack = append(sample.Stack, &expand.Frame{Lines: []expand.Line{{Function: p.caller}}})
		}
		if p.trace != "" {
			sample.Link = p.trace + "/" + cmp.Or(p.span, "00f067aa0ba902b7")
		}
		if p.label != "" {
			sample.Attributes = []expand.Attribute{{Key: "thread", Value: p.label}}
		}
		resource := []expand.Attribute{{Key: "service.instance.id", Value: p.instance}, {Key: "service.name", Value: p.service}}
		if p.version != "" {
			resource = append(resource, expand.Attribute{Key: "service.version", Value: p.version})
		}
		expanded = append(expanded, expand.Profile{
			Resource:   expand.Entity{Attributes: resource},
			Scope:      expand.Entity{Attributes: []expand.Attribute{{Key: attrkey.ProfileType, Value: p.typ}}},
			PeriodType: p.period, PeriodUnit: p.periodUnit,
			Type: p.sampleType, Unit: p.unit, Time: uint64(p.at.UnixNano()), Duration: uint64(p.duration),
			Samples: []*expand.Sample{sample},
		})
	}
	return profiletest.Build(t, expanded...)
}

// site is a Page over a directory.
type site struct {
	*Page
	t   testing.TB
	dir string
	now time.Time
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), now: time.Now().Add(time.Second)}
	s.serve(s.dir, 256<<20)
	s.catalog.MaxAge = 0
	return s
}

// serve makes the page of a directory.
func (s *site) serve(directory string, maxMemory int64) {
	s.t.Helper()
	page, err := New(Settings{Directory: directory, MaxMemory: maxMemory})
	require.NoError(s.t, err)
	page.now = func() time.Time { return s.now }
	s.Page = page
	s.t.Cleanup(func() {
		_ = page.Wait(context.Background())
		page.Close()
	})
}

// write adds a closed file with a record of each payload, and writeUndescribed one whose index does not describe them.
func (s *site) write(payloads ...pprofile.Profiles)            { s.open(payloads...)() }
func (s *site) writeUndescribed(payloads ...pprofile.Profiles) { s.append(false, payloads)() }

// writeDamaged adds a file of which nothing can be read, and returns its name.
func (s *site) writeDamaged() string {
	s.t.Helper()
	end := s.now.Add(-time.Minute).UTC()
	bounds := layout.Bounds{}
	bounds.Add(uint64(end.Add(-time.Minute).UnixNano()), uint64(end.UnixNano()), end)
	dir := filepath.Join(s.dir, filepath.FromSlash(end.Format(layout.HourPath)))
	require.NoError(s.t, os.MkdirAll(dir, 0o700))
	name := layout.WrittenBase(end.Format(layout.CreatedTime)+"-0123456789ab", &bounds, segment.Proto)
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, name), []byte("\xff\xff\xff"), 0o600))
	return name
}

// open adds a file that is being written. closed closes it.
func (s *site) open(payloads ...pprofile.Profiles) (closed func()) { return s.append(true, payloads) }

func (s *site) append(described bool, payloads []pprofile.Profiles) (closed func()) {
	s.t.Helper()
	w, err := store.OpenWriter(store.Options{
		Directory: s.dir, MaxOpen: 10, Format: segment.Proto, Failed: func(err error) { assert.NoError(s.t, err) },
	})
	require.NoError(s.t, err)
	for _, pd := range payloads {
		record := store.Record{}
		if record.Entry, err = contents.Describe(pd); err == nil {
			record.Data, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
		}
		require.NoError(s.t, err)
		if !described {
			record.Entry = nil
		}
		require.NoError(s.t, w.Append(record))
	}
	return func() { require.NoError(s.t, w.Close()) }
}

func (s *site) get(path string) *httptest.ResponseRecorder {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, path, nil))
	return w
}

// page returns a page, which must exist.
func (s *site) page(path string) string {
	s.t.Helper()
	w := s.get(path)
	require.Equal(s.t, http.StatusOK, w.Code, w.Body)
	head, body, found := strings.Cut(w.Body.String(), "</head>")
	if !found {
		return head
	}
	return body
}

// follow returns the links that are the group of a pattern, which must lead to a page or a profile.
func (s *site) follow(page, pattern string) (links []string) {
	s.t.Helper()
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(page, -1) {
		link := html.UnescapeString(match[1])
		w := s.get(link)
		if w.Code == http.StatusFound {
			w = s.get(w.Header().Get("Location"))
		}
		assert.Equal(s.t, http.StatusOK, w.Code, "%s: %s", link, w.Body)
		links = append(links, link)
	}
	return links
}

// services returns the response of /api/services.
func (s *site) services(query string) []apiRow {
	s.t.Helper()
	var response struct{ Services []apiRow }
	require.NoError(s.t, json.Unmarshal([]byte(s.page("/api/services?"+query)), &response))
	return response.Services
}

func TestServicesListsWhatTheRangeHas(t *testing.T) {
	s := newSite(t)
	minute := s.now.Add(-time.Minute)
	s.write(
		payload(t, cpu("checkout", minute, 2e9), cpu("checkout", minute.Add(10*time.Second), 4e9), cpu("cart", minute, 1e9)),
		payload(t, heap("checkout", "a", minute, 100), heap("checkout", "a", minute.Add(5*time.Second), 30), heap("checkout", "b", minute.Add(3*time.Second), 7)),
		payload(t, cpu("checkout", s.now.Add(-time.Hour), 8e9)))

	rows := s.services("")
	require.Len(t, rows, 3)
	assert.Equal(t, "cart", rows[0].Service)
	assert.Equal(t, int64(6e9), rows[1].Sum)
	require.NotNil(t, rows[1].Rate)
	assert.Equal(t, []float64{0.3e9, 0.3e9, 20}, []float64{*rows[1].Rate, *rows[1].PerProcess, *rows[1].Covered})
	assert.Equal(t, 1, rows[1].Processes)
	assert.True(t, rows[2].Snapshot)
	assert.EqualValues(t, 37, rows[2].Sum, "the last snapshot of each instance")
	assert.Equal(t, 2, rows[2].Processes)
	assert.InDelta(t, 55, *rows[2].Age, 0.001)
	assert.Nil(t, rows[2].Rate)
	assert.Equal(t, 3, rows[2].Profiles)

	rows = s.services("service=checkout&type=cpu&from=-2h")
	require.Len(t, rows, 1)
	assert.Equal(t, int64(14e9), rows[0].Sum)
	assert.Empty(t, s.services("from=-2h&to=-90m"))
}

// TestServicesAreExactForWholeMinutes: Profiles count by their start, also those that end in another minute.
func TestServicesAreExactForWholeMinutes(t *testing.T) {
	s := newSite(t)
	first := s.now.Add(-10 * time.Minute).Truncate(time.Minute)
	var profiles []sent
	for i := range 18 {
		profiles = append(profiles, cpu("checkout", first.Add(time.Duration(i)*10*time.Second+5*time.Second), int64(i+1)*1e9))
	}
	s.write(payload(t, profiles...))
	for _, test := range []struct{ from, to, first, last int }{{0, 3, 0, 18}, {0, 1, 0, 6}, {1, 2, 6, 12}, {2, 3, 12, 18}, {1, 3, 6, 18}, {3, 4, 18, 18}} {
		minute := func(n int) string { return first.Add(time.Duration(n) * time.Minute).UTC().Format(time.RFC3339) }
		rows := s.services("from=" + minute(test.from) + "&to=" + minute(test.to))
		if test.first == test.last {
			assert.Empty(t, rows)
			continue
		}
		require.Len(t, rows, 1)
		assert.EqualValues(t, (test.last*(test.last+1)-test.first*(test.first+1))/2*1e9, rows[0].Sum, "%+v", test)
		assert.Equal(t, test.last-test.first, rows[0].Profiles, "%+v", test)
	}
}

func TestProfileSumsTheSelection(t *testing.T) {
	s := newSite(t)
	minute := s.now.Add(-time.Minute)
	s.write(payload(t, cpu("checkout", minute, 2e9), cpu("cart", minute, 1e9), heap("cart", "a", minute, 5)),
		payload(t, cpu("checkout", minute.Add(20*time.Second), 3e9)))

	get := func(query string) *profile.Profile {
		w := s.get("/api/profile?" + query)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		p, err := profile.Parse(w.Body)
		require.NoError(t, err)
		return p
	}
	assert.Equal(t, int64(5e9), get("service=checkout").Sample[0].Value[0])
	assert.Equal(t, int64(6e9), get("type=cpu").Sample[0].Value[0])
	p := get(fmt.Sprintf("type=cpu&service=checkout&from=%s&base_from=%s&base_to=%s", "-40s", "-60s", "-50s"))
	assert.Equal(t, int64(1e9), p.Sample[0].Value[0], "0.3 cores and 0.2 cores, both in 10 s")
	assert.Contains(t, strings.Join(p.Comments, "\n"), "multiplied by 1: they differ as their rates")
}

func TestRequestsThatCannotBeAnsweredAreRejected(t *testing.T) {
	s := newSite(t)
	minute := s.now.Add(-time.Minute)
	s.write(payload(t, cpu("checkout", minute, 2e9), heap("checkout", "a", minute, 5)))
	long := strings.Repeat("x", maxParameter)
	const unknown = `unknown parameter "typo": must be one of service, type, from, to`
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/api/profile":                                    {400, "the selection has several profile types: cpu; heap; select one with the parameter type"},
		"/api/profile?service=none":                       {404, "no profiles match the selection"},
		"/api/profile?from=yesterday":                     {400, `from is "yesterday": must be a time such as`},
		"/api/profile?from=-1m&to=-2m":                    {400, `from is "-1m": must be before to`},
		"/api/profile?service=%zz":                        {400, `the query is malformed: invalid URL escape "%zz"`},
		"/api/profile?trace_id=12":                        {400, `trace_id is "12": must be 32 hex digits`},
		"/api/profile?label=x":                            {400, `label is "x": must be KEY=VALUE`},
		"/api/profile?type=cpu&base_from=-2h&base_to=-1h": {404, "the base: no profiles match the selection"},

		"/?typo=" + long:                             {400, unknown},
		"/api/services?typo=x":                       {400, unknown},
		"/api/profile?typo=x":                        {400, unknown},
		"/trace?typo=x":                              {400, unknown},
		"/trace/" + exampleTrace + "?typo=x":         {400, unknown},
		"/?service=none":                             {200, "Services: <a href=\"/?service=checkout\">"},
		"/?type=" + long + "x":                       {400, `the parameter "type" has 8193 bytes: must have at most 8192`},
		"/?type=" + strings.Repeat(long+"&type=", 4): {400, "bytes: must have at most 32768 in total"},

		"/?by=service.name":                      {400, "by is"},
		"/?label=thread":                         {400, "label is"},
		"/api/services?trace_id=" + exampleTrace: {400, `unknown parameter "trace_id": must be one of service, type, from, to, label`},
		"/api/services?base_from=-1h":            {400, `unknown parameter "base_from"`},
	} {
		w := s.get(path)
		assert.Equal(t, want.status, w.Code, path)
		assert.Contains(t, html.UnescapeString(w.Body.String()), want.text, path)
		if strings.HasPrefix(path, "/api/") {
			assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		}
	}
}

// TestEveryLinkIsAccepted follows the links and forms of the pages.
func TestEveryLinkIsAccepted(t *testing.T) {
	s := newSite(t)
	p := cpu("checkout", s.now.Add(-time.Minute), 2e9)
	p.trace = exampleTrace
	wall := cpu("checkout", p.at, 3e9)
	wall.typ = "wall" // with the same sample type
	s.write(payload(t, p, wall, cpu("cart", s.now.Add(-20*time.Minute), 2e9)))
	for _, path := range []string{"/", "/?q=c&sort=name&page=1&base_from=-30m&base_to=-15m&from=-15m&to=now", "/trace/" + exampleTrace, "/?service=cart&from=-1h", "/?type=cpu&base_from=-1h&base_to=now", "/?service=none"} {
		directory, _, _ := strings.Cut(path, "?")
		for _, link := range regexp.MustCompile(`href="([^"#:]*)"`).FindAllStringSubmatch(s.page(path), -1) {
			to := html.UnescapeString(link[1])
			switch {
			case strings.HasPrefix(to, "?"):
				to = directory + to
			case !strings.HasPrefix(to, "/"):
				to = directory[:strings.LastIndex(directory, "/")+1] + to
			}
			assert.NotEqual(t, http.StatusBadRequest, s.get(to).Code, to)
		}
	}
	form := url.Values{"id": {exampleTrace}, "from": {"-6h"}, "to": {"now"}}
	assert.Equal(t, http.StatusFound, s.get("/trace?"+form.Encode()).Code)

	page := s.page("/?service=checkout&type=cpu&from=-6h&to=-5m")
	assert.Contains(t, page, `<input type="hidden" name="from" value="-6h"><input type="hidden" name="to" value="-5m">`, "of the search for a trace")
	for _, page := range []string{page, s.page("/trace/" + exampleTrace + "?from=-6h&to=-5m")} {
		assert.Contains(t, page, `<a href="/?from=-6h&amp;to=-5m">Profiles</a>`, "the way back")
	}
	assert.Contains(t, s.page("/trace/"+exampleTrace), `<option value="from=-1h" selected>Last 1 h</option>`)
}

func TestOverviewSelectsAndGroupsByLabel(t *testing.T) {
	s := newSite(t)
	labeled := func(service, thread string, ago time.Duration, value int64) sent {
		p := cpu(service, s.now.Add(-ago), value)
		p.label = thread
		return p
	}
	main, worker, none := labeled("checkout", "main", time.Minute, 10e9), labeled("checkout", "worker", time.Minute, 4e9), cpu("cart", s.now.Add(-time.Minute), 1e9)
	s.write(payload(t, main, worker, none, labeled("checkout", "main", 40*time.Minute, 2e9)))
	defer s.open(payload(t, labeled("cart", "<late>", 30*time.Second, 3e9)))()
	const toProfiles = `<td class="type"><a href="(/\?[^"]*)"`

	page := s.page("/?label=thread%3Dmain&base_from=-45m&base_to=-35m")
	assert.Equal(t, 1, strings.Count(page, `<th scope="rowgroup"`), "cart has no such label")
	assert.Contains(t, page, `<td class="number value">1.00 cores<`)
	assert.Contains(t, page, `<td class="number base">0.20 cores<`)
	assert.Contains(t, page, `aria-label="cpu by 1 min, highest 1.00 cores"`)
	assert.Contains(t, page, `<option value="thread=worker">`)
	assert.Contains(t, page, `<option value="thread=&lt;late&gt;">`, "of a file that is being written")
	assert.NotContains(t, page, `<option value="service_name=`)
	assert.Contains(t, page, `<a href="/?base_from=-45m&amp;base_to=-35m" title="Remove this filter"><bdi>thread=main</bdi>`)
	links := s.follow(page, toProfiles)
	require.Len(t, links, 1)
	for _, link := range links {
		assert.Contains(t, link, "label=thread%3Dmain")
	}
	banner := s.page("/?service=checkout&label=thread%3Dmain")
	assert.Contains(t, banner, `" title="Remove this filter"><bdi>thread=main</bdi>`)
	assert.NotContains(t, banner, `<option value="thread=&lt;late&gt;">`, "of another service")
	assert.Equal(t, "/?label=thread%3Dmain&label=pod%3Da&service=checkout",
		s.get("/select?view=explore&keep=label%3Dthread%253Dmain&set=service%3Dcheckout&label=+pod%3Da").Header().Get("Location"))

	page = s.page("/?by=thread")
	assert.Equal(t, []string{"main", "worker", "&lt;late&gt;"}, rowGroups(page)[:3], "by CPU time")
	assert.Len(t, rowGroups(page), 4, "cart has profiles without the label")
	assert.Contains(t, page, `<a href="/?label=thread%3D"><span class="small">(no such label)</span>`)
	require.Len(t, s.follow(page, toProfiles), 4)
	assert.Contains(t, page, `href="/?label=thread%3Dworker"`)
	assert.Contains(t, s.page("/?by=thread&label=thread%3Dworker"), `<td class="number value">0.40 cores<`)

	many := url.Values{"label": slices.Repeat([]string{`{thread!="none"}`}, maxFilters+1)}
	assert.Contains(t, s.page("/?"+many.Encode()), `<a href="/?" title="Remove this filter"><bdi>21 labels</bdi>`, "not a link with all others for each")

	rows := s.services("label=thread%3Dworker")
	require.Len(t, rows, 1)
	assert.Equal(t, int64(4e9), rows[0].Sum)
}

func rowGroups(page string) (names []string) {
	for _, group := range regexp.MustCompile(`<th scope="rowgroup"[^>]*><a [^>]*>(?:<bdi>)?([^<]*)<`).FindAllStringSubmatch(page, -1) {
		names = append(names, group[1])
	}
	return names
}

func TestSumsThatOverflowAreRejected(t *testing.T) {
	s := newSite(t)
	most, other := cpu("checkout", s.now.Add(-time.Minute), math.MaxInt64), cpu("checkout", s.now.Add(-time.Minute), 1)
	other.function = "other"
	s.write(payload(t, most, other)) // whose total does not fit
	w := s.get("/?service=checkout")
	assert.Equal(t, http.StatusUnprocessableEntity, w.Code)
	assert.Contains(t, w.Body.String(), "the sum of cpu/nanoseconds does not fit into 64 bits; select less, by service, type or time")
	assert.Equal(t, http.StatusOK, s.get("/api/profile").Code, "each value fits")
}

func TestOverviewNamesDamagedFilesAndShowsTheRest_V1(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 90e9)))
	damaged := s.writeDamaged()
	page := s.page("/")
	assert.Contains(t, page, "9.00 cores")
	assert.Contains(t, page, damaged+": zstd header: ")
	byLabel := s.page("/?label=service.instance.id%3D")
	assert.Contains(t, byLabel, "<summary>1 part of the files cannot be read")
	assert.Contains(t, byLabel, damaged+": zstd header: ")
	assert.Contains(t, byLabel, "checkout")
}

func TestOverviewSaysWhatToPush(t *testing.T) {
	s := newSite(t)
	page := s.page("/")
	assert.Contains(t, page, "No profiles yet")
	encoded := regexp.MustCompile(`echo (\S+) \| base64 -d \|\s+curl --data-binary @- '`).FindStringSubmatch(page)
	require.NotNil(t, encoded, page)
	body, err := base64.StdEncoding.DecodeString(encoded[1])
	require.NoError(t, err)
	example, err := profile.ParseData(body)
	require.NoError(t, err)
	assert.Len(t, example.Sample, 1)
	require.NoError(t, os.Remove(s.dir))
	assert.Contains(t, s.page("/"), "No profiles yet", "there is no directory yet")
}

func TestOverviewLeadsToProfilesOutsideOfTheRange(t *testing.T) {
	s := newSite(t)
	old := time.Date(2019, 5, 4, 3, 2, 1, 123456789, time.UTC)
	s.write(payload(t, cpu("checkout", old, 1e9)), payload(t, cpu("checkout", old.Add(time.Minute), 1e9)))
	page := s.page("/")
	assert.Contains(t, page, "Some profiles that were received in this range have times far from it")
	for path, text := range map[string]string{
		"/": "have times far from it.", "/?from=-2m": "There are profiles of other times.", // the file was written in the range
		"/?from=-200h&to=-100h": "There are profiles of other times.",
	} {
		links := s.follow(s.page(path), text+` <a href="(/[^"]*)">`)
		require.Len(t, links, 1, path)
		if path == "/" { // others are by the names of files
			assert.Equal(t, "/?from=2019-05-04T03%3A02%3A01.123456789Z&to=2019-05-04T03%3A03%3A01.12345679Z", links[0])
		}
		page = s.page(links[0])
		assert.Contains(t, page, "1 service, 2 profiles")
		assert.NotContains(t, page, "other times")
	}
}

// Times of profiles reach to the year 2554, those of a range to 2200.
func TestOverviewOfLateProfilesHasNoLinkThatFails(t *testing.T) {
	for _, late := range []time.Time{time.Unix(0, -1), time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)} {
		s := newSite(t)
		s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 1e9)), payload(t, cpu("cart", late, 1e9)))
		page := s.page("/")
		assert.Contains(t, page, "have times far from it.</p>")
		assert.Contains(t, page, "1 service, 1 profile,")
	}
	s := newSite(t)
	s.write(payload(t, cpu("cart", time.Unix(0, -1), 1e9)))
	assert.Contains(t, s.page("/"), "There are profiles of other times.</p>")
}

func TestServicesAreSortedByTheShownRate(t *testing.T) {
	s := newSite(t)
	brief := cpu("brief", s.now.Add(-time.Minute), 2e9)
	brief.duration = 0 // counts for the whole range
	s.write(payload(t, brief, cpu("busy", s.now.Add(-time.Minute), 9e9)))
	page := s.page("/?from=-1h")
	assert.Less(t, strings.LastIndex(page, "busy"), strings.LastIndex(page, "brief"))
	assert.Contains(t, page, "0.90 cores")
}

func TestOverviewOfAServiceCountsNoProfilesOfOthers(t *testing.T) {
	s := newSite(t)
	old := s.now.Add(-2 * time.Hour)
	s.write(payload(t, cpu("checkout", old, 1e9), cpu("cart", s.now.Add(-time.Minute), 1e9)))
	assert.Contains(t, s.page("/"), "far from it")
	for restricted, shown := range map[string]string{"/?service=cart": "1 profile, 1 sample,", "/?q=cart": "1 service, 1 profile,", "/?service=cart&type=cpu": "1 profile, 1 sample,"} {
		page := s.page(restricted)
		assert.Contains(t, page, shown)
		assert.NotContains(t, page, "far from it")
	}
	assert.Contains(t, s.get("/?service=cart").Body.String(), "<title>cart · Profiles</title>")
	page := s.page("/?service=checkout")
	assert.Contains(t, page, "No profiles in this range")
	assert.Contains(t, page, "Search all times")
	assert.Contains(t, s.page("/?service=none&from=-3h"), "Nothing matches at any time.")
	from := url.QueryEscape(old.UTC().Format(time.RFC3339Nano))
	page = s.page("/?service=checkout&from=" + from)
	assert.Contains(t, page, "1 profile, 1 sample,")
}

func TestOverviewCountsProfilesOfSeveralSampleTypesOnce(t *testing.T) {
	of := func(s *site, typ, sampleType, unit string) sent {
		p := cpu("checkout", s.now.Add(-time.Minute), 1e9)
		p.typ, p.sampleType, p.unit = typ, sampleType, unit
		return p
	}
	s := newSite(t)
	s.write(payload(t, of(s, "heap", "inuse_space", "bytes"), of(s, "heap", "inuse_objects", "count"), of(s, "heap", "alloc_space", "bytes")))
	assert.Contains(t, s.page("/"), "1 service, 1 profile,")
	s = newSite(t)
	s.write(payload(t, of(s, "", "time", "nanoseconds"), of(s, "", "samples", "count")))
	assert.Contains(t, s.page("/"), "1 service, 1 profile,", "samples are those of time")
	s.write(payload(t, of(s, "", "samples", "count")))
	assert.Contains(t, s.page("/"), "type=%3Asamples", "one has no time")
}

// A service of two languages has profiles of both under one type.
func TestRowsAndErrorsTellProfilersOfOneTypeApart(t *testing.T) {
	s := newSite(t)
	first, second := cpu("checkout", s.now.Add(-time.Minute), 10e9), cpu("checkout", s.now.Add(-time.Minute), 4e9)
	first.period, first.periodUnit, first.function = "cpu", "nanoseconds", "of.Go"
	second.period, second.periodUnit, second.function = "itimer", "count", "of.Java"
	s.write(payload(t, first, second))
	page := s.page("/")
	var tops []string
	for _, link := range regexp.MustCompile(`<td class="type"><a href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		tops = append(tops, s.page(html.UnescapeString(link[1])))
	}
	require.Len(t, tops, 2, page)
	for _, top := range tops {
		assert.NotEqual(t, strings.Contains(top, "of.Go"), strings.Contains(top, "of.Java"))
	}
	assert.NotEqual(t, tops[0], tops[1])
	assert.Contains(t, page, "cpu/nanoseconds, period itimer/count")
	assert.Contains(t, page, "0.40 cores")

	first.service, first.trace, second.trace = "cart", exampleTrace, exampleTrace
	s.write(payload(t, first, second))
	require.Len(t, s.follow(s.page("/trace/"+exampleTrace), `href="(/\?[^"]*type=[^"]*)">`), 4, "of all services, and of each")

	page = s.page("/?service=checkout&type=cpu")
	assert.Contains(t, page, "of.Go", "the first one is shown")
	assert.NotContains(t, page, "of.Java")
	assert.Contains(t, page, "cpu (itimer/count)</option>", "and the other one is offered")
}

func TestOverviewComparesRanges(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 10e9)), payload(t, cpu("checkout", s.now.Add(-40*time.Minute), 4e9)))
	page := s.page("/?base_from=-45m&base_to=-30m")
	assert.Contains(t, page, "1.00 cores")
	assert.Contains(t, page, "0.40 cores")
	assert.Contains(t, page, `<td class="number change few">&#43;150 %<br><span>&#43;0.60 cores</span></td>`, "one sample says little")

	// The difference is that of the rates, also if one was profiled for longer.
	long := cpu("cart", s.now.Add(-40*time.Minute), 12e9)
	long.duration = 30 * time.Second
	s.write(payload(t, cpu("cart", s.now.Add(-time.Minute), 6e9), long))
	w := s.get("/api/profile?service=cart&base_from=-45m&base_to=-30m")
	p, err := profile.Parse(w.Body)
	require.NoError(t, err)
	assert.Equal(t, int64(2e9), p.Sample[0].Value[0], "0.6 and 0.4 cores: 6 s and 4 s in 10 s")
	assert.Contains(t, p.Comments, "cpu: 0.60 cores, profiled 17 % of the time of the processes; base: 0.40 cores, profiled 50 %")

	page = s.page("/?q=checkout&from=-10m&to=-5m&base_from=-45m&base_to=-30m")
	assert.Regexp(t, `>–</td>\s*<td class="small of"></td>\s*<td class="number base">0\.40 cores<br><span class="small">1 process</span></td><td class="small of">profiled 17 % of 1 min in 15 min</td><td class="number change "><`, page, "nothing was measured")
	assert.NotContains(t, page, "href=\"/?type", "there is nothing to show")
}

// chosen returns the page that the bar leads to.
func (s *site) chosen(form url.Values) string {
	s.t.Helper()
	w := s.get("/select?" + form.Encode())
	require.Equal(s.t, http.StatusFound, w.Code, w.Body)
	location, err := url.QueryUnescape(w.Header().Get("Location"))
	require.NoError(s.t, err)
	return location
}

func TestBarOffersWhatTheRangeHas(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 1e9), heap("cart", "a", s.now.Add(-time.Minute), 1), cpu("", s.now.Add(-time.Minute), 1e9)))
	page := s.page("/?service=checkout")
	assert.Contains(t, page, `<option value="service=cart">cart</option>`)
	assert.Contains(t, page, `<option value="service=checkout" selected>checkout</option>`)
	assert.Contains(t, page, `<option value="service=">(no name)</option>`)
	assert.Contains(t, page, `<option value="type=cpu" selected>cpu</option>`)
	assert.NotContains(t, page, `type=heap">heap`, "no type of the service")
	assert.Contains(t, page, `<option value="from=-15m" selected>Last 15 min</option>`)
	pages := s.page("/?service=checkout&from=2000-01-01T00:00:00Z")
	assert.Contains(t, pages, `<option value="service=cart">cart</option>`)
	assert.Regexp(t, `<option value="from=[^"]*" selected data-from="[^"]*Z" data-to="[^"]*Z">`, pages)
}

func TestBarLeadsToThePageOfItsChoices(t *testing.T) {
	s := newSite(t)
	for want, form := range map[string]url.Values{
		"/?":                                   {"view": {"explore"}, "set": {"", ""}},
		"/?from=-1h&service=a&b":               {"set": {"service=a%26b", "from=-1h"}},
		"/?from=-2h&q=che":                     {"set": {"from=-1h"}, "from": {" -2h"}, "q": {"che"}, "to": {""}},
		"/?base_from=-2h&base_to=-1h&from=-1h": {"set": {"ago=previous", "from=-1h"}},
		"/?base_from=-1h15m&base_to=-1h":       {"set": {"ago=1h"}},
		"/?base_from=-3h&base_to=-2h":          {"set": {"ago=1h"}, "base_from": {"-3h"}, "base_to": {"-2h"}},
		"/?attribute=x=y&service=":             {"view": {"explore"}, "keep": {"attribute=x%3Dy"}, "set": {"service="}},
		"/trace/" + exampleTrace + "?from=-6h": {"view": {"trace"}, "keep": {"trace_id=" + exampleTrace}, "set": {"from=-6h"}},
		"/trace/none?":                         {"view": {"trace"}},
		"/?from=yesterday":                     {"set": {"ago=1h", "from=yesterday"}}, // the page says the error
		"/?sort=name":                          {"view": {"//example.com"}, "keep": {"sort=name"}},
	} {
		assert.Equal(t, want, s.chosen(form))
	}
	assert.Equal(t, http.StatusBadRequest, s.get("/select?set=%25zz").Code)
}

func TestComparisonMovesWithTheRange(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 1e9)))
	assert.Contains(t, s.page("/"), `<option value="" selected>nothing</option>`)
	assert.Contains(t, s.page("/?base_from=-30m&base_to=-15m"), `<option value="ago=previous" selected>previous range</option>`)
	page := s.page("/?from=-1h&base_from=-2h&base_to=-1h")
	assert.Contains(t, page, `<option value="ago=previous" selected>previous range</option>`)
	assert.Contains(t, page, `<option value="ago=1h">1 h ago</option>`, "the same")
	assert.Contains(t, s.page("/?base_from=-3h&base_to=-2h"), `<option value="base_from=-3h&amp;base_to=-2h" selected data-from=`)
}

// All of the last profile is in the sum, also the part after the range.
func TestRateIsThatOfWholeProfiles(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 5e9))) // 10 s
	for query, coverage := range map[string]string{
		"to=-58s&from=-158s": "7 % of 27 s in 1 min 40 s", "to=-58s&from=-1058s": "7 % of 27 s in 16 min 40 s", "to=-40s&from=-100040s": "22 % of 45 s in 1 d 3 h",
	} {
		assert.Regexp(t, `<td class="number value">0.50 cores<br><span class="small">1 process</span></td>\s*<td class="small of">profiled `+coverage+`<`, s.page("/?"+query))
	}
	assert.Contains(t, s.get("/api/services?to=-58s&from=-158s").Body.String(), `"rate":500000000,"rate_per_process":500000000,"processes":1,"covered_seconds":2`)
}

// A summary of a minute, a sum of files and a pprof have sources that were profiled for 10 of 30 s.
func TestRatesAndCoverageLeaveOutGaps(t *testing.T) {
	for _, write := range []func(*site, ...pprofile.Profiles){(*site).write, (*site).writeUndescribed} {
		s := newSite(t)
		minute := s.now.Add(-5 * time.Minute).Truncate(time.Minute)
		write(s, payload(t, cpu("checkout", minute, 5e9), cpu("checkout", minute.Add(30*time.Second), 5e9)))
		write(s, payload(t, cpu("checkout", minute.Add(60*time.Second), 5e9)))
		page := s.page("/")
		assert.Regexp(t, `<td class="number value">0.50 cores<br><span class="small">1 process</span></td>\s*<td class="small of">profiled 33 % of 1 min 30 s in 15 min<`, page)
		assert.Contains(t, page, "highest 0.50 cores")
		assert.Contains(t, s.get("/api/services").Body.String(), `"rate":500000000,"rate_per_process":500000000,"processes":1,"covered_seconds":30`)
		p, err := profile.Parse(s.get("/api/profile?service=checkout&type=cpu").Body)
		require.NoError(t, err)
		assert.Equal(t, 30*time.Second, time.Duration(p.DurationNanos))
	}
}

func TestValuesHaveAtMostThreeDigits(t *testing.T) {
	ns, by, events := kind{SampleType: "cpu", Unit: "nanoseconds"}, kind{Unit: "bytes", Snapshot: true}, kind{Unit: "count"}
	for want, got := range map[string]string{
		"0.61 cores": ns.value(0.61e9), "16.4 mcores": ns.value(16.4e6), "3.10 µcores": ns.value(3.1e3), "0.10 ncores": ns.value(0.1), "0 cores": ns.value(0),
		"12.5 cores": ns.value(12.5e9), "250 ms": ns.quantity(0.25e9), "31 ms": ns.quantity(31e6), "1.5 KiB": by.value(1536), "870 B": by.value(870),
		"0.5/s": events.value(0.5), "1.2/min": events.value(0.02), "0.36/h": events.value(0.0001), "0.036/h": events.value(0.00001), "12.3k/s": events.value(12345), "1.5 s": webui.Quantity("milliseconds", 1500), "2k frames": webui.Quantity("frames", 2000),
	} {
		assert.Equal(t, want, got)
	}
	assert.Equal(t, "1 profile, 12,345 samples", webui.Count(1, "profile")+", "+webui.Count(12345, "sample"))
}

func TestOverviewFindsOneOfAThousandServices(t *testing.T) {
	s := newSite(t)
	var profiles []sent
	for i := range 1000 {
		profiles = append(profiles, cpu(fmt.Sprintf("service-%03d", i), s.now.Add(-time.Minute), int64(i)*1e6))
	}
	s.write(payload(t, profiles...))
	page := s.page("/")
	assert.Contains(t, page, "1–50 of 1000 services")
	assert.Contains(t, page, `<a href="/?service=service-999">`, "most CPU time")
	assert.NotContains(t, page, "service-500")
	assert.Contains(t, s.page("/?page=20"), "951–1000 of 1000 services")
	page = s.page("/?q=ICE-50")
	assert.Contains(t, page, "service-500")
	assert.Contains(t, page, "10 services")
	assert.Contains(t, s.page("/?sort=name"), "service-000")
	s.write(payload(t, heap("cart", "a", s.now.Add(-time.Minute), 1)))
	for _, text := range []string{"cart", "Heap", "use_space"} {
		assert.Contains(t, s.page("/?q="+text), "1 service, 1 profile,", text)
	}
	assert.Less(t, len(page), 100_000)
}

func TestPathsOutOfTheSiteDoNotExist_V4(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/../etc/passwd", "/api/../../etc/passwd", "/p/../../x", "/%2e%2e/etc/passwd", "/etc/passwd", "/debug/pprof/", "/api"} {
		assert.Equal(t, http.StatusNotFound, s.get(path).Code, path)
	}
}

func TestThousandRequestsWaitOrAreRejected_V4(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 90e9)))
	var now atomic.Int64
	serve := s.query(func(w http.ResponseWriter, r *http.Request) error {
		assert.LessOrEqual(t, now.Add(1), int64(running))
		defer now.Add(-1)
		return s.explore(w, r)
	}, s.queries)
	statuses := make([]int, 1000)
	var group sync.WaitGroup
	for i := range statuses {
		group.Go(func() {
			w := httptest.NewRecorder()
			serve.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			statuses[i] = w.Code
		})
	}
	group.Wait()
	assert.Subset(t, []int{200, 429}, statuses)
	assert.Contains(t, statuses, 200)
}

func TestRequestsBeyondALimitAreRejected_V4(t *testing.T) {
	s := newSite(t)
	rejected := func() {
		w := s.get("/api/services")
		assert.Equal(t, http.StatusTooManyRequests, w.Code)
		assert.Equal(t, "5", w.Header().Get("Retry-After"))
		assert.Contains(t, w.Body.String(), errBusy.Error())
	}
	for _, held := range []*slots{s.queries, s.responses} { // responses that clients do not read hold no query
		release, err := held.acquire(t.Context(), math.MaxInt64)
		require.NoError(t, err)
		held.maxWait = time.Millisecond
		for range 2 * running {
			rejected()
		}
		release()
		held.maxWait = time.Minute
	}
	s.responses.all = 1
	assert.Equal(t, http.StatusOK, s.get("/").Code, "a larger response waits for all others")

	require.True(t, s.requests.TryAcquire(maxRequests-1))
	assert.Equal(t, http.StatusOK, s.get("/").Code)
	assert.Equal(t, http.StatusOK, s.get("/").Code, "the first one has ended")
	require.True(t, s.requests.TryAcquire(1))
	rejected()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Wait(ctx), context.Canceled)
	s.requests.Release(maxRequests)
	require.NoError(t, s.Wait(t.Context()))
	s.requests.Release(maxRequests)
}

func TestPagesOfManySampleTypesShowTheFirst_V9(t *testing.T) {
	s := newSite(t)
	var profiles []sent
	for i := range 150 {
		p := cpu("checkout", s.now.Add(-time.Minute), 1)
		p.typ, p.sampleType, p.trace = fmt.Sprintf("type_%03d", i), "samples", exampleTrace
		profiles = append(profiles, p)
	}
	s.write(payload(t, profiles...))
	for path, rows := range map[string]int{"/": 100, "/trace/" + exampleTrace: 100} {
		page := s.page(path)
		assert.Equal(t, rows, strings.Count(page, `class="number value"`), path)
		assert.Contains(t, page, "50 more sample types of this service: select less", path)
	}
	assert.Len(t, s.services(""), 150)
}

func TestTotalsThatTakeTooMuchMemoryAreRejected_V9(t *testing.T) {
	s := newSite(t)
	var payloads []pprofile.Profiles
	for i := range 10 {
		p := cpu("checkout", s.now.Add(-time.Minute), 1)
		p.typ, p.sampleType, p.trace = fmt.Sprint(i), strings.Repeat(fmt.Sprint(i), 100_000), exampleTrace
		payloads = append(payloads, payload(t, p))
	}
	s.Page.settings.MaxMemory = 8 << 20
	s.write(payloads...)
	for _, path := range []string{"/", "/api/services", "/trace/" + exampleTrace} {
		w := s.get(path)
		assert.Equal(t, http.StatusUnprocessableEntity, w.Code, path)
		assert.Regexp(t, "the (totals of services and sample types|times of processes) take more than [13] MiB of memory.*select less, by service, type or time", w.Body.String(), path)
	}
	assert.Len(t, s.services("type=1"), 1)
}

// TestProfilesOfAnyTimeAreShown: the files are not of the range by the times when they were written.
func TestProfilesOfAnyTimeAreShown(t *testing.T) {
	s := newSite(t)
	old := s.now.Add(-1000 * 24 * time.Hour)
	s.write(payload(t, cpu("checkout", s.now, 1e9)))
	s.write(payload(t, cpu("checkout", old, 3e9)))
	s.writeUndescribed(payload(t, cpu("cart", s.now, 2e9)))
	query := url.Values{"from": {old.Add(-time.Minute).Format(time.RFC3339)}, "to": {old.Add(time.Minute).Format(time.RFC3339)}}.Encode()
	require.Len(t, s.services(query), 1)
	assert.Contains(t, s.page("/?"+query), "1 service, 1 profile,")
	assert.Equal(t, http.StatusOK, s.get("/api/profile?"+query).Code)
}

// TestAServiceThatDoesNotFitIsNamed_V8: the other services are shown.
func TestAServiceThatDoesNotFitIsNamed_V8(t *testing.T) {
	s := newSite(t)
	s.serve(s.dir, 16<<20) // which is too little for the record of more than 8 MiB
	large := payload(t, cpu("large", s.now.Add(-time.Minute), 1))
	for range 100_000 {
		large.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().AppendEmpty().Values().Append(1)
	}
	s.write(payload(t, cpu("cart", s.now.Add(-time.Minute), 1e9)), large, payload(t, cpu("search", s.now.Add(-time.Minute), 3e9)))
	rows := s.services("")
	require.Len(t, rows, 3)
	assert.Equal(t, []int64{1e9, 100_001, 3e9}, []int64{rows[0].Sum, rows[1].Sum, rows[2].Sum}, "the index has the sums")
	assert.Contains(t, s.page("/api/services"), `"unread":[]`)

	const byLabel, reason = "label=service.instance.id%3D", "and takes about"
	require.Len(t, s.services(byLabel), 2)
	assert.Contains(t, s.page("/api/services?"+byLabel), `"record":2,"services":["large"],"error":"record 2 at byte `)
	assert.Contains(t, s.page("/api/services?service=cart&"+byLabel), `"unread":[]`)
	assert.Contains(t, html.UnescapeString(s.page("/?"+byLabel)), reason)
	for query, status := range map[string]int{"service=large": 422, "service=none": 404, "service=cart": 200} {
		w := s.get("/api/profile?" + query)
		assert.Equal(t, status, w.Code, query)
		if status == 422 {
			assert.Contains(t, w.Body.String(), reason)
			assert.Contains(t, w.Body.String(), "raise max_memory")
		}
	}
}

func TestPagesAreCompressed(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	newSite(t).ServeHTTP(w, r)
	assert.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	assert.True(t, bytes.HasPrefix(w.Body.Bytes(), []byte{0x1f, 0x8b}))
}
