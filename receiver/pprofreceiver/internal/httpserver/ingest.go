// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// ingest decompresses all profiles of a request and ingests them. It accepts the valid
// ones even if others are not; the error then says which was rejected. If the pipeline
// rejects one temporarily, that is the error, and the client resends all of them: they
// have the same profile IDs.
func (s *Server) ingest(r *Request, path string, profiles []Profile) error {
	ctx := r.Context()
	description := descriptionSize(profiles)
	if err := CheckCount("body: profiles", len(profiles)); err != nil {
		return err
	}
	if description > maxDescription {
		return &pproftranslator.LimitError{What: "body: size in bytes of the attributes of all profiles", Limit: maxDescription, Got: description}
	}
	payloads, names, failures, err := r.decompress(profiles)
	if err != nil {
		return bodyError(ctx, err)
	}
	if err := r.Reserve(description); err != nil {
		return err
	}
	for i, err := range s.ingester.IngestAll(ctx, payloads, r.reservation) {
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", names[i], err))
		}
	}
	return s.combine(ctx, path, failures)
}

// descriptionSize is the size of all attributes in bytes. Each profile gets a copy of
// its attributes, at the latest when it is marshalled.
func descriptionSize(profiles []Profile) int64 {
	total := 0
	for i := range profiles {
		p := &profiles[i]
		total += len(p.ProfileType)
		for name, value := range p.Resource.All() {
			total += len(name) + len(value.AsString())
		}
		for name, value := range p.ScopeAttributes {
			total += len(name) + len(value)
		}
	}
	return int64(total)
}

// decompress removes the compression of profiles, which have at most the limit of
// bytes in total. The reservation keeps the results. failures are those of single
// profiles; err concerns the request.
func (r *Request) decompress(profiles []Profile) (payloads []ingest.Payload, names []string, failures []error, err error) {
	ctx, left, wasted := r.Context(), r.limit, int64(0)
	for i := range profiles {
		p := &profiles[i]
		if wasted > r.limit {
			failures = append(failures, fmt.Errorf("%s: %w", p.Name, &pproftranslator.LimitError{
				What: "decompressed size in bytes of the rejected profiles before it", Limit: r.limit,
			}))
			continue
		}
		data, err := r.decompressOne(p.Data, left)
		switch {
		case errors.Is(err, ingest.ErrInFlightLimit) || ctx.Err() != nil:
			return nil, nil, nil, errors.Join(err, ctx.Err())
		case err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", p.Name, err))
			wasted += min(r.reservation.Peak(), left)
			if err := r.reservation.Resize(ctx, 0); err != nil {
				return nil, nil, nil, err
			}
			continue
		}
		r.reservation.Keep()
		left -= int64(len(data))
		p.Data = data
		payloads, names = append(payloads, p.Payload), append(names, p.Name)
	}
	return payloads, names, failures, nil
}

// decompressOne returns at most limit bytes: the rest of the request's limit.
func (r *Request) decompressOne(body []byte, limit int64) ([]byte, error) {
	if len(body) == 0 {
		return nil, Malformed("empty, want a pprof profile")
	}
	data, err := ingest.Decompress(r.Context(), body[:len(body):len(body)], int(limit), r.reservation)
	if _, tooLarge := errors.AsType[*pproftranslator.LimitError](err); tooLarge && limit < r.limit {
		return nil, &pproftranslator.LimitError{What: "decompressed size in bytes of all profiles of the request", Limit: r.limit}
	}
	return data, err
}

// combine returns the failure that decides what the client does, and counts the others.
func (s *Server) combine(ctx context.Context, path string, failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	rejections := make([]*Rejection, len(failures))
	for i, err := range failures {
		rejections[i] = rejectionOf(err)
	}
	decisive := slices.MaxFunc(rejections, func(a, b *Rejection) int { return a.precedence() - b.precedence() })
	for _, rejection := range rejections {
		if rejection != decisive {
			s.countRejection(ctx, path, rejection)
		}
	}
	if others := len(failures) - 1; others > 0 {
		decisive.message += fmt.Sprintf(" (and %d more profiles of this request were rejected)", others)
	}
	return decisive
}

// precedence ranks rejections by their effect: a retry comes first.
func (r *Rejection) precedence() int {
	switch r.status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return 2
	case http.StatusInternalServerError:
		return 1
	}
	return 0
}
