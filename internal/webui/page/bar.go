// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
)

// offered are the choices of a range.
type offered struct {
	types  map[string]map[string]bool // by service
	labels *labels.Set                // of the last files that have selected services and types
}

func newOffered() *offered { return &offered{types: map[string]map[string]bool{}} }

func (o *offered) add(k *contents.Key) {
	if o.types[k.Service] == nil {
		o.types[k.Service] = map[string]bool{}
	}
	o.types[k.Service][kindOf(k).selector()] = true
}

// names returns the names of labels, those first by which a person is likely to group: they have a few values that are no numbers.
func (o *offered) names() []string {
	all, _ := o.labels.Names()
	all = slices.DeleteFunc(all, func(name string) bool { return query.IsKeyLabel(name) || len(name) > maxOptionName })
	rank := make(map[string]int, len(all))
	for _, name := range all {
		values, complete := o.labels.Values(name)
		switch {
		case !slices.ContainsFunc(values, func(value string) bool { _, err := strconv.ParseFloat(value, 64); return err != nil }):
			rank[name] = 3
		case !complete || len(values) > maxValues:
			rank[name] = 2
		case len(values) == 1:
			rank[name] = 1
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	return all
}

// typesOf returns selectors of the types of services, or of all.
func (o *offered) typesOf(services []string) []string {
	types := map[string]bool{}
	for service, its := range o.types {
		if len(services) == 0 || slices.Contains(services, service) {
			maps.Copy(types, its)
		}
	}
	return slices.Sorted(maps.Keys(types))
}

// filters returns labels with values, as the parameter label has them: not all of many.
func (o *offered) filters() (texts []string) {
	for _, name := range o.names() {
		values, _ := o.labels.Values(name)
		values = slices.DeleteFunc(values, func(value string) bool { return len(value) > maxOptionName })
		values = values[:min(len(values), maxValues, maxOptions-len(texts))]
		for _, value := range values {
			texts = append(texts, name+"="+value)
		}
	}
	return texts
}

// offer returns what the files of a range have.
func (p *Page) offer(ctx context.Context, params *params) (*offered, error) {
	found := newOffered()
	all := &query.Selection{From: params.selected.From, To: params.selected.To}
	err := p.catalog.Scan(ctx, all, nil, func(k *contents.Key) bool {
		found.add(k)
		return false
	}, &catalog.Missing{}, func(*query.Times, *contents.Total) error { return nil })
	if err == nil {
		found.labels, err = p.catalog.Labels(ctx, params.selected)
	}
	return found, err
}

// bar is the form at the top of a page: it says what the page shows, and of which time.
type bar struct {
	View     string // the page that shows the choices
	Keep     string // the parameters that it does not change, as a query
	Selects  []dropdown
	Labels   []string // that exist, as the parameter label has them
	Path     string   // of the links of Filters
	Filters  []link   // labels that select profiles, each with the query without it
	Search   bool
	From, To time.Time
	Param    func(string) string
}

// dropdown is a list of options, one of which is the current one.
type dropdown struct {
	Label    string
	Options  []option
	Scripted bool // it does nothing without a script
}

// option is a choice. Set are its parameters, as a query.
type option struct {
	Text, Set string
	Current   bool
	From, To  time.Time // of a range, to be written in the browser's zone; zero of others
}

// views are the pages with a bar.
const (
	viewExplore  = "explore"
	viewTimeline = "timeline"
	viewTrace    = "trace"
)

// ofBar are the parameters that the bar sets.
var ofBar = slices.Concat(selectingTotals, selectingBase, []string{"refresh", "q", "page", "by"})

func (p *params) bar(view string, found *offered) *bar {
	kept := maps.Clone(p.values)
	for _, key := range ofBar {
		kept.Del(key)
	}
	b := &bar{View: view, Keep: kept.Encode(), Param: p.Param, Labels: found.filters(), Path: p.pathOf(view), Filters: p.filters(), From: p.selected.From, To: p.selected.To}
	b.Selects = []dropdown{
		{Label: "Service", Options: p.names("service", "All services", slices.Sorted(maps.Keys(found.types)))},
		{Label: "Type", Options: p.names("type", "All types", found.typesOf(p.selected.Services))},
	}
	grouped := "Service"
	if len(p.selected.Services) == 1 {
		grouped = "nothing"
	}
	if view == viewExplore {
		b.Selects = append(b.Selects, dropdown{Label: "Group by", Options: p.names("by", grouped, found.names())})
	}
	b.Selects = append(b.Selects, dropdown{Label: "Range", Options: p.ranges()})
	if view == viewExplore {
		b.Selects = append(b.Selects, dropdown{Label: "Compare with", Options: p.comparisons()}, dropdown{Label: "Refresh", Options: p.refreshes(), Scripted: true})
	}
	return b
}

// types replaces the options of the type.
func (b *bar) types(options []option) {
	i := slices.IndexFunc(b.Selects, func(d dropdown) bool { return d.Label == "Type" })
	b.Selects[i].Options = options
}

// Bounds of the options of a page. Others are found by the search.
const (
	maxOptions    = 200
	maxOptionName = 200 // bytes
	maxValues     = 20  // of a label
)

// names are the options of a parameter that is a name, which may be repeated.
func (p *params) names(key, all string, names []string) []option {
	current := p.values[key]
	options := []option{{Text: all, Current: len(current) == 0}}
	offer := func(values ...string) {
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = cmp.Or(strings.TrimPrefix(value, ":"), "(no name)")
		}
		options = append(options, option{
			Text: strings.Join(texts, ", "), Set: url.Values{key: values}.Encode(), Current: len(current) > 0 && slices.Equal(current, values),
		})
	}
	for _, name := range names {
		if len(options) <= maxOptions && len(name) <= maxOptionName {
			offer(name)
		}
	}
	if !slices.ContainsFunc(options, func(o option) bool { return o.Current }) {
		offer(current...)
	}
	return options
}

// ranges are those up to now, and the current one.
func (p *params) ranges() (options []option) {
	from, isLast := cmp.Or(p.values.Get("from"), "-"+webui.WithoutZeros(p.byDefault)), false
	for _, r := range []struct{ text, from string }{
		{"5 min", "-5m"}, {"15 min", "-15m"}, {"1 h", "-1h"}, {"6 h", "-6h"}, {"24 h", "-24h"}, {"7 d", "-168h"},
	} {
		current := from == r.from && !p.values.Has("to")
		options = append(options, option{Text: "Last " + r.text, Set: "from=" + r.from, Current: current})
		isLast = isLast || current
	}
	if isLast {
		return options
	}
	set := url.Values{}
	for _, key := range []string{"from", "to"} {
		if p.values.Has(key) {
			set.Set(key, p.values.Get(key))
		}
	}
	return append(options, option{Text: p.Span(), Set: set.Encode(), Current: true, From: p.selected.From, To: p.selected.To})
}

// compareAgo is a parameter of the bar: how much earlier the base is. previous is the length of the range.
const (
	compareAgo = "ago"
	previous   = "previous"
)

// comparisons are with earlier ranges, and with the current base.
func (p *params) comparisons() []option {
	isRange := p.values.Has("base_from") || p.values.Has("base_to")
	options := []option{{Text: "nothing", Current: p.base == nil}}
	length, found := p.selected.To.Sub(p.selected.From), p.base == nil
	for _, c := range []struct {
		text, key string
		ago       time.Duration
	}{
		{"previous range", previous, length}, {"1 h ago", "1h", time.Hour}, {"24 h ago", "24h", 24 * time.Hour}, {"7 d ago", "168h", 7 * 24 * time.Hour},
	} {
		current := !found && p.isAgo(c.ago)
		options = append(options, option{Text: c.text, Set: compareAgo + "=" + c.key, Current: current})
		found = found || current
	}
	if !found {
		set, o := url.Values{}, option{Current: true}
		var parts []string
		for _, key := range selectingBase {
			if values := p.values[key]; len(values) > 0 {
				set[key] = values
				if key == "base_service" || key == "base_label" {
					parts = append(parts, values...)
				}
			}
		}
		if o.Set = set.Encode(); isRange && len(parts) == 0 {
			o.From, o.To = p.base.From, p.base.To
		}
		if isRange {
			parts = append(parts, spanText(p.base))
		}
		o.Text = strings.Join(parts, ", ")
		options = append(options, o)
	}
	return options
}

// refreshes say how often the page shows new profiles.
func (p *params) refreshes() (options []option) {
	for _, r := range []struct{ text, value string }{{"off", ""}, {"10 s", "10s"}, {"30 s", "30s"}, {"1 min", "1m"}, {"5 min", "5m"}} {
		o := option{Text: r.text, Current: p.values.Get("refresh") == r.value}
		if r.value != "" {
			o.Set = "refresh=" + r.value
		}
		options = append(options, o)
	}
	return options
}

// ofSelect are the parameters of the bar's form.
var ofSelect = slices.Concat([]string{"view", "keep", "set", "q", "label", "last", "from_at", "to_at", "base_from_at", "base_to_at"}, []string{"from", "to"}, selectingBase)

// pathOf returns the path of a page.
func (p *params) pathOf(view string) string {
	switch view {
	case viewTimeline:
		return "/timeline"
	case viewTrace:
		return "/trace/" + url.PathEscape(cmp.Or(p.Param("trace_id"), "none"))
	default:
		return "/"
	}
}

// choose redirects from the bar to the page of its choices.
func (p *Page) choose(w http.ResponseWriter, r *http.Request) error {
	form, chosen := r.URL.Query(), url.Values{}
	if err := readTimes(form); err != nil {
		return err
	}
	for _, query := range append(form["set"], form.Get("keep")) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return usageError{fmt.Errorf("%.60q: must be a query: %w", query, err)}
		}
		maps.Copy(chosen, values)
	}
	ago := chosen.Get(compareAgo)
	chosen.Del(compareAgo)
	for _, keys := range [][]string{{"q"}, {"from", "to"}, selectingBase} {
		if !slices.ContainsFunc(keys, func(key string) bool { return form.Get(key) != "" }) {
			continue
		}
		for _, key := range keys { // what is written counts more than the options
			chosen.Del(key)
			if text := strings.TrimSpace(form.Get(key)); text != "" {
				chosen.Set(key, text)
			}
		}
		if slices.Equal(keys, selectingBase) {
			ago = ""
		}
	}
	if label := strings.TrimSpace(form.Get("label")); label != "" {
		(&params{values: chosen}).addLabel(label)
	}
	view, byDefault := form.Get("view"), defaultRange
	path := (&params{values: chosen}).pathOf(view)
	if view == viewTrace {
		byDefault = traceRange
		chosen.Del("trace_id")
	}
	if params, err := parseParams(chosen, byDefault, p.now()); err == nil && ago != "" { // the page says the error
		length := params.selected.To.Sub(params.selected.From)
		if earlier, err := time.ParseDuration(ago); err == nil {
			length = earlier
		}
		for key, value := range params.baseAgo(length) {
			chosen.Set(key, value)
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	// #nosec G710 -- the path is one of ours
	http.Redirect(w, r, path+"?"+chosen.Encode(), http.StatusFound)
	return nil
}

// readTimes replaces the times of date pickers, which are in UTC unless the script has replaced them, and the length of a range up to now.
func readTimes(form url.Values) error {
	for _, key := range []string{"from", "to", "base_from", "base_to"} {
		text := form.Get(key + "_at")
		if text == "" {
			continue
		}
		var at time.Time
		var err error
		for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} { // fractions of seconds are accepted, too
			if at, err = time.Parse(layout, text); err == nil {
				break
			}
		}
		if err != nil {
			return wrong(key+"_at", text, errors.New("must be a time such as 2006-01-02T15:04"))
		}
		form.Set(key, at.Format(time.RFC3339Nano))
	}
	if last := strings.TrimPrefix(strings.TrimSpace(form.Get("last")), "-"); last != "" {
		form.Set("from", "-"+last)
		form.Del("to")
	}
	return nil
}
