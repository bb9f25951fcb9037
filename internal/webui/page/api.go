// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
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
	// Rate is the sum per second of all processes, averaged over the time that has data, and PerProcess that of one. Snapshots, and profiles
	// without a duration, have none.
	Rate       *float64 `json:"rate,omitempty"`
	PerProcess *float64 `json:"rate_per_process,omitempty"`
	// Processes is how many processes there were, and of snapshots how many live: Sum is theirs.
	Processes int `json:"processes"`
	// Covered is the profiled time of all processes.
	Covered *float64 `json:"covered_seconds,omitempty"`
	// Age is how long before the end of the range the latest snapshot was.
	Age *float64 `json:"age_seconds,omitempty"`
}

// rowOf returns the row of a total.
func rowOf(t *total, sel *query.Selection) apiRow {
	row := apiRow{
		kind: t.kind, Start: query.TimeOf(t.First), End: query.TimeOf(t.Last), Profiles: t.Profiles, Samples: t.Samples,
		Sum: t.Sum, Saturated: sampletypes.Saturated(t.Sum), Processes: t.Processes,
	}
	switch {
	case t.Snapshot:
		age := sel.To.Sub(query.TimeOf(t.At)).Seconds()
		row.Processes, row.Age = t.Living, &age
	case t.hasRate():
		row.Rate, row.PerProcess, row.Covered = &t.Rate, &t.PerProcess, &t.Covered
	}
	return row
}

// unreadPart is what the response of /api/services lacks.
type unreadPart struct {
	File     string   `json:"file,omitempty"`
	Record   int      `json:"record,omitempty"`
	Services []string `json:"services,omitempty"` // none: it may be any
	Error    string   `json:"error"`
}

func (p *Page) apiServices(w http.ResponseWriter, r *http.Request) error {
	params, err := parseParams(r.URL.Query(), defaultRange, p.now())
	if err != nil {
		return err
	}
	found, err := totalsOf(r.Context(), p.catalog, scopeOf(r.Context(), params.selected), p.room())
	if err != nil {
		return err
	}
	rows := make([]apiRow, len(found.groups))
	for i, t := range found.groups {
		rows[i] = rowOf(t, params.selected)
	}
	unread := []unreadPart{}
	for _, err := range found.missed.Failed {
		part := unreadPart{Error: err.Error()}
		if of, ok := errors.AsType[*archive.Error](err); ok {
			part = unreadPart{of.File, of.Record, of.Services, of.InFile()}
		}
		if part.Services == nil || slices.ContainsFunc(part.Services, params.selected.MatchesService) {
			unread = append(unread, part)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(map[string]any{
		"from": params.selected.From.UTC(), "to": params.selected.To.UTC(), "services": rows, "unread": unread,
	})
}

func (p *Page) apiProfile(w http.ResponseWriter, r *http.Request) error {
	params, err := parseParams(r.URL.Query(), defaultRange, p.now())
	if err != nil {
		return err
	}
	compared, notes, err := p.compare(r.Context(), params.selected, params.base)
	if err != nil {
		return err
	}
	notes = append(notes, compared.Notes...)
	merged, err := compared.Pprof(false)
	if err != nil {
		return err
	}
	if of := compared.Shown(); params.base != nil {
		notes = append(notes, fmt.Sprintf("Difference to the base, %s, multiplied by %.4g: they differ as their rates", spanText(params.base), of.Factor()))
		if of.Basis == query.Rates {
			write := kind{SampleType: of.Type, Unit: of.Unit}.value
			notes = append(notes, fmt.Sprintf("%s: %s, profiled %s of the time of the processes; base: %s, profiled %s", of.Type,
				write(of.New.Rate), webui.Percent(of.New.Coverage()), write(of.Base.Rate), webui.Percent(of.Base.Coverage())))
		}
	}
	merged.Comments = append(merged.Comments, notes...)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(gzhttp.HeaderNoCompression, "true") // it is compressed
	w.Header().Set("Content-Disposition", `attachment; filename="profile.pb.gz"`)
	w.Header().Set("Cache-Control", "no-store")
	return query.WritePprof(w, merged)
}

// compare compares the selected profiles with those of the base, unless that is nil. unread are notes about what could not be read.
func (p *Page) compare(ctx context.Context, selected, base *query.Selection) (compared *query.Comparison, unread []string, err error) {
	var missed catalog.Missing
	compared, err = query.Compare(ctx, p.catalog.Source(&missed), selected, p.base.Source(&missed), base)
	unread = missed.Notes()
	switch {
	case errors.Is(err, query.ErrEmpty) && len(missed.Failed) > 0:
		return nil, nil, fmt.Errorf("no profile could be read: %s", unread[0])
	case err != nil:
		return nil, nil, err
	}
	return compared, unread, nil
}
