// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

// telemetry holds the metrics of one receiver, for all its sections.
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

// with returns the attributes of a measurement: the receiver's ID and these.
func (t *telemetry) with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append([]attribute.KeyValue{t.instance}, attributes...)...))
}
