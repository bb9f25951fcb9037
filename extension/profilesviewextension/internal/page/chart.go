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
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
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
	kind kind
	// sent are the starts of all profiles of the service, also of other kinds.
	sent    *[]uint64
	points  []chartPoint
	longest uint64 // of the Profiles, in nanoseconds
	series  map[uint64]*seriesTimes
}

type chartPoint struct {
	start, covered uint64
	series         *seriesTimes
	sum            float64
}

// seriesTimes tell how often a series has a Profile.
type seriesTimes struct {
	first, last uint64
	count       int
}

func (c *chart) add(s *recordfile.Key, profiles []recordfile.Total) {
	times := c.series[s.Snapshot]
	if times == nil {
		times = &seriesTimes{first: math.MaxUint64}
		c.series[s.Snapshot] = times
	}
	for i := range profiles {
		p := &profiles[i]
		times.first, times.last, times.count = min(times.first, p.Start), max(times.last, p.Start), times.count+1
		c.longest = max(c.longest, p.End-p.Start)
		c.points = append(c.points, chartPoint{p.Start, p.Covered, times, float64(p.Sum)})
	}
}

// bucket returns the length of a bar: the longest Profile fits into it, and a series that sends Profiles
// regularly has one in each.
func (c *chart) bucket(length time.Duration) time.Duration {
	least := max(length/maxBuckets, time.Duration(min(c.longest, uint64(length))))
	for _, s := range c.series {
		if s.count > 1 {
			interval := time.Duration(s.last-s.first) / time.Duration(s.count-1)
			least = max(least, min(interval*3/2, length/minBuckets))
		}
	}
	return roundUp(least)
}

// values returns the bars of [from, to), in which all Profiles start, NaN for a gap, and the length of a bar.
func (c *chart) values(sel *query.Selection) ([]float64, time.Duration) {
	from, length := uint64(sel.From.UnixNano()), sel.To.Sub(sel.From)
	bucket := c.bucket(length)
	values := slices.Repeat([]float64{math.NaN()}, int((length+bucket-1)/bucket))
	at := func(start uint64) int { return int((start - from) / uint64(bucket)) }
	if c.kind.Snapshot {
		c.addLevels(values, at)
		return values, bucket
	}
	for _, start := range *c.sent {
		values[at(start)] = 0
	}
	spans := make([]sampletypes.Spans, len(values))
	for _, p := range c.points {
		i := at(p.start)
		values[i] += p.sum
		spans[i].Add(p.start, p.start+p.covered)
	}
	for i := range values {
		measured := spans[i].Length()
		if measured == 0 { // the profiles state no duration
			measured = uint64(min(bucket, length-time.Duration(i)*bucket))
		}
		values[i] /= time.Duration(measured).Seconds()
	}
	return values, bucket
}

// addLevels adds the last point of each series in a bucket.
func (c *chart) addLevels(values []float64, at func(uint64) int) {
	type place struct {
		series *seriesTimes
		bucket int
	}
	levels := map[place]chartPoint{}
	for _, p := range c.points {
		i := place{p.series, at(p.start)}
		if held, found := levels[i]; !found || p.start >= held.start {
			levels[i] = p
		}
	}
	for at, p := range levels {
		if math.IsNaN(values[at.bucket]) {
			values[at.bucket] = 0
		}
		values[at.bucket] += p.sum
	}
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

func (c *chart) draw(sel *query.Selection) *drawing {
	values, bucket := c.values(sel)
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
		Label:   fmt.Sprintf("%s by %s, highest %s", c.kind.SampleType, webui.Length(bucket), text),
		Highest: text, Bars: len(values), Path: path.String(), Ticks: ticks(sel.From, sel.From.Add(time.Duration(len(values))*bucket)),
		From: sel.From.UnixMilli(), To: sel.To.UnixMilli(), Step: bucket.Milliseconds(),
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
