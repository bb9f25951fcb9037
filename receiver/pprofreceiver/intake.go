// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"

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

	// temporality is that of a sample type, by its name; empty when unknown.
	// It may be nil.
	temporality func(sampleType string) temporality
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
	next         xconsumer.Profiles
	obsreport    *receiverhelper.ObsReport
	telemetry    *metadata.TelemetryBuilder
}

func newIntake(transport string, set receiver.Settings, cfg *Config, decompressedSize int, next xconsumer.Profiles, telemetry *metadata.TelemetryBuilder) (*intake, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID:             set.ID,
		Transport:              transport,
		ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	return &intake{
		transport: transport,
		unmarshaler: &pproftranslator.Unmarshaler{
			Limits:         pproftranslator.Limits{DecompressedSize: decompressedSize},
			TimestampLabel: cfg.TimestampLabel,
			TraceIDLabel:   cfg.Links.TraceID,
			SpanIDLabel:    cfg.Links.SpanID,
		},
		scopeVersion: set.BuildInfo.Version,
		next:         next,
		obsreport:    obsreport,
		telemetry:    telemetry,
	}, nil
}

// accept translates the payload and hands it to the next component. The error is
// a *malformedError (which a *pproftranslator.LimitError may be in) or a
// *pipelineError.
func (in *intake) accept(ctx context.Context, a arrival) error {
	ctx = in.obsreport.StartProfilesOp(ctx)
	pd, err := in.translate(a)
	if err != nil {
		in.obsreport.EndProfilesOp(ctx, format, 0, err)
		return &malformedError{err}
	}
	samples := pd.SampleCount()
	if pd.ProfileCount() > 0 {
		err = in.next.ConsumeProfiles(ctx, pd)
	}
	in.obsreport.EndProfilesOp(ctx, format, samples, err)
	if err != nil {
		return &pipelineError{err}
	}
	if samples == 0 {
		in.telemetry.ReceiverPprofEmptyProfiles.Add(ctx, 1,
			metric.WithAttributeSet(attribute.NewSet(attribute.String("transport", in.transport))))
	}
	return nil
}

// translate turns the payload into profiles that say where they come from and
// that can be recognized.
func (in *intake) translate(a arrival) (pprofile.Profiles, error) {
	if len(a.payload) == 0 {
		return pprofile.Profiles{}, errors.New("empty, want a pprof profile")
	}
	pd, err := in.unmarshaler.UnmarshalProfiles(a.payload)
	if err != nil {
		return pd, err
	}
	for _, resourceProfiles := range pd.ResourceProfiles().All() {
		resource := resourceProfiles.Resource().Attributes()
		putAll(resource, a.resource)
		nameService(resource)
		for _, scopeProfiles := range resourceProfiles.ScopeProfiles().All() {
			scope := scopeProfiles.Scope()
			scope.SetName(metadata.ScopeName)
			scope.SetVersion(in.scopeVersion)
			if a.kind != "" {
				scope.Attributes().PutStr(attributeProfileType, a.kind)
			}
			if a.temporality != nil {
				if err := setTemporality(pd.Dictionary(), scopeProfiles.Profiles(), a.temporality); err != nil {
					return pd, fmt.Errorf("setting %s: %w", attributeTemporality, err)
				}
			}
			if err := identify(resource, scopeProfiles, a.payload); err != nil {
				return pd, fmt.Errorf("setting profile ids: %w", err)
			}
		}
	}
	return pd, nil
}
