// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/datadog"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/files"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/pprofhttp"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/pyroscope"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/scrape"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/self"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// pprofReceiver is the component: the sections that are configured, each with
// its own way into the pipeline.
type pprofReceiver struct {
	server    *httpserver.Server // nil when not configured
	scraper   *scrape.Scraper    // nil when not configured
	files     *files.Reader      // nil when not configured
	self      *self.Profiler     // nil when not configured
	telemetry *telemetry
}

func newReceiver(set receiver.Settings, cfg *Config, next xconsumer.Profiles) (*pprofReceiver, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	r := &pprofReceiver{telemetry: telemetry}
	if config := cfg.Server.Get(); config != nil {
		in, err := newIngester("http", set, cfg, int(config.MaxDecompressedSize), next, telemetry)
		if err != nil {
			return nil, err
		}
		r.server = httpserver.New(httpserver.Settings{
			HTTP:                config.HTTP,
			MaxDecompressedSize: int64(config.MaxDecompressedSize),
			MaxInFlight:         int64(config.MaxInFlight),
			ResourceAttributes:  cfg.ResourceAttributes,
			Telemetry:           set.TelemetrySettings,
			Metrics: httpserver.Metrics{
				Requests:           telemetry.ReceiverPprofRequests,
				RejectedRequests:   telemetry.ReceiverPprofRejectedRequests,
				SkippedAttachments: telemetry.ReceiverPprofSkippedAttachments,
				Attributes:         func(more ...attribute.KeyValue) metric.MeasurementOption { return telemetry.with(more...) },
			},
		}, in, pprofhttp.Protocol, pyroscope.Ingest, pyroscope.Push, datadog.Protocol)
	}
	if config := cfg.Remote.Get(); config != nil {
		in, err := newIngester("scrape", set, cfg, int(config.MaxDecompressedSize), next, telemetry)
		if err != nil {
			return nil, err
		}
		r.scraper, err = scrape.New(scrape.Settings{
			Config:             *config,
			ResourceAttributes: cfg.ResourceAttributes,
			Telemetry:          set.TelemetrySettings,
			Metrics: scrape.Metrics{
				Scrapes:          telemetry.ReceiverPprofScrapes,
				Duration:         telemetry.ReceiverPprofScrapeDuration,
				BaselineResets:   telemetry.ReceiverPprofBaselineResets,
				RegisterTargetUp: telemetry.RegisterReceiverPprofTargetUpCallback,
				Attributes:       telemetry.with,
			},
		}, in)
		if err != nil {
			return nil, fmt.Errorf("remote: %w", err)
		}
	}
	if config := cfg.File.Get(); config != nil {
		in, err := newIngester("file", set, cfg, int(config.MaxDecompressedSize), next, telemetry)
		if err != nil {
			return nil, err
		}
		r.files, err = files.New(files.Settings{
			ID:                 set.ID,
			Config:             *config,
			ResourceAttributes: cfg.ResourceAttributes,
			Logger:             set.Logger,
			Files:              telemetry.ReceiverPprofFiles,
			Attributes:         telemetry.with,
		}, in)
		if err != nil {
			return nil, fmt.Errorf("file: %w", err)
		}
	}
	if config := cfg.Self.Get(); config != nil {
		in, err := newIngester("self", set, cfg, self.MaxProfile, next, telemetry)
		if err != nil {
			return nil, err
		}
		r.self = self.New(*config, set.Resource, cfg.ResourceAttributes, in, set.Logger)
	}
	return r, nil
}

// Start begins to receive. On an error nothing is left running.
func (r *pprofReceiver) Start(ctx context.Context, host component.Host) error {
	if r.server != nil {
		if err := r.server.Start(ctx, host); err != nil {
			return fmt.Errorf("server: %w", err)
		}
	}
	if r.scraper != nil {
		if err := r.scraper.Start(ctx, host); err != nil {
			return errors.Join(fmt.Errorf("remote: %w", err), r.Shutdown(ctx))
		}
	}
	if r.files != nil {
		if err := r.files.Start(ctx, host); err != nil {
			return errors.Join(fmt.Errorf("file: %w", err), r.Shutdown(ctx))
		}
	}
	if r.self != nil {
		r.self.Start(ctx)
	}
	return nil
}

// Shutdown stops receiving, and returns when nothing more will be handed to the
// next component.
func (r *pprofReceiver) Shutdown(ctx context.Context) error {
	if r.self != nil {
		r.self.Shutdown()
	}
	if r.scraper != nil {
		r.scraper.Shutdown()
	}
	var err error
	if r.files != nil {
		err = r.files.Shutdown(ctx)
	}
	if r.server != nil {
		if stopErr := r.server.Shutdown(ctx); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("server: %w", stopErr))
		}
	}
	r.telemetry.Shutdown()
	return err
}

func newIngester(transport string, set receiver.Settings, cfg *Config, decompressedSize int, next xconsumer.Profiles, telemetry *telemetry) (*ingest.Ingester, error) {
	return ingest.New(ingest.Settings{
		Receiver:  set,
		Transport: transport,
		ScopeName: metadata.ScopeName,
		Unmarshaler: &pproftranslator.Unmarshaler{
			Limits:         pproftranslator.Limits{DecompressedSize: decompressedSize},
			TimestampLabel: cfg.TimestampLabel,
			TraceIDLabel:   cfg.Links.TraceID,
			SpanIDLabel:    cfg.Links.SpanID,
			LinkLabels:     cfg.Links.others(),
		},
		Metrics: ingest.Metrics{
			PayloadSize:         telemetry.ReceiverPprofPayloadSize,
			TranslationDuration: telemetry.ReceiverPprofTranslationDuration,
			EmptyProfiles:       telemetry.ReceiverPprofEmptyProfiles,
			Repairs:             telemetry.ReceiverPprofRepairs,
			Attributes: func(more ...attribute.KeyValue) metric.MeasurementOption {
				return telemetry.with(append(more, attribute.String("transport", transport))...)
			},
		},
	}, next)
}
