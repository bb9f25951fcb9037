// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/connector/splunkprofilingconnector/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// inFlightWait is how long a request may wait for memory that others hold.
const inFlightWait = time.Second

type splunkConnector struct {
	component.StartFunc
	config    *Config
	inFlight  *budget.Budget
	ingester  *ingest.Ingester
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue
	logger    *zap.Logger
}

func newConnector(set connector.Settings, config *Config, inFlight *budget.Budget, next xconsumer.Profiles) (*splunkConnector, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	id := attribute.String("connector", set.ID.String())
	return &splunkConnector{
		config: config, inFlight: inFlight, telemetry: telemetry, id: id, logger: set.Logger,
		ingester: ingest.New(ingest.Settings{
			Logger:    set.Logger,
			ScopeName: metadata.ScopeName,
			Version:   set.BuildInfo.Version,
			// The message of a record may be larger than max_decompressed_size by the part that completePprof adds.
			Unmarshaler: &pproftranslator.Unmarshaler{Limits: pproftranslator.Limits{DecompressedSize: int(ingest.MaxPayload)}},
			Metrics: ingest.Metrics{
				PayloadSize:         telemetry.ConnectorSplunkProfilingPayloadSize,
				TranslationDuration: telemetry.ConnectorSplunkProfilingTranslationDuration,
				Repairs:             telemetry.ConnectorSplunkProfilingRepairs,
				Attributes:          metric.WithAttributeSet(attribute.NewSet(id)),
			},
		}, next),
	}, nil
}

func (*splunkConnector) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

func (c *splunkConnector) Shutdown(context.Context) error {
	c.telemetry.Shutdown()
	return nil
}

// Outcomes of a record, as values of the attribute outcome, besides those of ingest.Outcome.
const (
	outcomeAccepted     = "accepted"
	outcomeNotProfiling = "not_profiling"
	outcomeUnsupported  = "unsupported"
)

func (c *splunkConnector) count(ctx context.Context, outcome string, records int) {
	if records > 0 {
		c.telemetry.ConnectorSplunkProfilingRecords.Add(ctx, int64(records), metric.WithAttributeSet(
			attribute.NewSet(c.id, attribute.String("outcome", outcome))))
	}
}

// ConsumeLogs translates the profiling records of ld and passes them to the next consumer. It
// returns an error only of the next consumer or of memory: a permanent one if a retry cannot
// succeed.
func (c *splunkConnector) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	lease := c.inFlight.Lease(inFlightWait)
	defer lease.Release()
	var retryable, permanent []error
	report := func(p *payload, err error) {
		switch c.report(ctx, p.service, len(p.records), err) {
		case ingest.OutcomeRetryable:
			retryable = append(retryable, err)
		case ingest.OutcomeRejected, ingest.OutcomePanic:
			permanent = append(permanent, err)
		}
	}
	batch := c.ingester.NewBatch(lease)
	var translated []*payload
	pass := func() {
		results := make([]*ingest.Result, len(translated))
		for i, p := range translated {
			results[i] = p.translated
		}
		for i, err := range c.ingester.PassAll(ctx, results) {
			report(translated[i], err)
		}
		translated = nil
	}
	for _, p := range c.collect(ctx, ld) {
		translate := func() error { return c.translate(ctx, p, batch, lease) }
		var err error
		if len(translated) > 0 {
			err = translate()
			if _, tooLarge := errors.AsType[*budget.TooLargeError](err); tooLarge || errors.Is(err, budget.ErrFull) {
				pass() // alone it may not be too large, and may wait
			}
		}
		if len(translated) == 0 {
			err = lease.Within(ctx, translate)
		}
		switch {
		case err != nil:
			report(p, err)
		case len(p.records) > 0:
			translated = append(translated, p)
		}
	}
	pass()
	if len(retryable) > 0 {
		return errors.Join(retryable...)
	}
	if len(permanent) > 0 {
		return consumererror.NewPermanent(errors.Join(permanent...))
	}
	return nil
}

// report counts records of a service with one outcome, and logs those that are rejected.
func (c *splunkConnector) report(ctx context.Context, service string, records int, err error) (outcome string) {
	switch {
	case err == nil:
		outcome = outcomeAccepted
	case errors.Is(err, errUnsupported):
		outcome = outcomeUnsupported
	case ingest.Outcome(err) == ingest.OutcomeInFlight, ctx.Err() != nil:
		outcome = ingest.OutcomeRetryable
	default:
		outcome = ingest.Outcome(err)
	}
	c.count(ctx, outcome, records)
	switch outcome {
	case outcomeAccepted, ingest.OutcomeRetryable, ingest.OutcomePanic: // a panic was logged with its stack
	default:
		c.logger.Warn("Rejected profiling log records", zap.String("service", service),
			zap.Int("records", records), zap.String("outcome", outcome), zap.Error(err))
	}
	return outcome
}
