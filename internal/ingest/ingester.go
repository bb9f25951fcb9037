// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
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
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// format is the name of the payloads in the collector's own receiver telemetry.
const format = "pprof"

const attributeProfileType = "profile.type"

// Payload is one pprof profile and what its sender says about it.
type Payload struct {
	Data     []byte      // the pprof message, not compressed
	Resource pcommon.Map // attributes that override those found in Data

	// ProfileType is the value of profile.type. If it is empty, ProfileTypeOf
	// derives it from the sample types, unless that is nil.
	ProfileType   string
	ProfileTypeOf func(sampleTypes []string) string

	Temporality       TemporalityFunc                     // nil if unknown
	ScopeAttributes   map[string]string                   // in addition to those that Data yields
	ProfileAttributes func(sampleType string) []Attribute // of a Profile; may be nil
	AttributeNames    map[string]string                   // new names of sample attributes, by the old
	TimeRange         TimeRange                           // for profiles without a time of their own

	// Transform replaces the translated profiles, which it may change; may be nil.
	// Without any Profile then, nothing is passed on.
	Transform func(pd pprofile.Profiles) (pprofile.Profiles, error)

	Resent bool // an earlier attempt was measured already
}

// MalformedError means that the payload cannot be translated, by the sender's fault.
type MalformedError struct{ Err error }

func (e *MalformedError) Error() string { return e.Err.Error() }
func (e *MalformedError) Unwrap() error { return e.Err }

// PipelineError means that the next consumer did not accept the profile.
type PipelineError struct{ Err error }

func (e *PipelineError) Error() string { return e.Err.Error() }
func (e *PipelineError) Unwrap() error { return e.Err }

// ErrJFR means that a payload is a Java Flight Recorder file.
var ErrJFR = errors.New("a JFR recording, want a pprof profile")

// IsJFR reports whether a payload is a Java Flight Recorder file.
func IsJFR(data []byte) bool { return bytes.HasPrefix(data, []byte("FLR\x00")) }

// Settings are those of an Ingester.
type Settings struct {
	Receiver    receiver.Settings
	Transport   string // in the collector's own receiver telemetry
	ScopeName   string // of the scopes that it writes
	Unmarshaler *pproftranslator.Unmarshaler
	Metrics     Metrics
}

// Ingester passes payloads to the next consumer. It is safe for concurrent use.
type Ingester struct {
	scopeName, scopeVersion string
	unmarshaler             *pproftranslator.Unmarshaler
	metrics                 Metrics
	attributes              metric.MeasurementOption // of the metrics
	next                    xconsumer.Profiles
	obsreport               *receiverhelper.ObsReport
}

// New returns an Ingester in front of the next consumer.
func New(set Settings, next xconsumer.Profiles) (*Ingester, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID:             set.Receiver.ID,
		Transport:              set.Transport,
		ReceiverCreateSettings: set.Receiver,
	})
	if err != nil {
		return nil, err
	}
	return &Ingester{
		scopeName:    set.ScopeName,
		scopeVersion: set.Receiver.BuildInfo.Version,
		unmarshaler:  set.Unmarshaler,
		metrics:      set.Metrics,
		attributes:   set.Metrics.Attributes(),
		next:         next,
		obsreport:    obsreport,
	}, nil
}

// Ingest translates the payload and passes it to the next consumer. The error is a
// *MalformedError (which may wrap a *pproftranslator.LimitError), a *PipelineError or
// one of the reservation, which may be nil.
func (in *Ingester) Ingest(ctx context.Context, p Payload, r *Reservation) error {
	t, err := in.translateReserved(ctx, p, r)
	if err != nil {
		return err
	}
	return t.consume()
}

// IngestAll ingests the payloads of one request. It passes them on concurrently, so
// that a client waits only once for a next consumer that collects payloads for a while
// before it answers. The errors are in the order of the payloads.
func (in *Ingester) IngestAll(ctx context.Context, payloads []Payload, r *Reservation) []error {
	if len(payloads) == 1 {
		return []error{in.Ingest(ctx, payloads[0], r)}
	}
	errs := make([]error, len(payloads))
	all := make([]*translated, len(payloads))
	expanded := int64(0)
	for i, p := range payloads {
		if expanded > r.limit.size {
			errs[i] = &MalformedError{&pproftranslator.LimitError{What: "bytes as OTLP of all profiles of the request", Limit: r.limit.size}}
			continue
		}
		if all[i], errs[i] = in.translateReserved(ctx, p, r); errs[i] == nil {
			expanded += all[i].reserved
		}
	}
	panics := make([]any, len(payloads))
	var running sync.WaitGroup
	for i, t := range all {
		if t == nil {
			continue
		}
		running.Go(func() {
			defer func() { panics[i] = recover() }()
			errs[i] = t.consume()
		})
	}
	running.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p) // in the caller's goroutine, which handles it
		}
	}
	return errs
}

const (
	// expansion is how many times its own size a payload may take as OTLP without a
	// reservation. It is that of the translator's limits.
	expansion = 8

	// smallExpansion is the further size in bytes that the translator allows for any
	// payload.
	smallExpansion = 1 << 20
)

// translateReserved translates the payload. The reservation keeps the bytes that the
// result takes in excess of expansion times the payload.
func (in *Ingester) translateReserved(ctx context.Context, p Payload, r *Reservation) (*translated, error) {
	if r == nil {
		return in.startTranslation(ctx, p)
	}
	r.Keep()
	if err := r.Resize(ctx, smallExpansion); err != nil {
		return nil, err
	}
	t, err := in.startTranslation(ctx, p)
	if err == nil {
		t.reserved = max(0, int64(t.report.Bytes)-expansion*int64(len(p.Data)))
		if err = r.Resize(ctx, t.reserved); err == nil {
			r.Keep()
			return t, nil
		}
		in.obsreport.EndProfilesOp(t.ctx, format, t.profiles.SampleCount(), err)
	}
	_ = r.Resize(ctx, 0) // shrinking never fails
	return nil, err
}

// translated is a translated payload that the next consumer has not got yet.
type translated struct {
	in       *Ingester
	ctx      context.Context //nolint:containedctx // obsreport ties it to the operation
	profiles pprofile.Profiles
	report   pproftranslator.Report
	reserved int64 // bytes

	transformed bool
}

func (in *Ingester) startTranslation(ctx context.Context, p Payload) (*translated, error) {
	ctx = in.obsreport.StartProfilesOp(ctx)
	start := time.Now()
	pd, report, err := in.translate(p)
	if err == nil && p.Transform != nil {
		pd, err = p.Transform(pd)
	}
	if !p.Resent {
		in.recordTranslation(ctx, len(p.Data), time.Since(start))
	}
	if err != nil {
		in.obsreport.EndProfilesOp(ctx, format, 0, err)
		return nil, &MalformedError{err}
	}
	return &translated{in: in, ctx: ctx, profiles: pd, report: report, transformed: p.Transform != nil}, nil
}

// consume calls the next consumer. The error is a *PipelineError.
func (t *translated) consume() error {
	in, samples := t.in, t.profiles.SampleCount()
	var err error
	if t.profiles.ProfileCount() > 0 {
		err = in.next.ConsumeProfiles(t.ctx, t.profiles)
	}
	in.obsreport.EndProfilesOp(t.ctx, format, samples, err)
	switch {
	case err != nil:
		return &PipelineError{err}
	case t.transformed && t.profiles.ProfileCount() == 0: // by intention
		return nil
	}
	in.recordAccepted(t.ctx, t.report, samples)
	return nil
}

// Translate returns the profiles that Ingest would pass to the next consumer, before
// Transform.
func (in *Ingester) Translate(p Payload) (pprofile.Profiles, error) {
	pd, _, err := in.translate(p)
	return pd, err
}

func (in *Ingester) translate(p Payload) (pprofile.Profiles, pproftranslator.Report, error) {
	if len(p.Data) == 0 {
		return pprofile.Profiles{}, pproftranslator.Report{}, errors.New("empty, want a pprof profile")
	}
	if IsJFR(p.Data) {
		return pprofile.Profiles{}, pproftranslator.Report{}, ErrJFR
	}
	pd, report, err := in.unmarshaler.UnmarshalReport(p.Data)
	if err != nil {
		return pd, report, err
	}
	return pd, report, in.describe(pd, p)
}

// describe writes the sender's information to resources, scopes and Profiles.
func (in *Ingester) describe(pd pprofile.Profiles, p Payload) error {
	renameAttributes(pd, p.AttributeNames)
	for _, resourceProfiles := range pd.ResourceProfiles().All() {
		resource := resourceProfiles.Resource().Attributes()
		putAll(resource, p.Resource)
		setServiceName(resource)
		for _, scopeProfiles := range resourceProfiles.ScopeProfiles().All() {
			if err := in.describeScope(pd.Dictionary(), resource, scopeProfiles, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *Ingester) describeScope(dictionary pprofile.ProfilesDictionary, resource pcommon.Map, scopeProfiles pprofile.ScopeProfiles, p Payload) error {
	scope, profiles := scopeProfiles.Scope(), scopeProfiles.Profiles()
	scope.SetName(in.scopeName)
	scope.SetVersion(in.scopeVersion)
	types, err := sampleTypes(dictionary, profiles)
	if err != nil {
		return err
	}
	profileType := p.ProfileType
	if profileType == "" && p.ProfileTypeOf != nil {
		profileType = p.ProfileTypeOf(types)
	}
	if profileType != "" {
		scope.Attributes().PutStr(attributeProfileType, profileType)
	}
	PutStrings(scope.Attributes(), p.ScopeAttributes)
	if err := setProfileAttributes(dictionary, profiles, types, p); err != nil {
		return fmt.Errorf("setting attributes: %w", err)
	}
	var given TimeRange
	if p.TimeRange.fill(profiles, types, p.Temporality) {
		given = p.TimeRange
	}
	if err := setProfileIDs(resource, scopeProfiles, p.Data, given); err != nil {
		return fmt.Errorf("setting profile IDs: %w", err)
	}
	return nil
}

// sampleTypes are the names of the sample types of the Profiles.
func sampleTypes(dictionary pprofile.ProfilesDictionary, profiles pprofile.ProfilesSlice) ([]string, error) {
	table := dictionary.StringTable()
	types := make([]string, 0, profiles.Len())
	for _, profile := range profiles.All() {
		index := profile.SampleType().TypeStrindex()
		if index < 0 || int(index) >= table.Len() {
			return nil, fmt.Errorf("sample type string index %d out of range (%d strings)", index, table.Len())
		}
		types = append(types, table.At(int(index)))
	}
	return types, nil
}
