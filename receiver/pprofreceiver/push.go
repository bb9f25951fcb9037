// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// contentEncodings are the supported values of Content-Encoding, as
// compression_algorithms names them: "" is no compression.
var contentEncodings = []string{"", "gzip", "zstd"}

const (
	pushPath = "/v1/pprof"

	// parameterProfileType is the query parameter that names the kind of profile.
	parameterProfileType = "profile_type"
)

// pushQuery is what the query of a push says.
type pushQuery struct {
	attributes map[string]string // of the resource
	kind       string
}

// parsePushQuery reads the query of a push. Parameters with a dot in their name
// are resource attributes, profile_type is the kind of profile, those in ignored
// are for others, and any other is refused: it would be lost in silence. Errors
// name parameters, never their values.
func parsePushQuery(rawQuery string, ignored []string) (pushQuery, error) {
	parameters, err := parseQuery(rawQuery)
	if err != nil {
		return pushQuery{}, err
	}
	query := pushQuery{attributes: make(map[string]string, len(parameters))}
	for name, values := range parameters {
		if slices.Contains(ignored, name) {
			continue
		}
		value := values[0]
		if err := tooLongAttribute("query", name, value); err != nil {
			return pushQuery{}, err
		}
		switch {
		case name == "":
			return pushQuery{}, badRequest("query: a parameter has an empty name")
		case !utf8.ValidString(name) || !utf8.ValidString(value):
			return pushQuery{}, badRequest(fmt.Sprintf("query: parameter %q is not valid UTF-8", name))
		case len(values) > 1:
			return pushQuery{}, badRequest(fmt.Sprintf("query: parameter %q is there %d times, want it once", name, len(values)))
		case name == parameterProfileType:
			if value == "" {
				return pushQuery{}, badRequest(fmt.Sprintf("query: parameter %q is empty, want a kind of profile as in cpu", name))
			}
			query.kind = value
		case strings.Contains(name, "."):
			query.attributes[name] = value
		default:
			return pushQuery{}, badRequest(fmt.Sprintf("query: parameter %q is unknown, want %s, or a resource attribute, which has a dot in its name as in service.name", name, parameterProfileType))
		}
	}
	return query, nil
}

// parseQuery parses a query of not too many parameters. Errors hold no values.
func parseQuery(rawQuery string) (url.Values, error) {
	if err := tooManyAttributes("query: parameters", 1+strings.Count(rawQuery, "&")); err != nil {
		return nil, err
	}
	parameters, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, badRequest("query: malformed, want name=value pairs, percent-encoded and joined by &")
	}
	return parameters, nil
}

// push handles POST /v1/pprof: one pprof, as the whole body.
func (s *server) push(w http.ResponseWriter, r *http.Request) error {
	query, err := parsePushQuery(r.URL.RawQuery, s.ignoredParameters)
	if err != nil {
		return err
	}
	held := s.budget.Reserve()
	defer held.Release()
	payload, err := s.readPayload(r, held)
	if err != nil {
		return err
	}
	err = s.intake.Ingest(r.Context(), ingest.Payload{Data: payload, Resource: s.resourceOf(query.attributes), ProfileType: query.kind}, held)
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readPayload reads a body that is one profile, and takes off its compression. What
// it returns is held by the reservation.
func (s *server) readPayload(r *http.Request, held *ingest.Reservation) ([]byte, error) {
	body, err := s.readBody(r, held)
	if err != nil {
		return nil, err
	}
	payload, err := ingest.Decompress(r.Context(), body, s.payloadLimit, held)
	if err != nil {
		return nil, bodyError(r.Context(), err)
	}
	if err := refuseJFR(payload); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return payload, nil
}

// readBody reads the body as it comes. It is not empty, and has the compression
// that Content-Encoding says.
func (s *server) readBody(r *http.Request, held *ingest.Reservation) ([]byte, error) {
	encoding, err := s.contentEncoding(r.Header)
	if err != nil {
		return nil, err
	}
	if r.ContentLength > s.bodyLimit {
		return nil, &http.MaxBytesError{Limit: s.bodyLimit}
	}
	ctx := r.Context()
	body, err := ingest.ReadAll(ctx, r.Body, r.ContentLength, held)
	if err != nil {
		return nil, bodyError(ctx, err)
	}
	if len(body) == 0 {
		return nil, badRequest("body: empty, want a pprof profile")
	}
	if encoding != "" {
		if ingest.Compression(body) != encoding {
			return nil, badRequest(fmt.Sprintf("body: not %s, which Content-Encoding says", encoding))
		}
	}
	return body, nil
}

// readMessage is readBody for a body that is no profile itself: without its
// Content-Encoding, and without any other compression taken off.
func (s *server) readMessage(r *http.Request, held *ingest.Reservation) ([]byte, error) {
	body, err := s.readBody(r, held)
	if err != nil {
		return nil, err
	}
	if encoding, err := s.contentEncoding(r.Header); err != nil || encoding == "" {
		return body, err
	}
	message, err := ingest.Decompress(r.Context(), body, s.payloadLimit, held)
	if err != nil {
		return nil, bodyError(r.Context(), err)
	}
	return message, nil
}

// bodyError says that err is the body's fault, unless the client is gone.
func bodyError(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = errors.Join(ctx.Err(), err)
	}
	return fmt.Errorf("body: %w", err)
}

// contentEncoding returns the Content-Encoding of a body that can be decoded, ""
// if it has none.
func (s *server) contentEncoding(header http.Header) (string, error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(header.Values("Content-Encoding"), ",")))
	if encoding == "identity" {
		encoding = ""
	}
	if !slices.Contains(s.encodings, encoding) {
		return "", unsupported(fmt.Sprintf("Content-Encoding %q is not supported, want one of %q", encoding, s.encodings))
	}
	return encoding, nil
}
