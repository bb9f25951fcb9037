// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/queryapi/querierpb"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

const (
	// maxSeries is how many series an answer may have.
	maxSeries = 10_000
	// maxSteps is how many points a series may have, as in Prometheus.
	maxSteps = 11_000
	// totalSize is the memory of a total of timeSeries, with its place in the map.
	totalSize = 600
)

var errSeriesSize = errors.New("the series take more than a quarter of the memory limit: select less, by service, type or time")

// timeSeries are the totals of a group and key in a step.
type timeSeries struct {
	by     *grouping
	totals map[place]*contents.Summary
	values map[string][]string // by group
	free   int64               // bytes
}

type place struct {
	group string
	step  int
	key   contents.Key
}

func (t *timeSeries) add(step int, attributes []string, s *contents.Summary) error {
	values := t.by.values(&s.Key, attributes)
	at := place{strings.Join(values, "\x00"), step, s.Key}
	if known := t.totals[at]; known != nil {
		known.Add(s)
		return nil
	}
	if t.free -= totalSize + s.TextSize() + int64(len(at.group)); t.free < 0 {
		return errSeriesSize
	}
	own := *s
	t.totals[at] = &own
	if t.values[at.group] == nil {
		t.values[at.group] = values
	}
	return nil
}

// point adds up the totals of a group in a step.
type point struct {
	sum   int64
	count int // of Profiles, or of snapshots that count
}

// points returns those of each group by step.
func (t *timeSeries) points() map[string]map[int]point {
	groups := map[string]map[int]point{}
	for at, total := range t.totals {
		if groups[at.group] == nil {
			groups[at.group] = map[int]point{}
		}
		p, count := groups[at.group][at.step], total.Profiles
		if at.key.Snapshot != 0 {
			count = 1
		}
		groups[at.group][at.step] = point{sampletypes.AddSaturated(p.sum, total.Sum), p.count + count}
	}
	return groups
}

// selectSeries returns points at start, start+step and so on, each of the profiles that start after the point before and not after
// it.
func (a *api) selectSeries(ctx context.Context, r *querierpb.SelectSeriesRequest) (*querierpb.SelectSeriesResponse, error) {
	sel, err := selection(r.GetProfileTypeID(), r.GetLabelSelector(), r.GetStart(), r.GetEnd())
	if err != nil {
		return nil, err
	}
	if err := refuseStacks(r); err != nil {
		return nil, err
	}
	steps, err := stepsOf(r)
	if err != nil {
		return nil, err
	}
	by, err := groupBy("group_by", r.GetGroupBy())
	if err != nil {
		return nil, err
	}
	sel.From, sel.To = steps.From, steps.To()
	source := a.catalog.Source(&a.missed)
	t := &timeSeries{by: by, totals: map[place]*contents.Summary{}, values: map[string][]string{}, free: source.Options.MaxMemory / 4}
	if err := source.EachStep(ctx, sel, steps, t.by.attributes, t.add); err != nil {
		return nil, err
	}
	if len(t.values) > maxSeries {
		return nil, invalid("group_by makes %d series: must be at most %d", len(t.values), maxSeries)
	}
	named := &heatmap{} // the profiles or spans of exemplars
	if kind := r.GetExemplarType(); kind > querierpb.ExemplarType_EXEMPLAR_TYPE_NONE {
		if named, err = a.heatmap(ctx, sel, steps, by, kind == querierpb.ExemplarType_EXEMPLAR_TYPE_SPAN); err != nil {
			return nil, err
		}
	}
	average := r.GetAggregation() == querierpb.Aggregation_TIME_SERIES_AGGREGATION_TYPE_AVERAGE
	response, groups, sums := &querierpb.SelectSeriesResponse{}, t.points(), map[*querierpb.Series]float64{}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		series := &querierpb.Series{Labels: labelsOf(t.by.names, t.values[group])}
		exemplars := named.largest(group)
		for _, step := range slices.Sorted(maps.Keys(groups[group])) {
			p := groups[group][step]
			value := float64(p.sum)
			if average {
				value /= float64(p.count)
			}
			at := steps.From.Add(time.Duration(step+1)*steps.Length - 1)
			added := &querierpb.Point{Value: value, Timestamp: at.UnixMilli()}
			if e := exemplars[step]; e != nil {
				added.Exemplars = []*querierpb.Exemplar{e}
			}
			series.Points = append(series.Points, added)
			sums[series] += value
		}
		response.Series = append(response.Series, series)
	}
	if limit := r.GetLimit(); limit > 0 && int64(len(response.Series)) > limit {
		slices.SortStableFunc(response.Series, func(a, b *querierpb.Series) int { return cmp.Compare(sums[b], sums[a]) })
		response.Series = response.Series[:limit]
	}
	return response, nil
}

// stepsOf returns the steps of a request, each of which ends a nanosecond after the time of its point.
func stepsOf(r interface {
	GetStart() int64
	GetEnd() int64
	GetStep() float64
}) (steps query.Steps, err error) {
	length := time.Duration(r.GetStep() * float64(time.Second)).Truncate(time.Millisecond)
	if !(r.GetStep() > 0 && r.GetStep() < 1e9) || length == 0 {
		return steps, invalid("step is %v: must be a number of seconds, at least 0.001", r.GetStep())
	}
	latest := query.MaxTime.UnixMilli()
	start, end := min(max(r.GetStart(), 0), latest), min(max(r.GetEnd(), 0), latest)
	count := (end-start)/length.Milliseconds() + 1
	if count > maxSteps {
		return steps, invalid("step is %v: the range must have at most %d steps, and has %d", length, maxSteps, count)
	}
	return query.Steps{From: time.UnixMilli(start).Add(1 - length), Length: length, Count: int(count)}, nil
}
