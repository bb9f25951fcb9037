// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"html"
	"math"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// versions writes CPU profiles of three pods of one version, of 0.4 cores each, and one of another, of 0.6 cores.
func versions(s *site) {
	for i := range 4 {
		p := cpu("checkout", s.now.Add(-time.Minute), 4e9)
		p.instance, p.version, p.function = fmt.Sprint("pod-", i), "stable", "common"
		extra := p
		if extra.function, extra.value = "slow", 1; i == 3 {
			p.version, extra.version, extra.value = "canary", "canary", 2e9
		}
		s.write(payload(s.t, p, extra))
	}
}

// TestSelectionsAreComparedByProcess: a canary of one process is slower than each of three stable ones, though all of these take more.
func TestSelectionsAreComparedByProcess(t *testing.T) {
	s := newSite(t)
	versions(s)
	page := s.page("/?service=checkout&type=cpu&by=service.version")
	assert.Contains(t, page, `<caption>By service.version</caption>`)
	assert.Contains(t, page, `3 processes, 0.40 cores each`)
	assert.Contains(t, page, `class="stepped l0"`)
	assert.Contains(t, page, `class="stepped l1"`)
	links := s.follow(page, `<a href="([^"]*)">Against the others</a>`)
	require.Len(t, links, 2)
	assert.Contains(t, links[1], "base_label=%7Bservice_version%21%3D%22canary%22%7D&label=service.version%3Dcanary")
	for _, path := range []string{links[1], "/?service=checkout&type=cpu&label=service.version%3Dcanary&base_label=service_version%3Dstable"} {
		page = html.UnescapeString(s.page(path))
		assert.Contains(t, page, "+50 %", path)
		assert.Contains(t, page, "+0.20 cores for each process: 0.60 cores, before 0.40 cores", path)
		assert.Contains(t, page, `"name":"base","values":`, path)
		assert.Contains(t, page, `0.40 cores"`, "the chart has values of one process")
		assert.NotContains(t, page, `1.20 cores"`, path)
	}
}

// TestTheListComparesAsThePageOfAService: two pages do not contradict each other.
func TestTheListComparesAsThePageOfAService(t *testing.T) {
	s := newSite(t)
	versions(s)
	for _, path := range []string{"/?", "/?service=checkout&"} {
		page := html.UnescapeString(s.page(path + "label=service.version%3Dcanary&base_label=service.version%3Dstable"))
		assert.Contains(t, page, "+50 %", path)
		assert.Contains(t, page, "+0.20 cores for each process: 0.60 cores, before 0.40 cores", path)
	}
}

// TestComparisonsOfRangesShowBothCoverages: a base of another time is a line of the chart.
func TestComparisonsOfRangesShowBothCoverages(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 10e9)), payload(t, cpu("checkout", s.now.Add(-40*time.Minute), 4e9)))
	page := html.UnescapeString(s.page("/?service=checkout&type=cpu&base_from=-45m&base_to=-30m"))
	assert.Contains(t, page, `<td class="number value">1.00 cores</td><td>1 process</td><td>profiled 17 % of 1 min in 15 min</td>`)
	assert.Contains(t, page, `<td class="number">0.40 cores</td><td>1 process</td><td>profiled 17 % of 1 min in 15 min</td>`)
	assert.Contains(t, page, "+150 %")
	assert.Contains(t, page, `class="stepped before"`)
	assert.Contains(t, page, `"self":[[0,10000000000],[0,4000000000]]`)
}

// TestChartsAreDrawnFromRoundTimes: slots begin at round times, bars are as wide as the part of their slot in the range, and the axis has round values.
func TestChartsAreDrawnFromRoundTimes(t *testing.T) {
	begin := time.Date(2026, 5, 4, 10, 0, 20, 0, time.UTC)
	a := axisOf(&query.Selection{From: begin, To: begin.Add(50 * time.Minute)})
	assert.Equal(t, time.Minute, a.steps.Length)
	assert.Equal(t, begin.Truncate(time.Minute), a.steps.From)
	assert.Equal(t, 51, a.steps.Count)
	values := make([]float64, a.steps.Count)
	for i := range values {
		values[i] = math.NaN()
	}
	values[0], values[1], values[50] = 1, 2, 0
	assert.Equal(t, "M0 100v-25H13.333V100zM13.333 100v-50H33.333V100zM993.33 100v-1H1000V100z", a.bars(values, 4))
	assert.Equal(t, "M0 75H13.333V50H33.333M993.33 100H1000", a.steppedPath(values, 4))

	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 3.3e9)))
	page := s.page("/?service=checkout")
	var ticks []string
	for _, tick := range regexp.MustCompile(`<text x="100%" y="[^"]*">([^<]*)<`).FindAllStringSubmatch(page, -1) {
		ticks = append(ticks, tick[1])
	}
	assert.Equal(t, []string{"0", "0.1 cores", "0.2 cores", "0.3 cores", "0.4 cores"}, ticks)
	assert.Contains(t, page, `role="application" aria-label="cpu by 1 min, highest 0.33 cores: arrow keys move`)
}

// TestLabelsAreOfferedByUse: those with a few values come before those with one, and numbers come last.
func TestLabelsAreOfferedByUse(t *testing.T) {
	s := newSite(t)
	for i := range 3 {
		p := cpu("checkout", s.now.Add(-time.Minute), 1e9)
		p.instance, p.label = fmt.Sprint(100+i), fmt.Sprint("worker-", i)
		s.write(payload(t, p))
	}
	page := s.page("/?service=checkout")
	thread, instance := strings.Index(page, `<option value="by=thread">`), strings.Index(page, `<option value="by=service_instance_id">`)
	require.Positive(t, thread)
	assert.Less(t, thread, instance, "IDs are numbers")
}

// TestWrongSelectionsKeepTheForm: what exists is offered in place of what does not.
func TestWrongSelectionsKeepTheForm(t *testing.T) {
	s := newSite(t)
	versions(s)
	page := s.page("/?service=checkout&label=service_version%3Dcanry")
	assert.Contains(t, page, `title="Remove this filter"><bdi>service_version=canry</bdi>`)
	links := s.follow(page, `<a href="([^"]*)"><bdi>canary</bdi></a>`)
	require.Len(t, links, 1)
	assert.Contains(t, s.page(links[0]), "0.60 cores")
	page = s.page("/?service=checkout&label=servce%3Dcanary")
	assert.Contains(t, page, "Labels: ")
	require.Len(t, s.follow(page, `<a href="([^"]*by=service_version[^"]*)"><bdi>service_version</bdi></a>`), 1)
	page = s.page("/?service=checkuot&type=cpu")
	require.Len(t, s.follow(page, `Services: <a href="([^"]*)"><bdi>checkout</bdi></a>`), 1)

	w := s.get("/?service=checkout&label=thread")
	assert.Equal(t, http.StatusBadRequest, w.Code)
	for _, text := range []string{"must be KEY=VALUE", `<bdi>thread</bdi> ×`, `<option value="service=checkout" selected>`, `<option value="service_version=canary">`} {
		assert.Contains(t, w.Body.String(), text)
	}
}

// TestWhatGrewLeadsToItsComparison: a leak is found, and what is steady is not.
func TestWhatGrewLeadsToItsComparison(t *testing.T) {
	s := newSite(t)
	for i := range 60 {
		at := s.now.Add(-time.Duration(60-i) * time.Minute)
		s.write(payload(t, heap("leaky", "a", at, int64(100+i)<<20), cpu("steady", at, 2e9+int64(i%3)*1e7)))
	}
	page := s.page("/?from=-1h")
	_, grown, found := strings.Cut(page, "What grew most")
	require.True(t, found)
	grown, _, _ = strings.Cut(grown, "</section>")
	leak, noise, _ := strings.Cut(grown, "steady")
	assert.Contains(t, leak, "leaky")
	assert.NotContains(t, leak, "may be chance")
	assert.True(t, noise == "" || strings.Contains(noise, "may be chance"), noise)
	links := s.follow(grown, `<a href="([^"]*)"><bdi>leaky</bdi>`)
	require.Len(t, links, 1)
	assert.Contains(t, links[0], "base_from=")
	assert.Contains(t, html.UnescapeString(s.page(links[0])), "+40")
}

// TestPagesOfTimestampsLinkToTheTimeline: those of profiles without timestamps do not.
func TestPagesOfTimestampsLinkToTheTimeline(t *testing.T) {
	s := newSite(t)
	at := uint64(s.now.Add(-time.Minute).UnixNano())
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 1e9)), profiletest.Build(t, expand.Profile{
		Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: "traced"}}}, Type: "samples", Unit: "count",
		PeriodType: "cpu", PeriodUnit: "nanoseconds", Period: 10e6, Shape: expand.ShapeTimestamps, Time: at, Duration: 10e9,
		Samples: []*expand.Sample{{
			Sum: big.NewInt(0), Stack: []*expand.Frame{{Lines: []expand.Line{{Function: "main"}}}}, Points: []expand.Point{{Timestamp: at + 5, Value: 1}},
		}},
	}))
	require.Len(t, s.follow(s.page("/?service=traced&from=-15m&base_from=-30m&base_to=-15m"), `href="(/timeline\?[^"]*)"`), 1)
	assert.NotContains(t, s.page("/?service=checkout"), "/timeline")
}

// TestComparisonsWithNothingKeepThePage: the chart is there, and why there is no flame graph.
func TestComparisonsWithNothingKeepThePage(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 2e9)))
	page := s.page("/?service=checkout&base_from=-2h&base_to=-1h")
	assert.Contains(t, page, "0.20 cores")
	assert.Contains(t, page, "the base: no profiles match the selection")
	assert.Contains(t, page, `class="bars"`)
}

func TestDatePickersAreReadInUTC(t *testing.T) {
	s := newSite(t)
	for want, form := range map[string]url.Values{
		"/?from=2026-05-04T10:00:00Z&to=2026-05-04T11:30:15Z": {"set": {"from=-1h"}, "from_at": {"2026-05-04T10:00"}, "to_at": {"2026-05-04T11:30:15"}},
		"/?from=-90m": {"set": {"from=2026-05-04T10:00:00Z&to=2026-05-04T11:30:15Z"}, "last": {"90m"}},
		"/?base_label=version=stable&service=checkout": {"set": {"service=checkout", "ago=1h"}, "base_label": {"version=stable"}},
	} {
		assert.Equal(t, want, s.chosen(form))
	}
	assert.Equal(t, http.StatusBadRequest, s.get("/select?from_at=yesterday").Code)
}
