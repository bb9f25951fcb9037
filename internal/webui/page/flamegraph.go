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
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

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
	if err := checkParameters(values, selecting); err != nil {
		return err
	}
	key := values.Encode() // the path may have more bytes than it states
	pages, found := p.mounts.held.Get(key)
	if !found {
		if pages, err = p.mount(r, values, pagesSize+textFactor*int64(len(key))); err != nil {
			return err
		}
		p.mounts.put(key, pages)
	}
	http.StripPrefix("/p/"+selection, pages).ServeHTTP(w, r)
	return nil
}

const (
	// pagesSize is what pprof's pages keep besides the profile and the text of a selection: 25 kB, measured.
	pagesSize = 32 << 10
	// textFactor is how many times its length they keep a query at most: as key, title and in the banner.
	textFactor = 4
)

// mount makes the pages of a selection. They keep other bytes besides the profile.
func (p *Page) mount(r *http.Request, values url.Values, other int64) (made mount, err error) {
	params, err := parseParams(values, defaultRange, p.now())
	if err != nil {
		return made, err
	}
	found, err := p.offer(r.Context(), params)
	if err != nil {
		return made, err
	}
	merged, notes, err := p.pprof(r, params, true)
	if err != nil {
		return made, withChoices(err, params)
	}
	if err := query.CheckTotals(merged); err != nil {
		return made, err
	}
	if r.Context().Err() != nil { // the following does not look at it
		return made, r.Context().Err()
	}
	var bar bytes.Buffer
	if err := templates.ExecuteTemplate(&bar, "bar", params.bar(viewFlamegraph, found)); err != nil {
		return made, err
	}
	other += int64(bar.Len())
	merged, lost, err := webui.Prune(merged, min(p.options().MaxMemory/webui.RenderingFactor, p.mounts.maxMemory-other))
	switch {
	case err != nil:
		return made, err
	case len(merged.Sample) == 0:
		return made, errors.New("the selection takes too much memory: select less, by service, type or time, or raise max_memory")
	case lost > 0:
		notes = append(notes, fmt.Sprintf("To fit into max_memory, the smallest samples are left out: %.2g %% of the values", lost*100))
	}
	var shown []string
	for _, key := range []string{"service", "type", "trace_id", "span_id", "label"} {
		if values := params.values[key]; len(values) > 0 {
			shown = append(shown, strings.ReplaceAll(key, "_", " ")+" "+strings.Join(values, ", "))
		}
	}
	shown = append(shown, params.Span())
	var banner bytes.Buffer
	render(&banner, "banner", map[string]any{
		"Overview": params.Overview(), "What": shown[:len(shown)-1], "Notes": notes,
		"Bar": template.HTML(bar.String()), // #nosec G203 -- html/template has escaped it
	})
	handler, err := webui.Handler(merged, webui.Options{
		Title:  strings.Join(shown, " "),
		Banner: template.HTML(banner.String()), // #nosec G203 -- html/template has escaped it
	})
	return mount{handler, webui.Size(merged) + other}, err
}

// mounts are pprof's pages of the selections that were shown last. They are used while a slot of Page.rendering is held.
type mounts struct {
	maxMemory int64
	memory    atomic.Int64
	held      *simplelru.LRU[string, mount]
}

type mount struct {
	http.Handler
	size int64
}

func newMounts(maxMemory int64) *mounts {
	held, _ := simplelru.NewLRU[string, mount](math.MaxInt, nil) // an error would be of the number
	return &mounts{maxMemory: maxMemory, held: held}
}

// put keeps pages, and drops those that were used least if all take too much memory.
func (m *mounts) put(selection string, pages mount) {
	for m.held.Len() > 0 && m.memory.Load()+pages.size > m.maxMemory {
		_, oldest, _ := m.held.RemoveOldest()
		m.memory.Add(-oldest.size)
	}
	m.held.Add(selection, pages)
	m.memory.Add(pages.size)
}
