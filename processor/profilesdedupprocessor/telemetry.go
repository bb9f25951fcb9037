// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/processor/profilesdedupprocessor/internal/metadata"
)

// reason is why a window was closed, or a payload dropped or rejected.
type reason string

const (
	reasonWindow           reason = "window"
	reasonMemory           reason = "memory"
	reasonSlots            reason = "slots"
	reasonShutdown         reason = "shutdown"
	reasonPermanent        reason = "permanent"
	reasonRetriesExhausted reason = "retries_exhausted"
	reasonSuperseded       reason = "superseded"
	reasonInvalid          reason = "invalid"
	reasonNoValues         reason = "no_values"
	reasonPanic            reason = "panic"
	reasonTooLarge         reason = "too_large"
	reasonTypes            reason = "too_many_types"
)

// telemetry has the metrics of one processor. It is safe for concurrent use.
type telemetry struct {
	*metadata.TelemetryBuilder
	id       attribute.KeyValue
	instance metric.MeasurementOption // id
}

// newTelemetry calls retained for the retained bytes at each collection.
func newTelemetry(set processor.Settings, retained func() int64) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{TelemetryBuilder: builder, id: attribute.String("processor", set.ID.String())}
	t.instance = metric.WithAttributeSet(attribute.NewSet(t.id))
	// A processor in two pipelines has two instances with one ID, whose values the SDK adds up:
	// the instrument is not a gauge.
	err = builder.RegisterProcessorProfilesDedupRetainedBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(retained(), t.instance)
		return nil
	})
	return t, err
}

// add adds to a counter, with the reason if there is one.
func (t *telemetry) add(counter metric.Int64Counter, n int, why ...reason) {
	attributes := t.instance
	if len(why) > 0 {
		attributes = metric.WithAttributes(t.id, attribute.String("reason", string(why[0])))
	}
	counter.Add(context.Background(), int64(n), attributes)
}

// accepted counts an accepted payload, of which profiles with samples are not duplicates.
func (t *telemetry) accepted(payload *merge.Payload, profiles, samples, bytes int) {
	t.incoming(len(payload.Profiles), payload.Samples(), bytes)
	if profiles < len(payload.Profiles) {
		t.add(t.ProcessorProfilesDedupDuplicateProfiles, len(payload.Profiles)-profiles)
		t.add(t.ProcessorProfilesDedupDuplicateSamples, payload.Samples()-samples)
	}
}

func (t *telemetry) incoming(profiles, samples, bytes int) {
	t.add(t.ProcessorProfilesDedupIncomingProfiles, profiles)
	t.add(t.ProcessorProfilesDedupIncomingSamples, samples)
	t.add(t.ProcessorProfilesDedupIncomingBytes, bytes)
}

// merged counts Profiles that left a partition when it was merged: those that later snapshots replaced, and those without
// samples.
func (t *telemetry) merged(counts merge.Counts) {
	if counts.Superseded > 0 {
		t.add(t.ProcessorProfilesDedupDroppedProfiles, counts.Superseded, reasonSuperseded)
	}
}

// sizeOf is the size of pd as OTLP protobuf, in bytes.
func sizeOf(pd pprofile.Profiles) int { return (&pprofile.ProtoMarshaler{}).ProfilesSize(pd) }

func (t *telemetry) outgoing(profiles, samples, bytes int) {
	t.add(t.ProcessorProfilesDedupOutgoingProfiles, profiles)
	t.add(t.ProcessorProfilesDedupOutgoingSamples, samples)
	t.add(t.ProcessorProfilesDedupOutgoingBytes, bytes)
}
