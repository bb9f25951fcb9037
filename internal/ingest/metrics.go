// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Metrics are the instruments of an Ingester. All are required.
type Metrics struct {
	PayloadSize         metric.Int64Counter     // bytes of pprof
	TranslationDuration metric.Float64Histogram // seconds
	EmptyProfiles       metric.Int64Counter
	Repairs             metric.Int64Counter // by the attribute repair

	// Attributes returns the attributes of a measurement: those of the component and
	// of the transport, and more.
	Attributes func(more ...attribute.KeyValue) metric.MeasurementOption
}

func (in *Ingester) recordTranslation(ctx context.Context, bytes int, took time.Duration) {
	in.metrics.PayloadSize.Add(ctx, int64(bytes), in.attributes)
	in.metrics.TranslationDuration.Record(ctx, took.Seconds(), in.attributes)
}

func (in *Ingester) recordAccepted(ctx context.Context, report pproftranslator.Report, samples int) {
	repairs := func(repair string, count int) {
		if count > 0 {
			in.metrics.Repairs.Add(ctx, int64(count), in.metrics.Attributes(attribute.String("repair", repair)))
		}
	}
	repairs("invalid_utf8", report.InvalidStrings)
	repairs("negative_time", report.NegativeTimes)
	if samples == 0 {
		in.metrics.EmptyProfiles.Add(ctx, 1, in.attributes)
	}
}
