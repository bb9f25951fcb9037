// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/catalog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// tracePage is the content of the template trace.
type tracePage struct {
	Title    string
	Overview template.URL
	Span     string
	Ranges   []link
	Services []*service
	Types    []link // flame graphs across services
	Errors   []string
}

// findTrace redirects from the form to the page of a trace.
func (p *Page) findTrace(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	id := strings.ToLower(strings.TrimSpace(values.Get("id")))
	values.Del("id")
	// #nosec G710 -- the path starts with /trace/
	http.Redirect(w, r, "/trace/"+url.PathEscape(cmp.Or(id, "none"))+"?"+values.Encode(), http.StatusFound)
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
	t := &tracePage{
		Title: "trace " + r.PathValue("id"), Overview: params.overview(), Span: spanText(sel),
		Ranges: params.ranges(traceRange, without("trace_id")),
	}
	totals, err := p.traceTotals(r, sel, &t.Errors)
	if err != nil {
		return err
	}
	at := between("", sel.From, sel.To)
	t.Services = byService(totals, func(total *total) *row {
		return &row{total: total, Value: total.quantity(total.Sum.Float64()), Query: params.with(withoutBase, at, set("service", total.Service), set("type", total.selector()))}
	})
	types := map[string]bool{}
	for _, s := range t.Services {
		s.Rows = s.order()
		for _, r := range s.Rows {
			if selector := r.selector(); !types[selector] {
				types[selector] = true
				t.Types = append(t.Types, link{Text: strings.TrimPrefix(selector, ":"), Query: params.with(withoutBase, at, without("service"), set("type", selector))})
			}
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	render(w, "trace", t)
	return nil
}

// traceTotals sums the selected samples by service, type and sample type.
func (p *Page) traceTotals(r *http.Request, sel *query.Selection, errs *[]string) ([]*total, error) {
	source, err := p.source(r, sel, errs)
	if err != nil {
		return nil, err
	}
	byKind := totals{}
	err = source.Each(r.Context(), sel, func(record *archive.Record, pd pprofile.Profiles) error {
		summaries, err := recordfile.Summarize(pd)
		if err != nil {
			return record.Fail(err)
		}
		for _, s := range summaries {
			byKind.add(&s.Key, []recordfile.Total{catalog.TotalOf(&s)})
		}
		return nil
	})
	return byKind.sorted(sel.To), err
}
