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
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// format is the name of the payloads in the collector's own receiver telemetry.
const format = "pprof"

const attributeProfileType = "profile.type"

// Payload is one pprof message and what its client says about it; a request can carry
// several.
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

	// Sources of a time that Data lacks, in this order; timestamps of samples come after the
	// first. Each may be zero.
	TimeRange TimeRange         // that the request states
	Modified  pcommon.Timestamp // last change of the file
	Arrived   time.Time         // now if it is zero

	// Transform replaces the translated profiles, which it may change; may be nil.
	// Without any Profile then, nothing is passed on. It also returns the number of
	// Profiles that it left out because they have no samples.
	Transform func(pd pprofile.Profiles) (pprofile.Profiles, int, error)

	Resent bool // an earlier attempt was measured already

	seen occurrences // of the request
}

// PipelineError means that the next consumer did not accept the profile.
type PipelineError struct{ Err error }

func (e *PipelineError) Error() string { return e.Err.Error() }
func (e *PipelineError) Unwrap() error { return e.Err }

// ErrJFR means that a payload is a Java Flight Recorder file.
var ErrJFR = errors.New("a JFR recording, want a pprof profile")

// Settings are those of an Ingester.
type Settings struct {
	Receiver    receiver.Settings
	Transport   string // in the collector's own receiver telemetry
	ScopeName   string // of the scopes that it writes
	Unmarshaler *pproftranslator.Unmarshaler
	Metrics     Metrics
}

// Metrics are the instruments of an Ingester. All are required.
type Metrics struct {
	PayloadSize         metric.Int64Counter     // bytes of pprof
	TranslationDuration metric.Float64Histogram // seconds
	EmptyProfiles       metric.Int64Counter
	Repairs             metric.Int64Counter      // by the attribute repair
	Attributes          metric.MeasurementOption // of all measurements
}

// Ingester passes payloads to the next consumer. It is safe for concurrent use.
type Ingester struct {
	settings  Settings
	next      xconsumer.Profiles
	obsreport *receiverhelper.ObsReport
}

// New returns an Ingester in front of the next consumer.
func New(set Settings, next xconsumer.Profiles) (*Ingester, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID:             set.Receiver.ID,
		Transport:              set.Transport,
		ReceiverCreateSettings: set.Receiver,
	})
	return &Ingester{settings: set, next: next, obsreport: obsreport}, err
}

// Ingest translates the payload and passes it to the next consumer. If that rejects it,
// the error is a *PipelineError. Other errors are those of the reservation, which may be
// nil, and of payloads that cannot be translated.
func (in *Ingester) Ingest(ctx context.Context, p Payload, r *Reservation) error {
	t, err := in.start(ctx, p, r)
	if err != nil {
		return err
	}
	return in.consume(t)
}

// IngestAll ingests the payloads of one request. It passes them on concurrently, so
// that a client waits only once for a next consumer that collects payloads for a while
// before it answers. A panic concerns its payload only, whose error is then a *PanicError.
// The errors are in the order of the payloads. r must not be nil.
func (in *Ingester) IngestAll(ctx context.Context, payloads []Payload, r *Reservation) []error {
	errs := make([]error, len(payloads))
	all := make([]translated, len(payloads))
	excess, seen, now := int64(0), occurrences{}, time.Now()
	for i, p := range payloads {
		p.seen = seen
		if p.Arrived.IsZero() {
			p.Arrived = now
		}
		if excess > r.limit.size {
			errs[i] = &pproftranslator.LimitError{What: "bytes as OTLP of all profiles of the request", Limit: r.limit.size}
			continue
		}
		errs[i] = in.recovering(p, func() (err error) {
			all[i], err = in.start(ctx, p, r)
			return err
		})
		excess += all[i].excess
	}
	var running sync.WaitGroup
	for i := range all {
		if errs[i] != nil {
			continue
		}
		running.Go(func() {
			errs[i] = in.recovering(payloads[i], func() error { return in.consume(all[i]) })
		})
	}
	running.Wait()
	return errs
}

// recovering calls do for a payload and turns a panic into an error.
func (in *Ingester) recovering(p Payload, do func() error) (err error) {
	service := ""
	if name, ok := p.Resource.Get(AttributeServiceName); ok {
		service = name.AsString()
	}
	defer Recover(in.settings.Receiver.Logger, &err, zap.String("service", service), zap.String("profile", p.ProfileType))
	return do()
}

const (
	// expansion is how many times its own size a payload may take as OTLP without a
	// reservation. It is that of the translator's limits.
	expansion = 8

	// expansionAllowance is the further size in bytes that the translator allows for
	// any payload.
	expansionAllowance = 1 << 20
)

// translated is a translated payload that the next consumer has not got yet.
type translated struct {
	ctx      context.Context //nolint:containedctx // obsreport ties it to the operation
	profiles pprofile.Profiles
	report   pproftranslator.Report
	outside  int   // timestamps outside the Profile
	empty    int   // Profiles without samples, which are left out
	excess   int64 // bytes that it takes beyond expansion times the payload
}

// start starts the operation that consume ends: it translates the payload and reserves
// what the result takes beyond expansion (8) times the payload. Up to that size nothing
// is reserved. The translator allows an excess of at most expansionAllowance (1 MiB),
// values that are 0 not counted: start reserves this before it translates, then resizes
// the reservation to the actual excess, which such values can make larger.
func (in *Ingester) start(ctx context.Context, p Payload, r *Reservation) (t translated, err error) {
	r.Keep()
	if err := r.Resize(ctx, expansionAllowance); err != nil {
		return t, err
	}
	t.ctx = in.obsreport.StartProfilesOp(ctx)
	start := time.Now()
	t.profiles, t.report, t.outside, err = in.translate(p)
	if err == nil && t.profiles.ProfileCount() == 0 {
		t.empty = 1 // a pprof without sample types
	}
	if err == nil && p.Transform != nil {
		t.profiles, t.empty, err = p.Transform(t.profiles)
	}
	if err == nil {
		err = t.leaveOutEmpty()
	}
	if metrics := in.settings.Metrics; !p.Resent {
		metrics.PayloadSize.Add(t.ctx, int64(len(p.Data)), metrics.Attributes)
		metrics.TranslationDuration.Record(t.ctx, time.Since(start).Seconds(), metrics.Attributes)
	}
	samples := 0
	if err == nil {
		samples = t.profiles.SampleCount()
		t.excess = max(0, int64(t.report.Bytes)-expansion*int64(len(p.Data)))
		err = r.Resize(ctx, t.excess)
	}
	if err != nil {
		in.obsreport.EndProfilesOp(t.ctx, format, samples, err)
		_ = r.Resize(ctx, 0) // shrinking never fails
		return translated{}, err
	}
	r.Keep()
	return t, nil
}

// consume calls the next consumer. The error is a *PipelineError.
func (in *Ingester) consume(t translated) error {
	samples, count := t.profiles.SampleCount(), t.profiles.ProfileCount()
	var err error
	if count > 0 {
		err = in.next.ConsumeProfiles(t.ctx, t.profiles)
	}
	in.obsreport.EndProfilesOp(t.ctx, format, samples, err)
	switch {
	case err != nil:
		return &PipelineError{err}
	case count == 0 && t.empty == 0: // by intention of Transform
		return nil
	}
	metrics := in.settings.Metrics
	for repair, n := range map[string]int{
		"invalid_utf8": t.report.InvalidStrings, "negative_time": t.report.NegativeTimes, "timestamp_outside": t.outside,
	} {
		if n > 0 {
			metrics.Repairs.Add(t.ctx, int64(n), metrics.Attributes, metric.WithAttributes(attribute.String("repair", repair)))
		}
	}
	if t.empty > 0 {
		metrics.EmptyProfiles.Add(t.ctx, int64(t.empty), metrics.Attributes)
	}
	return nil
}

// leaveOutEmpty leaves out the Profiles without samples, and counts them. OTLP wants at
// least one sample in each.
func (t *translated) leaveOutEmpty() (err error) {
	empty := 0
	for _, resourceProfiles := range t.profiles.ResourceProfiles().All() {
		for _, scopeProfiles := range resourceProfiles.ScopeProfiles().All() {
			for _, profile := range scopeProfiles.Profiles().All() {
				if profile.Samples().Len() == 0 {
					empty++
				}
			}
		}
	}
	t.empty += empty
	switch empty {
	case 0:
	case t.profiles.ProfileCount():
		t.profiles = pprofile.NewProfiles()
	default:
		hasSamples := func(p pprofile.Profile) bool { return p.Samples().Len() > 0 }
		t.profiles, err = merge.Keep(t.profiles, &merge.Options{}, hasSamples)
	}
	return err
}

// Translate returns the profiles that Ingest would pass to the next consumer, before
// Transform.
func (in *Ingester) Translate(p Payload) (pprofile.Profiles, error) {
	pd, _, _, err := in.translate(p)
	return pd, err
}

func (in *Ingester) translate(p Payload) (pd pprofile.Profiles, report pproftranslator.Report, outside int, err error) {
	switch {
	case len(p.Data) == 0:
		return pd, report, 0, errors.New("empty, want a pprof profile")
	case bytes.HasPrefix(p.Data, []byte("FLR\x00")):
		return pd, report, 0, ErrJFR
	}
	if pd, report, err = in.settings.Unmarshaler.UnmarshalReport(p.Data); err != nil {
		return pd, report, 0, err
	}
	if p.seen == nil {
		p.seen = occurrences{}
	}
	if p.Arrived.IsZero() {
		p.Arrived = time.Now()
	}
	outside, err = in.describe(pd, p)
	return pd, report, outside, err
}

// describe writes the sender's information to resources, scopes and Profiles. It returns how
// many timestamps of samples are outside their Profile.
func (in *Ingester) describe(pd pprofile.Profiles, p Payload) (outside int, err error) {
	dictionary := pd.Dictionary()
	renameAttributes(pd, p.AttributeNames)
	for _, resourceProfiles := range pd.ResourceProfiles().All() {
		resource := resourceProfiles.Resource().Attributes()
		putAll(resource, p.Resource)
		setServiceName(resource)
		for _, scopeProfiles := range resourceProfiles.ScopeProfiles().All() {
			n, err := in.describeScope(dictionary, resource, scopeProfiles, p)
			if err != nil {
				return 0, err
			}
			outside += n
		}
	}
	return outside, nil
}

func (in *Ingester) describeScope(dictionary pprofile.ProfilesDictionary, resource pcommon.Map, scopeProfiles pprofile.ScopeProfiles, p Payload) (outside int, err error) {
	scope, profiles := scopeProfiles.Scope(), scopeProfiles.Profiles()
	scope.SetName(in.settings.ScopeName)
	scope.SetVersion(in.settings.Receiver.BuildInfo.Version)
	types := make([]string, 0, profiles.Len()) // names of the sample types
	for _, profile := range profiles.All() {
		types = append(types, dictionary.StringTable().At(int(profile.SampleType().TypeStrindex())))
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
		return 0, fmt.Errorf("setting attributes: %w", err)
	}
	outside = p.fillTimes(profiles, types)
	if err := setProfileIDs(resource, scopeProfiles, p.Data, p.seen); err != nil {
		return 0, fmt.Errorf("setting profile IDs: %w", err)
	}
	return outside, nil
}
