// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// threadEvents are what a thread of a service does.
type threadEvents struct {
	service, thread string
	events          []threadEvent
}

type threadEvent struct {
	state, reason string
	from          time.Time
	length        time.Duration
	stack         []string // leaf first
	link          string
}

// goroutineTime makes a Profile of intervals, as a translator of execution traces does.
func goroutineTime(t testing.TB, threads ...threadEvents) pprofile.Profiles {
	t.Helper()
	var all []expand.Profile
	for _, of := range threads {
		p := expand.Profile{
			Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: of.service}}},
			Type:     "goroutine_time", Unit: "nanoseconds", Shape: expand.ShapeBoth,
		}
		first, last := of.events[0].from, of.events[0].from
		for _, e := range of.events {
			if e.from.Before(first) {
				first = e.from
			}
			if end := e.from.Add(e.length); end.After(last) {
				last = end
			}
			s := &expand.Sample{
				Sum: big.NewInt(int64(e.length)), Points: []expand.Point{{Timestamp: uint64(e.from.UnixNano()), Value: int64(e.length)}}, Link: e.link,
				Attributes: []expand.Attribute{
					{Key: timing.StateAttribute, Value: e.state}, {Key: timing.TimestampMarksAttribute, Value: timing.MarksStart}, {Key: "thread.name", Value: of.thread},
				},
			}
			if e.reason != "" {
				s.Attributes = append(s.Attributes, expand.Attribute{Key: timing.ReasonAttribute, Value: e.reason})
			}
			for _, name := range e.stack {
				s.Stack = append(s.Stack, &expand.Frame{Lines: []expand.Line{{Function: name}}})
			}
			p.Samples = append(p.Samples, s)
		}
		p.Time, p.Duration = uint64(first.UnixNano()), uint64(last.Sub(first))
		all = append(all, p)
	}
	return profiletest.Build(t, all...)
}

// answer reads the response of an API.
func answer[T any](s *site, path string) (response T) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal([]byte(s.page(path)), &response))
	return response
}

// Each cell has what a slow computation finds in the same files.
func TestHeatmapHasTheSamplesOfEachCell(t *testing.T) {
	s := newSite(t)
	r := profiletest.NewRand(profiletest.Seed(t))
	from := s.now.Add(-2 * time.Minute).Truncate(time.Second)
	var payloads []pprofile.Profiles
	for n := range 6 {
		p := expand.Profile{
			Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: fmt.Sprint("service-", n%2)}}},
			Type:     "samples", Unit: "count", PeriodType: "cpu", PeriodUnit: "nanoseconds", Period: 10e6, Shape: expand.ShapeTimestamps,
			Time: uint64(from.UnixNano()), Duration: 60e9,
		}
		for i := range 20 {
			sample := &expand.Sample{Sum: big.NewInt(0), Stack: []*expand.Frame{{Lines: []expand.Line{{Function: fmt.Sprint("f", i)}}}}}
			for range 50 {
				sample.Points = append(sample.Points, expand.Point{Timestamp: uint64(from.UnixNano()) + uint64(r.IntN(60e9)), Value: 1})
			}
			slices.SortFunc(sample.Points, func(a, b expand.Point) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
			p.Samples = append(p.Samples, sample)
		}
		payloads = append(payloads, profiletest.Build(t, p))
	}
	expanded := profiletest.Expand(t, payloads...)
	s.write(payloads[:3]...)
	s.writeUndescribed(payloads[3:]...)

	for _, window := range []time.Duration{60 * time.Second, 21 * time.Second, 3 * time.Second} {
		query := url.Values{"service": {"service-1"}, "from": {from.Format(time.RFC3339Nano)}, "to": {from.Add(window).Format(time.RFC3339Nano)}}
		got := answer[heatmapResponse](s, "/api/timeline/heatmap?"+query.Encode())
		first, err := strconv.ParseInt(got.From, 10, 64)
		require.NoError(t, err)
		want := map[int64]int64{}
		for _, p := range expanded {
			if expand.Text(p.Resource.Attributes, "service.name") != "service-1" {
				continue
			}
			for _, sample := range p.Samples {
				for _, point := range sample.Points {
					if at := int64(point.Timestamp); at >= from.UnixNano() && at < from.Add(window).UnixNano() {
						offset := at - first
						want[offset/int64(got.Column)*int64(got.Rows)+offset%int64(got.Column)*int64(got.Rows)/int64(got.Column)]++
					}
				}
			}
		}
		cells := map[int64]int64{}
		for i := 0; i < len(got.Cells); i += 3 {
			cells[got.Cells[i]] = got.Cells[i+1]
			assert.Equal(t, got.Cells[i+1], got.Cells[i+2])
		}
		assert.Equal(t, want, cells)
	}
}

// stalled is a service whose worker waits for a lock for 300 ms, among much work.
func stalled(t testing.TB, at time.Time) pprofile.Profiles {
	t.Helper()
	worker, other := threadEvents{service: "checkout", thread: "worker"}, threadEvents{service: "checkout", thread: "cleaner"}
	for i := range 200 {
		start := at.Add(time.Duration(i) * 10 * time.Millisecond)
		switch {
		case i == 100:
			worker.events = append(worker.events, threadEvent{timing.Blocked, timing.Lock, start, 300 * time.Millisecond, []string{"sync.(*Mutex).Lock", "main.store", "main.handle"}, ""})
		case i < 100 || i >= 130:
			worker.events = append(worker.events,
				threadEvent{timing.Running, "", start, 7 * time.Millisecond, []string{"main.encode", "main.handle"}, ""},
				threadEvent{timing.Blocked, timing.Network, start.Add(7 * time.Millisecond), 3 * time.Millisecond, []string{"net.(*conn).Read", "main.handle"}, ""})
		}
	}
	other.events = []threadEvent{{timing.Blocked, timing.Sleep, at, 2 * time.Second, []string{"time.Sleep", "main.clean"}, ""}}
	return goroutineTime(t, worker, other)
}

func TestLanesShowWhatThreadsDo(t *testing.T) {
	s := newSite(t)
	at := s.now.Add(-time.Minute).Truncate(time.Second)
	s.write(stalled(t, at), payload(t, cpu("checkout", at, 1e9)))
	between := func(from, to time.Duration) string {
		return url.Values{"service": {"checkout"}, "from": {at.Add(from).Format(time.RFC3339Nano)}, "to": {at.Add(to).Format(time.RFC3339Nano)}}.Encode()
	}

	all := answer[lanesResponse](s, "/api/timeline/lanes?"+between(0, 2*time.Second))
	require.Len(t, all.Lanes, 2)
	worker := all.Lanes[0]
	assert.Equal(t, "worker", worker.Name)
	assert.Equal(t, "checkout", worker.Of)
	require.Len(t, worker.Exact, 4*(170*2+1))
	longest := 0
	for i := 0; i < len(worker.Exact); i += 4 {
		if worker.Exact[i+1] > worker.Exact[longest+1] {
			longest = i
		}
	}
	event := worker.Exact[longest : longest+4]
	assert.Equal(t, []int64{1e9, 300e6}, event[:2])
	assert.Equal(t, stateName{timing.Blocked, timing.Lock}, all.States[event[2]])
	var stack []string
	for node := event[3]; node > 0; node = int64(all.Parents[node]) {
		stack = append(stack, all.Frames[all.NodeFrames[node]])
	}
	assert.Equal(t, []string{"sync.(*Mutex).Lock", "main.store", "main.handle"}, stack)

	// The stall lasts into a range that has none of its timestamps, and nothing else does there but the other thread.
	within := answer[lanesResponse](s, "/api/timeline/lanes?"+between(1100*time.Millisecond, 1200*time.Millisecond))
	require.Len(t, within.Lanes, 2)
	for _, lane := range within.Lanes {
		want := map[string][]int64{"worker": {-100e6, 300e6}, "cleaner": {-1100e6, 2000e6}}[lane.Name]
		assert.Equal(t, want, lane.Exact[:2], "all of the event")
	}
	ending := answer[lanesResponse](s, "/api/timeline/lanes?"+between(1999*time.Millisecond, 4*time.Second))
	assert.Len(t, ending.Lanes, 2)
	assert.Empty(t, answer[lanesResponse](s, "/api/timeline/lanes?"+between(2*time.Second, 4*time.Second)).Lanes)

	filtered := answer[lanesResponse](s, "/api/timeline/lanes?q=CLEAN&"+between(0, 2*time.Second))
	require.Len(t, filtered.Lanes, 1)
	assert.Equal(t, "cleaner", filtered.Lanes[0].Name)
	second := answer[lanesResponse](s, "/api/timeline/lanes?first=1&count=1&"+between(0, 2*time.Second))
	require.Len(t, second.Lanes, 1)
	assert.Equal(t, filtered.Lanes[0].Key, second.Lanes[0].Key)
	assert.Equal(t, 2, second.All)
	assert.Len(t, answer[lanesResponse](s, "/api/timeline/lanes?by=process&"+between(0, 2*time.Second)).Lanes, 1)
}

// Of a lane with many events each slot has the state with most time, and a million events are an answer of some kilobytes.
func TestManyEventsAreSentAsSlots(t *testing.T) {
	s := newSite(t)
	const n = 1_000_000
	at := s.now.Add(-10 * time.Minute).Truncate(time.Second)
	p := expand.Profile{
		Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: "busy"}}},
		Type:     "goroutine_time", Unit: "nanoseconds", Shape: expand.ShapeBoth, Time: uint64(at.UnixNano()), Duration: 100e9,
	}
	for _, state := range []string{timing.Running, timing.Blocked} {
		p.Samples = append(p.Samples, &expand.Sample{
			Sum: big.NewInt(0), Points: []expand.Point{{Timestamp: uint64(at.UnixNano()), Value: 1}}, Stack: []*expand.Frame{{Lines: []expand.Line{{Function: "main"}}}},
			Attributes: []expand.Attribute{{Key: timing.StateAttribute, Value: state}, {Key: timing.TimestampMarksAttribute, Value: timing.MarksStart}, {Key: "thread.id", Value: int64(7)}},
		})
	}
	pd := profiletest.Build(t, p)
	var payloads []pprofile.Profiles
	const parts = 10
	for part := range parts {
		copied := pprofile.NewProfiles()
		pd.CopyTo(copied)
		for k, sample := range copied.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
			timestamps, values := make([]uint64, n/2/parts), make([]int64, n/2/parts)
			for i := range timestamps { // running for 150 of 200 µs, and in the second half for 50
				number, running := part*n/2/parts+i, int64(150_000)
				if number >= n/4 {
					running = 50_000
				}
				timestamps[i] = uint64(at.UnixNano()) + uint64(number)*200_000
				values[i] = running
				if k == 1 {
					timestamps[i] += uint64(running)
					values[i] = 200_000 - running
				}
			}
			sample.TimestampsUnixNano().FromRaw(timestamps)
			sample.Values().FromRaw(values)
		}
		payloads = append(payloads, copied)
	}
	s.write(payloads...)
	path := "/api/timeline/lanes?" + url.Values{"from": {at.Format(time.RFC3339Nano)}, "to": {at.Add(100 * time.Second).Format(time.RFC3339Nano)}}.Encode()
	body := s.page(path)
	assert.Less(t, len(body), 50_000)
	got := answer[lanesResponse](s, path)
	require.Len(t, got.Lanes, 1)
	assert.EqualValues(t, n, got.Lanes[0].Events)
	runs := got.Lanes[0].Runs
	require.Len(t, runs, 8, "%v", runs)
	for k, state := range []string{timing.Running, timing.Blocked} {
		assert.Equal(t, []int64{int64(k) * 500, 500}, runs[4*k:4*k+2])
		assert.Equal(t, state, got.States[runs[4*k+2]].State)
		assert.InDelta(t, 75, runs[4*k+3], 1)
	}
}

func TestTimelineSaysWhatHasNoTimestamps(t *testing.T) {
	s := newSite(t)
	assert.Contains(t, s.page("/timeline"), "No profiles match")
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 1e9)))
	body := s.page("/timeline?service=checkout")
	assert.Contains(t, body, "have no timestamps")
	assert.Contains(t, body, "cpu")
	heatmap := answer[heatmapResponse](s, "/api/timeline/heatmap?service=checkout")
	assert.Empty(t, heatmap.Type)
	assert.Empty(t, heatmap.Cells)
	assert.Empty(t, answer[lanesResponse](s, "/api/timeline/lanes?service=checkout").Lanes)

	s.write(stalled(t, s.now.Add(-time.Minute)))
	body = s.page("/timeline?service=checkout")
	assert.Contains(t, body, `data-from="`)
	assert.Contains(t, body, "Without timestamps: <bdi>cpu")
}

// Without a range in the URL, the timeline is that of what has timestamps, unless this is most of the usual range.
func TestTimelineOpensOnWhatIsThere(t *testing.T) {
	s := newSite(t)
	at := s.now.Add(-10 * time.Minute).Truncate(time.Second)
	s.write(stalled(t, at), payload(t, cpu("checkout", s.now.Add(-time.Minute), 1e9)))
	shown := func(path string) (from, to time.Time, page string) {
		page = s.page(path)
		m := regexp.MustCompile(`data-from="(\d+)" data-to="(\d+)"`).FindStringSubmatch(page)
		require.NotNil(t, m, path)
		first, err := strconv.ParseInt(m[1], 10, 64)
		require.NoError(t, err)
		last, err := strconv.ParseInt(m[2], 10, 64)
		require.NoError(t, err)
		return time.Unix(0, first), time.Unix(0, last), page
	}
	for _, path := range []string{"/timeline", "/timeline?service=checkout", "/timeline?service=checkout&type=goroutine_time"} {
		from, to, page := shown(path)
		assert.WithinDuration(t, at, from, 0)
		assert.WithinDuration(t, at.Add(2*time.Second), to, 0)
		assert.Regexp(t, `<option value=""[^>]* selected[^>]*>[^<]*`+from.UTC().Format(time.DateTime), page, "the form states no range either")
	}
	for query, length := range map[string]time.Duration{"from=-15m": 15 * time.Minute, "from=-1h": time.Hour, "to=-5m": defaultRange} {
		from, to, _ := shown("/timeline?" + query)
		assert.Equal(t, length, to.Sub(from), query)
	}
	s.write(stalled(t, at.Add(9*time.Minute)))
	from, to, page := shown("/timeline")
	assert.Equal(t, defaultRange, to.Sub(from))
	assert.Regexp(t, `<option [^>]* selected[^>]*>Last 15 min`, page)

	instant := expand.Profile{
		Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: "one"}}},
		Type:     "samples", Unit: "count", PeriodType: "cpu", PeriodUnit: "nanoseconds", Period: 10e6, Shape: expand.ShapeTimestamps, Time: uint64(at.UnixNano()),
		Samples: []*expand.Sample{{
			Sum: big.NewInt(0), Stack: []*expand.Frame{{Lines: []expand.Line{{Function: "f"}}}},
			Points: []expand.Point{{Timestamp: uint64(at.UnixNano()), Value: 1}},
		}},
	}
	s.write(profiletest.Build(t, instant))
	from, to, _ = shown("/timeline?service=one")
	query := "?" + url.Values{"service": {"one"}, "from": {from.UTC().Format(time.RFC3339Nano)}, "to": {to.UTC().Format(time.RFC3339Nano)}}.Encode()
	assert.Len(t, answer[heatmapResponse](s, "/api/timeline/heatmap"+query).Cells, 3, "a cell")
	assert.Len(t, answer[lanesResponse](s, "/api/timeline/lanes"+query).Lanes, 1)
}

func TestTimelineRejectsWrongParameters(t *testing.T) {
	s := newSite(t)
	for path, message := range map[string]string{
		"/api/timeline/lanes?by=color":     `by is "color": must be thread or process`,
		"/api/timeline/lanes?slots=2001":   `slots is "2001": must be a number from 0 to 2000`,
		"/api/timeline/lanes?count=-1":     `count is "-1": must be a number from 0 to 100`,
		"/api/timeline/heatmap?cells=1":    `unknown parameter "cells"`,
		"/api/timeline/heatmap?from=later": `from is "later"`,
	} {
		w := s.get(path)
		assert.Equal(t, http.StatusBadRequest, w.Code, path)
		assert.Contains(t, w.Body.String(), message)
	}
}

// The profiles of the eBPF profiler have a timestamp for each sample, and each is in a cell.
func TestHeatmapOfTheCorpus(t *testing.T) {
	s := newSite(t)
	first, last, want := uint64(1<<63), uint64(0), int64(0)
	for _, pd := range profiletest.CorpusOTLP(t) {
		s.write(pd)
		for _, p := range profiletest.Expand(t, pd) {
			for _, sample := range p.Samples {
				for _, point := range sample.Points {
					first, last, want = min(first, point.Timestamp), max(last, point.Timestamp), want+1
				}
			}
		}
	}
	between := url.Values{
		"from": {time.Unix(0, int64(first)).Format(time.RFC3339Nano)}, "to": {time.Unix(0, int64(last)+1).Format(time.RFC3339Nano)},
	}.Encode()
	got, count := answer[heatmapResponse](s, "/api/timeline/heatmap?"+between), int64(0)
	for i := 0; i < len(got.Cells); i += 3 {
		count += got.Cells[i+1]
	}
	assert.Equal(t, want, count)
	lanes := answer[lanesResponse](s, "/api/timeline/lanes?"+between)
	require.NotEmpty(t, lanes.Lanes)
	assert.Regexp(t, `\(\d+\)$`, lanes.Lanes[0].Name, "a thread has its name and number")
}

// Spans are on one axis, each with its time on a CPU, off it and waiting for locks, and what is short can be seen.
func TestTraceDrawsSpansOnOneAxis(t *testing.T) {
	s := newSite(t)
	at := s.now.Add(-time.Minute).Truncate(time.Second)
	const parent, child, instant = exampleTrace + "/00000000000000a1", exampleTrace + "/00000000000000a2", exampleTrace + "/00000000000000a3"
	s.write(goroutineTime(t,
		threadEvents{service: "checkout", thread: "a", events: []threadEvent{
			{timing.Running, "", at, 200 * time.Millisecond, []string{"main"}, parent},
			{timing.Blocked, timing.Network, at.Add(200 * time.Millisecond), 700 * time.Millisecond, []string{"main"}, parent},
			{timing.Runnable, "", at.Add(900 * time.Millisecond), 50 * time.Millisecond, []string{"main"}, parent},
			{timing.Running, "", at.Add(950 * time.Millisecond), 50 * time.Millisecond, []string{"main"}, parent},
		}},
		threadEvents{service: "cart", thread: "b", events: []threadEvent{
			{timing.Blocked, timing.Lock, at.Add(400 * time.Millisecond), 300 * time.Millisecond, []string{"main"}, child},
			{timing.Running, "", at.Add(500 * time.Millisecond), time.Microsecond, []string{"main"}, instant},
		}}))
	_, spans, found := strings.Cut(s.page("/trace/"+exampleTrace), `<table class="spans">`)
	require.True(t, found)
	cart, checkout, _ := strings.Cut(spans, "<bdi>checkout</bdi></th>")
	row := func(length, on, off, lock, samples string) string {
		return fmt.Sprintf(`<td class="number">%s</td><td class="number oncpu">%s</td><td class="number offcpu">%s</td><td class="number locked">%s</td><td class="number samples">%s</td>`,
			length, on, off, lock, samples)
	}
	assert.Contains(t, checkout, row("1 s", "250 ms", "750 ms", "", "4"))
	assert.Contains(t, checkout, `<rect class="extent" x="0.00" width="1000.00" height="14"/><rect class="oncpu" x="0.00" width="250.00" height="14"/><rect class="offcpu" x="250.00" width="750.00" height="14"/></svg>`)
	assert.Contains(t, cart, row("300 ms", "", "", "300 ms", "1"))
	assert.Contains(t, cart, `<rect class="extent" x="400.00" width="300.00" height="14"/><rect class="locked" x="400.00" width="300.00" height="14"/>`)
	assert.Contains(t, cart, `<rect class="extent" x="500.00" width="2.00" height="14"/>`)
	assert.NotContains(t, spans, "*", "all have timestamps")
	_, timelineLink, _ := strings.Cut(spans, `href="/timeline?`)
	timelineLink, _, _ = strings.Cut(timelineLink, `"`)
	assert.Contains(t, s.page("/timeline?"+strings.ReplaceAll(timelineLink, "&amp;", "&")), `data-from="`)
}

// The flame graph of cells has exactly their samples, and beside the rest as much of that as in the same time.
func TestCellsHaveAFlameGraph(t *testing.T) {
	s := newSite(t)
	at := s.now.Add(-time.Minute).Truncate(time.Second)
	p := expand.Profile{
		Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: "checkout"}}},
		Type:     "samples", Unit: "count", PeriodType: "cpu", PeriodUnit: "nanoseconds", Period: 10e6, Shape: expand.ShapeTimestamps,
		Time: uint64(at.UnixNano()), Duration: 40e9,
	}
	// Each 10 ms has a sample, at the offset of 200 to 400 ms of the columns 5 to 9 of another function.
	usual := &expand.Sample{Sum: big.NewInt(0), Stack: []*expand.Frame{{Lines: []expand.Line{{Function: "usual"}}}, {Lines: []expand.Line{{Function: "main"}}}}}
	odd := &expand.Sample{Sum: big.NewInt(0), Stack: []*expand.Frame{{Lines: []expand.Line{{Function: "odd"}}}, {Lines: []expand.Line{{Function: "main"}}}}}
	for i := range 4000 {
		of, offset := usual, i%100
		if i >= 500 && i < 1000 && offset >= 20 && offset < 40 {
			of = odd
		}
		of.Points = append(of.Points, expand.Point{Timestamp: uint64(at.UnixNano()) + uint64(i)*10e6, Value: 1})
	}
	p.Samples = []*expand.Sample{usual, odd}
	s.write(profiletest.Build(t, p))

	between := url.Values{"service": {"checkout"}, "from": {at.Format(time.RFC3339Nano)}, "to": {at.Add(40 * time.Second).Format(time.RFC3339Nano)}}.Encode()
	graph := func(query string) (page string, sums map[string][]int64) {
		page = s.page("/timeline?" + between + query)
		_, data, found := strings.Cut(page, `<script type="application/json" id="data">`)
		require.True(t, found)
		data, _, _ = strings.Cut(data, "</script>")
		var drawn struct {
			Names  []string
			Frames []int32
			Self   [][]int64
		}
		require.NoError(t, json.Unmarshal([]byte(data), &drawn))
		sums = map[string][]int64{}
		for _, self := range drawn.Self {
			of := map[string]int64{}
			for i, v := range self {
				of[drawn.Names[drawn.Frames[i]]] += v
			}
			for _, name := range []string{"usual", "odd", "main"} {
				sums[name] = append(sums[name], of[name])
			}
		}
		return page, sums
	}
	page, sums := graph("&cells=5-9,10-19")
	assert.Equal(t, map[string][]int64{"odd": {100}, "usual": {0}, "main": {0}}, sums)
	assert.Contains(t, page, "100 samples of 1 s in the selected cells. ")
	page, sums = graph("&cells=4-5,0-49&compare=rest")
	assert.Equal(t, map[string][]int64{"odd": {20, 4}, "usual": {180, 196}, "main": {0, 0}}, sums)
	assert.Contains(t, page, "3800 samples of 38 s in the rest")

	for query, message := range map[string]string{
		"&cells=0-40,0-49": "of 40 columns and 50 rows", "&cells=3": "must be columns and rows", "&cells=3-2,0-1": "must be columns and rows",
		"&cells=0-1,0-1&compare=all": "compare is &#34;all&#34;: must be rest",
	} {
		w := s.get("/timeline?" + between + query)
		assert.Equal(t, http.StatusBadRequest, w.Code)
		assert.Contains(t, w.Body.String(), message)
	}
}
