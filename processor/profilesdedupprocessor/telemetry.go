// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/processor/profilesdedupprocessor/internal/metadata"
)

// reason is why a window was closed, or a payload dropped or rejected.
type reason string

const (
	reasonWindow           reason = "window"
	reasonMemory           reason = "memory"
	reasonOverflow         reason = "overflow"
	reasonSlots            reason = "slots"
	reasonShutdown         reason = "shutdown"
	reasonPermanent        reason = "permanent"
	reasonRetriesExhausted reason = "retries_exhausted"
	reasonAbandoned        reason = "abandoned"
	reasonSuperseded       reason = "superseded"
	reasonInvalid          reason = "invalid"
	reasonPanic            reason = "panic"
	reasonTooLarge         reason = "too_large"
)

// telemetry has the metrics of one processor. It is safe for concurrent use.
type telemetry struct {
	builder  *metadata.TelemetryBuilder
	retained atomic.Int64 // bytes

	instance attribute.KeyValue
	plain    metric.MeasurementOption // for measurements without other attributes
}

func newTelemetry(set processor.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder, instance: attribute.String("processor", set.ID.String())}
	t.plain = t.with()
	// A processor in two pipelines has two instances with one ID, whose values the SDK adds up:
	// the instrument is not a gauge.
	err = builder.RegisterProcessorProfilesDedupRetainedBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(t.retained.Load(), t.plain)
		return nil
	})
	return t, err
}

// shutdown ends the observation of retained bytes.
func (t *telemetry) shutdown() { t.builder.Shutdown() }

// with returns the attributes that every measurement has, and these.
func (t *telemetry) with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append([]attribute.KeyValue{t.instance}, attributes...)...))
}

func (t *telemetry) withReason(r reason) metric.MeasurementOption {
	return t.with(attribute.String("reason", string(r)))
}

// background is the context of all measurements, which read nothing from it.
var background = context.Background()

func (t *telemetry) add(counter metric.Int64Counter, n int) {
	counter.Add(background, int64(n), t.plain)
}

// accepted counts an accepted payload, of which profiles with samples are not duplicates.
func (t *telemetry) accepted(payload *merge.Payload, profiles, samples, bytes int) {
	t.incoming(len(payload.Profiles), payload.Samples(), bytes)
	if profiles < len(payload.Profiles) {
		t.add(t.builder.ProcessorProfilesDedupDuplicateProfiles, len(payload.Profiles)-profiles)
		t.add(t.builder.ProcessorProfilesDedupDuplicateSamples, payload.Samples()-samples)
	}
}

func (t *telemetry) incoming(profiles, samples, bytes int) {
	t.add(t.builder.ProcessorProfilesDedupIncomingProfiles, profiles)
	t.add(t.builder.ProcessorProfilesDedupIncomingSamples, samples)
	t.add(t.builder.ProcessorProfilesDedupIncomingBytes, bytes)
}

// superseded counts snapshots that a later one of their window replaced.
func (t *telemetry) superseded(profiles int) {
	if profiles > 0 {
		t.builder.ProcessorProfilesDedupDroppedProfiles.Add(background, int64(profiles), t.withReason(reasonSuperseded))
	}
}

// empty counts merged Profiles that are not sent because they have no samples.
func (t *telemetry) empty(profiles int) {
	t.add(t.builder.ProcessorProfilesDedupEmptyProfiles, profiles)
}

func (t *telemetry) rejected(r reason) {
	t.builder.ProcessorProfilesDedupRejectedPayloads.Add(background, 1, t.withReason(r))
}

func (t *telemetry) flushed(r reason) {
	t.builder.ProcessorProfilesDedupFlushes.Add(background, 1, t.withReason(r))
}

func (t *telemetry) retried() {
	t.add(t.builder.ProcessorProfilesDedupRetries, 1)
}

func (t *telemetry) dropped(c merge.Counts, r reason) {
	t.builder.ProcessorProfilesDedupDroppedProfiles.Add(background, int64(c.Profiles), t.withReason(r))
	t.builder.ProcessorProfilesDedupDroppedSamples.Add(background, int64(c.Samples), t.withReason(r))
}

// sizeOf is the size of pd as OTLP protobuf, in bytes.
func sizeOf(pd pprofile.Profiles) int { return (&pprofile.ProtoMarshaler{}).ProfilesSize(pd) }

func (t *telemetry) outgoing(profiles, samples, bytes int) {
	t.add(t.builder.ProcessorProfilesDedupOutgoingProfiles, profiles)
	t.add(t.builder.ProcessorProfilesDedupOutgoingSamples, samples)
	t.add(t.builder.ProcessorProfilesDedupOutgoingBytes, bytes)
}
