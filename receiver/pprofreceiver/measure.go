// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
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
func (in *intake) measure(ctx context.Context, bytes int, took time.Duration) {
	in.telemetry.ReceiverPprofPayloadSize.Add(ctx, int64(bytes), in.attributes)
	in.telemetry.ReceiverPprofTranslationDuration.Record(ctx, took.Seconds(), in.attributes)
}

// countRepairs counts what was mended in a profile that was accepted.
func (in *intake) countRepairs(ctx context.Context, report pproftranslator.Report) {
	for _, repaired := range []struct {
		what  string
		count int
	}{
		{"invalid_utf8", report.InvalidStrings},
		{"negative_time", report.NegativeTimes},
	} {
		if repaired.count > 0 {
			in.telemetry.ReceiverPprofRepairs.Add(ctx, int64(repaired.count), in.telemetry.with(
				attribute.String("transport", in.transport),
				attribute.String("repair", repaired.what),
			))
		}
	}
}

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
