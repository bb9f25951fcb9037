// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

// telemetry is what one receiver counts with, all its sections.
type telemetry struct {
	*metadata.TelemetryBuilder
	instance attribute.KeyValue
}

func newTelemetry(set receiver.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &telemetry{TelemetryBuilder: builder, instance: attribute.String("receiver", set.ID.String())}, nil
}

// with makes what goes with everything that is counted: which receiver it is of, and
// these attributes.
func (t *telemetry) with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append([]attribute.KeyValue{t.instance}, attributes...)...))
}
