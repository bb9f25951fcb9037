// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

// keys returns the keys of the selected profiles, without their snapshots.
func (a *api) keys(ctx context.Context, sel *query.Selection) (keys []contents.Key, err error) {
	source := a.catalog.Source(&a.missed)
	rows, err := source.List(ctx, sel)
	for _, r := range rows {
		keys = append(keys, r.Key())
	}
	return keys, err
}

func (a *api) profileTypes(ctx context.Context, r *querierpb.ProfileTypesRequest) (*querierpb.ProfileTypesResponse, error) {
	sel := &query.Selection{}
	if err := between(sel, r.GetStart(), r.GetEnd()); err != nil {
		return nil, err
	}
	keys, err := a.keys(ctx, sel)
	ids := map[string]bool{}
	for i := range keys {
		ids[query.TypeID(&keys[i])] = true
	}
	response := &querierpb.ProfileTypesResponse{}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		parts := strings.Split(id, ":")
		response.ProfileTypes = append(response.ProfileTypes, &querierpb.ProfileType{
			ID: id, Name: parts[0], SampleType: parts[1], SampleUnit: parts[2], PeriodType: parts[3], PeriodUnit: parts[4],
		})
	}
	return response, err
}

func (a *api) labelNames(ctx context.Context, r *querierpb.LabelNamesRequest) (*querierpb.LabelNamesResponse, error) {
	found := map[string]bool{}
	err := eachSelection(r, func(sel *query.Selection) error { return a.addNames(ctx, sel, found) })
	delete(found, "")
	return &querierpb.LabelNamesResponse{Names: slices.Sorted(maps.Keys(found))}, err
}

// addNames adds the labels that a selected profile has, without the service if none has one.
func (a *api) addNames(ctx context.Context, sel *query.Selection, found map[string]bool) error {
	keys, err := a.keys(ctx, sel)
	if err != nil {
		return err
	}
	for _, name := range query.KeyLabels {
		if slices.ContainsFunc(keys, func(k contents.Key) bool { value, _ := query.KeyLabel(&k, name); return value != "" }) {
			found[name] = true
		}
	}
	set, err := a.attributes(ctx, sel)
	if err != nil {
		return err
	}
	names, _ := set.Names()
	if a.utf8Names {
		names = set.Keys()
	}
	for _, name := range names {
		if !query.IsKeyLabel(name) {
			found[name] = true
		}
	}
	return nil
}

// attributes returns the labels of the selected profiles that are attributes.
func (a *api) attributes(ctx context.Context, sel *query.Selection) (*labels.Set, error) {
	source := a.catalog.Source(&a.missed)
	return source.Labels(ctx, sel)
}

func (a *api) labelValues(ctx context.Context, r *querierpb.LabelValuesRequest) (*querierpb.LabelValuesResponse, error) {
	if r.GetName() == "" {
		return nil, invalid("name is empty: must be that of a label")
	}
	found := map[string]bool{}
	err := eachSelection(r, func(sel *query.Selection) error { return a.addValues(ctx, sel, r.GetName(), found) })
	delete(found, "")
	return &querierpb.LabelValuesResponse{Names: slices.Sorted(maps.Keys(found))}, err
}

// addValues adds those that a label of the selected profiles has.
func (a *api) addValues(ctx context.Context, sel *query.Selection, name string, found map[string]bool) error {
	if query.IsKeyLabel(name) {
		keys, err := a.keys(ctx, sel)
		for i := range keys {
			value, _ := query.KeyLabel(&keys[i], name)
			found[value] = true
		}
		return err
	}
	set, err := a.attributes(ctx, sel)
	if err != nil {
		return err
	}
	values, complete := set.Values(name)
	if !complete {
		return invalid("label %.60q has too many values: select less, by service, type or time", name)
	}
	for _, value := range values {
		found[value] = true
	}
	return nil
}

// labelsOf returns the labels with these names that have a value.
func labelsOf(names, values []string) (pairs []*querierpb.LabelPair) {
	for i, name := range names {
		if values[i] != "" {
			pairs = append(pairs, &querierpb.LabelPair{Name: name, Value: values[i]})
		}
	}
	return pairs
}

// grouping makes one list of values of those of a key and those of attributes.
type grouping struct {
	names      []string // sorted
	attributes []string // those that are no labels of keys, in the same order
}

// groupBy groups by names of a parameter.
func groupBy(parameter string, names []string) (*grouping, error) {
	if len(names) > maxNames {
		return nil, invalid("%s has %d names: must have at most %d", parameter, len(names), maxNames)
	}
	return groupByAll(names), nil
}

func groupByAll(names []string) *grouping {
	g := &grouping{names: slices.Compact(slices.Sorted(slices.Values(names)))}
	for _, name := range g.names {
		if !query.IsKeyLabel(name) {
			g.attributes = append(g.attributes, name)
		}
	}
	return g
}

func (g *grouping) values(k *contents.Key, attributes []string) []string {
	values := make([]string, len(g.names))
	for i, name := range g.names {
		if value, ok := query.KeyLabel(k, name); ok {
			values[i] = value
		} else {
			values[i], attributes = attributes[0], attributes[1:]
		}
	}
	return values
}

// labelSets are the distinct combinations of values of labels.
type labelSets struct {
	found map[string][]*querierpb.LabelPair
	size  int64 // in bytes
}

// add returns an error if there are too many combinations, or if they take more than limit bytes.
func (l *labelSets) add(by *grouping, values []string, limit int64) error {
	key := strings.Join(values, "\x00")
	if _, known := l.found[key]; known {
		return nil
	}
	l.found[key] = labelsOf(by.names, values)
	l.size += 2*int64(len(key)) + pairSize*int64(len(l.found[key]))
	switch {
	case len(l.found) > maxSeries:
		return invalid("label_names make more than %d series: select less", maxSeries)
	case l.size > limit:
		return errSeriesSize
	}
	return nil
}

func (a *api) series(ctx context.Context, r *querierpb.SeriesRequest) (*querierpb.SeriesResponse, error) {
	sets := &labelSets{found: map[string][]*querierpb.LabelPair{}}
	err := eachSelection(r, func(sel *query.Selection) error { return a.addSeries(ctx, sel, r.GetLabelNames(), sets) })
	response := &querierpb.SeriesResponse{}
	for _, key := range slices.Sorted(maps.Keys(sets.found)) {
		response.LabelsSet = append(response.LabelsSet, &querierpb.Labels{Labels: sets.found[key]})
	}
	return response, err
}

// addSeries adds the combinations of values of labels with these names, or of all.
func (a *api) addSeries(ctx context.Context, sel *query.Selection, names []string, sets *labelSets) error {
	by, err := groupBy("label_names", names)
	if err == nil && len(names) == 0 {
		all := map[string]bool{}
		err = a.addNames(ctx, sel, all)
		by = groupByAll(slices.Collect(maps.Keys(all)))
	}
	if err != nil {
		return err
	}
	source := a.catalog.Source(&a.missed)
	limit := source.Options.MaxMemory / 4
	if len(by.attributes) == 0 {
		rows, err := source.List(ctx, sel)
		if err != nil {
			return err
		}
		for _, row := range rows {
			key := row.Key()
			if err := sets.add(by, by.values(&key, nil), limit); err != nil {
				return err
			}
		}
		return nil
	}
	return source.EachSummary(ctx, sel, by.attributes, func(attributes []string, of *contents.Summary) error {
		return sets.add(by, by.values(&of.Key, attributes), limit)
	})
}
