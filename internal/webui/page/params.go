// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
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
	SignedIn       bool          // the page offers to sign out
	byDefault      time.Duration // the length of the range of a URL that states none; 0 if that is the time of what is there
}

// The parameters that select profiles. Those of totals are all but the base and the IDs.
var (
	selectingTotals  = []string{"service", "type", "from", "to"}
	selectingBase    = []string{"base_from", "base_to", "base_service", "base_label"}
	selectingSamples = []string{"trace_id", "span_id", "profile_id", "label"}

	selecting = slices.Concat(selectingTotals, selectingBase, selectingSamples)

	ofExplore  = slices.Concat(selecting, ownOfExplore)
	ofServices = slices.Concat(selectingTotals, []string{"label"})
	ofTrace    = slices.Concat(selectingTotals, selectingSamples)

	// ownOfExplore are parameters that no other page has.
	ownOfExplore = []string{"by", "refresh", "q", "sort", "page"}
	// ownOfLanding are those that mean nothing on the page of a service, and ofRange those of a range.
	ownOfLanding = []string{"by", "q", "sort", "page"}
	ofRange      = []string{"from", "to", "base_from", "base_to"}
)

// Parameters are those that select profiles.
var Parameters = selecting

// Links and errors repeat parameters, so these are bounded. Names of services and types fit.
const (
	maxParameter  = 8 << 10 // bytes of a value
	maxParameters = 4 * maxParameter
)

// checkParameters rejects parameters that are too long, and those that are not in known, unless that is nil: a script
// would get more than it has asked for.
func checkParameters(values url.Values, known []string) error {
	size := 0
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if known != nil && !slices.Contains(known, key) {
			return usageError{fmt.Errorf("unknown parameter %.60q: must be one of %s", key, strings.Join(known, ", "))}
		}
		for _, value := range values[key] {
			if len(value) > maxParameter {
				return usageError{fmt.Errorf("the parameter %.60q has %d bytes: must have at most %d", key, len(value), maxParameter)}
			}
			size += len(key) + len(value)
		}
	}
	if size > maxParameters {
		return usageError{fmt.Errorf("the parameters have %d bytes: must have at most %d in total", size, maxParameters)}
	}
	return nil
}

// parseParams reads the parameters. byDefault is the length of the range if they state no start.
func parseParams(values url.Values, byDefault time.Duration, now time.Time) (*params, error) {
	p := &params{values: url.Values{}, now: now, byDefault: byDefault}
	for _, key := range selecting {
		for _, value := range values[key] {
			if value != "" || key == "service" || key == "base_service" || key == "type" { // a service may have no name
				p.values.Add(key, value)
			}
		}
	}
	p.selected = &query.Selection{Services: p.values["service"], Types: p.values["type"]}
	for _, key := range selectingSamples {
		for _, text := range p.values[key] {
			if err := p.selected.Set(key, text); err != nil {
				return nil, wrong(key, text, err)
			}
		}
	}
	if err := p.setRange(p.selected, "", byDefault); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(selectingBase, p.values.Has) {
		return p, p.setBase()
	}
	return p, nil
}

// setBase sets the base, which is the selection apart from what base_ parameters state.
func (p *params) setBase() error {
	other := &query.Selection{Services: p.values["base_service"]}
	for _, text := range p.values["base_label"] {
		if err := other.Set("label", text); err != nil {
			return wrong("base_label", text, err)
		}
	}
	if p.values.Has("base_from") || p.values.Has("base_to") {
		if err := p.setRange(other, "base_", p.selected.To.Sub(p.selected.From)); err != nil {
			return err
		}
	}
	p.base = p.selected.With(other)
	return nil
}

// wrong is the error of a parameter. err states the valid values.
func wrong(key, text string, err error) error {
	return usageError{fmt.Errorf("%s is %.200q: %w", key, text, err)}
}

// setRange sets the range of a selection. length is that of one without a start.
func (p *params) setRange(sel *query.Selection, prefix string, length time.Duration) (err error) {
	parse := func(key string) (t time.Time) {
		if text := p.values.Get(prefix + key); text != "" && err == nil {
			if t, err = query.ParseTime(text, p.now); err != nil {
				err = wrong(prefix+key, text, err)
			}
		}
		return t
	}
	from, to := parse("from"), parse("to")
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
	if err == nil && !from.Before(to) {
		err = wrong(prefix+"from", p.values.Get(prefix+"from"), fmt.Errorf("must be before %sto", prefix))
	}
	sel.From, sel.To = from, to
	return err
}

// with returns the query of a URL with these parameters, and without others.
func (p *params) with(set map[string]string, without ...string) template.URL {
	values := maps.Clone(p.values)
	for _, key := range without {
		values.Del(key)
	}
	for key, value := range set {
		values.Set(key, value)
	}
	return template.URL(values.Encode()) // #nosec G203 -- Encode escapes keys and values
}

// between are the parameters of a range: that of the selection, or with the prefix base_ that of the base.
func between(prefix string, from, to time.Time) map[string]string {
	return map[string]string{prefix + "from": from.UTC().Format(time.RFC3339Nano), prefix + "to": to.UTC().Format(time.RFC3339Nano)}
}

// spanText writes a time range.
func spanText(sel *query.Selection) string {
	from, to := sel.From.UTC(), sel.To.UTC()
	layout := time.DateTime
	if from.YearDay() == to.YearDay() && from.Year() == to.Year() {
		layout = time.TimeOnly
	}
	return from.Format(time.DateTime) + " to " + to.Format(layout) + " UTC"
}

// The following are for templates.

// Param returns a parameter, for a form.
func (p *params) Param(key string) string { return p.values.Get(key) }

// Selected is the selection.
func (p *params) Selected() *query.Selection { return p.selected }

// Span is the range, for people.
func (p *params) Span() string { return spanText(p.selected) }

// Landing returns the query of the list of services of the same range.
func (p *params) Landing() template.URL {
	return p.with(nil, slices.Concat([]string{"service", "type", "by"}, selectingSamples, selectingBase)...)
}

// narrowed are the parameters of a part of the profiles: of a service, or of a value of the label by which they are grouped.
func (p *params) narrowed(name string) *params {
	n := *p
	n.values = maps.Clone(p.values)
	if by := p.Param("by"); by != "" {
		n.values.Del("by")
		n.addLabel(by + "=" + name)
	} else {
		n.values.Set("service", name)
	}
	return &n
}

func (p *params) addLabel(text string) {
	if held := p.values["label"]; !slices.Contains(held, text) {
		p.values["label"] = append(slices.Clone(held), text)
	}
}

// maxFilters is how many labels a page shows one by one: each has a link with all others.
const maxFilters = 20

// filters are the labels that select profiles, each with the query of all others.
func (p *params) filters() (links []link) {
	if n := len(p.values["label"]); n > maxFilters {
		return []link{{Text: webui.Count(n, "label"), Query: p.with(nil, "label", "trace_id")}}
	}
	for i, text := range p.values["label"] {
		without := *p
		without.values = maps.Clone(p.values)
		without.values["label"] = slices.Delete(slices.Clone(p.values["label"]), i, i+1)
		links = append(links, link{Text: text, Query: without.with(nil, "trace_id")})
	}
	return links
}

// link is a choice of a page, such as an order.
type link struct {
	Text    string
	Query   template.URL
	Current bool
}

// baseAgo returns the parameters of the base that is earlier by ago. It moves with a range that ends now.
func (p *params) baseAgo(ago time.Duration) map[string]string {
	from, to := p.selected.From.Add(-ago), p.selected.To.Add(-ago)
	if !p.values.Has("to") && to.Before(p.now) {
		return map[string]string{"base_from": "-" + webui.WithoutZeros(p.now.Sub(from)), "base_to": "-" + webui.WithoutZeros(p.now.Sub(to))}
	}
	return between("base_", from, to)
}

// isAgo reports whether the base is earlier by ago.
func (p *params) isAgo(ago time.Duration) bool {
	const near = time.Second // the time that a user takes
	off := func(base, selected time.Time) time.Duration { return (selected.Sub(base) - ago).Abs() }
	return p.base != nil && off(p.base.From, p.selected.From) < near && off(p.base.To, p.selected.To) < near
}

// Sorts are the orders of services. Those with equal CPU time are sorted by newest profile, then by name.
func (p *params) Sorts() (links []link) {
	current := cmp.Or(p.values.Get("sort"), "cpu")
	for _, s := range []struct{ text, key string }{{"CPU", "cpu"}, {"newest", "newest"}, {"name", "name"}} {
		links = append(links, link{s.text, p.with(map[string]string{"sort": s.key}), current == s.key})
	}
	return links
}
