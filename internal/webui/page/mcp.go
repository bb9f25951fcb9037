// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
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
	if p.settings.Timeout > 0 {
		timed, cancel := context.WithTimeout(ctx, p.settings.Timeout)
		defer cancel()
		ctx = timed
	}
	release, err := p.queries.acquire(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer release()
	var missed catalog.Missing
	err = query.Repeat(func() error {
		missed = catalog.Missing{}
		return read(ctx, p.catalog.Source(&missed))
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = errTimeout
	}
	return missed.Notes(), err
}
