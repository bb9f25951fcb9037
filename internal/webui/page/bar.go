// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
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

// names returns the names of labels.
func (o *offered) names() []string {
	all, _ := o.labels.Names()
	return slices.DeleteFunc(all, func(name string) bool { return query.IsKeyLabel(name) || len(name) > maxOptionName })
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
	}, &catalog.Missing{}, func([]string, *contents.Summary, *contents.Total) error { return nil })
	if err == nil {
		found.labels, err = p.catalog.Labels(ctx, params.selected)
	}
	return found, err
}

// bar is the form at the top of a page: it says what the page shows, and of which time.
type bar struct {
	View    string // the page that shows the choices
	Keep    string // the parameters that it does not change, as a query
	Selects []dropdown
	Labels  []string // that exist, as the parameter label has them
	Path    string   // of the links of Filters
	Filters []link   // labels that select profiles, each with the query without it
	Search  bool
	Param   func(string) string
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
	viewOverview   = "overview"
	viewFlamegraph = "flamegraph"
	viewTrace      = "trace"
)

// ofBar are the parameters that the bar sets.
var ofBar = slices.Concat(selectingTotals, selectingBase, []string{"refresh", "q", "page", "by"})

func (p *params) bar(view string, found *offered) *bar {
	kept := maps.Clone(p.values)
	for _, key := range ofBar {
		kept.Del(key)
	}
	b := &bar{View: view, Keep: kept.Encode(), Search: view == viewOverview, Param: p.Param, Labels: found.filters(), Path: p.pathOf(view), Filters: p.filters()}
	types := map[string]bool{}
	for service, its := range found.types {
		if len(p.selected.Services) == 0 || slices.Contains(p.selected.Services, service) {
			maps.Copy(types, its)
		}
	}
	b.Selects = []dropdown{
		{Label: "Service", Options: p.names("service", "All services", slices.Sorted(maps.Keys(found.types)))},
		{Label: "Type", Options: p.names("type", "All types", slices.Sorted(maps.Keys(types)))},
		{Label: "Range", Options: p.ranges()},
	}
	if view != viewTrace {
		b.Selects = append(b.Selects, dropdown{Label: "Compare with", Options: p.comparisons()})
	}
	if view == viewOverview {
		b.Selects = append(b.Selects, dropdown{Label: "Group by", Options: p.names("by", "Service", found.names())})
		b.Selects = append(b.Selects, dropdown{Label: "Refresh", Options: p.refreshes(), Scripted: true})
	}
	return b
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
		set := url.Values{}
		for _, key := range selectingBase {
			set.Set(key, p.values.Get(key))
		}
		options = append(options, option{Text: spanText(p.base), Set: set.Encode(), Current: true, From: p.base.From, To: p.base.To})
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
var ofSelect = []string{"view", "keep", "set", "q", "label", "from", "to", "base_from", "base_to"}

// pathOf returns the path of a page.
func (p *params) pathOf(view string) string {
	switch view {
	case viewFlamegraph:
		return "/flamegraph"
	case viewTrace:
		return "/trace/" + url.PathEscape(cmp.Or(p.Param("trace_id"), "none"))
	default:
		return "/"
	}
}

// choose redirects from the bar to the page of its choices.
func (p *Page) choose(w http.ResponseWriter, r *http.Request) error {
	form, chosen := r.URL.Query(), url.Values{}
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
		for _, key := range keys { // times that are written count more than the options
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
