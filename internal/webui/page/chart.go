// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// A chart has about maxBars slots, and maxLines lines of values.
const (
	maxBars   = 60
	leastBars = 4
	maxTicks  = 5
	maxLines  = 8
	// chartWidth and chartHeight are the coordinates of a chart. The page stretches it.
	chartWidth  = 1000
	chartHeight = 100
)

var slotLengths = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// roundUp returns the least length of a slot that is not below least.
func roundUp(least time.Duration) time.Duration {
	for _, length := range slotLengths {
		if length >= least {
			return length
		}
	}
	days := (least + 24*time.Hour - 1) / (24 * time.Hour)
	return days * 24 * time.Hour //nolint:durationcheck // a number of days
}

// slotSize estimates the bytes of a slot of a line, with its part of the path and its text.
const slotSize = 192

// axis divides a range into slots that start at round times. The first and the last one may be in it in part.
type axis struct {
	from, to time.Time
	steps    query.Steps
}

// axisOf returns the axis of a range. A slot is not shorter than the usual distance of profiles of the totals, so that it has some, as long
// as there are a few slots.
func axisOf(sel *query.Selection, totals ...*total) *axis {
	all, usual := sel.To.Sub(sel.From), time.Duration(0)
	for _, t := range totals {
		if t.series != nil {
			usual = max(usual, min(time.Duration(t.series.Usual()), all/leastBars)) // #nosec G115 -- a part of the range
		}
	}
	length := roundUp(max(all/maxBars, usual))
	first := sel.From.Truncate(length)
	count := int((sel.To.Sub(first) + length - 1) / length)
	return &axis{sel.From, sel.To, query.Steps{From: first, Length: length, Count: count}}
}

// like returns the axis of another range with the same slots, counted from its start.
func (a *axis) like(sel *query.Selection) *axis {
	shifted := *a
	shifted.from, shifted.to = sel.From, sel.To
	shifted.steps.From = sel.From.Add(a.steps.From.Sub(a.from))
	return &shifted
}

// place returns where a time is, from 0 to chartWidth.
func (a *axis) place(t time.Time) float64 {
	share := float64(t.Sub(a.from)) / float64(a.to.Sub(a.from))
	return chartWidth * min(1, max(0, share))
}

// slot returns the places of the start and the end of a slot.
func (a *axis) slot(i int) (start, end float64) {
	at := a.steps.From.Add(time.Duration(i) * a.steps.Length)
	return a.place(at), a.place(at.Add(a.steps.Length))
}

// values returns the rate or level of each slot, or that of one process on average, NaN for one without data.
func (a *axis) values(t *total, perProcess bool) []float64 {
	values := make([]float64, a.steps.Count)
	for i := range values {
		values[i] = math.NaN()
	}
	if t.series == nil {
		return values
	}
	for i, step := range t.series.Steps(uint64(max(0, a.steps.From.UnixNano())), uint64(a.steps.Length), a.steps.Count) {
		if step.Data > 0 {
			if values[i] = step.Rate; perProcess && step.Processes > 0 {
				values[i] /= step.Processes
			}
		}
	}
	return values
}

// chart is rates or levels over time, as a page shows them.
type chart struct {
	Label, Highest string
	Lines          []*line
	YTicks, XTicks []tick
	// First is the start of the first slot, and Step the length of one, in milliseconds, as in JavaScript.
	From, To, First, Step int64
	Query                 template.URL // of the profiles, without a range
	Texts                 template.JS  // of each line, with the text of each slot
}

// line is one of a chart.
type line struct {
	Name, Class string
	Path        string // of SVG
	Bars        bool
	values      []float64
}

// hasValue reports whether there is anything to draw.
func (l *line) hasValue() bool {
	return slices.ContainsFunc(l.values, func(v float64) bool { return !math.IsNaN(v) })
}

// tick is a place on an axis, in percent.
type tick struct {
	At   float64
	Time time.Time
	Text string
}

// newChart draws lines whose values are of a kind.
func newChart(a *axis, of kind, lines ...*line) *chart {
	highest := 0.0
	for _, l := range lines {
		for _, v := range l.values {
			if !math.IsNaN(v) {
				highest = max(highest, v)
			}
		}
	}
	ticks := webui.Ticks(of.SampleType, of.Unit, !of.Snapshot, highest)
	top := ticks[len(ticks)-1].Value
	text := of.value(highest)
	c := &chart{
		Label:   fmt.Sprintf("%s by %s, highest %s", of.SampleType, webui.Length(a.steps.Length), text),
		Highest: text, Lines: lines, XTicks: timeTicks(a.from, a.to),
		From: a.from.UnixMilli(), To: a.to.UnixMilli(), First: a.steps.From.UnixMilli(), Step: a.steps.Length.Milliseconds(),
	}
	for _, t := range ticks {
		c.YTicks = append(c.YTicks, tick{At: 100 - 100*t.Value/top, Text: t.Text})
	}
	for _, l := range lines {
		if l.Bars {
			l.Path = a.bars(l.values, top)
		} else {
			l.Path = a.steppedPath(l.values, top)
		}
	}
	c.Texts = textsOf(of, lines)
	return c
}

// textsOf writes the values of lines for the script.
func textsOf(k kind, lines []*line) template.JS {
	type texts struct {
		Name   string   `json:"name"`
		Values []string `json:"values"`
	}
	var all []texts
	for _, l := range lines {
		of := texts{Name: l.Name}
		for _, v := range l.values {
			text := ""
			if !math.IsNaN(v) {
				text = k.value(v)
			}
			of.Values = append(of.Values, text)
		}
		all = append(all, of)
	}
	data, _ := json.Marshal(all)
	return template.JS(data) // #nosec G203 -- Marshal escapes what ends a script
}

// bars draws a bar of each value. 0 is a line, and a gap is nothing.
func (a *axis) bars(values []float64, top float64) string {
	var path strings.Builder
	for i, v := range values {
		if math.IsNaN(v) {
			continue
		}
		start, end := a.slot(i)
		fmt.Fprintf(&path, "M%.5g %dv-%.4gH%.5gV%dz", start, chartHeight, max(1, v/top*chartHeight), end, chartHeight)
	}
	return path.String()
}

// steppedPath draws a line, which a gap interrupts.
func (a *axis) steppedPath(values []float64, top float64) string {
	var path strings.Builder
	drawn := false
	for i, v := range values {
		if math.IsNaN(v) {
			drawn = false
			continue
		}
		start, end := a.slot(i)
		height := chartHeight - v/top*chartHeight
		if drawn {
			fmt.Fprintf(&path, "V%.4gH%.5g", height, end)
		} else {
			fmt.Fprintf(&path, "M%.5g %.4gH%.5g", start, height, end)
		}
		drawn = true
	}
	return path.String()
}

// timeTicks returns round times between from and to.
func timeTicks(from, to time.Time) (found []tick) {
	step := roundUp(to.Sub(from) / (maxTicks + 1))
	layout := "15:04"
	switch {
	case step < time.Minute:
		layout = time.TimeOnly
	case step >= 24*time.Hour:
		layout = "Jan 2"
	}
	for at := from.Truncate(step).Add(step); at.Before(to); at = at.Add(step) {
		found = append(found, tick{100 * float64(at.Sub(from)) / float64(to.Sub(from)), at, at.UTC().Format(layout)})
	}
	return found
}

// bars returns the line of a total that is drawn as bars.
func (t *total) bars(a *axis, perProcess bool) *line {
	return &line{Name: t.SampleType, Class: "total", Bars: true, values: a.values(t, perProcess)}
}

// groupLines returns the lines of the groups with the highest values.
func groupLines(a *axis, groups []*total) (lines []*line) {
	for i, g := range groups[:min(len(groups), maxLines)] {
		lines = append(lines, &line{Name: cmp.Or(g.Service, "(none)"), Class: fmt.Sprint("l", i), values: a.values(g, false)})
	}
	return lines
}
