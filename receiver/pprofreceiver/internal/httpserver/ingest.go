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

// ingest reads all profiles of a request and passes them on. It accepts the valid
// ones even if others are not; the error then says which was rejected. If the pipeline
// rejects one temporarily, that is the error, and the client resends all of them: they
// have the same profile IDs. It returns the rest of the content.
func (s *Server) ingest(r *Request, p Protocol) (push Push, err error) {
	var names []string
	var translated []*ingest.Result
	err = r.lease.Within(r.Context(), func() error {
		if push, err = p.Read(r); err != nil {
			return err
		}
		names = names[:0]
		for i := range push.Profiles {
			names = append(names, push.Profiles[i].Name)
		}
		translated, err = s.translate(r, push.Profiles)
		return err
	})
	if err != nil {
		return push, err
	}
	r.body, push.Profiles = nil, nil // nobody refers to them
	r.lease.ShrinkBody(0)
	var failures []error
	for i, err := range s.ingester.PassAll(r.Context(), translated) {
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", names[i], err))
		}
	}
	return push, s.combine(r.Context(), p.Path, failures)
}

// translate translates the profiles of a request. The lease then holds their memory alone.
func (s *Server) translate(r *Request, profiles []Profile) ([]*ingest.Result, error) {
	ctx := r.Context()
	description := descriptionSize(profiles)
	if err := checkCount("body: profiles", len(profiles)); err != nil {
		return nil, err
	}
	if description > maxDescription {
		return nil, &pproftranslator.LimitError{What: "body: size in bytes of the attributes of all profiles", Limit: maxDescription, Got: description}
	}
	if err := r.Reserve(description); err != nil {
		return nil, err
	}
	sender, _, _ := net.SplitHostPort(r.RemoteAddr)
	payloads := make([]ingest.Payload, len(profiles))
	for i := range profiles {
		payloads[i] = profiles[i].Payload
		payloads[i].Sender = sender
	}
	copies := r.lease.Used()
	translated, err := s.ingester.NewBatch(r.lease).Translate(ctx, int(r.limit), payloads)
	if err != nil {
		return nil, bodyError(ctx, err)
	}
	r.lease.Free(copies)
	return translated, nil
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
