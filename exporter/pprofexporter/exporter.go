// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/component/repeatlog"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// pprofExporter turns payloads into pprofs and sends them.
type pprofExporter struct {
	config    *Config
	settings  exporter.Settings
	telemetry *metadata.TelemetryBuilder
	instance  metric.MeasurementOption // the ID, as an attribute of all metrics
	trouble   *repeatlog.Reporter
	server    string // the endpoint without its query and user
	client    client // nil before start
}

// client sends one series to a server.
type client interface {
	send(ctx context.Context, s *series) *failure
	close() error
}

// failure says why a series was not sent.
type failure struct {
	error
	reason string        // a server or the exporter rejected it permanently; empty if it is retryable
	ends   bool          // the server would take no other series now
	delay  time.Duration // the server asks for it before the next attempt
}

// Reasons of rejections, as values of a metric.
const (
	reasonConvert      = "convert"
	reasonNoValues     = "no_values"
	reasonInvalid      = "invalid"
	reasonTooLarge     = "too_large"
	reasonUnauthorized = "unauthorized"
	reasonOther        = "other"
)

func newPprofExporter(config *Config, set exporter.Settings) (*pprofExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &pprofExporter{
		config: config, settings: set, telemetry: telemetry, trouble: repeatlog.New(set.Logger), server: serverOf(config.HTTP.Endpoint),
		instance: metric.WithAttributes(attribute.String("exporter", set.ID.String())),
	}, nil
}

// serverOf returns what of an endpoint is no secret.
func serverOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (e *pprofExporter) start(ctx context.Context, host component.Host) (err error) {
	e.trouble.Start(host)
	if e.config.Protocol == protocolParca {
		e.client, err = newGRPCClient(ctx, e.config, host, e.settings)
	} else {
		e.client, err = newHTTPClient(ctx, e.config, host, e.settings)
	}
	return err
}

func (e *pprofExporter) shutdown(context.Context) error {
	e.telemetry.Shutdown()
	if e.client == nil {
		return nil
	}
	return e.client.close()
}

// place is a Profile of a payload.
type place struct{ resource, scope, profile int }

// consume sends the pprofs of a payload one after the other. Its error carries the Profiles that it is about, so that a
// retry sends only those.
func (e *pprofExporter) consume(ctx context.Context, pd pprofile.Profiles) error {
	pd, err := prepare(pd, e.config)
	if err != nil {
		return consumererror.NewPermanent(e.reject(&failure{error: err, reason: reasonConvert}, nil))
	}
	var retry, rejection *failure // the first of each
	rejected, accepted := map[place]bool{}, map[place]bool{}
	convert := context.WithoutCancel(ctx) // an error of ctx is none of the payload
	err = panics.Guarded(func() error {
		for converted, err := range (pproftranslator.Marshaler{OmitEmpty: true}).All(convert, pd) {
			s, failed := e.sendSeries(ctx, pd, converted, err)
			switch {
			case failed == nil:
				mark(accepted, converted)
			case failed.reason != "":
				mark(rejected, converted)
				_ = e.reject(failed, s)
				if rejection == nil {
					rejection = failed
				}
			case retry == nil || failed.ends:
				retry = failed
			}
			if retry != nil && retry.ends {
				break
			}
		}
		return nil
	})()
	if err != nil { // a panic of the conversion
		retry = e.panicked(err)
	}
	e.report(ctx, retry, len(accepted) > 0)
	switch {
	case retry != nil:
		rest := only(pd, func(at place) bool { return !accepted[at] && !rejected[at] })
		err = retry.error
		if retry.delay > 0 {
			err = exporterhelper.NewThrottleRetry(err, retry.delay)
		}
		return xconsumererror.NewProfiles(err, rest)
	case rejection != nil:
		err = fmt.Errorf("%d Profiles rejected; first error: %w", len(rejected), rejection.error)
		return consumererror.NewPermanent(xconsumererror.NewProfiles(err, only(pd, func(at place) bool { return rejected[at] })))
	}
	return nil
}

// sendSeries sends one series. A panic concerns no other, and is retried as if the server were away.
func (e *pprofExporter) sendSeries(ctx context.Context, pd pprofile.Profiles, converted pproftranslator.Converted, err error) (s *series, failed *failure) {
	caught := panics.Guarded(func() error {
		if s, failed = e.newSeries(pd, converted, err); failed == nil {
			failed = e.client.send(ctx, s)
		}
		return nil
	})()
	if caught != nil {
		failed = e.panicked(caught)
	}
	return s, failed
}

// panicked logs a panic once a minute. Nobody but retry_on_failure ends its retries.
func (e *pprofExporter) panicked(err error) *failure {
	fields := []zap.Field{zap.String("endpoint", e.server)}
	if caught, ok := errors.AsType[*panics.Error](err); ok {
		fields = append(fields, zap.ByteString("stack", caught.Stack))
	}
	e.trouble.Warn("Panic while sending profiles; will retry", err, fields...)
	return &failure{error: err}
}

func isPanic(err error) bool {
	_, caught := errors.AsType[*panics.Error](err)
	return caught
}

const troubleAway = "Backend does not take profiles"

// report reports whether the server takes profiles.
func (e *pprofExporter) report(ctx context.Context, retry *failure, accepted bool) {
	switch {
	case retry != nil && isPanic(retry.error): // of ours
	case retry != nil && ctx.Err() == nil:
		waits := "profiles of the sender, which gets a retryable error"
		if e.config.SendingQueue.HasValue() {
			waits = "profiles in sending_queue"
		}
		e.trouble.Failed(troubleAway, retry.error, zap.String("endpoint", e.server), zap.String("waits", waits))
	case retry == nil && accepted:
		e.trouble.Over(troubleAway, "Sending profiles again", zap.String("endpoint", e.server))
	}
}

func mark(places map[place]bool, c pproftranslator.Converted) {
	for _, profile := range c.Profiles {
		places[place{c.Resource, c.Scope, profile}] = true
	}
}

// reject counts and logs the rejection of a series, which is nil if it could not be made.
func (e *pprofExporter) reject(failed *failure, s *series) error {
	e.telemetry.ExporterPprofRejectedSeries.Add(context.Background(), 1, e.instance,
		metric.WithAttributes(attribute.String("reason", failed.reason)))
	fields := []zap.Field{zap.String("reason", failed.reason), zap.Error(failed.error)}
	if s != nil {
		fields = append(fields, zap.String("service", s.service), zap.String("profile", s.name), zap.String("sample_type", s.profile.SampleType[0].Type))
	}
	e.settings.Logger.Error("Rejected a profile permanently", fields...)
	return failed.error
}

// only returns a copy of pd with the Profiles that keep selects.
func only(pd pprofile.Profiles, keep func(place) bool) pprofile.Profiles {
	kept := pprofile.NewProfiles()
	pd.CopyTo(kept)
	at := place{resource: -1}
	kept.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		at.resource, at.scope = at.resource+1, -1
		rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
			at.scope, at.profile = at.scope+1, -1
			sp.Profiles().RemoveIf(func(pprofile.Profile) bool {
				at.profile++
				return !keep(at)
			})
			return sp.Profiles().Len() == 0
		})
		return rp.ScopeProfiles().Len() == 0
	})
	return kept
}
