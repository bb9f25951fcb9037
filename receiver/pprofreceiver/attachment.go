// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// maxAttachments is how many profiles one request may hold.
const maxAttachments = 256

// attachment is one profile of a request that may hold several.
type attachment struct {
	name    string // what messages call it, as in `attachment "cpu.pprof"`
	body    []byte // as it came, plain or compressed
	payload ingest.Payload
}

// acceptAll unpacks, translates and hands on all profiles of a request. What is
// wrong with one is no reason to lose another: the rest is accepted, and the error
// says which one was not. Where the pipeline could take one only later, that is the
// error, so that all are sent again; their ids are the same then.
func (s *server) acceptAll(ctx context.Context, endpoint string, attachments []attachment, held *ingest.Reservation) error {
	arrivals := make([]ingest.Payload, 0, len(attachments))
	names := make([]string, 0, len(attachments))
	var failures []error
	if err := reserveDescriptions(ctx, attachments, held); err != nil {
		return bodyError(ctx, err)
	}
	left, wasted := s.payloadLimit, int64(0)
	for i := range attachments {
		a := &attachments[i]
		if wasted > int64(s.payloadLimit) {
			failures = append(failures, fmt.Errorf("%s: %w", a.name, &pproftranslator.LimitError{
				What: "size in bytes of the profiles of the request before it that were refused, decompressed", Limit: int64(s.payloadLimit),
			}))
			continue
		}
		held.Keep()
		payload, err := s.unpackAttachment(ctx, a.body, left, held)
		switch {
		case errors.Is(err, ingest.ErrInFlightLimit) || ctx.Err() != nil:
			return bodyError(ctx, err)
		case err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", a.name, err))
			wasted += min(held.Peak(), int64(left))
			if err := held.Resize(ctx, 0); err != nil {
				return bodyError(ctx, err)
			}
			continue
		}
		left -= len(payload)
		a.payload.Data = payload
		arrivals, names = append(arrivals, a.payload), append(names, a.name)
	}
	for i, err := range s.intake.IngestAll(ctx, arrivals, held) {
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", names[i], err))
		}
	}
	return s.worst(ctx, endpoint, failures)
}

// reserveDescriptions reserves what the request says of its profiles, which each of
// them gets a copy of at the latest where it is written out.
func reserveDescriptions(ctx context.Context, attachments []attachment, held *ingest.Reservation) error {
	total := 0
	for i := range attachments {
		a := &attachments[i].payload
		total += len(a.ProfileType)
		for name, value := range a.Resource.All() {
			total += len(name) + len(value.AsString())
		}
		for name, value := range a.ScopeAttributes {
			total += len(name) + len(value)
		}
	}
	if total > maxDescription {
		return &pproftranslator.LimitError{What: "size in bytes of the attributes of all profiles", Limit: maxDescription, Got: int64(total)}
	}
	held.Keep()
	return held.Resize(ctx, int64(total))
}

// unpackAttachment takes off the compression of a profile, which is at most limit
// bytes then: what the profiles before it have left of the payload limit.
func (s *server) unpackAttachment(ctx context.Context, body []byte, limit int, held *ingest.Reservation) ([]byte, error) {
	if len(body) == 0 {
		return nil, badRequest("empty, want a pprof profile")
	}
	payload, err := ingest.Decompress(ctx, body[:len(body):len(body)], limit, held)
	var over *pproftranslator.LimitError
	if limit < s.payloadLimit && errors.As(err, &over) {
		return nil, &pproftranslator.LimitError{What: "size in bytes of all profiles of the request, decompressed", Limit: int64(s.payloadLimit)}
	}
	if err != nil {
		return nil, err
	}
	return payload, refuseJFR(payload)
}

// worst returns the failure that decides the answer, with what there is to say of
// it, and counts the others.
func (s *server) worst(ctx context.Context, endpoint string, failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	worst := failures[0]
	for _, err := range failures[1:] {
		if rank(err) > rank(worst) {
			worst = err
		}
	}
	answer := *refusalOf(worst)
	for _, err := range failures {
		if err != worst { //nolint:errorlint // this one, not one like it
			s.countRefusal(ctx, endpoint, refusalOf(err))
		}
	}
	if others := len(failures) - 1; others > 0 {
		answer.message = fmt.Sprintf("%s (and %d more profiles of this request were refused)", answer.message, others)
	}
	return &answer
}

// rank orders failures by what the client has to do: to send again is the most.
func rank(err error) int {
	switch refusalOf(err).status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return 2
	case http.StatusInternalServerError:
		return 1
	}
	return 0
}

// magicJFR is how a Java Flight Recorder file begins.
var magicJFR = []byte("FLR\x00")

func refuseJFR(payload []byte) error {
	if bytes.HasPrefix(payload, magicJFR) {
		return unsupported("a JFR recording, want a pprof profile")
	}
	return nil
}
