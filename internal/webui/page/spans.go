// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"encoding/hex"
	"html/template"
	"math"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query/timeline"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// TraceIDInURL is what a template of URLs has in place of the ID of a trace.
const TraceIDInURL = "{trace_id}"

// maxSpans is how many spans of a service a page shows.
const maxSpans = 100

// tracedSpan is a span on the axis of its trace.
type tracedSpan struct {
	*timeline.Span

	Text string // the ID
	// Bar is where the span is on the axis, in thousandths of its length, and its parts follow each other from its start: they say how much of the
	// span is on a CPU, off it and waiting for a lock, not when.
	Bar                          spanPart
	OnCPUPart, OffPart, LockPart spanPart
	OnCPUText, OffText, LockText string
	Length                       string
	Query                        template.URL
}

// spanPart is a part of the axis, which is 1000 long.
type spanPart struct {
	At, Length float64
	Class      string
}

// As returns the part with a class.
func (s spanPart) As(class string) spanPart {
	s.Class = class
	return s
}

// spanTick is a time on the axis.
type spanTick struct {
	At   float64 // percent
	Text string
}

// spanAxis is what the spans of a trace are drawn on.
type spanAxis struct {
	first, last uint64

	Ticks []spanTick
	// Untimed: a span has samples without timestamps, and is as long as their Profiles.
	Untimed bool
}

// newAxis returns the axis of spans.
func newAxis(spans []*timeline.Span) *spanAxis {
	a := &spanAxis{first: math.MaxUint64}
	for _, s := range spans {
		a.first, a.last, a.Untimed = min(a.first, s.First), max(a.last, s.Last), a.Untimed || s.Untimed
	}
	if len(spans) == 0 {
		return a
	}
	const ticks = 4
	for i := range ticks {
		a.Ticks = append(a.Ticks, spanTick{100 * float64(i) / ticks, nanoseconds(float64(a.last-a.first) * float64(i) / ticks)})
	}
	return a
}

// Start is when the axis begins.
func (a *spanAxis) Start() time.Time { return query.TimeOf(a.first) }

// nanoseconds writes a length of time.
func nanoseconds(ns float64) string { return webui.Quantity("nanoseconds", ns) }

// place returns where a span is on the axis. What is short has a length that can be seen.
func (a *spanAxis) place(s *timeline.Span) spanPart {
	const least = 2
	length := float64(max(1, a.last-a.first))
	at := 1000 * float64(s.First-a.first) / length
	wide := max(least, 1000*float64(s.Last-s.First)/length)
	return spanPart{At: min(at, 1000-wide), Length: wide}
}

// tracedSpans returns the spans of each service, of many those with most time, in the order of their starts, and how many are left out.
func (t *tracePage) tracedSpans(spans []*timeline.Span) (shown map[string][]tracedSpan, more map[string]int) {
	shown, more = map[string][]tracedSpan{}, map[string]int{}
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n].Service == spans[0].Service {
			n++
		}
		of, name := spans[:n:n], spans[0].Service
		spans = spans[n:]
		slices.SortStableFunc(of, func(a, b *timeline.Span) int {
			return cmp.Or(cmp.Compare(b.OnCPU+b.OffCPU+b.Locked, a.OnCPU+a.OffCPU+a.Locked), cmp.Compare(b.Samples, a.Samples))
		})
		more[name] = max(0, len(of)-maxSpans)
		of = of[:min(len(of), maxSpans)]
		slices.SortStableFunc(of, func(a, b *timeline.Span) int { return cmp.Compare(a.First, b.First) })
		for _, s := range of {
			shown[name] = append(shown[name], t.tracedSpan(s))
		}
	}
	return shown, more
}

func (t *tracePage) tracedSpan(s *timeline.Span) tracedSpan {
	of := tracedSpan{Span: s, Text: hex.EncodeToString(s.ID[:]), Bar: t.Axis.place(s), Length: nanoseconds(float64(s.Last - s.First))}
	at, whole := of.Bar.At, float64(max(1, s.Last-s.First))
	for _, kind := range []struct {
		time uint64
		part *spanPart
		text *string
	}{{s.OnCPU, &of.OnCPUPart, &of.OnCPUText}, {s.OffCPU, &of.OffPart, &of.OffText}, {s.Locked, &of.LockPart, &of.LockText}} {
		if kind.time == 0 {
			continue
		}
		*kind.text = nanoseconds(float64(kind.time))
		// Several threads of a span may have more time than it is long.
		length := min(of.Bar.Length*float64(kind.time)/whole, of.Bar.At+of.Bar.Length-at)
		*kind.part = spanPart{At: at, Length: length}
		at += length
	}
	shown := between("", t.selected.From, t.selected.To)
	shown["service"], shown["span_id"] = s.Service, of.Text
	of.Query = t.with(shown)
	return of
}

// Timeline returns the query of the timeline of the trace: its range, or one around it.
func (t *tracePage) Timeline() template.URL {
	around := (t.Axis.last - t.Axis.first) / 20
	first, last := t.Axis.first-min(t.Axis.first, around), min(t.Axis.last, math.MaxInt64-around-1)+around+1
	return t.with(between("", query.TimeOf(first), query.TimeOf(last)))
}
