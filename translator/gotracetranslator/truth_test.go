// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
)

// span is the time of a goroutine in a state.
type span struct {
	goroutine    int64
	start, end   int64 // in nanoseconds since the epoch
	state        string
	reason       string
	task, region string
	link         string // trace and span
	spanID       int64  // an attribute
	stack        string // function:line, leaf first
}

func (s span) length() int64 { return s.end - s.start }

func byGoroutineAndTime(a, b span) int {
	return cmp.Or(cmp.Compare(a.goroutine, b.goroutine), cmp.Compare(a.start, b.start))
}

// spansOf returns all intervals of a result in order, and checks that each is within its Profile.
func spansOf(t testing.TB, payloads ...pprofile.Profiles) (spans []span) {
	t.Helper()
	for _, pd := range payloads {
		d := pd.Dictionary()
		texts := d.StringTable()
		for _, scope := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
			require.Equal(t, 1, scope.Profiles().Len())
			p := scope.Profiles().At(0)
			require.Equal(t, gotracetranslator.SampleType, texts.At(int(p.SampleType().TypeStrindex())))
			start := int64(p.Time())
			end := start + int64(p.DurationNano())
			for _, sample := range p.Samples().All() {
				var s span
				if link := d.LinkTable().At(int(sample.LinkIndex())); !link.TraceID().IsEmpty() {
					s.link = link.TraceID().String() + "/" + link.SpanID().String()
				}
				for _, i := range sample.AttributeIndices().All() {
					a := d.AttributeTable().At(int(i))
					switch key := texts.At(int(a.KeyStrindex())); key {
					case timing.GoroutineIDAttribute:
						s.goroutine = a.Value().Int()
					case timing.StateAttribute:
						s.state = a.Value().Str()
					case timing.ReasonAttribute:
						s.reason = a.Value().Str()
					case timing.TaskAttribute:
						s.task = a.Value().Str()
					case timing.RegionAttribute:
						s.region = a.Value().Str()
					case "span id":
						s.spanID = a.Value().Int()
					case timing.TimestampMarksAttribute:
						require.Equal(t, timing.MarksStart, a.Value().Str())
					default:
						require.Fail(t, "unknown attribute", key)
					}
				}
				var frames []string
				for _, i := range d.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
					line := d.LocationTable().At(int(i)).Lines().At(0)
					frames = append(frames, fmt.Sprintf("%s:%d", texts.At(int(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())), line.Line()))
				}
				s.stack = strings.Join(frames, ";")
				for i, at := range sample.TimestampsUnixNano().All() {
					s.start = int64(at)
					s.end = s.start + sample.Values().At(i)
					require.True(t, start <= s.start && s.start < s.end && s.end <= end, "%+v is not in its Profile, %d to %d", s, start, end)
					spans = append(spans, s)
				}
			}
		}
	}
	slices.SortFunc(spans, byGoroutineAndTime)
	return spans
}

// joined returns the spans without cuts at the edges of Profiles and at tasks and regions. Only goroutine, state and times are left.
func joined(spans []span) (states []span) {
	for _, s := range spans {
		s = span{goroutine: s.goroutine, state: s.state, start: s.start, end: s.end}
		if n := len(states) - 1; n >= 0 && states[n].goroutine == s.goroutine && states[n].state == s.state && states[n].end == s.start {
			states[n].end = s.end
			continue
		}
		states = append(states, s)
	}
	return states
}

// truth is a slow computation of the spans: from all events at once, goroutine by goroutine. Spans of running goroutines have
// no stack, and reason is in the words of Go.
func truth(t testing.TB, data []byte) (spans []span) {
	t.Helper()
	events := eventsOf(t, data)
	first, last := events[0], events[len(events)-1]
	clock := first.Sync().ClockSnapshot
	wall := func(at trace.Time) int64 { return clock.Wall.UnixNano() + int64(at-clock.Trace) }
	byGoroutine := map[int64][]trace.Event{}
	for _, event := range events {
		if event.Kind() == trace.EventStateTransition && event.StateTransition().Resource.Kind == trace.ResourceGoroutine {
			id := int64(event.StateTransition().Resource.Goroutine())
			byGoroutine[id] = append(byGoroutine[id], event)
		}
	}
	for id, transitions := range byGoroutine {
		for i, event := range transitions {
			from, to := event.StateTransition().Goroutine()
			s := span{goroutine: id, start: wall(event.Time()), end: wall(last.Time()), reason: event.StateTransition().Reason}
			if from == trace.GoUndetermined {
				s.start = wall(first.Time())
			}
			if i+1 < len(transitions) {
				s.end = wall(transitions[i+1].Time())
			}
			switch to {
			case trace.GoRunning:
				s.state = timing.Running
			case trace.GoRunnable:
				s.state = timing.Runnable
			case trace.GoWaiting:
				s.state = timing.Blocked
			case trace.GoSyscall:
				s.state = timing.Syscall
			default:
				continue
			}
			var frames []string
			for f := range event.StateTransition().Stack.Frames() {
				frames = append(frames, fmt.Sprintf("%s:%d", f.Func, f.Line))
			}
			s.stack = strings.Join(frames, ";")
			spans = append(spans, s)
		}
	}
	slices.SortFunc(spans, byGoroutineAndTime)
	return spans
}

func eventsOf(t testing.TB, data []byte) (events []trace.Event) {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	for {
		event, err := r.ReadEvent()
		if errors.Is(err, io.EOF) {
			return events
		}
		require.NoError(t, err)
		events = append(events, event)
	}
}

// assists is how long each goroutine ran while it marked objects for the garbage collector.
func assists(t testing.TB, data []byte) map[int64]int64 {
	t.Helper()
	sums, began, clock := map[int64]int64{}, map[int64]int64{}, (*trace.ClockSnapshot)(nil)
	running := map[int64][]span{}
	for _, s := range truth(t, data) {
		if s.state == timing.Running {
			running[s.goroutine] = append(running[s.goroutine], s)
		}
	}
	for _, event := range eventsOf(t, data) {
		if event.Kind() == trace.EventSync && clock == nil {
			clock = event.Sync().ClockSnapshot
		}
		if event.Kind() != trace.EventRangeBegin && event.Kind() != trace.EventRangeEnd || event.Range().Name != "GC mark assist" {
			continue
		}
		id, at := int64(event.Range().Scope.Goroutine()), clock.Wall.UnixNano()+int64(event.Time()-clock.Trace)
		if event.Kind() == trace.EventRangeBegin {
			began[id] = at
			continue
		}
		for _, s := range running[id] {
			sums[id] += max(0, min(s.end, at)-max(s.start, began[id]))
		}
	}
	return sums
}
