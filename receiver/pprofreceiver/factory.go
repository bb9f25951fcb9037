// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

// NewFactory returns the factory of the pprof receiver. It makes receivers of profiles only, which share one budget of memory.
func NewFactory() receiver.Factory {
	inFlight := new(budget.Shared)
	return xreceiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xreceiver.WithProfiles(func(_ context.Context, set receiver.Settings, cfg component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
			config := cfg.(*Config)
			return newReceiver(set, config, inFlight.AtLeast(int64(config.MaxInFlight)), next)
		}, metadata.ProfilesStability),
	)
}
