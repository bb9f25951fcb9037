// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"github.com/klauspost/compress/gzhttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi"
)

// IsRPC reports whether a request is one of the query API or of the Model Context Protocol, whose method is POST.
func IsRPC(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, queryapi.Prefix) || r.URL.Path == mcpPath
}

// rpc makes a handler of a method of the query API, which runs as the queries of pages do.
func (p *Page) rpc(method http.Handler) http.Handler {
	serve := p.query(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set(gzhttp.HeaderNoCompression, "true") // the method compresses
		w.Header().Set("Cache-Control", "no-store")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		method.ServeHTTP(w, r)
		return nil
	}, p.queries)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") { // its trailers do not fit into a complete response
			http.Error(w, "use the Connect protocol", http.StatusUnsupportedMediaType)
			return
		}
		err := serve(w, r)
		tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err)
		switch {
		case err == nil:
		case isTooLarge:
			queryapi.WriteTooLarge(w, r, tooLarge.Limit)
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
