// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

const start = uint64(1_790_000_000e9)

// random makes Profiles of an on-CPU sampler, of an off-CPU one, of Go execution traces, of mutexes, and without timestamps.
func random(t testing.TB, r *rand.Rand) pprofile.Profiles {
	t.Helper()
	var all []expand.Profile
	for n := range 1 + r.IntN(5) {
		p := expand.Profile{
			Resource: expand.Entity{Attributes: []expand.Attribute{
				{Key: "service.instance.id", Value: fmt.Sprint("pod-", r.IntN(2))}, {Key: "service.name", Value: "checkout"},
			}},
			Scope: expand.Entity{Name: fmt.Sprint(n)}, // one sample type each: nothing is counted twice
			Time:  start + uint64(r.IntN(20e9)), Duration: uint64(r.IntN(20e9)), Shape: expand.ShapeBoth,
		}
		kind := r.IntN(6)
		switch kind {
		case 0:
			p.Type, p.Unit, p.PeriodType, p.PeriodUnit, p.Period, p.Shape = "samples", "count", "cpu", "nanoseconds", 10e6, expand.ShapeTimestamps
		case 1:
			p.Type, p.Unit = "off_cpu", "nanoseconds"
		case 2:
			p.Type, p.Unit = "goroutine_time", "nanoseconds"
		case 3:
			p.Type, p.Unit = "delay", "microseconds"
		case 4:
			p.Type, p.Unit = "alloc_space", "bytes"
		case 5:
			p.Type, p.Unit, p.Shape = "cpu", "nanoseconds", expand.ShapeValues
		}
		for i := range 1 + r.IntN(6) {
			s := &expand.Sample{Sum: big.NewInt(7), Stack: []*expand.Frame{
				{Lines: []expand.Line{{Function: fmt.Sprint("leaf", r.IntN(4))}}}, {Lines: []expand.Line{{Function: fmt.Sprint("root", i)}}},
			}}
			if i := r.IntN(4); i > 0 {
				s.Link = fmt.Sprintf("0af7651916cd43dd8448eb211c80319c/%016x", i)
			}
			add := func(key string, value any) {
				s.Attributes = append(s.Attributes, expand.Attribute{Key: key, Value: value})
			}
			if kind == 2 {
				add(timing.GoroutineIDAttribute, int64(r.IntN(3)))
				add(timing.StateAttribute, []string{timing.Running, timing.Runnable, timing.Blocked, timing.Syscall}[r.IntN(4)])
				add(timing.TimestampMarksAttribute, []string{timing.MarksStart, timing.MarksEnd, timing.MarksInstant}[r.IntN(3)])
				if r.IntN(2) == 0 {
					add(timing.ReasonAttribute, []string{timing.Lock, timing.Network}[r.IntN(2)])
				}
			} else {
				add("thread.id", int64(r.IntN(3)))
				add("thread.name", "worker")
			}
			if kind == 5 {
				p.Samples = append(p.Samples, s)
				continue
			}
			for range 1 + r.IntN(8) {
				value := r.Int64N(2e9)
				if kind == 0 {
					value = 1
				}
				s.Points = append(s.Points, expand.Point{Timestamp: start + uint64(r.IntN(40e9)), Value: value})
			}
			slices.SortFunc(s.Points, func(a, b expand.Point) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
			if r.IntN(2) == 0 {
				slices.Reverse(s.Points) // nothing says that they are sorted
			}
			p.Samples = append(p.Samples, s)
		}
		all = append(all, p)
	}
	return profiletest.Build(t, all...)
}

// slowEvent is an event as the slow computation has it.
type slowEvent struct {
	lane, state, leaf string
	span              string
	at, value         int64
	from, to          int64
	// isDelay: values are microseconds. isSample: the value 1 is a period.
	drawn, isDelay, isSample bool
}

// slowly returns the events of payloads, one by one from what is written out.
func slowly(t testing.TB, payloads ...pprofile.Profiles) (events []slowEvent, untimed int) {
	t.Helper()
	for _, p := range profiletest.Expand(t, payloads...) {
		for _, s := range p.Samples {
			if len(s.Points) == 0 {
				untimed++
			}
			text := func(key string) string {
				if value := expand.Value(s.Attributes, key); value != nil {
					return fmt.Sprint(value)
				}
				return ""
			}
			for _, point := range s.Points {
				e := slowEvent{at: int64(point.Timestamp), value: point.Value, drawn: true, leaf: s.Stack[0].Lines[0].Function}
				if _, span, ok := strings.Cut(s.Link, "/"); ok {
					e.span = span
				}
				e.lane = expand.Text(p.Resource.Attributes, "service.instance.id") + "/" + cmp.Or(text(timing.GoroutineIDAttribute), "t"+text("thread.id"))
				e.from, e.to = e.at, e.at
				marks := text(timing.TimestampMarksAttribute)
				e.state = text(timing.StateAttribute)
				switch p.Type {
				case "samples":
					e.state, e.from, e.isSample = timing.Running, e.at-10e6, true
				case "off_cpu":
					e.state, e.from = timing.Blocked, e.at-point.Value
				case "delay":
					e.state, e.isDelay = timing.Blocked+": "+timing.Lock, true
				case "alloc_space":
					e.drawn = false
				case "goroutine_time":
					switch {
					case marks == timing.MarksStart:
						e.to += point.Value
					case marks == timing.MarksEnd, e.state == timing.Running:
						e.from -= point.Value
					}
					if reason := text(timing.ReasonAttribute); reason != "" {
						e.state += ": " + reason
					}
				}
				if p.Duration > 0 {
					e.from = max(e.from, min(int64(p.Time), e.at))
					e.to = min(e.to, max(int64(p.Time+p.Duration), e.at))
				}
				events = append(events, e)
			}
		}
	}
	return events, untimed
}

func TestCellsAreThoseOfASlowComputation_T2(t *testing.T) {
	r := profiletest.NewRand(profiletest.Seed(t))
	for range profiletest.Rounds(t, 100, 1000) {
		payloads := []pprofile.Profiles{random(t, r), random(t, r)}
		from := start + uint64(r.IntN(20e9))
		grid := NewGrid(from, from+1+uint64(r.Int64N([]int64{1e6, 1e9, 30e9, 1e14}[r.IntN(4)])))
		c := Cells{r.IntN(grid.Columns), 0, r.IntN(grid.Rows), 0}
		c.LastColumn, c.LastRow = c.FirstColumn+r.IntN(grid.Columns-c.FirstColumn), c.FirstRow+r.IntN(grid.Rows-c.FirstRow)
		h, stacks := NewHeatmap(grid), NewStacks(grid, c, 1<<30)
		for _, pd := range payloads {
			require.NoError(t, h.Add(t.Context(), pd))
			require.NoError(t, stacks.Add(t.Context(), pd))
		}
		values, counts := make([]int64, len(h.Values)), make([]int64, len(h.Counts))
		leaves := map[string][2]int64{}
		events, untimed := slowly(t, payloads...)
		var covers [][2]int64
		for _, p := range profiletest.Expand(t, payloads...) {
			if len(p.Samples[0].Points) > 0 && p.Duration > 0 {
				covers = append(covers, [2]int64{int64(p.Time), int64(p.Time + p.Duration)})
			}
		}
		for _, e := range events {
			offset := e.at - int64(grid.From)
			if offset < 0 || offset >= int64(grid.Columns)*int64(grid.Column) {
				continue
			}
			column := int(offset / int64(grid.Column))
			row := int((offset - int64(column)*int64(grid.Column)) * int64(grid.Rows) / int64(grid.Column))
			values[column*grid.Rows+row] += e.value
			counts[column*grid.Rows+row]++
			side := 1
			if column >= c.FirstColumn && column <= c.LastColumn && row >= c.FirstRow && row <= c.LastRow {
				side = 0
			}
			of := leaves[e.leaf]
			of[side] += e.value
			leaves[e.leaf] = of
		}
		require.Equal(t, values, h.Values)
		require.Equal(t, counts, h.Counts)
		require.Equal(t, untimed, h.Untimed)
		got := map[string][2]int64{}
		for _, node := range stacks.Nodes {
			if name := stacks.Frames[node.Frame].Name; strings.HasPrefix(name, "leaf") {
				of := got[name]
				of[0], of[1] = of[0]+node.Self[0], of[1]+node.Self[1]
				got[name] = of
			}
		}
		require.Equal(t, leaves, got)
		var covered [2]uint64
		for i := range values {
			from := int64(grid.From) + int64(i)*int64(grid.Column)/int64(grid.Rows)
			to, side := from+int64(grid.Column)/int64(grid.Rows), 1
			if column, row := i/grid.Rows, i%grid.Rows; column >= c.FirstColumn && column <= c.LastColumn && row >= c.FirstRow && row <= c.LastRow {
				side = 0
			}
			if slices.ContainsFunc(covers, func(of [2]int64) bool { return of[0] < to && of[1] > from }) {
				covered[side] += uint64(to - from)
			}
		}
		require.Equal(t, covered, stacks.Time())
		parsed, err := grid.ParseCells(c.String())
		require.NoError(t, err)
		require.Equal(t, c, parsed)
	}
}

func TestLanesAreThoseOfASlowComputation_T2(t *testing.T) {
	r := profiletest.NewRand(profiletest.Seed(t))
	drawn := 0
	for range profiletest.Rounds(t, 100, 1000) {
		payloads := []pprofile.Profiles{random(t, r), random(t, r)}
		from := start + uint64(r.IntN(20e9))
		to := from + 1 + uint64(r.Int64N([]int64{100, 1e9, 30e9}[r.IntN(3)]))
		list := NewLaneList(from, to, ByThread, nil, 1<<30)
		for _, pd := range payloads {
			require.NoError(t, list.Add(t.Context(), pd))
		}
		lanes := list.Lanes()
		tracks := NewTracks(from, to, 1+r.IntN(300), ByThread, lanes, 1<<30)
		for _, pd := range payloads {
			require.NoError(t, tracks.Add(t.Context(), pd))
		}
		type key struct {
			lane, state string
			slot        int
		}
		want, wantEvents, wantInstants := map[key]uint64{}, map[string]int{}, map[key]int{}
		events, _ := slowly(t, payloads...)
		for _, e := range events {
			if !e.drawn {
				continue
			}
			if e.from == e.to && e.from >= int64(from) && e.from < int64(to) {
				wantEvents[e.lane]++
			} else if e.from < int64(to) && e.to > int64(from) && e.from < e.to {
				wantEvents[e.lane]++
			}
			for slot := range tracks.Slots {
				left, right := int64(tracks.Edge(slot)), int64(tracks.Edge(slot+1))
				if e.from == e.to && e.from >= left && e.from < right {
					wantInstants[key{e.lane, "", slot}]++
				}
				if time := min(e.to, right) - max(e.from, left); time > 0 {
					want[key{e.lane, e.state, slot}] += uint64(time)
				}
			}
		}
		got, gotEvents, gotInstants := map[key]uint64{}, map[string]int{}, map[key]int{}
		for _, track := range tracks.Tracks(lanes) {
			lane := track.Of[strings.Index(track.Of, "pod-"):] + "/"
			if goroutine, ok := strings.CutPrefix(track.Name, "goroutine "); ok {
				lane += goroutine[:1]
			} else {
				lane += "t" + track.Name[len("worker ("):len("worker (")+1]
			}
			gotEvents[lane] = int(track.Events)
			require.True(t, track.IsExact)
			require.Len(t, track.Exact, int(track.Events))
			sum, exact := uint64(0), uint64(0)
			for _, e := range track.Exact {
				exact += min(e.End, max(to, e.Start)) - max(e.Start, min(from, e.End))
			}
			for state, times := range track.Time {
				for slot, time := range times {
					if sum += time; time > 0 {
						got[key{lane, tracks.States[state].String(), slot}] = time
					}
				}
			}
			for slot, n := range track.Instants {
				if n > 0 {
					gotInstants[key{lane, "", slot}] = int(n)
				}
			}
			require.Equal(t, exact, sum, "the slots have the time of the events")
		}
		require.Equal(t, want, got)
		require.Equal(t, wantEvents, gotEvents)
		require.Equal(t, wantInstants, gotInstants)
		drawn += len(got)
	}
	assert.Greater(t, drawn, 1000)
}

func TestSpansAreThoseOfASlowComputation_T2(t *testing.T) {
	r := profiletest.NewRand(profiletest.Seed(t))
	found := 0
	for range profiletest.Rounds(t, 100, 1000) {
		payloads := []pprofile.Profiles{random(t, r), random(t, r)}
		spans := NewSpans(1000)
		for _, pd := range payloads {
			require.NoError(t, spans.Add(t.Context(), pd))
		}
		want := map[string]*Span{}
		of := func(id string, first, last uint64) *Span {
			span := want[id]
			if span == nil {
				span = &Span{First: first, Last: last}
				want[id] = span
			}
			span.First, span.Last, span.Samples = min(span.First, first), max(span.Last, last), span.Samples+1
			return span
		}
		events, _ := slowly(t, payloads...)
		for _, e := range events {
			if e.span == "" {
				continue
			}
			span := of(e.span, uint64(e.from), uint64(e.to))
			switch state, reason, _ := strings.Cut(e.state, ": "); {
			case e.isSample:
				span.OnCPU += 10e6
			case state == timing.Running:
				span.OnCPU += uint64(e.value)
			case e.isDelay:
				span.Locked += uint64(e.value) * 1000
			case state == timing.Blocked && reason == timing.Lock:
				span.Locked += uint64(e.value)
			case e.drawn:
				span.OffCPU += uint64(e.value)
			}
		}
		for _, p := range profiletest.Expand(t, payloads...) {
			for _, s := range p.Samples {
				if _, id, ok := strings.Cut(s.Link, "/"); ok && len(s.Points) == 0 {
					span := of(id, p.Time, p.Time+p.Duration)
					span.Untimed, span.OnCPU = true, span.OnCPU+s.Sum.Uint64()
				}
			}
		}
		got := map[string]*Span{}
		for _, span := range spans.Spans() {
			assert.Equal(t, "checkout", span.Service)
			copied := *span
			copied.Service, copied.ID = "", pcommon.SpanID{}
			got[span.ID.String()] = &copied
		}
		require.Equal(t, want, got)
		found += len(got)
	}
	assert.Greater(t, found, 100)
}

// Slots divide the range without gaps.
func TestSlotsDivideTheRange(t *testing.T) {
	for _, test := range []struct {
		length uint64
		slots  int
	}{{1, 5}, {7, 3}, {100, 7}, {1e9, 999}, {math.MaxInt64, 1200}} {
		tracks := NewTracks(start, start+test.length, test.slots, ByThread, nil, 1<<20)
		assert.Equal(t, start, tracks.Edge(0))
		assert.Equal(t, start+test.length, tracks.Edge(tracks.Slots))
		for slot := range tracks.Slots {
			require.Less(t, tracks.Edge(slot), tracks.Edge(slot+1))
			require.Equal(t, slot, tracks.slotOf(tracks.Edge(slot)))
			require.Equal(t, slot, tracks.slotOf(tracks.Edge(slot+1)-1))
		}
	}
}

// The Profiles of a scope that count the same events as others measure are not drawn beside these.
func TestEventsOfTwoSampleTypesAreDrawnOnce(t *testing.T) {
	for _, types := range [][2][2]string{
		{{"samples", "count"}, {"cpu", "nanoseconds"}}, {{"events", "count"}, {"off_cpu", "nanoseconds"}}, {{"contentions", "count"}, {"delay", "nanoseconds"}},
		{{"samples", "count"}, {"cycles", "count"}},
	} {
		var both []expand.Profile
		for _, typ := range types {
			value := int64(10e6)
			if typ[1] == "count" {
				value = 1
			}
			sample := &expand.Sample{Sum: big.NewInt(0), Points: []expand.Point{{Timestamp: start, Value: value}}}
			if types[1][0] == "off_cpu" || types[1][0] == "delay" {
				sample.Attributes = []expand.Attribute{{Key: timing.StateAttribute, Value: timing.Blocked}, {Key: timing.TimestampMarksAttribute, Value: timing.MarksEnd}}
			}
			both = append(both, expand.Profile{
				Type: typ[0], Unit: typ[1], PeriodType: types[1][0], PeriodUnit: types[1][1], Period: 10e6, Shape: expand.ShapeBoth, Samples: []*expand.Sample{sample},
			})
		}
		list := NewLaneList(start-1e9, start+1e9, ByProcess, nil, 1<<20)
		require.NoError(t, list.Add(t.Context(), profiletest.Build(t, both...)))
		require.Len(t, list.Lanes(), 1, "%v", types)
		assert.Equal(t, int64(1), list.Lanes()[0].Events, "%v", types)
		first := start - 10e6
		if types[1][1] == "count" {
			first = start // a number of cycles is no time
		}
		assert.Equal(t, first, list.Lanes()[0].First, "%v", types)
	}
}

// hostile has ten million timestamps in one sample: of all times, unsorted, with values that no sum holds.
func hostile(n int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	dict := pd.Dictionary()
	dict.StringTable().Append("", "events", "seconds")
	dict.LinkTable().AppendEmpty()
	dict.AttributeTable().AppendEmpty()
	dict.StackTable().AppendEmpty()
	dict.LocationTable().AppendEmpty()
	dict.FunctionTable().AppendEmpty()
	dict.MappingTable().AppendEmpty()
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(1)
	p.SampleType().SetUnitStrindex(2)
	s := p.Samples().AppendEmpty()
	timestamps, values := make([]uint64, n), make([]int64, n)
	x := uint64(1)
	for i := range timestamps {
		x = x*6364136223846793005 + 1442695040888963407
		timestamps[i], values[i] = x, math.MaxInt64
		if i%2 == 0 {
			timestamps[i] = start + x%60e9
		}
	}
	s.TimestampsUnixNano().FromRaw(timestamps)
	s.Values().FromRaw(values)
	return pd
}

func TestHostileTimestampsAreBounded_T2(t *testing.T) {
	const n = 10_000_000
	pd := hostile(n)
	runtime.GC()
	began := time.Now()
	used := profiletest.AllocatedBy(func() {
		grid := NewGrid(start, start+60e9)
		h := NewHeatmap(grid)
		require.NoError(t, h.Add(t.Context(), pd))
		require.Equal(t, int64(math.MaxInt64), slices.Max(h.Values))
		stacks := NewStacks(grid, Cells{0, 1, 0, 1}, 1<<20)
		require.NoError(t, stacks.Add(t.Context(), pd))
		require.Equal(t, int64(math.MaxInt64), stacks.Sums[0])
		list := NewLaneList(start, start+60e9, ByThread, nil, 1<<20)
		require.NoError(t, list.Add(t.Context(), pd))
		lanes := list.Lanes()
		require.Len(t, lanes, 1)
		require.Greater(t, lanes[0].Events, int64(n/2))
		tracks := NewTracks(start, start+60e9, 1200, ByThread, lanes, 1<<20)
		require.NoError(t, tracks.Add(t.Context(), pd))
		require.False(t, tracks.Tracks(lanes)[0].IsExact)
	})
	assert.Less(t, used, uint64(8<<20), "bytes for %d timestamps", n)
	assert.Less(t, time.Since(began), 20*time.Second)
}

// A request that has ended does not read on.
func TestReadingEndsWithItsContext_T2(t *testing.T) {
	pd := hostile(100_000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, NewHeatmap(NewGrid(start, start+60e9)).Add(ctx, pd), context.Canceled)
	require.ErrorIs(t, NewLaneList(start, start+60e9, ByThread, nil, 1<<20).Add(ctx, pd), context.Canceled)
}

// Lanes beyond the limit are counted, and the tree of stacks ends at its limit.
func TestLanesAndStacksHaveALimit(t *testing.T) {
	p := expand.Profile{Type: "cpu", Unit: "nanoseconds", Shape: expand.ShapeBoth}
	for i := range 50 {
		p.Samples = append(p.Samples, &expand.Sample{
			Sum: big.NewInt(0), Points: []expand.Point{{Timestamp: start + 10, Value: 10}},
			Attributes: []expand.Attribute{{Key: "thread.id", Value: int64(i)}},
			Stack:      []*expand.Frame{{Lines: []expand.Line{{Function: strings.Repeat("f", 1000) + fmt.Sprint(i)}}}},
		})
	}
	pd := profiletest.Build(t, p)
	list := NewLaneList(start, start+100, ByThread, nil, 20*laneSize)
	require.NoError(t, list.Add(t.Context(), pd))
	assert.Len(t, list.Lanes(), 20)
	assert.Equal(t, int64(30), list.More)
	stacks := NewStacks(NewGrid(start, start+1e9), Cells{}, 20<<10)
	assert.ErrorContains(t, stacks.Add(t.Context(), pd), "the stacks take more than")

	tracks := NewTracks(start, start+100, 100, ByThread, list.Lanes(), 40<<10)
	require.ErrorIs(t, tracks.Add(t.Context(), pd), errTracks)
	matching := NewLaneList(start, start+100, ByThread, func(l *Lane) bool { return strings.HasSuffix(l.Name, "7") }, 1<<20)
	require.NoError(t, matching.Add(t.Context(), pd))
	assert.Len(t, matching.Lanes(), 5)
}
