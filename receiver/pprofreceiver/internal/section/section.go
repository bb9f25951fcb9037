// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package section has what the sections of the pprof receiver share.
package section

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

// Settings are those of the receiver, which all its sections share.
type Settings struct {
	ID                 component.ID
	InFlight           *budget.Budget
	ResourceAttributes map[string]string
	Telemetry          component.TelemetrySettings
	Metrics            *Telemetry
}

// Repeat calls run at once and then at the interval, until the context is canceled. A panic of run ends that call only.
func Repeat(ctx context.Context, interval time.Duration, logger *zap.Logger, run func(ctx context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		panics.Log(logger, "next attempt after the collection interval", func() { run(ctx) })
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Telemetry is the metrics of one receiver, which all its sections share.
type Telemetry struct {
	*metadata.TelemetryBuilder
	receiver attribute.KeyValue
}

// NewTelemetry returns the metrics of the receiver with this ID.
func NewTelemetry(settings component.TelemetrySettings, id component.ID) (*Telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	return &Telemetry{builder, attribute.String("receiver", id.String())}, err
}

// Attributes returns the attributes of a measurement: the receiver's ID and more.
func (t *Telemetry) Attributes(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append([]attribute.KeyValue{t.receiver}, more...)...))
}
