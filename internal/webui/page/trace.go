// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query/timeline"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
)

// tracePage is the content of the template trace.
type tracePage struct {
	*params

	Title    string
	Bar      *bar
	URL      string // of the trace in a tracing UI, "" if none is configured
	Services []*service
	Axis     *spanAxis
	Spans    map[string][]tracedSpan // by service
	More     map[string]int          // spans of a service that are not shown
	Left     int                     // samples of spans beyond the limit
	Types    []link                  // flame graphs across services
	Errors   []string
}

// findTrace redirects from the form to the page of a trace.
func (p *Page) findTrace(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	id := strings.ToLower(strings.TrimSpace(values.Get("id")))
	values.Del("id")
	// #nosec G710 -- the path starts with /trace/
	http.Redirect(w, r, "/trace/"+url.PathEscape(cmp.Or(id, "none"))+"?"+values.Encode(), http.StatusFound)
	return nil
}

// trace shows the samples of a trace, across services.
func (p *Page) trace(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	values.Set("trace_id", r.PathValue("id"))
	params, err := parseParams(values, traceRange, p.now())
	if err != nil {
		return err
	}
	sel := params.selected
	t := &tracePage{params: params, Title: "trace " + r.PathValue("id")}
	var missed catalog.Missing
	source := p.catalog.Source(&missed)
	byKind := newTally(sel, p.room(), 1)
	spans := timeline.SpansWithin(byKind.room.limit / 2)
	err = source.Each(r.Context(), sel, func(record *archive.Record, pd pprofile.Profiles) error {
		if err := byKind.addPayload(record, pd); err != nil {
			return err
		}
		return spans.Add(r.Context(), pd)
	})
	if err != nil {
		return err
	}
	t.Errors = missed.Notes()
	totals, err := byKind.totals()
	if err != nil {
		return err
	}
	t.Services = byService(totals, func(total *total) *row { return &row{total: total, Value: total.quantity(float64(total.Sum))} })
	t.addLinks()
	all := spans.Spans()
	t.Axis = newAxis(all)
	t.Spans, t.More = t.tracedSpans(all)
	t.Left = spans.Left
	found, err := p.offer(r.Context(), params)
	if err != nil {
		return err
	}
	t.Bar, t.URL = params.bar(viewTrace, found), strings.ReplaceAll(p.settings.TraceURL, TraceIDInURL, hex.EncodeToString(sel.TraceIDs[0][:]))
	writePage(w, http.StatusOK, "trace", t)
	return nil
}

// addLinks adds those to flame graphs, of a service and of all together.
func (t *tracePage) addLinks() {
	var together []*total
	shown := between("", t.selected.From, t.selected.To)
	for _, s := range t.Services {
		s.show(s.order())
		for _, r := range s.Rows {
			shown["service"], shown["type"] = s.Name, r.selector()
			r.Query = t.with(shown)
			of := *r.total
			of.Service = ""
			together = append(together, &of)
		}
	}
	delete(shown, "service")
	markAmbiguous(together)
	types := map[string]bool{}
	for _, of := range together {
		selector := of.selector()
		if !types[selector] && len(types) < rowsPerService {
			types[selector] = true
			shown["type"] = selector
			t.Types = append(t.Types, link{Text: strings.TrimPrefix(selector, ":"), Query: t.with(shown, "service")})
		}
	}
}
