// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/processor/profilesdedupprocessor/internal/metadata"
)

// reason is why something was flushed, dropped or refused.
type reason string

const (
	reasonWindow       reason = "window"
	reasonMemory       reason = "memory"
	reasonOverflow     reason = "overflow"
	reasonShutdown     reason = "shutdown"
	reasonPermanent    reason = "permanent"
	reasonRetriesEnded reason = "retries_ended"
	reasonAbandoned    reason = "abandoned"
	reasonSuperseded   reason = "superseded"
	reasonInvalid      reason = "invalid"
)

// telemetry counts what happens. It is safe for concurrent use.
type telemetry struct {
	*metadata.TelemetryBuilder
	retained atomic.Int64 // bytes
}

func newTelemetry(set component.TelemetrySettings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	t := &telemetry{TelemetryBuilder: builder}
	err = builder.RegisterProcessorProfilesDedupRetainedBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(t.retained.Load())
		return nil
	})
	return t, err
}

// background is for counters, which read nothing from it.
var background = context.Background()

func because(r reason) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", string(r))))
}

var tableNames = [...]metric.AddOption{
	ofTable("string"), ofTable("mapping"), ofTable("location"), ofTable("function"),
	ofTable("link"), ofTable("attribute"), ofTable("stack"),
}

func ofTable(name string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("table", name)))
}

func addSizes(entries, bytes metric.Int64Counter, s dictionary.Sizes) {
	for i, size := range [...]dictionary.Size{s.String, s.Mapping, s.Location, s.Function, s.Link, s.Attribute, s.Stack} {
		entries.Add(background, int64(size.Entries), tableNames[i])
		bytes.Add(background, int64(size.Bytes), tableNames[i])
	}
}

// accepted counts a payload that was taken in, and its repeats.
func (t *telemetry) accepted(in *incoming) {
	t.incoming(len(in.profiles), in.samples, in.sizes)
	profiles, samples := 0, 0
	for i := range in.profiles {
		if in.profiles[i].repeat {
			profiles++
			samples += in.profiles[i].samples
		}
	}
	if profiles > 0 {
		t.ProcessorProfilesDedupRepeatedProfiles.Add(background, int64(profiles))
		t.ProcessorProfilesDedupRepeatedSamples.Add(background, int64(samples))
	}
}

func (t *telemetry) incoming(profiles, samples int, sizes dictionary.Sizes) {
	t.ProcessorProfilesDedupIncomingProfiles.Add(background, int64(profiles))
	t.ProcessorProfilesDedupIncomingSamples.Add(background, int64(samples))
	addSizes(t.ProcessorProfilesDedupDictionaryEntriesIn, t.ProcessorProfilesDedupDictionaryBytesIn, sizes)
}

// superseded counts readings of a window that gave way to later ones.
func (t *telemetry) superseded(profiles int) {
	if profiles > 0 {
		t.ProcessorProfilesDedupDroppedProfiles.Add(background, int64(profiles), because(reasonSuperseded))
	}
}

func (t *telemetry) refused(r reason) {
	t.ProcessorProfilesDedupRefusedPayloads.Add(background, 1, because(r))
}

func (t *telemetry) flushed(r reason) {
	t.ProcessorProfilesDedupFlushes.Add(background, 1, because(r))
}

func (t *telemetry) dropped(c counts, r reason) {
	t.ProcessorProfilesDedupDroppedProfiles.Add(background, int64(c.profiles), because(r))
	t.ProcessorProfilesDedupDroppedSamples.Add(background, int64(c.samples), because(r))
}

// outgoing is what is counted of a payload once it has been accepted. It is taken
// before: the next component may change what it is given.
type outgoing struct {
	profiles, samples int
	sizes             dictionary.Sizes
}

func outgoingOf(pd pprofile.Profiles) outgoing {
	return outgoing{pd.ProfileCount(), pd.SampleCount(), dictionary.SizesOf(pd.Dictionary())}
}

func (t *telemetry) passedOn(out outgoing) {
	t.ProcessorProfilesDedupOutgoingProfiles.Add(background, int64(out.profiles))
	t.ProcessorProfilesDedupOutgoingSamples.Add(background, int64(out.samples))
	addSizes(t.ProcessorProfilesDedupDictionaryEntriesOut, t.ProcessorProfilesDedupDictionaryBytesOut, out.sizes)
}

// ratio records how much smaller the dictionaries of a window became, all partitions
// together.
func (t *telemetry) ratio(in, out int) {
	if out > 0 {
		t.ProcessorProfilesDedupDictionaryRatio.Record(background, float64(in)/float64(out))
	}
}
