// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
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
	if err := r.Reserve(description); err != nil {
		return err
	}
	sender, _, _ := net.SplitHostPort(r.RemoteAddr)
	payloads := make([]ingest.Payload, len(profiles))
	for i := range profiles {
		payloads[i], profiles[i].Data = profiles[i].Payload, nil
		payloads[i].Sender = sender
	}
	translated, err := s.ingester.NewBatch(r.reservation).Translate(ctx, int(r.limit), payloads)
	if err != nil {
		return bodyError(ctx, err)
	}
	r.reservation.FreeBody()
	var failures []error
	for i, err := range s.ingester.PassAll(ctx, translated) {
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", profiles[i].Name, err))
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

// combine returns the failure that decides the client's reaction, and counts the others. A retry comes first.
func (s *Server) combine(ctx context.Context, path string, failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	byEffect := []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusServiceUnavailable}
	decisive := rejectionOf(failures[0])
	for _, err := range failures[1:] {
		other := rejectionOf(err)
		if slices.Index(byEffect, other.status) > slices.Index(byEffect, decisive.status) {
			decisive, other = other, decisive
		}
		s.countRejection(ctx, path, other)
	}
	if others := len(failures) - 1; others > 0 {
		decisive.message += fmt.Sprintf(" (and %d more profiles of this request were rejected)", others)
	}
	return decisive
}
