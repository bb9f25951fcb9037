// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"github.com/klauspost/compress/gzhttp"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/catalog"
	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/queryapi"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// IsRPC reports whether a request is one of the query API, whose method is POST.
func IsRPC(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, queryapi.Prefix) }

// rpc makes a handler of a method of the query API, which runs as the queries of pages do.
func (p *Page) rpc(method http.Handler) http.Handler {
	serve := p.query(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set(gzhttp.HeaderNoCompression, "true") // the method compresses
		w.Header().Set("Cache-Control", "no-store")
		method.ServeHTTP(w, r)
		return nil
	}, p.queries)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") { // its trailers do not fit into a complete response
			http.Error(w, "use the Connect protocol", http.StatusUnsupportedMediaType)
			return
		}
		switch err := serve(w, r); {
		case err == nil:
		case errors.Is(err, errBusy):
			w.Header().Set("Retry-After", "5")
			queryapi.WriteError(w, r, connect.NewError(connect.CodeResourceExhausted, err))
		case errors.Is(err, errTimeout):
			queryapi.WriteError(w, r, connect.NewError(connect.CodeDeadlineExceeded, err))
		default:
			queryapi.WriteError(w, r, err)
		}
	})
}

// queries is the files for the query API.
type queries struct{ *Page }

// Source returns the files that may have selected profiles.
func (q queries) Source(ctx context.Context, sel *query.Selection) (*query.Source, func() []error, error) {
	var missed missing
	source, err := q.source(ctx, sel, &missed)
	return source, func() (errs []error) {
		for i, note := range missed.notes() {
			code := connect.CodeDataLoss
			if i == len(missed.failed) { // files that will be read
				code = connect.CodeUnavailable
			}
			errs = append(errs, connect.NewError(code, errors.New(note)))
		}
		return errs
	}, err
}

// Extent is that of all profiles. Of files that were not read, it is estimated.
func (q queries) Extent(ctx context.Context) (catalog.Extent, error) { return q.catalog.Extent(ctx) }
