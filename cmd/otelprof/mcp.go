// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/mcptools"
)

func (a *app) mcp() *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp PATH...",
		Short: "Answer questions of an assistant about profiles",
		Long: `Serve the Model Context Protocol on standard input and output, for an assistant
that starts this command. Its tools list services and types, top functions and
their callers, differences, values over time, what grew most, and the spans of a
trace. Each answer says how many samples it rests on, how much of the time was
profiled and how uncertain it is. Nothing is written.

Names and messages of the answers come from the profiles. They are data, cut and
escaped, but an assistant reads them: show it no profiles of senders whom you
would not let write to it.`,
		Example: `  otelprof mcp ./profiles`,
		Args:    paths,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, err := a.source(args); err != nil { // before an assistant asks
			return err
		}
		a.progress.stop()
		one := semaphore.NewWeighted(1) // each query may take all of --max-memory
		read := func(ctx context.Context, read func(context.Context, *query.Source) error) (notes []string, err error) {
			if err := one.Acquire(ctx, 1); err != nil {
				return nil, err
			}
			defer one.Release(1)
			source, err := a.source(args) // files may be new
			if err != nil {
				return nil, err
			}
			source.Failed = func(err error) error {
				notes = append(notes, "Cannot read "+err.Error())
				return a.failed(err)
			}
			err = query.Repeat(func() error {
				notes = nil
				return read(ctx, source)
			})
			return notes, err
		}
		server := mcptools.NewServer(versions(), read, time.Now)
		return server.Run(c.Context(), answering{&mcp.IOTransport{Reader: os.Stdin, Writer: open{a.stdout}, MaxLineLength: mcptools.MaxRequest}})
	}
	return c
}

// open is a writer that stays open.
type open struct{ io.Writer }

// Close does nothing.
func (open) Close() error { return nil }

// answering is a transport that answers all requests before the end of its input, as of a pipe.
type answering struct{ mcp.Transport }

// Connect returns the connection.
func (t answering) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	return &answeringConnection{Connection: c}, err
}

type answeringConnection struct {
	mcp.Connection

	unanswered atomic.Int64
}

// Read returns the next message. The end of the input comes when all requests are answered, or after a minute.
func (c *answeringConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		c.unanswered.Add(1)
	}
	if errors.Is(err, io.EOF) {
		limited, cancel := context.WithTimeout(ctx, time.Minute) // a request that was cancelled may have no answer
		defer cancel()
		for c.unanswered.Load() > 0 && limited.Err() == nil {
			select {
			case <-limited.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return message, err
}

// Write sends a message.
func (c *answeringConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if _, ok := message.(*jsonrpc.Response); ok {
		c.unanswered.Add(-1)
	}
	return err
}
