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

// telemetry counts what happens, as of one processor. It is safe for concurrent use.
type telemetry struct {
	builder  *metadata.TelemetryBuilder
	retained atomic.Int64 // bytes

	instance attribute.KeyValue
	plain    []metric.AddOption // of what has no other attributes
	tables   [len(tables)][]metric.AddOption
}

var tables = [...]string{"string", "mapping", "location", "function", "link", "attribute", "stack"}

func newTelemetry(set processor.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder, instance: attribute.String("processor", set.ID.String())}
	t.plain = []metric.AddOption{t.with()}
	for i, table := range tables {
		t.tables[i] = []metric.AddOption{t.with(attribute.String("table", table))}
	}
	// A processor of two pipelines is two of one id. What two callbacks observe is added
	// up, because it is no gauge.
	observed := t.with()
	err = builder.RegisterProcessorProfilesDedupRetainedBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(t.retained.Load(), observed)
		return nil
	})
	return t, err
}

// shutdown ends what is observed.
func (t *telemetry) shutdown() { t.builder.Shutdown() }

// with makes what goes with everything that is counted: which processor it is of, and
// these attributes.
func (t *telemetry) with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append([]attribute.KeyValue{t.instance}, attributes...)...))
}

func (t *telemetry) because(r reason) metric.MeasurementOption {
	return t.with(attribute.String("reason", string(r)))
}

// background is for counters, which read nothing from it.
var background = context.Background()

func (t *telemetry) add(counter metric.Int64Counter, n int) {
	counter.Add(background, int64(n), t.plain...)
}

func (t *telemetry) addSizes(entries, bytes metric.Int64Counter, s dictionary.Sizes) {
	for i, size := range [len(tables)]dictionary.Size{s.String, s.Mapping, s.Location, s.Function, s.Link, s.Attribute, s.Stack} {
		entries.Add(background, int64(size.Entries), t.tables[i]...)
		bytes.Add(background, int64(size.Bytes), t.tables[i]...)
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
		t.add(t.builder.ProcessorProfilesDedupRepeatedProfiles, profiles)
		t.add(t.builder.ProcessorProfilesDedupRepeatedSamples, samples)
	}
}

func (t *telemetry) incoming(profiles, samples int, sizes dictionary.Sizes) {
	t.add(t.builder.ProcessorProfilesDedupIncomingProfiles, profiles)
	t.add(t.builder.ProcessorProfilesDedupIncomingSamples, samples)
	t.addSizes(t.builder.ProcessorProfilesDedupDictionaryEntriesIn, t.builder.ProcessorProfilesDedupDictionaryBytesIn, sizes)
}

// superseded counts readings of a window that gave way to later ones.
func (t *telemetry) superseded(profiles int) {
	if profiles > 0 {
		t.builder.ProcessorProfilesDedupDroppedProfiles.Add(background, int64(profiles), t.because(reasonSuperseded))
	}
}

func (t *telemetry) refused(r reason) {
	t.builder.ProcessorProfilesDedupRefusedPayloads.Add(background, 1, t.because(r))
}

func (t *telemetry) flushed(r reason) {
	t.builder.ProcessorProfilesDedupFlushes.Add(background, 1, t.because(r))
}

func (t *telemetry) retried() {
	t.add(t.builder.ProcessorProfilesDedupRetries, 1)
}

func (t *telemetry) dropped(c counts, r reason) {
	t.builder.ProcessorProfilesDedupDroppedProfiles.Add(background, int64(c.profiles), t.because(r))
	t.builder.ProcessorProfilesDedupDroppedSamples.Add(background, int64(c.samples), t.because(r))
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
	t.add(t.builder.ProcessorProfilesDedupOutgoingProfiles, out.profiles)
	t.add(t.builder.ProcessorProfilesDedupOutgoingSamples, out.samples)
	t.addSizes(t.builder.ProcessorProfilesDedupDictionaryEntriesOut, t.builder.ProcessorProfilesDedupDictionaryBytesOut, out.sizes)
}

// ratio records how much smaller the dictionaries of a window became, all partitions
// together.
func (t *telemetry) ratio(in, out int) {
	if out > 0 {
		t.builder.ProcessorProfilesDedupDictionaryRatio.Record(background, float64(in)/float64(out), t.with())
	}
}
