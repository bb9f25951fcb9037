// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package sections has the settings that the sections of the receiver share.
package sections

import (
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

// Settings are those of the receiver.
type Settings struct {
	ID                 component.ID
	InFlight           *ingest.InFlight
	ResourceAttributes map[string]string
	Telemetry          component.TelemetrySettings
	Metrics            *metadata.Telemetry
}
