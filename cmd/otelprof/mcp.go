// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
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
		answers := &output{to: a.stdout}
		return server.Run(c.Context(), answering{&mcp.IOTransport{Reader: newMessages(os.Stdin, answers), Writer: answers, MaxLineLength: -1}})
	}
	return c
}

// output is a writer of whole lines that stays open.
type output struct {
	mu sync.Mutex
	to io.Writer
}

// Write writes a line.
func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(line)
}

// Close does nothing.
func (o *output) Close() error { return nil }

// messages are the lines of an input that are messages of JSON-RPC. It answers the other ones with an error: the server would end.
type messages struct {
	io.Closer

	lines   *bufio.Reader
	answers io.Writer
	message []byte // with its line feed: what was not read yet
}

func newMessages(input io.ReadCloser, answers io.Writer) *messages {
	return &messages{Closer: input, lines: bufio.NewReaderSize(input, mcptools.MaxRequest), answers: answers}
}

// Read reads from the next message.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.message) == 0 {
		line, err := m.lines.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = m.lines.ReadSlice('\n')
		}
		line = bytes.TrimSpace(line)
		switch answer := rejection(line, tooLong); {
		case answer != nil:
			if _, err := m.answers.Write(answer); err != nil {
				return 0, err
			}
		case len(line) > 0:
			m.message = slices.Concat(line, []byte{'\n'})
		}
		if err != nil && len(m.message) == 0 {
			return 0, err
		}
	}
	n := copy(p, m.message)
	m.message = m.message[n:]
	return n, nil
}

// rejection returns the line that answers one that is no message, with the ID of the request if that has one. It is nil for a message and
// for an empty line.
func rejection(line []byte, tooLong bool) []byte {
	_, err := jsonrpc.DecodeMessage(line)
	failure := jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest}
	switch {
	case tooLong:
		failure.Message = fmt.Sprintf("The line has more than %d bytes", mcptools.MaxRequest)
	case len(line) == 0:
		return nil
	case !json.Valid(line): // err is nil if a message comes first
		failure = jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "The line is not valid JSON"}
	case err == nil:
		return nil
	case line[0] == '[':
		failure.Message = "The line is a batch: must be one message"
	default:
		failure.Message = "The line is no message of JSON-RPC 2.0: " + err.Error()
	}
	var request struct {
		ID any `json:"id"`
	}
	_ = json.Unmarshal(line, &request) // without an ID, the answer has null
	switch request.ID.(type) {
	case string, float64:
	default:
		request.ID = nil
	}
	answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": request.ID, "error": failure}) // nothing in it can fail
	return append(answer, '\n')
}

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
