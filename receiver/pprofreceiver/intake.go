// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	// format is what the collector's own receiver telemetry calls the payloads.
	format = "pprof"

	attributeProfileType     = "profile.type"
	attributeSampleTypeOrder = "pprof.scope.sample_type_order"
)

// arrival is one pprof, and what its way in tells about it.
type arrival struct {
	payload  []byte      // the pprof message, not compressed
	resource pcommon.Map // attributes of the resource; they win over the payload's own
	kind     string      // profile.type, empty when unknown

	// kindOf is the kind where kind is empty, by the payload's sample types. It may
	// be nil.
	kindOf func(sampleTypes []string) string

	// temporality is that of a sample type, by its name; empty when unknown.
	// It may be nil.
	temporality func(sampleType string) temporality

	scope      map[string]string                    // further attributes of the scope
	profile    func(sampleType string) []profileTag // further attributes of a Profile; may be nil
	labelNames map[string]string                    // attributes of samples that get another name
	span       timeSpan                             // what the payload does not say of its time
	repeated   bool                                 // it was offered before, and measured then
}

// malformedError: the payload is not a pprof profile that can be translated, by
// the sender's fault.
type malformedError struct{ err error }

func (e *malformedError) Error() string { return e.err.Error() }
func (e *malformedError) Unwrap() error { return e.err }

// pipelineError: the next component did not accept the profile.
type pipelineError struct{ err error }

func (e *pipelineError) Error() string { return e.err.Error() }
func (e *pipelineError) Unwrap() error { return e.err }

// intake is the way that every profile takes into the pipeline, whatever section
// it came in by. It is safe for concurrent use.
type intake struct {
	transport    string
	unmarshaler  *pproftranslator.Unmarshaler
	scopeVersion string
	attributes   metric.MeasurementOption // of what telemetry counts
	next         xconsumer.Profiles
	obsreport    *receiverhelper.ObsReport
	telemetry    *telemetry
}

func newIntake(transport string, set receiver.Settings, cfg *Config, decompressedSize int, next xconsumer.Profiles, telemetry *telemetry) (*intake, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID:             set.ID,
		Transport:              transport,
		ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	return &intake{
		transport:  transport,
		attributes: telemetry.with(attribute.String("transport", transport)),
		unmarshaler: &pproftranslator.Unmarshaler{
			Limits:         pproftranslator.Limits{DecompressedSize: decompressedSize},
			TimestampLabel: cfg.TimestampLabel,
			TraceIDLabel:   cfg.Links.TraceID,
			SpanIDLabel:    cfg.Links.SpanID,
			LinkLabels:     cfg.Links.others(),
		},
		scopeVersion: set.BuildInfo.Version,
		next:         next,
		obsreport:    obsreport,
		telemetry:    telemetry,
	}, nil
}

// accept translates the payload and hands it to the next component. The error is
// a *malformedError (which a *pproftranslator.LimitError may be in), a
// *pipelineError, or one of the reservation, which may be nil.
func (in *intake) accept(ctx context.Context, a arrival, held *reservation) error {
	op, err := in.begin(ctx, a, held)
	if err != nil {
		return err
	}
	return op.finish()
}

// acceptAll is accept for the profiles of one request. They are handed on at the
// same time, so that a next component which gathers for a while before it answers
// keeps the client waiting once. The errors are in the order of the arrivals.
func (in *intake) acceptAll(ctx context.Context, arrivals []arrival, held *reservation) []error {
	errs := make([]error, len(arrivals))
	operations := make([]*operation, len(arrivals))
	started := 0
	beyond := int64(0)
	for i, a := range arrivals {
		if beyond > held.budget.size {
			errs[i] = &malformedError{&pproftranslator.LimitError{What: "bytes as OTLP of all profiles of the request", Limit: held.budget.size}}
			continue
		}
		if operations[i], errs[i] = in.begin(ctx, a, held); errs[i] == nil {
			beyond += operations[i].beyond
			started++
		}
	}
	if started == 1 {
		for i, op := range operations {
			if op != nil {
				errs[i] = op.finish()
			}
		}
		return errs
	}
	panics := make([]any, len(arrivals))
	var running sync.WaitGroup
	for i, op := range operations {
		if op == nil {
			continue
		}
		running.Go(func() {
			defer func() { panics[i] = recover() }()
			errs[i] = op.finish()
		})
	}
	running.Wait()
	for _, fault := range panics {
		if fault != nil {
			panic(fault) // where the handler answers it
		}
	}
	return errs
}

// operation is a translated profile on its way to the next component.
type operation struct {
	in       *intake
	ctx      context.Context //nolint:containedctx // of the operation, as obsreport wants it
	profiles pprofile.Profiles
	report   pproftranslator.Report
	beyond   int64 // bytes that the reservation has of it
}

const (
	// expansion is how many times its own size a profile may take as OTLP without
	// that being reserved: real ones do. It is that of the translator's limits.
	expansion = 8

	// smallExpansion is what the translator lets any payload take besides, in bytes.
	smallExpansion = 1 << 20
)

// begin translates the payload. What the result takes beyond expansion times the
// payload is kept by the reservation, unless that is nil. The error is a
// *malformedError or one of the reservation.
func (in *intake) begin(ctx context.Context, a arrival, held *reservation) (*operation, error) {
	if held == nil {
		return in.beginTranslated(ctx, a)
	}
	held.keep()
	if err := held.resize(ctx, smallExpansion); err != nil {
		return nil, err
	}
	op, err := in.beginTranslated(ctx, a)
	if err == nil {
		op.beyond = max(0, int64(op.report.Bytes)-expansion*int64(len(a.payload)))
		err = held.resize(ctx, op.beyond)
		if err == nil {
			held.keep()
			return op, nil
		}
		in.obsreport.EndProfilesOp(op.ctx, format, op.profiles.SampleCount(), err)
	}
	if back := held.resize(ctx, 0); back != nil { // giving back never fails
		err = errors.Join(err, back)
	}
	return nil, err
}

func (in *intake) beginTranslated(ctx context.Context, a arrival) (*operation, error) {
	ctx = in.obsreport.StartProfilesOp(ctx)
	start := time.Now()
	pd, report, err := in.translate(a)
	if !a.repeated {
		in.measure(ctx, len(a.payload), time.Since(start))
	}
	if err != nil {
		in.obsreport.EndProfilesOp(ctx, format, 0, err)
		return nil, &malformedError{err}
	}
	return &operation{in: in, ctx: ctx, profiles: pd, report: report}, nil
}

// finish hands the profile on. The error is a *pipelineError.
func (op *operation) finish() error {
	in, samples := op.in, op.profiles.SampleCount()
	var err error
	if op.profiles.ProfileCount() > 0 {
		err = in.next.ConsumeProfiles(op.ctx, op.profiles)
	}
	in.obsreport.EndProfilesOp(op.ctx, format, samples, err)
	if err != nil {
		return &pipelineError{err}
	}
	in.countRepairs(op.ctx, op.report)
	if samples == 0 {
		in.telemetry.ReceiverPprofEmptyProfiles.Add(op.ctx, 1, in.attributes)
	}
	return nil
}

// translate turns the payload into profiles that say where they come from and
// that can be recognized.
func (in *intake) translate(a arrival) (pprofile.Profiles, pproftranslator.Report, error) {
	if len(a.payload) == 0 {
		return pprofile.Profiles{}, pproftranslator.Report{}, errors.New("empty, want a pprof profile")
	}
	pd, report, err := in.unmarshaler.UnmarshalReport(a.payload)
	if err != nil {
		return pd, report, err
	}
	return pd, report, in.describe(pd, a)
}

// describe puts what the way in tells on resource, scope and Profiles.
func (in *intake) describe(pd pprofile.Profiles, a arrival) error {
	renameAttributes(pd, a.labelNames)
	for _, resourceProfiles := range pd.ResourceProfiles().All() {
		resource := resourceProfiles.Resource().Attributes()
		putAll(resource, a.resource)
		nameService(resource)
		for _, scopeProfiles := range resourceProfiles.ScopeProfiles().All() {
			scope, profiles := scopeProfiles.Scope(), scopeProfiles.Profiles()
			scope.SetName(metadata.ScopeName)
			scope.SetVersion(in.scopeVersion)
			types, err := sampleTypes(pd.Dictionary(), profiles)
			if err != nil {
				return err
			}
			kind := a.kind
			if kind == "" && a.kindOf != nil {
				kind = a.kindOf(types)
			}
			if kind != "" {
				scope.Attributes().PutStr(attributeProfileType, kind)
			}
			putStrings(scope.Attributes(), a.scope)
			if err := tagProfiles(pd.Dictionary(), profiles, types, a); err != nil {
				return fmt.Errorf("setting attributes: %w", err)
			}
			var span timeSpan
			if a.span.fill(profiles, types, a.temporality) {
				span = a.span
			}
			if err := identify(resource, scopeProfiles, a.payload, span); err != nil {
				return fmt.Errorf("setting profile ids: %w", err)
			}
		}
	}
	return nil
}
