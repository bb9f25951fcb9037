// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// flamegraph redirects to pprof's pages of the selection, whose paths state it: their links are relative
// and have parameters of pprof. Times become absolute, so that all pages show the same.
func (p *Page) flamegraph(w http.ResponseWriter, r *http.Request) {
	params, err := parseParams(r.URL.Query(), defaultRange, p.now())
	if err != nil {
		writeErrorPage(w, r, err)
		return
	}
	changes := []change{between("", params.selected.From, params.selected.To)}
	if params.base != nil {
		changes = append(changes, between("base_", params.base.From, params.base.To))
	}
	selection := base64.RawURLEncoding.EncodeToString([]byte(params.with(changes...)))
	shown := ""
	if sampleType := r.URL.Query().Get("si"); sampleType != "" { // a parameter of pprof
		shown = "?" + url.Values{"si": {sampleType}}.Encode()
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, "/p/"+selection+"/flamegraph"+shown, http.StatusFound)
}

// mounted serves pprof's pages of a selection.
func (p *Page) mounted(w http.ResponseWriter, r *http.Request) {
	selection := r.PathValue("selection")
	decoded, err := base64.RawURLEncoding.DecodeString(selection)
	values, malformed := url.ParseQuery(string(decoded))
	if err != nil || malformed != nil {
		notFound(w, r)
		return
	}
	p.run(w, r, writeErrorPage, p.acquireRendering, func(w http.ResponseWriter, r *http.Request) error {
		handler := p.mounts.get(selection)
		if handler == nil {
			if handler, err = p.mount(r, selection, values); err != nil {
				return err
			}
		}
		http.StripPrefix("/p/"+selection, handler).ServeHTTP(w, r)
		return nil
	})
}

// acquireRendering acquires the memory of a query for a page of pprof, of which one is made at a time.
func (p *Page) acquireRendering(ctx context.Context) (release func(), err error) {
	releaseRendering, err := p.rendering.acquire(ctx)
	if err != nil {
		return nil, err
	}
	releaseQuery, err := p.queries.acquire(ctx)
	if err != nil {
		releaseRendering()
		return nil, err
	}
	return func() { releaseQuery(); releaseRendering() }, nil
}

// mount makes the pages of a selection.
func (p *Page) mount(r *http.Request, selection string, values url.Values) (http.Handler, error) {
	params, err := parseParams(values, defaultRange, p.now())
	if err != nil {
		return nil, err
	}
	merged, notes, err := p.pprof(r, params)
	if err != nil {
		return nil, err
	}
	if err := query.CheckTotals(merged); err != nil {
		return nil, err
	}
	merged, lost, err := webui.Prune(merged, min(p.options().MaxMemory/webui.RenderingFactor, p.mounts.maxMemory))
	switch {
	case err != nil:
		return nil, err
	case len(merged.Sample) == 0:
		return nil, errors.New("the selection takes too much memory: select less, by service, type or time, or raise max_memory")
	case lost > 0:
		notes = append(notes, fmt.Sprintf("To fit into max_memory, the smallest samples are left out: %.2g %% of the values", lost*100))
	}
	shown := newBanner(params, notes)
	var html bytes.Buffer
	render(&html, "banner", shown)
	handler, err := webui.Handler(merged, webui.Options{
		Title:  strings.Join(shown.What, " "),
		Banner: template.HTML(html.String()), // #nosec G203 -- html/template has escaped it
	})
	if err != nil {
		return nil, err
	}
	p.mounts.put(selection, handler, webui.Size(merged))
	return handler, nil
}

// banner is the content of the template of the same name.
type banner struct {
	Overview template.URL
	What     []string
	Notes    []string
}

func newBanner(params *params, notes []string) *banner {
	sel := params.selected
	b := &banner{Overview: params.overview(), Notes: notes}
	for _, key := range []string{"service", "type", "trace_id", "span_id", "attribute", "resource"} {
		if values := params.values[key]; len(values) > 0 {
			b.What = append(b.What, strings.ReplaceAll(key, "_", " ")+" "+strings.Join(values, ", "))
		}
	}
	b.What = append(b.What, spanText(sel))
	return b
}
