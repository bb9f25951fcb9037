// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"io"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/repeatlog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Payload is one message and its client's information about it; a request can carry several.
type Payload struct {
	Data     []byte      // a pprof, a recording of a JVM, an execution trace of Go, the output of perf script or folded stacks; may be compressed
	Parts    *Parts      // of a file, in place of Data: the next one is the payload; nil if there are none
	Resource pcommon.Map // attributes that override those found in Data

	// ProfileType is the value of otelcol_profiles.type, or "" if the client does not state it.
	ProfileType string
	// ProfileTypeOf returns the profile type of a sample type that has one of its own, and "" for others, which have
	// ProfileType. It may be nil: then sample types have their own one where ProfileType is "".
	ProfileTypeOf func(sampleType string) string

	// FunctionsOfLocations is the field of pproftranslator.Unmarshaler.
	FunctionsOfLocations bool

	Recording Recording                     // if Data is one
	Folded    *foldedtranslator.Unmarshaler // not nil if Data is folded stacks

	Temporality       TemporalityFunc                     // nil if unknown
	ScopeAttributes   map[string]string                   // in addition to those that Data yields
	ProfileAttributes func(sampleType string) []Attribute // of a Profile; may be nil
	AttributeNames    map[string]string                   // new names of sample attributes, by the old

	// Sources of a time that Data lacks, in this order; timestamps of samples come after the
	// first. Each may be zero.
	TimeRange TimeRange         // that the request states
	Modified  pcommon.Timestamp // last change of the file
	Arrived   time.Time         // now if it is zero

	Sender string // in logs: the address, target or directory that it is from
}

// PipelineError means that the next consumer did not accept the profile.
type PipelineError struct{ Err error }

func (e *PipelineError) Error() string { return e.Err.Error() }
func (e *PipelineError) Unwrap() error { return e.Err }

// IsRetryable reports whether the payload may be accepted later: the next consumer rejected it temporarily, or others
// held the memory.
func IsRetryable(err error) bool {
	rejected, pipeline := errors.AsType[*PipelineError](err)
	return pipeline && !consumererror.IsPermanent(rejected) || errors.Is(err, budget.ErrFull)
}

// Outcomes of a payload that was not accepted, as values of an attribute of metrics.
const (
	OutcomePanic     = "panic"           // a bug of ours, or of a later component
	OutcomeInFlight  = "in_flight_limit" // other payloads hold the memory that it needs
	OutcomeRetryable = "retryable"       // rejected by the next consumer temporarily
	OutcomeRejected  = "rejected"        // by the next consumer
	OutcomeTooLarge  = "too_large"       // over a limit
	OutcomeMalformed = "malformed"
)

// Outcome classifies the error of a payload.
func Outcome(err error) string {
	_, panicked := errors.AsType[*PanicError](err)
	_, pipeline := errors.AsType[*PipelineError](err)
	_, overLimit := errors.AsType[*pproftranslator.LimitError](err)
	switch {
	case panicked:
		return OutcomePanic
	case errors.Is(err, budget.ErrFull):
		return OutcomeInFlight
	case IsRetryable(err):
		return OutcomeRetryable
	case pipeline:
		return OutcomeRejected
	case overLimit, isTooLarge(err):
		return OutcomeTooLarge
	}
	return OutcomeMalformed
}

func isTooLarge(err error) bool {
	_, tooLarge := errors.AsType[*budget.TooLargeError](err)
	return tooLarge
}

// Settings are those of an Ingester.
type Settings struct {
	Logger      *zap.Logger
	Announce    bool                      // log services, and senders that state none
	ObsReport   *receiverhelper.ObsReport // the collector's own telemetry of a receiver; nil for other components
	ScopeName   string                    // of the scopes that it writes, and their version
	Version     string
	Unmarshaler *pproftranslator.Unmarshaler // its limit of decompressed bytes is that of payloads
	Legacy      bool                         // read pprofs in formats from before protobuf
	JFR         JFR
	Metrics     Metrics
}

// Metrics are the instruments of an Ingester. All are required.
type Metrics struct {
	PayloadSize         metric.Int64Counter      // bytes, decompressed
	TranslationDuration metric.Float64Histogram  // seconds
	Repairs             metric.Int64Counter      // by the attribute repair
	Attributes          metric.MeasurementOption // of all measurements
}

// Ingester passes payloads to the next consumer. It is safe for concurrent use.
type Ingester struct {
	settings Settings
	next     xconsumer.Profiles

	services, unnamed names // that were logged
	trouble           *repeatlog.Reporter
}

// New returns an Ingester in front of the next consumer.
func New(set Settings, next xconsumer.Profiles) *Ingester {
	return &Ingester{settings: set, next: next, trouble: repeatlog.New(set.Logger)}
}

// observe tells the collector's own telemetry that an operation starts. The caller must call
// the function at its end, with the number of samples and the outcome.
func (in *Ingester) observe(ctx context.Context) (context.Context, func(samples int, err error)) {
	report := in.settings.ObsReport
	if report == nil {
		return ctx, func(int, error) {}
	}
	ctx = report.StartProfilesOp(ctx)
	return ctx, func(samples int, err error) { report.EndProfilesOp(ctx, "pprof", samples, err) }
}

// limit is the most bytes of a payload, decompressed.
func (in *Ingester) limit() int { return in.settings.Unmarshaler.Limits.DecompressedSize }

// measure counts a payload whose translation has ended.
func (in *Ingester) measure(ctx context.Context, r *Result) {
	if metrics := in.settings.Metrics; r.size > 0 {
		metrics.PayloadSize.Add(ctx, int64(r.size), metrics.Attributes)
		metrics.TranslationDuration.Record(ctx, r.took.Seconds(), metrics.Attributes)
	}
	if r.Err != nil && !errors.Is(r.Err, io.EOF) { // the recording has no more chunks
		_, end := in.observe(ctx)
		end(0, r.Err)
	}
}

// Pass calls the next consumer, and frees the bytes of the payload afterwards. If that rejects the payload, the error is a
// *PipelineError, and a *PanicError if it panics. The Result has no Profiles then.
func (in *Ingester) Pass(ctx context.Context, r *Result) error {
	ctx, end := in.observe(ctx)
	samples, count := r.Profiles.SampleCount(), r.Profiles.ProfileCount()
	in.guard(r, func() error { return in.consume(ctx, r) })
	end(samples, r.Err)
	if r.Err != nil || count == 0 { // by intention of the caller, or a pprof without sample types
		return r.Err
	}
	damaged := 0
	if r.damage != nil {
		damaged = 1
		in.trouble.Warn("Execution trace is damaged; accepting what precedes the damage", r.damage, r.fields()...)
	}
	metrics := in.settings.Metrics
	for _, repair := range [...]struct {
		name  string
		count int
	}{
		{"invalid_utf8", r.report.InvalidStrings}, {"negative_time", r.report.NegativeTimes},
		{"saturated_value", r.report.SaturatedValues}, {"timestamp_outside", r.outside},
		{"damaged_trace", damaged}, {"dropped_name", r.droppedNames},
		{"other_line", r.otherLines}, {"unpaired_switch", r.unpaired},
	} {
		if repair.count > 0 {
			metrics.Repairs.Add(ctx, int64(repair.count), metrics.Attributes, metric.WithAttributes(attribute.String("repair", repair.name)))
		}
	}
	in.announce(r, samples)
	return nil
}

// consume calls the next consumer, which has the only reference to the Profiles then.
func (in *Ingester) consume(ctx context.Context, r *Result) error {
	profiles := r.Profiles
	r.Profiles = pprofile.Profiles{}
	ctx, end := r.lease.Call(ctx, int64(r.Bytes))
	defer end()
	if profiles.ProfileCount() == 0 {
		return nil
	}
	if err := in.next.ConsumeProfiles(ctx, profiles); err != nil {
		return &PipelineError{ForCaller(err)}
	}
	return nil
}

// NotAccepted returns the Profiles that err says were not accepted; all others were. It returns
// false if err does not say so, or if it joins the errors of several consumers: the part that one
// of them did not accept is not that of another.
func NotAccepted(err error) (pprofile.Profiles, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if partial, ok := err.(xconsumererror.Profiles); ok { //nolint:errorlint // errors.As looks into joined errors, too
			return partial.Data(), partial.Data().ProfileCount() > 0
		}
	}
	return pprofile.Profiles{}, false
}

// IsPermanent reports whether err is permanent. An error that joins those of several consumers, as of two pipelines
// of one receiver, is so only if each of them is: any other consumer has asked for a retry.
func IsPermanent(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return consumererror.IsPermanent(err)
	}
	for _, e := range joined.Unwrap() {
		if !IsPermanent(e) {
			return false
		}
	}
	return len(joined.Unwrap()) > 0
}

// ForCaller returns err such that consumererror.IsPermanent, which other components use, agrees with IsPermanent.
func ForCaller(err error) error {
	if consumererror.IsPermanent(err) && !IsPermanent(err) {
		return errors.New(err.Error())
	}
	return err
}
