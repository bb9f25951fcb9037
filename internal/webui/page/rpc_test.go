// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi"
	pb "github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

const (
	typeCPU  = "process_cpu:cpu:nanoseconds::"
	typeHeap = "memory:inuse_space:bytes::"
)

// querier calls methods of a server.
type querier struct {
	t   testing.TB
	url string
}

func (s *site) querier() querier {
	s.t.Helper()
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	s.t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return querier{s.t, server.URL}
}

func call[Request, Response any](ctx context.Context, q querier, method string, r *Request) (*Response, error) {
	client := connect.NewClient[Request, Response](http.DefaultClient, q.url+queryapi.Prefix+method)
	response, err := client.CallUnary(ctx, connect.NewRequest(r))
	if err != nil {
		return nil, err
	}
	return response.Msg, nil
}

// must is call without an error.
func must[Response, Request any](q querier, method string, r *Request) *Response {
	q.t.Helper()
	response, err := call[Request, Response](q.t.Context(), q, method, r)
	require.NoError(q.t, err, method)
	return response
}

// value returns a label of a Profile, by the definition.
func (p *sent) labelValue(label string) string {
	id := strings.Split(typeCPU, ":")
	if p.typ == "heap" {
		id = strings.Split(typeHeap, ":")
	}
	return map[string]string{
		"service_name": p.service, "__service_name__": p.service, "service_instance_id": p.instance, "thread": p.label,
		"__profile_type__": strings.Join(id, ":"), "__name__": id[0], "__type__": id[1], "__unit__": id[2],
	}[label]
}

var allLabels = []string{"__name__", "__profile_type__", "__service_name__", "__type__", "__unit__", "service_instance_id", "service_name", "thread"}

// slow answers the queries from the Profiles themselves.
type slow []*sent

// in returns those of a type that start in [from, to] and match.
func (s slow) in(typ string, from, to time.Time, matches func(*sent) bool) (selected slow) {
	for _, p := range s {
		if (typ == "" || p.labelValue("__profile_type__") == typ) && !p.at.Before(from) && !p.at.After(to) && matches(p) {
			selected = append(selected, p)
		}
	}
	return selected
}

// counted leaves out snapshots that a later one replaces.
func (s slow) counted() (counted slow) {
	latest := map[string]*sent{}
	for _, p := range s {
		if key := p.service + "/" + p.instance; p.typ != "heap" {
			counted = append(counted, p)
		} else if latest[key] == nil || p.at.After(latest[key].at) {
			latest[key] = p
		}
	}
	return append(counted, slices.Collect(maps.Values(latest))...)
}

// sums adds up the counted ones by a label or function.
func (s slow) sums(by func(*sent) string) map[string]int64 {
	sums := map[string]int64{}
	for _, p := range s.counted() {
		sums[by(p)] += p.value
	}
	return sums
}

// distinct are the values of a label but "", sorted.
func (s slow) distinct(of func(*sent) string) []string {
	found := map[string]bool{}
	for _, p := range s {
		found[of(p)] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

var selectors = []struct {
	text    string
	matches func(*sent) bool
}{
	{"{}", func(*sent) bool { return true }},
	{`{service_name="a"}`, func(p *sent) bool { return p.service == "a" }},
	{`{service_name!="a"}`, func(p *sent) bool { return p.service != "a" }},
	{`{service_name=~"a|b", service_instance_id="1"}`, func(p *sent) bool { return p.service != "c" && p.instance == "1" }},
	{`{thread=""}`, func(p *sent) bool { return p.label == "" }},
	{`{thread!~"w.*", __name__="process_cpu"}`, func(p *sent) bool { return p.label != "worker" && p.typ == "cpu" }},
	{`{__profile_type__="` + typeHeap + `"}`, func(p *sent) bool { return p.typ == "heap" }},
	{`{none="x"}`, func(*sent) bool { return false }},
}

// TestQueryAPIAnswersAsASlowComputation writes random profiles to files with and without indexes, and one that is open.
func TestQueryAPIAnswersAsASlowComputation(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 1, 100)) {
		r, s := profiletest.NewRand(seed), newSite(t)
		start := s.now.Add(-20 * time.Minute).Truncate(time.Second)
		var all slow
		next := func() (payloads []pprofile.Profiles) {
			var profiles []sent
			known := map[string]bool{} // one payload has one interval of each, so that its time is known
			for range 1 + r.IntN(6) {
				p := cpu([]string{"a", "b", "c"}[r.IntN(3)], start.Add(time.Duration(len(all))*7*time.Second), 1+r.Int64N(1e9))
				if r.IntN(2) == 0 {
					p = heap(p.service, "", p.at, p.value)
				}
				p.instance, p.function, p.label = fmt.Sprint(r.IntN(3)), fmt.Sprint("f", r.IntN(3)), []string{"", "worker", "main"}[r.IntN(3)]
				p.caller = []string{"", "f0", "f1"}[r.IntN(3)]
				if r.IntN(3) == 0 {
					p.trace = exampleTrace
				}
				if process := p.typ + p.service + p.instance; known[process] {
					payloads, profiles = append(payloads, payload(t, profiles...)), nil
					known = map[string]bool{process: true}
				} else {
					known[process] = true
				}
				profiles = append(profiles, p)
				all = append(all, &p)
			}
			return append(payloads, payload(t, profiles...))
		}
		s.write(slices.Concat(next(), next(), next())...)
		s.write(slices.Concat(next(), next())...)
		s.write(slices.Concat(next(), next(), next(), next())...)
		t.Cleanup(s.open(slices.Concat(next(), next())...))
		q := s.querier()
		q.check(all, start)
		q.check(all, start.Add(40*time.Second))
	}
}

func (q querier) check(all slow, start time.Time) {
	from, to := start, start.Add(3*time.Minute)
	anything := func(*sent) bool { return true }
	in := all.in("", from, to, anything)
	types := must[pb.ProfileTypesResponse](q, "ProfileTypes", &pb.ProfileTypesRequest{Start: from.UnixMilli(), End: to.UnixMilli()})
	var ids []string
	for _, typ := range types.ProfileTypes {
		ids = append(ids, typ.ID)
		assert.Equal(q.t, typ.ID, strings.Join([]string{typ.Name, typ.SampleType, typ.SampleUnit, typ.PeriodType, typ.PeriodUnit}, ":"))
	}
	assert.Equal(q.t, in.distinct(func(p *sent) string { return p.labelValue("__profile_type__") }), ids)
	for _, selector := range selectors {
		q.checkLabels(all, selector.text, selector.matches, from, to)
		for _, typ := range []string{typeCPU, typeHeap} {
			q.checkSums(all, typ, selector.text, selector.matches, from, to)
			q.checkSeries(all, typ, selector.text, selector.matches, from, to)
		}
	}
	stats := must[pb.GetProfileStatsResponse](q, "GetProfileStats", &pb.GetProfileStatsRequest{})
	assert.True(q.t, stats.DataIngested)
	assert.LessOrEqual(q.t, stats.OldestProfileTime, all[0].at.Add(time.Minute).UnixMilli(), "snapshots of a minute that a later one replaces may not count")
	assert.GreaterOrEqual(q.t, stats.NewestProfileTime, all[len(all)-1].at.UnixMilli())
}

func (q querier) checkLabels(all slow, selector string, matches func(*sent) bool, from, to time.Time) {
	in := all.in("", from, to, matches)
	names := must[pb.LabelNamesResponse](q, "LabelNames", &pb.LabelNamesRequest{Matchers: []string{selector}, Start: from.UnixMilli(), End: to.UnixMilli()})
	var want []string
	for _, name := range allLabels {
		values := in.distinct(func(p *sent) string { return p.labelValue(name) })
		got := must[pb.LabelValuesResponse](q, "LabelValues", &pb.LabelValuesRequest{Name: name, Matchers: []string{selector}, Start: from.UnixMilli(), End: to.UnixMilli()})
		assert.Equal(q.t, values, got.Names, "%s %s", selector, name)
		if len(values) > 0 {
			want = append(want, name)
		}
	}
	assert.Equal(q.t, want, names.Names, selector)
	for _, by := range [][]string{{"service_name", "__profile_type__"}, {"thread", "service_name"}, {}} {
		series := must[pb.SeriesResponse](q, "Series", &pb.SeriesRequest{Matchers: []string{selector}, LabelNames: by, Start: from.UnixMilli(), End: to.UnixMilli()})
		var got []string
		for _, of := range series.LabelsSet {
			got = append(got, textOf(of.Labels))
		}
		slices.Sort(got)
		if len(by) == 0 {
			by = allLabels
		}
		found := map[string]bool{}
		for _, p := range in {
			found[p.labels(by)] = true
		}
		assert.Equal(q.t, slices.Sorted(maps.Keys(found)), got, "%s %v", selector, by)
	}
}

func textOf(pairs []*pb.LabelPair) (text string) {
	for _, l := range pairs {
		text += l.Name + "=" + l.Value + ","
	}
	return text
}

// labels is textOf the labels of a Profile that have a value.
func (p *sent) labels(by []string) (text string) {
	for _, name := range slices.Sorted(slices.Values(by)) {
		if p.labelValue(name) != "" {
			text += name + "=" + p.labelValue(name) + ","
		}
	}
	return text
}

func (q querier) checkSums(all slow, typ, selector string, matches func(*sent) bool, from, to time.Time) {
	in := all.in(typ, from, to, matches)
	stack := func(p *sent) string { return p.caller + "/" + p.function }
	want := in.sums(stack)
	request := &pb.SelectMergeStacktracesRequest{ProfileTypeID: typ, LabelSelector: selector, Start: from.UnixMilli(), End: to.UnixMilli()}
	graph := must[pb.SelectMergeStacktracesResponse](q, "SelectMergeStacktraces", request).Flamegraph
	if got := q.stacks(graph.Names, graph.Levels, 0, 1); typ == typeHeap {
		for stack, sum := range got { // TestFlameGraphsHaveLivingProcesses says which snapshots count of these
			assert.LessOrEqual(q.t, sum, want[stack], "%s %s", typ, selector)
		}
		assert.Equal(q.t, len(want) > 0, len(got) > 0, "%s %s", typ, selector)
		want = got
	} else {
		assert.Equal(q.t, want, got, "%s %s", typ, selector)
	}
	small := proto.CloneOf(request)
	small.MaxNodes = proto.Int64(2)
	folded := must[pb.SelectMergeStacktracesResponse](q, "SelectMergeStacktraces", small).Flamegraph
	assert.Equal(q.t, sumOf(want), sumOf(q.stacks(folded.Names, folded.Levels, 0, 1)), "the rest is in other")
	ofSpan := in.in("", from, to, func(p *sent) bool { return p.trace != "" })
	span := must[pb.SelectMergeSpanProfileResponse](q, "SelectMergeSpanProfile", &pb.SelectMergeSpanProfileRequest{
		ProfileTypeID: typ, LabelSelector: selector, Start: from.UnixMilli(), End: to.UnixMilli(), SpanSelector: []string{"00f067aa0ba902b7", "0000000000000001"},
	}).Flamegraph
	if typ == typeCPU {
		assert.Equal(q.t, ofSpan.sums(stack), q.stacks(span.Names, span.Levels, 0, 1))
	}
	pprof := func(nodes *int64) map[string]int64 {
		sums := map[string]int64{}
		p := must[pb.Profile](q, "SelectMergeProfile", &pb.SelectMergeProfileRequest{ProfileTypeID: typ, LabelSelector: selector, Start: from.UnixMilli(), End: to.UnixMilli(), MaxNodes: nodes})
		for _, sample := range p.Sample {
			names := []string{"", ""} // of the function and its caller
			for i, location := range sample.LocationId {
				names[i] = p.StringTable[p.Function[p.Location[location-1].Line[0].FunctionId-1].Name]
			}
			sums[names[1]+"/"+names[0]] += sample.Value[0]
		}
		return sums
	}
	assert.Equal(q.t, want, pprof(nil), "%s %s", typ, selector)
	largest, left := pprof(proto.Int64(2)), 0
	assert.Equal(q.t, sumOf(want), sumOf(largest))
	for stack, sum := range largest {
		if !strings.HasSuffix(stack, "/other") {
			left++
			assert.Equal(q.t, want[stack], sum)
		}
	}
	assert.LessOrEqual(q.t, left, 2)

	middle := from.Add(to.Sub(from) / 2)
	first, second := proto.CloneOf(request), proto.CloneOf(request)
	first.End, second.Start = middle.UnixMilli(), middle.UnixMilli()+1
	diff := must[pb.DiffResponse](q, "Diff", &pb.DiffRequest{Left: first, Right: second}).Flamegraph
	if typ == typeCPU { // the left side is multiplied, so that the sides differ as their rates
		ofLeft, multiplied := all.in(typ, from, middle, matches).sums(stack), q.stacks(diff.Names, diff.Levels, 0, 2)
		for stack, sum := range ofLeft {
			assert.InDelta(q.t, float64(sum)/float64(sumOf(ofLeft))*float64(sumOf(multiplied)), multiplied[stack], float64(len(ofLeft)))
		}
		assert.Equal(q.t, all.in(typ, middle.Add(time.Millisecond), to, matches).sums(stack), q.stacks(diff.Names, diff.Levels, 1, 2))
	}
	assert.Equal(q.t, diff.Total, diff.LeftTicks+diff.RightTicks)
}

// TestFlameGraphsHaveLivingProcesses: one pod is replaced every minute, and another one lives.
func TestFlameGraphsHaveLivingProcesses(t *testing.T) {
	s := newSite(t)
	var payloads []pprofile.Profiles
	for i := range 56 { // every 15 s
		at := s.now.Add(-14*time.Minute + time.Duration(i)*15*time.Second)
		payloads = append(payloads, payload(t, heap("checkout", fmt.Sprint("replaced-", i/4), at, 100)), payload(t, heap("checkout", "stays", at, 20)))
	}
	s.write(payloads...)
	q := s.querier()
	request := &pb.SelectMergeStacktracesRequest{ProfileTypeID: typeHeap, LabelSelector: "{}", Start: s.now.Add(-15 * time.Minute).UnixMilli(), End: s.now.UnixMilli()}
	assert.EqualValues(t, 120, must[pb.SelectMergeStacktracesResponse](q, "SelectMergeStacktraces", request).Flamegraph.Total)
	left := proto.CloneOf(request)
	left.End = s.now.Add(-7 * time.Minute).UnixMilli()
	diff := must[pb.DiffResponse](q, "Diff", &pb.DiffRequest{Left: left, Right: request}).Flamegraph
	assert.Equal(t, []int64{120, 120}, []int64{diff.LeftTicks, diff.RightTicks})
}

// TestDiffComparesRates: a service uses 0.3 cores, and then 0.6, of which a third of the time is profiled.
func TestDiffComparesRates(t *testing.T) {
	s := newSite(t)
	var payloads []pprofile.Profiles
	for i := range 60 {
		p := cpu("checkout", s.now.Add(-30*time.Minute+time.Duration(i)*30*time.Second), 3e9)
		if i >= 30 && i%3 != 0 {
			continue
		}
		if p.duration = 10 * time.Second; i >= 30 {
			p.value = 6e9
		}
		payloads = append(payloads, payload(t, p))
	}
	s.write(payloads...)
	right := &pb.SelectMergeStacktracesRequest{ProfileTypeID: typeCPU, LabelSelector: "{}", Start: s.now.Add(-15 * time.Minute).UnixMilli(), End: s.now.UnixMilli()}
	left := proto.CloneOf(right)
	left.Start, left.End = s.now.Add(-30*time.Minute).UnixMilli(), right.Start-1
	diff := must[pb.DiffResponse](s.querier(), "Diff", &pb.DiffRequest{Left: left, Right: right}).Flamegraph
	assert.Equal(t, int64(60e9), diff.RightTicks, "as it is")
	assert.InEpsilon(t, 30e9, diff.LeftTicks, 0.05, "half of it, although 90 s were counted")
}

func sumOf(sums map[string]int64) (sum int64) {
	for _, value := range sums {
		sum += value
	}
	return sum
}

// stacks returns the self values of each function with its caller, on a side of a flame graph. It finds the caller of a box by
// its place.
func (q querier) stacks(names []string, levels []*pb.Level, side, sides int) map[string]int64 {
	type box struct {
		from, to int64
		name     string
	}
	sums, above := map[string]int64{}, []box{}
	for i, level := range levels {
		var boxes []box
		end, width := int64(0), 3*sides+1
		for values := level.Values; len(values) > 0; values = values[width:] {
			v := values[3*side:]
			b, caller := box{end + v[0], end + v[0] + v[1], names[values[width-1]]}, ""
			end = b.to
			boxes = append(boxes, b)
			at := slices.IndexFunc(above, func(a box) bool { return a.from <= b.from && b.to <= a.to && a.to > a.from })
			require.True(q.t, at >= 0 || i == 0 || b.to == b.from, "a box is below another")
			if i > 1 && at >= 0 {
				caller = above[at].name
			}
			if v[2] != 0 {
				sums[caller+"/"+b.name] += v[2]
			}
		}
		above = boxes
	}
	return sums
}

func (q querier) checkSeries(all slow, typ, selector string, matches func(*sent) bool, from, to time.Time) {
	for _, by := range [][]string{{}, {"service_name"}, {"thread", "service_name"}} {
		for _, average := range []bool{false, true} {
			const step = 30
			request := &pb.SelectSeriesRequest{
				ProfileTypeID: typ, LabelSelector: selector, Start: from.UnixMilli(), End: to.UnixMilli(), Step: step, GroupBy: by,
			}
			if average {
				request.Aggregation = pb.Aggregation_TIME_SERIES_AGGREGATION_TYPE_AVERAGE.Enum()
			}
			got, want := map[string]float64{}, map[string]float64{}
			for _, series := range must[pb.SelectSeriesResponse](q, "SelectSeries", request).Series {
				for _, p := range series.Points {
					got[fmt.Sprint(textOf(series.Labels), p.Timestamp)] = p.Value
				}
			}
			steps := query.Steps{From: from.Add(1 - step*time.Second), Length: step * time.Second, Count: int(to.Sub(from)/time.Second)/step + 1}
			profiles, snapshots, wholes := map[string]float64{}, map[string]*rate.Series{}, map[string]*rate.Series{}
			for _, p := range all {
				group := p.labels(by)
				process := processes.HashResource(payload(q.t, *p).ResourceProfiles().At(0).Resource().Attributes())
				snapshot := rate.Interval{Process: process, Start: uint64(p.at.UnixNano()), End: uint64(p.at.UnixNano()), Value: p.value, Profiles: 1, Processes: 1}
				// A service lives when samples of any thread were taken, of processes that are selected.
				if wholes[p.service] == nil {
					wholes[p.service] = &rate.Series{Snapshots: true}
				}
				ofOther := *p
				if slices.ContainsFunc([]string{"", "main", "worker"}, func(thread string) bool { ofOther.label = thread; return matches(&ofOther) }) && p.labelValue("__profile_type__") == typ {
					wholes[p.service].Add(snapshot)
				}
				switch {
				case p.labelValue("__profile_type__") != typ || !matches(p):
				case typ == typeCPU:
					for i, part := range spread(p, steps) {
						at := fmt.Sprint(group, steps.From.Add(time.Duration(i+1)*steps.Length-1).UnixMilli())
						want[at] += part.value
						profiles[at] += part.share
					}
				default:
					group = p.service + "\x00" + group // each has its distances
					if snapshots[group] == nil {
						snapshots[group] = &rate.Series{Snapshots: true, Whole: wholes[p.service]}
					}
					snapshots[group].Add(snapshot)
				}
			}
			for at := range profiles {
				if average {
					want[at] /= profiles[at]
				}
			}
			for name, of := range snapshots {
				_, group, _ := strings.Cut(name, "\x00")
				for i, got := range of.Steps(uint64(steps.From.UnixNano()), uint64(steps.Length), steps.Count) {
					if got.Data > 0 {
						want[fmt.Sprint(group, steps.From.Add(time.Duration(i+1)*steps.Length-1).UnixMilli())] += got.Rate
					}
				}
			}
			assert.InDeltaMapValues(q.t, want, got, 1, "%s %s %v", typ, selector, by)
			if !average && typ == typeCPU {
				assert.Equal(q.t, want, got, "%s %s %v", typ, selector, by)
			}
		}
	}
}

// spreadPart is what a step has of a Profile.
type spreadPart struct{ value, share float64 }

// spread divides a Profile by the time that each step has of it.
func spread(p *sent, steps query.Steps) map[int]spreadPart {
	weights, parts := []uint64{}, map[int]spreadPart{}
	at, end := p.at, p.at.Add(p.duration)
	var places []int
	for at.Before(end) {
		i := int(math.Floor(float64(at.Sub(steps.From)) / float64(steps.Length)))
		next := steps.From.Add(time.Duration(i+1) * steps.Length)
		if next.After(end) {
			next = end
		}
		weights, places = append(weights, uint64(next.Sub(at))), append(places, i)
		at = next
	}
	for i, value := range processes.Divide(p.value, weights) {
		if places[i] >= 0 && places[i] < steps.Count {
			parts[places[i]] = spreadPart{float64(value), float64(weights[i]) / float64(p.duration)}
		}
	}
	return parts
}

func TestQueryAPIRejects(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 1)))
	q := s.querier()
	for _, test := range []struct {
		request *pb.SelectSeriesRequest
		want    string
	}{
		{&pb.SelectSeriesRequest{ProfileTypeID: "cpu", Step: 1}, `profile_typeID is "cpu": must be name:sample_type`},
		{&pb.SelectSeriesRequest{ProfileTypeID: typeCPU, Step: 1, LabelSelector: `{a=~"("}`}, "is no regular expression"},
		{&pb.SelectSeriesRequest{ProfileTypeID: typeCPU, Step: 1, Start: 2, End: 1}, "start is 2: must not be after end, 1"},
		{&pb.SelectSeriesRequest{ProfileTypeID: typeCPU, Start: 1, End: 2}, "step is 0: must be a number of seconds"},
		{&pb.SelectSeriesRequest{ProfileTypeID: typeCPU, Start: 1, End: 1 << 62, Step: 1e-3}, "the range must have at most 11000 steps"},
	} {
		_, err := call[pb.SelectSeriesRequest, pb.SelectSeriesResponse](t.Context(), q, "SelectSeries", test.request)
		require.ErrorContains(t, err, test.want)
		assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	}
	_, err := call[pb.SelectMergeSpanProfileRequest, pb.SelectMergeSpanProfileResponse](t.Context(), q, "SelectMergeSpanProfile",
		&pb.SelectMergeSpanProfileRequest{ProfileTypeID: typeCPU, SpanSelector: []string{"x"}})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))

	s.queries.maxWait = time.Millisecond
	release, err := s.queries.acquire(t.Context(), running)
	require.NoError(t, err)
	_, err = call[pb.ProfileTypesRequest, pb.ProfileTypesResponse](t.Context(), q, "ProfileTypes", &pb.ProfileTypesRequest{})
	assert.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), "the queries of pages count")
	s.queries.maxWait = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = call[pb.ProfileTypesRequest, pb.ProfileTypesResponse](ctx, q, "ProfileTypes", &pb.ProfileTypesRequest{})
	assert.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
	release()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, queryapi.Prefix+"Diff", nil)
	r.Header.Set("Content-Type", "application/grpc")
	s.ServeHTTP(w, r)
	assert.Equal(t, http.StatusUnsupportedMediaType, w.Code)
}

func TestSeriesThatTakeTooMuchMemoryAreRejected_V2(t *testing.T) {
	s := newSite(t)
	s.serve(s.dir, 16<<20) // of which an answer takes 1.5 MiB
	for i := range 20 {
		var profiles []sent
		for j := range 50 {
			p := cpu("checkout", s.now.Add(-time.Minute), 1)
			p.label = strings.Repeat(fmt.Sprintf("%04d", 50*i+j), 250)
			profiles = append(profiles, p)
		}
		s.write(payload(t, profiles...))
	}
	q := s.querier()
	from, to := s.now.Add(-time.Hour).UnixMilli(), s.now.UnixMilli()
	_, err := call[pb.SeriesRequest, pb.SeriesResponse](t.Context(), q, "Series", &pb.SeriesRequest{LabelNames: []string{"thread"}, Start: from, End: to})
	require.ErrorContains(t, err, "the series take more than a quarter of the memory limit: select less, by service, type or time")
	_, err = call[pb.SelectSeriesRequest, pb.SelectSeriesResponse](t.Context(), q, "SelectSeries",
		&pb.SelectSeriesRequest{ProfileTypeID: typeCPU, GroupBy: []string{"thread"}, Start: from, End: to, Step: 60})
	require.ErrorContains(t, err, "the series take more than a quarter of the memory limit: select less, by service, type or time")
}

func TestQueryAPISaysWhatItCouldNotRead_V1(t *testing.T) {
	s := newSite(t)
	damaged := s.writeDamaged()
	q := s.querier()
	request := &pb.SelectMergeStacktracesRequest{ProfileTypeID: typeCPU, Start: 0, End: s.now.Add(time.Hour).UnixMilli()}
	_, err := call[pb.SelectMergeStacktracesRequest, pb.SelectMergeStacktracesResponse](t.Context(), q, "SelectMergeStacktraces", request)
	require.ErrorContains(t, err, damaged)
	assert.Equal(t, connect.CodeDataLoss, connect.CodeOf(err), "nothing could be read")

	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 7)))
	client := connect.NewClient[pb.SelectMergeStacktracesRequest, pb.SelectMergeStacktracesResponse](http.DefaultClient, q.url+queryapi.Prefix+"SelectMergeStacktraces")
	response, err := client.CallUnary(t.Context(), connect.NewRequest(request))
	require.NoError(t, err)
	assert.Equal(t, int64(7), response.Msg.Flamegraph.Total, "the rest is shown")
	assert.Contains(t, response.Header().Get("Warning"), damaged)
}
