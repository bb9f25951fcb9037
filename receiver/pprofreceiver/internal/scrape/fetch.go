// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/httpguard"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// The values of the attribute outcome of scrapes besides those of ingest.Outcome, of which retryable is rejected.
const (
	outcomeSuccess     = "success"
	outcomeUnreachable = "unreachable" // no answer: refused, reset, TLS, name
	outcomeTimeout     = "timeout"     // not finished within timeout
	outcomeRedirect    = "redirect"    // to another host, or too many
	outcomeStatus      = "status"      // other than 200
	outcomeBody        = "body"        // it ended early
)

// scrapeError is an error with an outcome of its own.
type scrapeError struct {
	outcome string
	error
}

func (e scrapeError) Unwrap() error { return e.error }

func failed(outcome string, format string, arguments ...any) error {
	return scrapeError{outcome, fmt.Errorf(format, arguments...)}
}

// errAbsent: the target does not have an optional profile.
var errAbsent = errors.New("the target does not have this profile")

// unlessKnown is failed for an error that has no outcome of its own.
func unlessKnown(err error, outcome, format string) error {
	if outcomeOf(err) != ingest.OutcomeMalformed {
		return err
	}
	return failed(outcome, format, err)
}

// outcomeOf is the outcome of a scrape that ended with err.
func outcomeOf(err error) string {
	own, isOwn := errors.AsType[scrapeError](err)
	_, redirected := errors.AsType[*httpguard.RedirectError](err)
	outcome := ingest.Outcome(err)
	switch {
	case err == nil:
		return outcomeSuccess
	case isOwn:
		return own.outcome
	case redirected:
		return outcomeRedirect
	case outcome == ingest.OutcomeRetryable:
		return ingest.OutcomeRejected
	case outcome == ingest.OutcomeInFlight, outcome == ingest.OutcomeMalformed && errors.Is(err, context.DeadlineExceeded):
		return outcomeTimeout
	}
	return outcome
}

// fetch gets the body of one profile, which the lease holds. Errors never hold the
// query of the URL.
func (s *Scraper) fetch(ctx context.Context, job *job, lease *budget.Lease) ([]byte, error) {
	request := &http.Request{Method: http.MethodGet, URL: job.url, Header: http.Header{}}
	response, err := s.client.Do(request.WithContext(ctx))
	if err != nil {
		return nil, unlessKnown(config.WithoutURL(err), outcomeUnreachable, "%w")
	}
	defer response.Body.Close()
	limit := int64(s.config.MaxDecompressedSize)
	switch {
	case response.StatusCode == http.StatusNotFound && job.of.optional:
		return nil, errAbsent
	case response.StatusCode != http.StatusOK:
		return nil, failed(outcomeStatus, "status %d, want 200%s", response.StatusCode, start(response.Body, job.url.Query()))
	case response.ContentLength > limit:
		return nil, &pproftranslator.LimitError{What: "body in bytes", Limit: limit, Got: response.ContentLength}
	}
	body, err := ingest.ReadAll(ctx, io.LimitReader(response.Body, limit+1), response.ContentLength, lease)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("the body did not end in time: %w", ctx.Err())
	case err != nil:
		return nil, unlessKnown(err, outcomeBody, "the body ended early: %w")
	case int64(len(body)) > limit:
		return nil, &pproftranslator.LimitError{What: "body in bytes", Limit: limit}
	}
	return body, nil
}

// start returns, after a colon, the start of a body that says why there is no profile, as those of net/http/pprof do. It
// hides the values of the query, which some servers repeat.
func start(body io.Reader, query url.Values) string {
	const read, shown = 4 << 10, 200
	text, _ := io.ReadAll(io.LimitReader(body, read)) // before an error
	for key, values := range query {
		for _, value := range values {
			if value != "" && key != secondsParameter {
				text = bytes.ReplaceAll(text, []byte(value), nil)
				text = bytes.ReplaceAll(text, []byte(url.QueryEscape(value)), nil)
			}
		}
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return ""
	}
	return fmt.Sprintf(": %q", text[:min(len(text), shown)])
}
