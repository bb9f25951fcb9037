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
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// inFlightWait is how long a request may wait for memory that others hold.
const inFlightWait = time.Second

type splunkConnector struct {
	component.StartFunc
	config    *Config
	inFlight  *ingest.InFlight
	ingester  *ingest.Ingester
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue
	logger    *zap.Logger
}

func newConnector(set connector.Settings, config *Config, inFlight *ingest.InFlight, next xconsumer.Profiles) (*splunkConnector, error) {
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
				EmptyProfiles:       telemetry.ConnectorSplunkProfilingEmptyProfiles,
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
	payloads := c.collect(ctx, ld)
	reservation := c.inFlight.Reserve(inFlightWait)
	defer reservation.Release()
	batch := c.ingester.NewBatch(reservation)
	var retryable, permanent []error
	for len(payloads) > 0 {
		part, err := c.prepare(ctx, reservation, batch, payloads)
		if err != nil {
			for _, p := range payloads {
				c.count(ctx, ingest.OutcomeRetryable, len(p.records))
			}
			return errors.Join(append(retryable, err)...)
		}
		for _, r := range part.rejections {
			c.report(ctx, r)
		}
		for i, err := range part.batch.Pass(ctx) {
			r := part.prepared[i]
			r.err = err
			switch c.report(ctx, r) {
			case outcomeAccepted:
			case ingest.OutcomeRetryable:
				retryable = append(retryable, err)
			default:
				permanent = append(permanent, err)
			}
		}
		reservation.FreeWork()
		batch, payloads = part.batch.Next(), payloads[part.taken:]
	}
	switch {
	case len(retryable) > 0:
		return errors.Join(retryable...)
	case len(permanent) > 0:
		return consumererror.NewPermanent(errors.Join(permanent...))
	}
	return nil
}

// result is the outcome of so many records of a service.
type result struct {
	service string
	records int
	err     error
}

// report counts records, and logs those that are rejected.
func (c *splunkConnector) report(ctx context.Context, r result) (outcome string) {
	outcome = outcomeOf(r.err)
	c.count(ctx, outcome, r.records)
	switch outcome {
	case outcomeAccepted, ingest.OutcomeRetryable, ingest.OutcomePanic: // a panic was logged with its stack
	default:
		c.logger.Warn("Rejected profiling log records", zap.String("service", r.service),
			zap.Int("records", r.records), zap.String("outcome", outcome), zap.Error(r.err))
	}
	return outcome
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return outcomeAccepted
	case errors.Is(err, errUnsupported), errors.Is(err, ingest.ErrJFR):
		return outcomeUnsupported
	}
	return ingest.Outcome(err)
}
