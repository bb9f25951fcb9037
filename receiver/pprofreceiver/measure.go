// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
)

// Values of the attribute attachment of receiver_pprof_skipped_attachments.
const (
	skippedMetrics  = "metrics"
	skippedTrace    = "trace"
	skippedJFR      = "jfr"
	skippedPrevious = "previous_profile"
	skippedOther    = "other"
)

// measure counts what it took to translate a payload of this many bytes.

// countRepairs counts what was mended in a profile that was accepted.

func (s *server) count(ctx context.Context, endpoint string, status int) {
	s.telemetry.ReceiverPprofRequests.Add(ctx, 1, s.telemetry.with(
		attribute.String("endpoint", endpoint),
		attribute.Int("http.response.status_code", status),
	))
}

func (s *server) countRefusal(ctx context.Context, endpoint string, answer *refusal) {
	s.telemetry.ReceiverPprofRefusals.Add(ctx, 1, s.telemetry.with(
		attribute.String("endpoint", endpoint),
		attribute.String("reason", answer.reason),
	))
}

// skip counts parts of a request that are left out.
func (s *server) skip(ctx context.Context, endpoint, what string, parts int) {
	if parts > 0 {
		s.telemetry.ReceiverPprofSkippedAttachments.Add(ctx, int64(parts), s.telemetry.with(
			attribute.String("endpoint", endpoint),
			attribute.String("attachment", what),
		))
	}
}
