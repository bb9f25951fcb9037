// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// defaultRange is the range of a page whose URL names none, and traceRange that of a trace.
const (
	defaultRange = 15 * time.Minute
	traceRange   = time.Hour
)

// params are the parameters of a URL that select profiles.
type params struct {
	// values are those of the URL that are known and not empty.
	values url.Values
	// selected and base are the selection and the one it is compared with, or nil. Both have
	// a start and an end.
	selected, base *query.Selection
	now            time.Time
}

// usageError is an error in the parameters of a URL.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// The parameters that select profiles. Totals, which are known without reading the profiles, are selected by the
// first ones only.
var (
	selectingTotals  = []string{"service", "type", "from", "to"}
	selectingBase    = []string{"base_from", "base_to"}
	selectingSamples = []string{"trace_id", "span_id", "attribute", "resource"}

	selecting = slices.Concat(selectingTotals, selectingBase, selectingSamples)
)

// checkKnown returns an error if a name is that of none of these parameters: without it a script would get more
// than it has asked for.
func checkKnown(values url.Values, known []string) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, key) {
			return usageError{fmt.Errorf("unknown parameter %q: must be one of %s", key, strings.Join(known, ", "))}
		}
	}
	return nil
}

// checkTotals returns an error if a parameter selects parts of a total: the page would show more than it says.
func checkTotals(values url.Values) error {
	for _, key := range selectingSamples {
		if values.Get(key) != "" {
			return usageError{fmt.Errorf("%s does not select totals: use it with /flamegraph or /api/profile", key)}
		}
	}
	return nil
}

// parseParams reads the parameters. byDefault is the length of the range if they state no start.
func parseParams(values url.Values, byDefault time.Duration, now time.Time) (*params, error) {
	p := &params{values: url.Values{}, now: now}
	for _, key := range selecting {
		for _, value := range values[key] {
			if value != "" || key == "service" || key == "type" { // a service may have no name
				p.values.Add(key, value)
			}
		}
	}
	sel := &query.Selection{Services: p.values["service"], Types: p.values["type"], Attributes: map[string]string{}, Resource: map[string]string{}}
	var err error
	if sel.From, sel.To, err = p.timeRange("", byDefault); err != nil {
		return nil, err
	}
	for key, parse := range map[string]func(string) error{
		"trace_id":  func(text string) error { return query.ParseID(text, sel.TraceID[:]) },
		"span_id":   func(text string) error { return query.ParseID(text, sel.SpanID[:]) },
		"attribute": func(text string) error { return query.ParsePair(text, sel.Attributes) },
		"resource":  func(text string) error { return query.ParsePair(text, sel.Resource) },
	} {
		for _, text := range p.values[key] {
			if err := parse(text); err != nil {
				return nil, wrong(key, text, err)
			}
		}
	}
	p.selected = sel
	if p.values.Has("base_from") || p.values.Has("base_to") {
		base := *sel
		if base.From, base.To, err = p.timeRange("base_", sel.To.Sub(sel.From)); err != nil {
			return nil, err
		}
		p.base = &base
	}
	return p, nil
}

// selectsAll reports whether nothing but the range restricts the profiles.
func (p *params) selectsAll() bool {
	return !slices.ContainsFunc([]string{"service", "type", "q"}, p.values.Has)
}

// wrong is the error of a parameter. err states the valid values.
func wrong(key, text string, err error) error {
	return usageError{fmt.Errorf("%s is %q: %w", key, text, err)}
}

func (p *params) timeRange(prefix string, length time.Duration) (from, to time.Time, err error) {
	for key, t := range map[string]*time.Time{prefix + "from": &from, prefix + "to": &to} {
		if text := p.values.Get(key); text != "" {
			if *t, err = query.ParseTime(text, p.now); err != nil {
				return from, to, wrong(key, text, err)
			}
		}
	}
	switch {
	case to.IsZero() && from.After(p.now):
		to = from.Add(length)
	case to.IsZero():
		to = p.now
	}
	if from.IsZero() {
		from = to.Add(-length)
	}
	if from.Before(time.Unix(0, 0)) {
		from = time.Unix(0, 0)
	}
	if !from.Before(to) {
		return from, to, wrong(prefix+"from", p.values.Get(prefix+"from"), fmt.Errorf("must be before %sto", prefix))
	}
	return from, to, nil
}

// change is a change of the parameters of a URL.
type change func(url.Values)

// set sets a parameter, which may be empty.
func set(key, value string) change { return func(v url.Values) { v.Set(key, value) } }

// between sets a range: that of the selection, or with the prefix base_ that of the base.
func between(prefix string, from, to time.Time) change {
	return func(v url.Values) {
		v.Set(prefix+"from", from.UTC().Format(time.RFC3339Nano))
		v.Set(prefix+"to", to.UTC().Format(time.RFC3339Nano))
	}
}

// without removes parameters.
func without(keys ...string) change {
	return func(v url.Values) {
		for _, key := range keys {
			v.Del(key)
		}
	}
}

var (
	withoutBase = without("base_from", "base_to")
	// withoutView removes the parameters of the overview.
	withoutView = without("q", "sort")
)

// overview returns the query of the overview of the same range.
func (p *params) overview() template.URL {
	return p.with(without("service", "type"), without(selectingSamples...))
}

// with returns the query of a URL with changed parameters.
func (p *params) with(changes ...change) template.URL {
	values := maps.Clone(p.values)
	for _, change := range changes {
		change(values)
	}
	return template.URL(values.Encode()) // #nosec G203 -- Encode escapes keys and values
}
