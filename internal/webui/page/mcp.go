// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/mcptools"
)

// mcpPath serves the Model Context Protocol.
const mcpPath = "/mcp"

// mcp returns the handler of the Model Context Protocol: a request is answered at once, without a session.
func (p *Page) mcp(version string) http.Handler {
	server := mcptools.NewServer(version, p.read, func() time.Time { return p.now() })
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: mcptools.MaxRequest, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // webui.Protect knows the names of this host
	})
}

// read is an mcptools.Reader with the limits of a page that reads files.
func (p *Page) read(ctx context.Context, read func(context.Context, *query.Source) error) (notes []string, err error) {
	var missed catalog.Missing
	err = p.bounded(ctx, func(ctx context.Context) error {
		release, err := p.queries.acquire(ctx, 1)
		if err != nil {
			return err
		}
		defer release()
		return query.Repeat(func() error {
			missed = catalog.Missing{}
			return cmp.Or(read(ctx, p.catalog.Source(&missed)), ctx.Err()) // what is found after its end may not be all
		})
	})
	return missed.Notes(), err
}
