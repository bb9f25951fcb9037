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

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

const (
	// maxSeries is how many series an answer may have.
	maxSeries = 10_000
	// maxSteps is how many points a series may have, as in Prometheus.
	maxSteps = 11_000
	// pointSize and groupSize are the memory of a point and of a group, with their places in maps, and of the answer.
	pointSize = 200
	groupSize = 500
)

var errSeriesSize = errors.New("the series take more than a quarter of the memory limit: select less, by service, type or time")

// timeSeries are the points of groups.
type timeSeries struct {
	by        *grouping
	steps     query.Steps
	points    map[place]point
	values    map[string][]string // by group
	snapshots *query.SeriesCollector
	free      int64 // bytes
}

type place struct {
	group string
	step  int
}

// point is what a group has of a step: of snapshots, its level.
type point struct {
	sum, level float64
	profiles   float64 // of intervals; a part of each that is in several steps
}

// value is the sum, or the average of an interval with the level.
func (p point) value(average bool) float64 {
	if average && p.profiles > 0 {
		return p.sum/p.profiles + p.level
	}
	return p.sum + p.level
}

// add adds a summary of one step, or if step is -1, of the times of its Rows. The value of an interval is spread over its time.
func (t *timeSeries) add(step int, s *query.Times) error {
	values := s.Values
	if !s.IsWhole {
		values = t.by.values(&s.Key, s.Values)
	}
	if s.Snapshot != 0 {
		of := *s
		of.Values = values
		if err := t.snapshots.Add(&of); err != nil {
			return errSeriesSize
		}
		return nil
	}
	group := strings.Join(values, "\x00")
	if step >= 0 {
		t.addTo(place{group, step}, values, s.Sum, float64(s.Profiles))
	}
	for i := range s.Rows {
		if step >= 0 {
			break
		}
		row := &s.Rows[i]
		t.steps.Spread(row.Start, row.End, row.Value, func(step int, part int64, share float64) {
			t.addTo(place{group, step}, values, part, share*float64(max(1, row.Profiles)))
		})
	}
	if t.free < 0 {
		return errSeriesSize
	}
	return nil
}

func (t *timeSeries) addTo(at place, values []string, sum int64, profiles float64) {
	p, known := t.points[at]
	if !known {
		t.free -= pointSize
	}
	if t.values[at.group] == nil {
		t.free -= groupSize + int64(len(at.group))
		t.values[at.group] = values
	}
	p.sum += float64(sum)
	p.profiles += profiles
	t.points[at] = p
}

// addLevels adds those of the snapshots: the mean of each step.
func (t *timeSeries) addLevels() {
	for _, series := range t.snapshots.Series() {
		group := strings.Join(series.Values, "\x00")
		for i, step := range series.Steps(uint64(max(0, t.steps.From.UnixNano())), uint64(t.steps.Length), t.steps.Count) {
			if step.Data == 0 {
				continue
			}
			at := place{group, i}
			p := t.points[at]
			p.level += step.Rate
			t.points[at], t.values[group] = p, series.Values
		}
	}
}

// selectSeries returns points at start, start+step and so on, each of the time after the point before and not after it: the sum of
// what intervals have of it, and the level of snapshots.
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
	t := &timeSeries{
		by: by, steps: steps, points: map[place]point{}, values: map[string][]string{},
		snapshots: query.NewSeriesCollector(sel, source.Options.MaxMemory/8), free: source.Options.MaxMemory / 4,
	}
	if err := source.EachStep(ctx, sel, steps, t.by.attributes, t.add); err != nil {
		return nil, err
	}
	t.addLevels()
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
	ofGroups := map[string][]int{}
	for at := range t.points {
		ofGroups[at.group] = append(ofGroups[at.group], at.step)
	}
	response, sums := &querierpb.SelectSeriesResponse{}, map[*querierpb.Series]float64{}
	for _, group := range slices.Sorted(maps.Keys(ofGroups)) {
		series := &querierpb.Series{Labels: labelsOf(t.by.names, t.values[group])}
		exemplars := named.largest(group)
		for _, step := range slices.Sorted(slices.Values(ofGroups[group])) {
			value := t.points[place{group, step}].value(average)
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
