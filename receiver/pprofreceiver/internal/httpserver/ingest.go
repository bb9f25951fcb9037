// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	if err := checkCount("body: profiles", len(profiles)); err != nil {
		return err
	}
	if description > maxDescription {
		return &pproftranslator.LimitError{What: "body: size in bytes of the attributes of all profiles", Limit: maxDescription, Got: description}
	}
	expected := description
	for i := range profiles {
		expected += ingest.ExpectedWork(profiles[i].Data)
	}
	var all prepared
	err := r.reservation.Work(ctx, expected, func() (err error) {
		all, err = s.prepare(r, description, profiles)
		return err
	})
	if err != nil {
		return bodyError(ctx, err)
	}
	clear(profiles)
	r.reservation.FreeBody()
	for i, err := range all.batch.Pass(ctx) {
		if err != nil {
			all.failures = append(all.failures, fmt.Errorf("%s: %w", all.names[i], err))
		}
	}
	return s.combine(ctx, path, all.failures)
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

// prepared are the valid profiles of a request, and the failures of the others.
type prepared struct {
	batch    *ingest.Batch
	names    []string
	failures []error
}

// prepare decompresses and translates profiles, which have at most the limit of bytes in
// total. The error concerns the request.
func (s *Server) prepare(r *Request, description int64, profiles []Profile) (all prepared, err error) {
	if err := r.reservation.Resize(description); err != nil {
		return all, err
	}
	r.reservation.Keep()
	all.batch = s.ingester.NewBatch()
	sender, _, _ := net.SplitHostPort(r.RemoteAddr)
	left, wasted := r.limit, int64(0)
	for i := range profiles {
		p := &profiles[i]
		p.Sender = sender
		if wasted > r.limit {
			all.failures = append(all.failures, fmt.Errorf("%s: %w", p.Name, &pproftranslator.LimitError{
				What: ingest.DecompressedSize + " of the rejected profiles before it", Limit: r.limit,
			}))
			continue
		}
		size, err := r.prepareOne(all.batch, p, left)
		switch {
		case ingest.MustRestart(err) || r.Context().Err() != nil:
			return all, errors.Join(err, r.Context().Err())
		case err != nil:
			all.failures = append(all.failures, fmt.Errorf("%s: %w", p.Name, err))
			wasted += min(r.reservation.Peak(), left)
			if err := r.reservation.Resize(0); err != nil {
				return all, err
			}
			continue
		}
		left -= int64(size)
		all.names = append(all.names, p.Name)
	}
	return all, nil
}

// prepareOne takes at most limit bytes: the rest of the request's limit.
func (r *Request) prepareOne(batch *ingest.Batch, p *Profile, limit int64) (size int, err error) {
	if len(p.Data) == 0 {
		return 0, malformed("empty, want a profile")
	}
	size, err = batch.Prepare(r.Context(), p.Payload, int(limit), r.reservation)
	switch _, tooLarge := err.(*pproftranslator.LimitError); { //nolint:errorlint // those of max_in_flight are wrapped
	case tooLarge && limit < r.limit:
		err = &pproftranslator.LimitError{What: ingest.DecompressedSize + " of all profiles of the request", Limit: r.limit}
	case err != nil && r.stripped:
		err = fmt.Errorf("%w; curl -d removes line feeds and NULs: use curl --data-binary", err)
	}
	return size, err
}

// combine returns the failure that decides the client's reaction, and counts the others.
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
