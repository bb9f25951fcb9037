// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzhttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// apiRow is an element of the response of /api/services.
type apiRow struct {
	kind

	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Profiles int       `json:"profiles"`
	Samples  int       `json:"samples"`
	Sum      int64     `json:"sum"`
	// Saturated: Sum is the largest or least int64, and the sum may be above or below that.
	Saturated bool `json:"saturated,omitempty"`
	// Covered is for how many seconds of the range there are profiles. The last ones of Sum may be longer: Measured is
	// for how many seconds they are in total.
	Covered  float64 `json:"covered_seconds"`
	Measured float64 `json:"measured_seconds"`
}

func (p *Page) apiServices(w http.ResponseWriter, r *http.Request) error {
	params, err := parseParams(r.URL.Query(), defaultRange, p.now())
	if err != nil {
		return err
	}
	totals, _, err := p.totals(r.Context(), params.selected, params.selected.MatchesKey)
	if err != nil {
		return err
	}
	rows := make([]apiRow, len(totals))
	for i, t := range totals {
		rows[i] = apiRow{
			t.kind, query.TimeOf(t.First), query.TimeOf(t.Last), t.Profiles, t.Samples, t.Sum, recordfile.Saturated(t.Sum), t.Covered.Seconds(), t.Measured.Seconds(),
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(map[string]any{
		"from": params.selected.From.UTC(), "to": params.selected.To.UTC(), "services": rows,
	})
}

func (p *Page) apiProfile(w http.ResponseWriter, r *http.Request) error {
	params, err := parseParams(r.URL.Query(), defaultRange, p.now())
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
	source, err := p.source(r, params.selected, &notes)
	base := source
	if err == nil && params.base != nil {
		base, err = p.source(r, params.base, &notes)
	}
	if err != nil {
		return nil, nil, err
	}
	compared, err := query.Compare(r.Context(), source, params.selected, base, params.base, params.now)
	switch {
	case errors.Is(err, query.ErrEmpty) && len(notes) > 0:
		return nil, nil, fmt.Errorf("no profile could be read: %s", notes[0])
	case err != nil:
		return nil, nil, err
	}
	notes = append(notes, compared.Notes...)
	if params.base != nil {
		notes = append(notes, fmt.Sprintf("Difference to the base, %s, multiplied by %.4g", spanText(params.base), compared.Factor))
	}
	return compared.Pprof, notes, nil
}

// source returns the files that may have selected profiles. Errors of reading are added to notes.
func (p *Page) source(r *http.Request, sel *query.Selection, notes *[]string) (*query.Source, error) {
	files, err := p.catalog.Files(r.Context(), sel.From, sel.To, sel.MatchesKey)
	const most = 5
	return &query.Source{Files: files, Options: p.options(), Failed: func(err error) error {
		if len(*notes) < most {
			*notes = append(*notes, "Cannot read "+err.Error())
		}
		return nil
	}}, err
}
