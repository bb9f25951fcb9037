// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzhttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// apiRow is an element of the response of /api/services.
type apiRow struct {
	Service    string `json:"service"`
	Type       string `json:"type"`
	SampleType string `json:"sample_type"`
	Unit       string `json:"unit"`
	// Snapshot: the sum is that of the last snapshot of each resource.
	Snapshot bool      `json:"snapshot"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Profiles int       `json:"profiles"`
	Samples  int       `json:"samples"`
	Sum      int64     `json:"sum"`
	// Saturated: Sum is the largest or least int64, and the sum is above or below that.
	Saturated bool `json:"saturated,omitempty"`
	// Covered is for how many seconds of the range there are profiles. The last ones of Sum may be longer: Measured is
	// for how many seconds they are in total.
	Covered  float64 `json:"covered_seconds"`
	Measured float64 `json:"measured_seconds"`
}

// apiParams reads the parameters of a request of a program, which may have those in known.
func (p *Page) apiParams(r *http.Request, known []string) (*params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, usageError{fmt.Errorf("the query is malformed: %w", err)}
	}
	if err := checkKnown(values, known); err != nil {
		return nil, err
	}
	return parseParams(values, defaultRange, p.now())
}

func (p *Page) apiServices(w http.ResponseWriter, r *http.Request) error {
	params, err := p.apiParams(r, selectingTotals)
	if err != nil {
		return err
	}
	totals, _, err := p.totals(r.Context(), params.selected, selects(params.selected))
	if err != nil {
		return err
	}
	rows := make([]apiRow, len(totals))
	for i, t := range totals {
		sum, saturated := t.Sum.Int64()
		rows[i] = apiRow{
			t.Service, t.Type, t.SampleType, t.Unit, t.Snapshot, query.TimeOf(t.First), query.TimeOf(t.Last),
			t.Profiles, t.Samples, sum, saturated, t.Covered.Seconds(), t.Measured.Seconds(),
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(map[string]any{
		"from": params.selected.From.UTC(), "to": params.selected.To.UTC(), "services": rows,
	})
}

func (p *Page) apiProfile(w http.ResponseWriter, r *http.Request) error {
	params, err := p.apiParams(r, selecting)
	if err != nil {
		return err
	}
	merged, notes, err := p.pprof(r, params)
	if err != nil {
		return err
	}
	merged.Comments = append(merged.Comments, notes...)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(gzhttp.HeaderNoCompression, "true") // it is compressed
	w.Header().Set("Content-Disposition", `attachment; filename="profile.pb.gz"`)
	w.Header().Set("Cache-Control", "no-store")
	return query.WritePprof(w, merged)
}

// pprof returns the selected profiles as one, minus those of the base, and notes for the reader.
func (p *Page) pprof(r *http.Request, params *params) (merged *profile.Profile, notes []string, err error) {
	compared, err := query.Compare(params.selected, params.base, params.now, func(sel *query.Selection) (*query.Result, error) {
		return p.merge(r, sel, &notes)
	})
	if err != nil {
		return nil, nil, err
	}
	notes = append(notes, compared.Notes...)
	if params.base != nil {
		notes = append(notes, fmt.Sprintf("Difference to the base, %s, multiplied by %.4g", spanText(params.base), compared.Factor))
	}
	return compared.Pprof, notes, nil
}

// merge sums the selected profiles. Errors of reading are added to notes.
func (p *Page) merge(r *http.Request, sel *query.Selection, notes *[]string) (*query.Result, error) {
	source, err := p.source(r, sel, notes)
	if err != nil {
		return nil, err
	}
	result, err := source.Merge(r.Context(), sel, true)
	if errors.Is(err, query.ErrEmpty) && len(*notes) > 0 {
		return nil, fmt.Errorf("no profile could be read: %s", (*notes)[0])
	}
	return result, err
}

// source returns the files that may have selected profiles. Errors of reading are added to notes.
func (p *Page) source(r *http.Request, sel *query.Selection, notes *[]string) (*query.Source, error) {
	options := p.options()
	files, err := p.catalog.Files(r.Context(), options, sel.From, sel.To, selects(sel))
	const most = 5
	return &query.Source{Files: files, Options: *options, Failed: func(err error) error {
		if len(*notes) < most {
			*notes = append(*notes, "Cannot read "+err.Error())
		}
		return nil
	}}, err
}
