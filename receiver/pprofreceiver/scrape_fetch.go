// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

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

// Outcomes of a scrape, as its metric has them.
const (
	outcomeSuccess     = "success"
	outcomeUnreachable = "unreachable"  // no answer: refused, reset, TLS, name
	outcomeTimeout     = "timeout"      // not over within timeout
	outcomeRedirect    = "redirect"     // to another host, or too often
	outcomeStatus      = "status"       // other than 200
	outcomeContentType = "content_type" // not that of a profile
	outcomeBody        = "body"         // it ended early
	outcomeTooLarge    = "too_large"    // over a limit
	outcomeMalformed   = "malformed"    // not a pprof
	outcomeRefused     = "refused"      // by the next component
	outcomePanic       = "panic"        // a fault of ours, or of the pipeline
)

// scrapeError is a scrape without success.
type scrapeError struct {
	outcome string
	err     error
}

func (e *scrapeError) Error() string { return e.err.Error() }
func (e *scrapeError) Unwrap() error { return e.err }

func failed(outcome string, format string, arguments ...any) *scrapeError {
	return &scrapeError{outcome: outcome, err: fmt.Errorf(format, arguments...)}
}

// outcomeOf names the outcome of a scrape that ended with err.
func outcomeOf(err error) string {
	var (
		known    *scrapeError
		limit    *pproftranslator.LimitError
		pipeline *ingest.PipelineError
	)
	switch {
	case err == nil:
		return outcomeSuccess
	case errors.As(err, &known):
		return known.outcome
	case errors.As(err, &pipeline):
		return outcomeRefused
	case errors.As(err, &limit):
		return outcomeTooLarge
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ingest.ErrInFlightLimit):
		return outcomeTimeout
	}
	return outcomeMalformed
}

// errNoProfile: a target answered with nothing.
var errNoProfile = errors.New("empty, want a pprof profile")

const (
	// maxRedirects is how often one scrape is sent elsewhere on the same host.
	maxRedirects = 3

	// freeBody is how much of a body, in bytes, arrives whatever other targets
	// send: only what is larger waits for them.
	freeBody = 1 << 20
)

// stayOnHost lets redirects lead only to the scheme, host and port that were asked:
// whatever credentials are configured go with every request of the client.
func stayOnHost(request *http.Request, via []*http.Request) error {
	asked := via[0].URL
	switch to := request.URL; {
	case to.Scheme != asked.Scheme || to.Host != asked.Host:
		return failed(outcomeRedirect, "redirected to another host (%s://%s), which is not followed", to.Scheme, to.Host)
	case len(via) > maxRedirects:
		return failed(outcomeRedirect, "redirected more than %d times", maxRedirects)
	}
	return nil
}

// fetcher gets profiles over HTTP. It is safe for concurrent use.
type fetcher struct {
	client    *http.Client
	limit     int // bytes of a body, and of a payload
	arriving  *ingest.InFlight
	workingOn *ingest.InFlight
}

// fetch gets one profile, and takes off its compression. What it returns is held by
// the reservation, of workingOn. Errors never hold the query of the URL.
func (f *fetcher) fetch(ctx context.Context, from *url.URL, held *ingest.Reservation) ([]byte, error) {
	arriving := f.arriving.Reserve()
	defer arriving.Release()
	body, err := f.get(ctx, from, arriving)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, errNoProfile
	}
	if err := held.Resize(ctx, int64(cap(body))); err != nil {
		return nil, err
	}
	payload, err := ingest.Decompress(ctx, body, f.limit, held)
	if err == nil && ingest.IsJFR(payload) {
		err = ingest.ErrJFR
	}
	return payload, err
}

func (f *fetcher) get(ctx context.Context, from *url.URL, held *ingest.Reservation) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), http.NoBody)
	if err != nil {
		return nil, failed(outcomeUnreachable, "%w", withoutURL(err))
	}
	response, err := f.client.Do(request)
	if err != nil {
		err = withoutURL(err)
		if outcomeOf(err) != outcomeMalformed { // it has one of its own
			return nil, err
		}
		return nil, failed(outcomeUnreachable, "%w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, failed(outcomeStatus, "status %d, want 200", response.StatusCode)
	case !mayBeProfile(response.Header.Get("Content-Type")):
		return nil, failed(outcomeContentType, "Content-Type %.100q, want that of a binary profile as in application/octet-stream", response.Header.Get("Content-Type"))
	case response.ContentLength > int64(f.limit):
		return nil, &pproftranslator.LimitError{What: "body in bytes", Limit: int64(f.limit), Got: response.ContentLength}
	}
	body, err := f.readBody(ctx, response, held)
	switch {
	case err == nil:
		return body, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the body did not end in time: %w", ctx.Err())
	case outcomeOf(err) != outcomeMalformed:
		return nil, err
	}
	return nil, failed(outcomeBody, "the body broke off: %w", err)
}

// readBody reads a body of at most limit bytes. What is beyond freeBody is taken
// from the reservation, as it arrives.
func (f *fetcher) readBody(ctx context.Context, response *http.Response, held *ingest.Reservation) ([]byte, error) {
	limited := &io.LimitedReader{R: response.Body, N: int64(f.limit) + 1}
	var begin bytes.Buffer
	n, err := io.CopyN(&begin, limited, freeBody)
	body := begin.Bytes()
	if err == nil && n == freeBody {
		body, err = ingest.ReadAll(ctx, io.MultiReader(&begin, limited), response.ContentLength, held)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(body) > f.limit {
		return nil, &pproftranslator.LimitError{What: "body in bytes", Limit: int64(f.limit)}
	}
	return body, nil
}

// withoutURL takes the URL off an error of net/http: its query may hold secrets.
func withoutURL(err error) error {
	for {
		var wrapped *url.Error
		if !errors.As(err, &wrapped) {
			return err
		}
		err = wrapped.Err
	}
}

// mayBeProfile tells whether a Content-Type may be that of a pprof. Many servers
// send none, or one of their own; text is what pages and ?debug=1 come as.
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
