// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// The values of the attribute outcome of scrapes.
const (
	outcomeSuccess     = "success"
	outcomeUnreachable = "unreachable"  // no answer: refused, reset, TLS, name
	outcomeTimeout     = "timeout"      // not finished within timeout
	outcomeRedirect    = "redirect"     // to another host, or too many
	outcomeStatus      = "status"       // other than 200
	outcomeContentType = "content_type" // not that of a profile
	outcomeBody        = "body"         // it ended early
	outcomeTooLarge    = "too_large"    // over a limit
	outcomeMalformed   = "malformed"    // not a pprof
	outcomeRejected    = "rejected"     // by the next consumer
	outcomePanic       = "panic"        // a bug of ours, or of the pipeline
)

// scrapeError is an error with an outcome of its own.
type scrapeError struct {
	outcome string
	err     error
}

func (e *scrapeError) Error() string { return e.err.Error() }
func (e *scrapeError) Unwrap() error { return e.err }

func failed(outcome string, format string, arguments ...any) *scrapeError {
	return &scrapeError{outcome: outcome, err: fmt.Errorf(format, arguments...)}
}

// outcomeOf is the outcome of a scrape that ended with err.
func outcomeOf(err error) string {
	own, hasOutcome := errors.AsType[*scrapeError](err)
	_, pipeline := errors.AsType[*ingest.PipelineError](err)
	_, tooLarge := errors.AsType[*pproftranslator.LimitError](err)
	switch {
	case err == nil:
		return outcomeSuccess
	case hasOutcome:
		return own.outcome
	case pipeline:
		return outcomeRejected
	case tooLarge:
		return outcomeTooLarge
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ingest.ErrInFlightLimit):
		return outcomeTimeout
	}
	return outcomeMalformed
}

const (
	// maxRedirects is how many redirects a scrape follows, on the same host.
	maxRedirects = 3

	// freeBody is how much of a body, in bytes, arrives whatever other targets send.
	// Only larger ones wait for them.
	freeBody = 1 << 20
)

// stayOnHost allows redirects only to the scheme, host and port of the request: the
// client sends the configured credentials with every request.
func stayOnHost(request *http.Request, via []*http.Request) error {
	original := via[0].URL
	switch to := request.URL; {
	case to.Scheme != original.Scheme || to.Host != original.Host:
		return failed(outcomeRedirect, "redirected to another host (%s://%s), which is not followed", to.Scheme, to.Host)
	case len(via) > maxRedirects:
		return failed(outcomeRedirect, "redirected more than %d times", maxRedirects)
	}
	return nil
}

// fetch gets the body of one profile, for which it takes over the reservation. Errors
// never hold the query of the URL.
func (s *Scraper) fetch(ctx context.Context, from *url.URL, held *ingest.Reservation) ([]byte, error) {
	arriving := s.arriving.Reserve()
	defer arriving.Release()
	body, err := s.get(ctx, from, arriving)
	switch {
	case err != nil:
		return nil, err
	case len(body) == 0:
		return nil, errors.New("empty, want a pprof profile")
	}
	return body, held.Resize(ctx, int64(cap(body)))
}

func (s *Scraper) get(ctx context.Context, from *url.URL, held *ingest.Reservation) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), http.NoBody)
	if err != nil {
		return nil, failed(outcomeUnreachable, "%w", withoutURL(err))
	}
	response, err := s.client.Do(request)
	if err != nil {
		err = withoutURL(err)
		if outcomeOf(err) != outcomeMalformed { // it has an outcome of its own
			return nil, err
		}
		return nil, failed(outcomeUnreachable, "%w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, failed(outcomeStatus, "status %d, want 200", response.StatusCode)
	case !mayBeProfile(response.Header.Get("Content-Type")):
		return nil, failed(outcomeContentType, "Content-Type %.100q, want that of a binary profile such as application/octet-stream", response.Header.Get("Content-Type"))
	case response.ContentLength > int64(s.limit):
		return nil, &pproftranslator.LimitError{What: "body in bytes", Limit: int64(s.limit), Got: response.ContentLength}
	}
	body, err := s.readBody(ctx, response, held)
	switch {
	case err == nil:
		return body, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the body did not end in time: %w", ctx.Err())
	case outcomeOf(err) != outcomeMalformed:
		return nil, err
	}
	return nil, failed(outcomeBody, "the body ended early: %w", err)
}

// readBody reads a body of at most limit bytes. It reserves bytes beyond freeBody as they
// arrive.
func (s *Scraper) readBody(ctx context.Context, response *http.Response, held *ingest.Reservation) ([]byte, error) {
	limited := &io.LimitedReader{R: response.Body, N: int64(s.limit) + 1}
	var start bytes.Buffer
	n, err := io.CopyN(&start, limited, freeBody)
	body := start.Bytes()
	if err == nil && n == freeBody {
		body, err = ingest.ReadAll(ctx, io.MultiReader(&start, limited), response.ContentLength, held)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(body) > s.limit {
		return nil, &pproftranslator.LimitError{What: "body in bytes", Limit: int64(s.limit)}
	}
	return body, nil
}

// withoutURL unwraps the errors of net/http that hold the URL: its query may be secret.
func withoutURL(err error) error {
	for {
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = wrapped.Err
	}
}

// mayBeProfile reports whether a pprof may have this Content-Type. Many servers send none
// or their own; HTML pages and ?debug=1 are text.
func mayBeProfile(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType = strings.ToLower(strings.TrimSpace(contentType))
	}
	main, sub, _ := strings.Cut(mediaType, "/")
	switch main {
	case "text", "image", "audio", "video", "multipart", "font":
		return false
	}
	for _, text := range []string{"json", "xml", "javascript", "yaml"} {
		if sub == text || strings.HasSuffix(sub, "+"+text) {
			return false
		}
	}
	return true
}
