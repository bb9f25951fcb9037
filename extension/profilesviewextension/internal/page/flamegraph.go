// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// flamegraph redirects to pprof's pages of the selection, whose paths state it: their links are relative
// and have parameters of pprof. Times become absolute, so that all pages show the same.
func (p *Page) flamegraph(w http.ResponseWriter, r *http.Request) error {
	params, err := parseParams(r.URL.Query(), defaultRange, p.now())
	if err != nil {
		return err
	}
	changes := between("", params.selected.From, params.selected.To)
	if params.base != nil {
		maps.Copy(changes, between("base_", params.base.From, params.base.To))
	}
	location := "/p/" + base64.RawURLEncoding.EncodeToString([]byte(params.with(changes))) + "/flamegraph"
	if sampleType := r.URL.Query().Get("si"); sampleType != "" { // a parameter of pprof
		location += "?" + url.Values{"si": {sampleType}}.Encode()
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, location, http.StatusFound)
	return nil
}

// mounted serves pprof's pages of a selection.
func (p *Page) mounted(w http.ResponseWriter, r *http.Request) error {
	selection := r.PathValue("selection")
	decoded, err := base64.RawURLEncoding.DecodeString(selection)
	values, malformed := url.ParseQuery(string(decoded))
	if err != nil || malformed != nil {
		return errNotFound
	}
	handler := p.mounts.get(selection)
	if handler == nil {
		if handler, err = p.mount(r, selection, values); err != nil {
			return err
		}
	}
	http.StripPrefix("/p/"+selection, handler).ServeHTTP(w, r)
	return nil
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
	var shown []string
	for _, key := range []string{"service", "type", "trace_id", "span_id", "attribute", "resource"} {
		if values := params.values[key]; len(values) > 0 {
			shown = append(shown, strings.ReplaceAll(key, "_", " ")+" "+strings.Join(values, ", "))
		}
	}
	shown = append(shown, params.Span())
	var banner bytes.Buffer
	render(&banner, "banner", map[string]any{"Overview": params.Overview(), "What": shown, "Notes": notes})
	handler, err := webui.Handler(merged, webui.Options{
		Title:  strings.Join(shown, " "),
		Banner: template.HTML(banner.String()), // #nosec G203 -- html/template has escaped it
	})
	if err != nil {
		return nil, err
	}
	p.mounts.put(selection, handler, webui.Size(merged))
	return handler, nil
}

// mounts are pprof's pages of the selections that were shown last. They are used while a slot of Page.rendering is held.
type mounts struct {
	maxMemory int64
	held      []mount // the one that was used last comes last
	memory    int64
}

type mount struct {
	key     string
	handler http.Handler
	size    int64
}

func (m *mounts) get(key string) http.Handler {
	i := slices.IndexFunc(m.held, func(held mount) bool { return held.key == key })
	if i < 0 {
		return nil
	}
	found := m.held[i]
	m.held = append(slices.Delete(m.held, i, i+1), found)
	return found.handler
}

// put keeps a handler, and drops those that were used least if all take too much memory.
func (m *mounts) put(key string, handler http.Handler, size int64) {
	for len(m.held) > 0 && m.memory+size > m.maxMemory {
		m.memory -= m.held[0].size
		m.held = slices.Delete(m.held, 0, 1)
	}
	m.held = append(m.held, mount{key, handler, size})
	m.memory += size
}
