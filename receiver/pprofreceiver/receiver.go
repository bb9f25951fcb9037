// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/scrape"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/section"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/self"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// pprofReceiver is the component.
type pprofReceiver struct {
	sections  []namedSection // in the order of their start
	inFlight  *budget.Budget
	telemetry *section.Telemetry
}

// namedSection is a configured section. Each passes profiles to the pipeline on its own.
type namedSection struct {
	key string
	component.Component
}

func newReceiver(set receiver.Settings, cfg *Config, inFlight *budget.Budget, next xconsumer.Profiles) (*pprofReceiver, error) {
	telemetry, err := section.NewTelemetry(set.TelemetrySettings, set.ID)
	if err != nil {
		return nil, err
	}
	r := &pprofReceiver{telemetry: telemetry, inFlight: inFlight}
	shared := section.Settings{
		ID: set.ID, InFlight: inFlight, ResourceAttributes: cfg.ResourceAttributes, Telemetry: set.TelemetrySettings, Metrics: telemetry,
	}
	var errs []error
	add := func(key string, c component.Component) { r.sections = append(r.sections, namedSection{key, c}) }
	ingester := func(transport string, maxDecompressed config.Size) *ingest.Ingester {
		in, err := newIngester(set, cfg, telemetry, transport, maxDecompressed, next)
		errs = append(errs, err)
		return in
	}
	if config := cfg.Server.Get(); config != nil {
		add("server", httpserver.New(*config, shared, ingester("http", config.MaxDecompressedSize)))
	}
	if config := cfg.Remote.Get(); config != nil {
		add("remote", scrape.New(*config, shared, ingester("scrape", config.MaxDecompressedSize)))
	}
	if config := cfg.Self.Get(); config != nil {
		add("self", self.New(*config, shared, ingester("self", self.MaxProfile)))
	}
	return r, errors.Join(errs...)
}

// newIngester returns the ingester of a section.
func newIngester(set receiver.Settings, cfg *Config, telemetry *section.Telemetry, transport string, maxDecompressed config.Size, next xconsumer.Profiles) (*ingest.Ingester, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: transport, ReceiverCreateSettings: set,
	})
	return ingest.New(ingest.Settings{
		Logger:    set.Logger,
		Announce:  transport != "self",
		ObsReport: obsreport,
		ScopeName: metadata.ScopeName,
		Version:   set.BuildInfo.Version,
		Unmarshaler: &pproftranslator.Unmarshaler{
			Limits:         pproftranslator.Limits{DecompressedSize: int(maxDecompressed)},
			TimestampLabel: cfg.TimestampLabel,
			TraceIDLabel:   cfg.Links.TraceID,
			SpanIDLabel:    cfg.Links.SpanID,
		},
		JFR: cfg.JFR,
		Metrics: ingest.Metrics{
			PayloadSize:         telemetry.ReceiverPprofPayloadSize,
			TranslationDuration: telemetry.ReceiverPprofTranslationDuration,
			Repairs:             telemetry.ReceiverPprofRepairs,
			Attributes:          telemetry.Attributes(attribute.String("transport", transport)),
		},
	}, next), err
}

// Start starts all sections. After an error nothing is left running.
func (r *pprofReceiver) Start(ctx context.Context, host component.Host) error {
	for _, s := range r.sections {
		if err := s.Start(ctx, host); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.key, err), r.Shutdown(ctx))
		}
	}
	return nil
}

// Shutdown stops all sections. No call of the next consumer is running when it returns.
func (r *pprofReceiver) Shutdown(ctx context.Context) error {
	var errs []error
	for _, s := range slices.Backward(r.sections) {
		if err := s.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.key, err))
		}
	}
	r.telemetry.Shutdown()
	return errors.Join(errs...)
}
