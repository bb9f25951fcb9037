// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
)

// frame is what the pages of services have in common.
type frame struct {
	*params

	Title     string
	Directory string
	Bar       *bar
	Errors    []error // of files that cannot be read

	Elsewhere bool         // there are profiles of other times, if the range has none
	Any       bool         // nothing but the range restricts the profiles
	AllQuery  template.URL // query for the times of all files
	Odd       bool         // there are profiles of other times that were received in the range
	OddQuery  template.URL // query for their times
	Empty     bool         // there is no profile at all
}

func (p *Page) frame(params *params, offered *offered, missed *catalog.Missing) *frame {
	return &frame{params: params, Title: "Profiles", Directory: p.settings.Directory, Bar: params.bar(viewExplore, offered), Errors: missed.Failed}
}

// lookAround finds profiles of other times. If nothing is found in the range, it looks at all.
func (f *frame) lookAround(ctx context.Context, of *catalog.Catalog, selects func(*contents.Key) bool, found bool) error {
	odd, err := of.Odd(ctx, f.selected, selects)
	if err != nil {
		return err
	}
	f.Odd, f.OddQuery = !odd.Last.IsZero(), f.showing(&odd)
	f.Any = !slices.ContainsFunc([]string{"service", "type", "label", "q", "trace_id", "span_id", "profile_id"}, f.values.Has)
	if found {
		return nil
	}
	all, err := of.Extent(ctx)
	if err != nil {
		return err
	}
	f.Empty, f.AllQuery = all.Last.IsZero(), f.showing(&all)
	f.Elsewhere = all.First.Before(f.selected.From) || !all.Last.Before(f.selected.To)
	return nil
}

// explore writes the list of services, or if the URL names a service or a type, what these have.
func (p *Page) explore(w http.ResponseWriter, r *http.Request) error {
	params, err := p.parseExplore(r)
	switch {
	case err != nil:
		return p.refuse(w, r, err)
	case params.isLanding():
		return p.landing(w, r, params)
	default:
		return p.show(w, r, params)
	}
}

// isLanding reports whether the URL names neither a service nor a type.
func (p *params) isLanding() bool {
	return !slices.ContainsFunc([]string{"service", "type", "trace_id", "span_id"}, p.values.Has)
}

func (p *Page) parseExplore(r *http.Request) (*params, error) {
	values := r.URL.Query()
	by := values.Get("by")
	if strings.ContainsAny(by, "={") || query.IsKeyLabel(labels.Name(by)) {
		return nil, usageError{fmt.Errorf("by is %.60q: must be the name of a label of profiles, such as pod, and not of their service or type", by)}
	}
	params, err := parseParams(values, defaultRange, p.now())
	if err != nil {
		return nil, err
	}
	params.keep(values, ownOfExplore)
	params.SignedIn = isSignedIn(r)
	return params, nil
}

// keep adds parameters that select no profiles.
func (p *params) keep(values map[string][]string, keys []string) {
	for _, key := range keys {
		if all := values[key]; len(all) > 0 && all[0] != "" {
			p.values[key] = all[:1]
		}
	}
}

// refuse writes a page with the parameters as they are, and what is wrong with them.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, wrong error) error {
	params, err := parseParams(nil, defaultRange, p.now())
	if err != nil {
		return err
	}
	found, err := p.offer(r.Context(), params)
	if err != nil {
		return err
	}
	values := r.URL.Query()
	params.keep(values, slices.Concat(selecting, ownOfExplore))
	params.values["label"] = values["label"]
	v := &view{frame: p.frame(params, found, &catalog.Missing{}), Problem: wrong.Error()}
	writePage(w, http.StatusBadRequest, "view", v)
	return nil
}

// view is what the selection has of one kind. It is the content of the template of the same name.
type view struct {
	*frame

	Name     string   // of the services
	Notes    []string // of what is missing
	Remarks  []string // how to understand the values
	Problem  string   // why there is no flame graph
	Tabs     []*row   // the types
	Row      *row     // the one that is shown, nil if nothing is selected
	BaseSpan *query.Selection
	Chart    *chart
	// PerProcess: the chart shows one process on average, because the selection and the base differ in more than their time.
	PerProcess bool
	Groups     []*group
	More       int // groups that are not shown
	Graph      *webui.FlameGraph
	Wider      template.URL // query of a longer range
	Exists     []choice     // what there is in place of what does not match
	Timeline   template.URL // query of the timeline, "" if the profiles have no timestamps
}

// group is the part of the profiles that have a value of a label, or are of a service.
type group struct {
	*row

	Name    string
	Class   string       // of its line in the chart
	Only    template.URL // query that selects it
	Against template.URL // query that compares it with all others
}

// Selection and BaseSelection are what is selected besides the time and the type.
func (v *view) Selection() []string { return slices.Concat(v.selected.Services, v.values["label"]) }

// BaseSelection is that of the base.
func (v *view) BaseSelection() []string {
	texts := v.values["base_label"]
	if len(texts) == 0 {
		texts = v.values["label"]
	}
	return slices.Concat(v.base.Services, texts)
}

// choice is a parameter with values that exist.
type choice struct {
	Of    string
	Links []link
}

// show writes a view.
func (p *Page) show(w http.ResponseWriter, r *http.Request, params *params) error {
	offered, room := newOffered(), p.room()
	found, err := sum(r.Context(), p.catalog, params, params.selected, offered, room)
	if err != nil {
		return err
	}
	base := &summed{}
	if params.base != nil {
		if base, err = sum(r.Context(), p.base, params, params.base, offered, room); err != nil {
			return err
		}
	}
	if offered.labels, err = p.catalog.Labels(r.Context(), params.selected); err != nil {
		return err
	}
	v := &view{frame: p.frame(params, offered, found.missed), BaseSpan: params.base}
	if err := v.lookAround(r.Context(), p.catalog, func(k *contents.Key) bool { return params.selected.MatchesKey(r.Context(), k) }, len(found.joined) > 0); err != nil {
		return err
	}
	for _, service := range params.selected.Services {
		v.Name += ", " + cmp.Or(service, "(no name)")
	}
	v.Name = strings.TrimPrefix(v.Name, ", ")
	v.Title = cmp.Or(v.Name, "All services") + " · Profiles"
	v.Wider = params.wider()
	v.choose(r.Context(), found, base)
	status := http.StatusOK
	if v.Row == nil {
		v.Exists = params.exists(offered)
	} else {
		err := v.draw(found, base, room)
		if err == nil {
			found.release()
			base.release()
			err = p.addGraph(r, v)
		}
		switch {
		case r.Context().Err() != nil || errors.Is(err, store.ErrGone):
			return cmp.Or(r.Context().Err(), err)
		case errors.Is(err, query.ErrEmpty): // such as a base of a time without profiles
			v.Problem = err.Error()
		case err != nil:
			status, v.Problem = statusOf(err), err.Error()
		}
	}
	writePage(w, status, "view", v)
	return nil
}

// sum returns the totals of a selection, by service or by the label of the page. If indexes have them, it adds those of types that are not
// selected, unless they take too much memory.
func sum(ctx context.Context, of *catalog.Catalog, params *params, sel *query.Selection, offered *offered, room *room) (*summed, error) {
	wide := *sel
	if !sel.SelectsSamples() && params.Param("by") == "" {
		wide.Types = nil
	}
	selected := &scope{Selection: &wide, by: params.Param("by"), offers: true, joined: true, selects: func(k *contents.Key) bool {
		offered.add(k)
		return wide.MatchesKey(ctx, k)
	}}
	before := *room
	found, err := totalsOf(ctx, of, selected, room)
	if err != nil && len(sel.Types) > 0 && len(wide.Types) == 0 && ctx.Err() == nil {
		*room, wide.Types = before, sel.Types
		found, err = totalsOf(ctx, of, selected, room)
	}
	return found, err
}

// choose chooses the kind to show: the selected one that stands best for its type.
func (v *view) choose(ctx context.Context, found, base *summed) {
	of := func(k kind) *total {
		for _, t := range base.joined {
			if t.kind == k {
				return t
			}
		}
		return nil
	}
	if len(found.joined) == 0 {
		return
	}
	s := byService(found.joined, func(t *total) *row { return newRow(v.params, t, of(t.kind)) })[0]
	v.Tabs = s.order()
	types := &query.Selection{Types: v.selected.Types}
	for _, r := range slices.Concat(v.Tabs, s.Rows) {
		if key := query.Kind(r.kind).Key(); types.MatchesKey(ctx, &key) {
			v.Row = r
			break
		}
	}
	if v.Row == nil {
		v.Tabs = nil
		return
	}
	var options []option
	for _, r := range s.Rows {
		selector := r.selector()
		if !slices.Contains(v.Tabs, r) && !r.Ambiguous {
			selector = r.Type + ":" + r.SampleType
		}
		r.Query = v.with(map[string]string{"type": selector}, ownOfLanding...)
		if r == v.Row && found.timed[r.kind] {
			v.Timeline = v.with(map[string]string{"type": selector}, slices.Concat(ownOfExplore, selectingBase)...)
		}
		text := r.SampleType
		if r.Type != "" && r.Type != r.SampleType {
			text = r.Type + ": " + r.SampleType
		}
		if r.Ambiguous {
			text += " (" + r.period() + ")"
		}
		options = append(options, option{Text: text, Set: "type=" + template.URLQueryEscaper(selector), Current: r == v.Row})
	}
	v.Bar.types(options[:min(len(options), rowsPerService)])
	v.Tabs = v.Tabs[:min(len(v.Tabs), rowsPerService)]
}

// draw draws the chart, and lists the groups.
func (v *view) draw(found, base *summed, room *room) error {
	a := axisOf(v.selected, v.Row.total)
	groups, ofBase := v.groupsOf(found), map[string]*total{}
	for _, g := range v.groupsOf(base) {
		ofBase[g.Service] = g
	}
	perProcess := v.base != nil && v.selected.Differs(v.base)
	lines := []*line{v.Row.bars(a, perProcess)}
	by := v.Param("by")
	if by != "" || len(groups) > 1 {
		lines = groupLines(a, groups)
		for i, g := range groups[:min(len(groups), rowsPerService)] {
			v.Groups = append(v.Groups, v.group(g, ofBase[g.Service], i))
		}
		v.More = len(groups) - len(v.Groups)
	}
	if t := v.baseOf(base); t != nil {
		lines = append(lines, &line{Name: "base", Class: "before", values: a.like(v.base).values(t, perProcess)})
	}
	v.PerProcess = perProcess && len(v.Groups) == 0
	if err := room.take(slotSize * int64(a.steps.Count*len(lines))); err != nil {
		return err
	}
	if !slices.ContainsFunc(lines, (*line).hasValue) { // profiles without a duration
		return nil
	}
	v.Chart = newChart(a, v.Row.kind, lines...)
	v.Chart.Query = v.with(nil, ofRange...)
	return nil
}

// groupsOf returns the totals of the shown kind, those with the highest values first.
func (v *view) groupsOf(of *summed) (groups []*total) {
	for _, g := range of.groups {
		k := g.kind
		if k.Service = ""; k == v.Row.kind {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b *total) int { return cmp.Compare(b.shown(), a.shown()) })
	return groups
}

// baseOf returns the total of the shown kind.
func (v *view) baseOf(base *summed) *total {
	for _, t := range base.joined {
		if t.kind == v.Row.kind {
			return t
		}
	}
	return nil
}

func (v *view) group(t, base *total, number int) *group {
	g := &group{row: newRow(v.params, t, base), Name: t.Service}
	if number < maxLines {
		g.Class = fmt.Sprint("l", number)
	}
	only := v.narrowed(t.Service)
	g.Only = only.with(nil, ownOfLanding...)
	if by := v.Param("by"); by != "" {
		others := *only
		others.values = maps.Clone(only.values)
		others.values["base_label"] = []string{fmt.Sprintf("{%s!=%q}", labels.Name(by), t.Service)}
		g.Against = others.with(nil, ownOfLanding...)
	}
	return g
}

// addGraph adds the flame graph of the shown kind.
func (p *Page) addGraph(r *http.Request, v *view) error {
	key := query.Kind(v.Row.kind).Key()
	exact := func(sel *query.Selection) *query.Selection {
		if sel == nil {
			return nil
		}
		narrow := *sel
		narrow.Types = []string{query.TypeID(&key)}
		return &narrow
	}
	compared, unread, err := p.compare(r.Context(), exact(v.selected), exact(v.base))
	if err != nil {
		return err
	}
	v.Notes, v.Remarks = unread, compared.Notes
	of := compared.Shown()
	v.Row.profiled = of.New.Total
	if v.base != nil {
		v.Row.compare(compared)
		const even = 0.005
		if factor := of.Factor(); math.Abs(factor-1) > even {
			v.Remarks = append(v.Remarks, fmt.Sprintf("Values of the base in the flame graph and the table are multiplied by %.3g, so that both sides differ as what is compared", factor))
		}
	}
	merged, err := compared.Pprof(true)
	if err == nil {
		err = query.CheckTotals(merged)
	}
	if err != nil {
		return err
	}
	release, err := p.rendering.acquire(r.Context(), 1)
	if err != nil {
		return err
	}
	defer release()
	merged, lost, err := webui.Prune(merged, p.options().MaxMemory/webui.RenderingFactor)
	switch {
	case err != nil:
		return err
	case len(merged.Sample) == 0 && lost > 0:
		return errors.New("the selection takes too much memory: select less, by service, type or time, or raise max_memory")
	case lost > 0:
		v.Notes = append(v.Notes, fmt.Sprintf("To fit into max_memory, the smallest samples are left out: %.2g %% of the values", lost*100))
	}
	v.Graph, err = webui.NewFlameGraph(r.Context(), merged, 0)
	return err
}

// wider returns the query of a range that is twice as long, with the shown one in its middle.
func (p *params) wider() template.URL {
	half := p.selected.To.Sub(p.selected.From) / 2
	from, to := p.selected.From.Add(-half), p.selected.To.Add(half)
	if to.After(p.now) {
		to = p.now
	}
	if from.Before(time.Unix(0, 0)) {
		from = time.Unix(0, 0)
	}
	return p.with(between("", from, to), "base_from", "base_to")
}

// exists returns what there is of what the selection names: services, types, and of each label the values, or if no profile has it, the labels.
func (p *params) exists(found *offered) (choices []choice) {
	offer := func(of, key string, values []string) {
		c := choice{Of: of}
		for _, value := range values[:min(len(values), maxValues)] {
			c.Links = append(c.Links, link{Text: strings.TrimPrefix(value, ":"), Query: p.with(map[string]string{key: value})})
		}
		choices = append(choices, c)
	}
	if len(p.selected.Services) > 0 && !slices.ContainsFunc(p.selected.Services, func(service string) bool { return found.types[service] != nil }) {
		offer("Services", "service", slices.Sorted(maps.Keys(found.types)))
	}
	if types := found.typesOf(p.selected.Services); len(p.selected.Types) > 0 && len(p.values["label"]) == 0 {
		offer("Types", "type", types)
	}
	for i, text := range p.values["label"] {
		name, _, isPair := strings.Cut(text, "=")
		values, _ := found.labels.Values(name)
		c := choice{Of: "Values of " + name}
		if !isPair || len(values) == 0 {
			c.Of, values = "Labels", found.names()
		}
		for _, value := range values[:min(len(values), maxValues)] {
			replaced := *p
			replaced.values = maps.Clone(p.values)
			rest := slices.Delete(slices.Clone(p.values["label"]), i, i+1)
			chosen := link{Text: value}
			if c.Of != "Labels" {
				replaced.values["label"] = append(rest, name+"="+value)
			} else {
				replaced.values["label"] = rest
				replaced.values.Set("by", value)
			}
			chosen.Query = replaced.with(nil)
			c.Links = append(c.Links, chosen)
		}
		choices = append(choices, c)
	}
	return choices
}
