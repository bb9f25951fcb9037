// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query/pgo"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
)

// pgoRange is the range of a profile for the compiler whose URL names none.
const pgoRange = 24 * time.Hour

// apiPGO writes a profile for go build -pgo. Headers say of which versions it is, and how old.
func (p *Page) apiPGO(w http.ResponseWriter, r *http.Request) error {
	params, err := parseParams(r.URL.Query(), pgoRange, p.now())
	if err != nil {
		return err
	}
	if len(params.values["service"]) != 1 {
		return usageError{errors.New("service must be set once: a profile is of one program")}
	}
	var missed catalog.Missing
	made, err := pgo.Make(r.Context(), p.catalog.Source(&missed), params.selected)
	if err != nil {
		return err
	}
	made.Pprof.Comments = append(made.Pprof.Comments, missed.Notes()...)
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set(gzhttp.HeaderNoCompression, "true") // it is compressed
	h.Set("Content-Disposition", `attachment; filename="default.pgo"`)
	h.Set("Cache-Control", "no-store")
	h.Set("Profile-Versions", pgo.List(made.Versions, ""))
	h.Set("Profile-Build-Ids", pgo.List(made.BuildIDs, ""))
	h.Set("Profile-Samples", strconv.FormatFloat(made.Samples, 'f', 0, 64))
	if !made.Last.IsZero() {
		h.Set("Last-Modified", made.Last.Format(http.TimeFormat))
		h.Set("Profile-Age-Seconds", strconv.FormatFloat(max(0, p.now().Sub(made.Last).Seconds()), 'f', 0, 64))
	}
	return query.WritePprof(w, made.Pprof)
}
