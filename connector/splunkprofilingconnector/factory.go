// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer/xconsumer"

	"github.com/otelcol-profiles/otelcol-profiles/connector/splunkprofilingconnector/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
)

// NewFactory returns the factory of the connector splunk_profiling, from logs to profiles. Its connectors share one budget of
// memory.
func NewFactory() connector.Factory {
	inFlight := new(budget.Shared)
	return xconnector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xconnector.WithLogsToProfiles(func(_ context.Context, set connector.Settings, cfg component.Config, next xconsumer.Profiles) (connector.Logs, error) {
			config := cfg.(*Config)
			return newConnector(set, config, inFlight.AtLeast(int64(config.MaxInFlight)), next)
		}, metadata.LogsToProfilesStability),
	)
}
