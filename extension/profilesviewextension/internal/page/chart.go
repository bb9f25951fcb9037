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
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// A chart has at most maxBuckets bars and usually at least minBuckets.
const (
	maxBuckets  = 60
	minBuckets  = 4
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

// chart shows a kind of a service over time: the measured rate of intervals, or the level of snapshots.
type chart struct {
	*query.Selection
	kind kind
	// bar is the length of a bar: the longest Profile fits into it, and a series that sends Profiles regularly has one in each.
	bar time.Duration

	// The following are by bar.
	sent  []bool // a Profile starts in it: of intervals, one of the service, perhaps of another kind
	sums  []float64
	spans []sampletypes.Spans // of intervals

	levels map[uint64][]level // by series: in bars that may get further snapshots
}

// level is the last snapshot of a series in a bar.
type level struct {
	bar   int
	start uint64
	sum   float64
}

// barSize and levelSize estimate the bytes of a bar, with its part of the path, and of a level with its part of the map.
const (
	barSize   = 128
	levelSize = 128
)

func newChart(t *total, sel *query.Selection) *chart {
	length := sel.To.Sub(sel.From)
	bar := roundUp(max(length/maxBuckets, min(t.longest, length), min(t.interval*3/2, length/minBuckets)))
	bars := (length + bar - 1) / bar
	return &chart{sel, t.kind, bar, make([]bool, bars), make([]float64, bars), make([]sampletypes.Spans, bars), map[uint64][]level{}}
}

// at returns the bar of a time.
func (c *chart) at(start uint64) int {
	from := uint64(c.From.UnixNano())
	return int((max(start, from) - from) / uint64(c.bar))
}

// add adds the Profiles that a catalog.Visit gets, also those of other kinds, and returns how many bytes more it takes.
func (c *chart) add(s *contents.Key, profiles []contents.Total, next uint64) (size int64) {
	shown := kindOf(s) == c.kind
	if c.kind.Snapshot {
		if shown {
			size = c.addLevels(s.Snapshot, profiles, next)
		}
		return size
	}
	for i := range profiles {
		p := &profiles[i]
		bar := c.at(p.Start)
		if c.sent[bar] = true; !shown {
			continue
		}
		spans := &c.spans[bar]
		size -= int64(spans.Retained())
		spans.Since = min(p.Start, next)
		spans.Add(p.Start, p.Start+p.Covered)
		size += int64(spans.Retained())
		c.sums[bar] += float64(p.Sum)
	}
	return size
}

// addLevels is add for the snapshots of a series.
func (c *chart) addLevels(series uint64, profiles []contents.Total, next uint64) int64 {
	levels := c.levels[series]
	before := len(levels)
	for i := range profiles {
		p := &profiles[i]
		bar := c.at(p.Start)
		at := slices.IndexFunc(levels, func(l level) bool { return l.bar == bar })
		if at < 0 {
			at, levels = len(levels), append(levels, level{bar: bar})
		}
		if held := levels[at]; p.Start >= held.start {
			c.sent[bar], levels[at] = true, level{bar, p.Start, float64(p.Sum)}
			c.sums[bar] += float64(p.Sum) - held.sum
		}
	}
	levels = slices.DeleteFunc(levels, func(l level) bool { return l.bar < c.at(next) })
	if c.levels[series] = levels; len(levels) == 0 {
		delete(c.levels, series)
	}
	return int64(levelSize * (len(levels) - before))
}

// values returns the bars, NaN for a gap.
func (c *chart) values() []float64 {
	values := slices.Repeat([]float64{math.NaN()}, len(c.sent))
	for i, sent := range c.sent {
		if !sent {
			continue
		}
		if values[i] = c.sums[i]; c.kind.Snapshot {
			continue
		}
		measured := time.Duration(c.spans[i].Length())
		if measured == 0 { // the profiles state no duration
			measured = min(c.bar, c.To.Sub(c.From)-time.Duration(i)*c.bar)
		}
		values[i] /= measured.Seconds()
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

func (c *chart) draw() *drawing {
	values := c.values()
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
	text := c.kind.value(highest)
	return &drawing{
		Label:   fmt.Sprintf("%s by %s, highest %s", c.kind.SampleType, webui.Length(c.bar), text),
		Highest: text, Bars: len(values), Path: path.String(), Ticks: ticks(c.From, c.From.Add(time.Duration(len(values))*c.bar)),
		From: c.From.UnixMilli(), To: c.To.UnixMilli(), Step: c.bar.Milliseconds(),
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
