// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// A chart has at most maxBuckets bars.
const (
	maxBuckets  = 60
	chartHeight = 28
	maxTicks    = 4
)

var bucketLengths = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// roundUp returns the least length of a bucket that is not below least.
func roundUp(least time.Duration) time.Duration {
	for _, bucket := range bucketLengths {
		if bucket >= least {
			return bucket
		}
	}
	days := (least + 24*time.Hour - 1) / (24 * time.Hour)
	return days * 24 * time.Hour //nolint:durationcheck // a number of days
}

// barSize estimates the bytes of a bar with its part of the path.
const barSize = 128

// bars returns how long a bar of a range is, and how many there are.
func bars(sel *query.Selection) (length time.Duration, n int) {
	all := sel.To.Sub(sel.From)
	length = roundUp(all / maxBuckets)
	return length, int((all + length - 1) / length)
}

// steps returns the bars of a total in a range, NaN for a gap.
func (t *total) steps(sel *query.Selection) []float64 {
	length, n := bars(sel)
	values := slices.Repeat([]float64{math.NaN()}, n)
	if t.series == nil {
		return values
	}
	for i, step := range t.series.Steps(uint64(sel.From.UnixNano()), uint64(length), n) {
		if step.Data > 0 {
			values[i] = step.Rate
		}
	}
	return values
}

// drawing is a chart as a page shows it.
type drawing struct {
	Label, Highest string
	Bars           int    // how many there may be
	Path           string // of SVG, in which a bar is 1 wide
	Ticks          []tick
	// From is the start, and Step the length of a bar, in milliseconds, as in JavaScript.
	From, To, Step int64
}

// tick is a place on the axis of time, in percent.
type tick struct {
	At   float64
	Time time.Time
	Text string
}

// draw draws the rate, or the level, over time.
func (t *total) draw(sel *query.Selection) *drawing {
	values := t.steps(sel)
	bar, _ := bars(sel)
	highest := 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			highest = max(highest, v)
		}
	}
	var path strings.Builder
	for i, v := range values {
		if math.IsNaN(v) {
			continue
		}
		height := 1.0 // 0 is a line, and a gap is nothing
		if highest > 0 {
			height = max(height, v/highest*chartHeight)
		}
		fmt.Fprintf(&path, "M%d %dv-%.3gh.8v%.3gz", i, chartHeight, height, height)
	}
	text := t.kind.value(highest)
	return &drawing{
		Label:   fmt.Sprintf("%s by %s, highest %s", t.SampleType, webui.Length(bar), text),
		Highest: text, Bars: len(values), Path: path.String(), Ticks: ticks(sel.From, sel.From.Add(time.Duration(len(values))*bar)),
		From: sel.From.UnixMilli(), To: sel.To.UnixMilli(), Step: bar.Milliseconds(),
	}
}

// ticks returns round times between from and to.
func ticks(from, to time.Time) (found []tick) {
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
