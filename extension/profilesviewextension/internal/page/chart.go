// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// A chart has at most maxBuckets bars and usually at least minBuckets.
const (
	maxBuckets  = 60
	minBuckets  = 4
	chartHeight = 28
)

var bucketLengths = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// chart shows a kind of a service over time: the rate of intervals, or the level of snapshots.
type chart struct {
	kind kind
	// sent are the starts of all profiles of the service, also of other kinds.
	sent    *[]uint64
	points  []chartPoint
	longest uint64 // of the Profiles, in nanoseconds
	series  map[uint64]*seriesTimes
}

type chartPoint struct {
	start  uint64
	series *seriesTimes
	sum    float64
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
		c.points = append(c.points, chartPoint{p.Start, times, float64(p.Sum)})
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
	for _, bucket := range bucketLengths {
		if bucket >= least {
			return bucket
		}
	}
	days := (least + 24*time.Hour - 1) / (24 * time.Hour)
	return days * 24 * time.Hour //nolint:durationcheck // a number of days
}

// values returns the bars of [from, to), in which all Profiles start, NaN for a gap, and the length of a bar.
func (c *chart) values(sel *query.Selection) ([]float64, time.Duration) {
	from, length := uint64(sel.From.UnixNano()), sel.To.Sub(sel.From)
	bucket := c.bucket(length)
	values := slices.Repeat([]float64{math.NaN()}, int((length+bucket-1)/bucket))
	at := func(start uint64) int { return int((start - from) / uint64(bucket)) }
	if !c.kind.Snapshot {
		for _, start := range *c.sent {
			values[at(start)] = 0
		}
	}
	type place struct {
		series *seriesTimes
		bucket int
	}
	levels := map[place]chartPoint{}
	for _, p := range c.points {
		i := at(p.start)
		if !c.kind.Snapshot {
			seconds := min(bucket, length-time.Duration(i)*bucket).Seconds()
			values[i] += p.sum / seconds
		} else if held, found := levels[place{p.series, i}]; !found || p.start >= held.start {
			levels[place{p.series, i}] = p
		}
	}
	for at, p := range levels {
		if math.IsNaN(values[at.bucket]) {
			values[at.bucket] = 0
		}
		values[at.bucket] += p.sum
	}
	return values, bucket
}

// svg draws the chart.
func (c *chart) svg(sel *query.Selection) template.HTML {
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
	label := template.HTMLEscapeString(fmt.Sprintf("%s by %s, highest %s", c.kind.SampleType, shortly(bucket), c.kind.value(highest)))
	// #nosec G203 -- the label is escaped, and the rest are numbers
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s"><title>%s</title><path d="%s"/></svg>`,
		len(values), chartHeight, label, label, path.String()))
}
