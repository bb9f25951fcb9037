// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/component/repeatlog"
)

// NewFactory returns the factory of the exporter pprof.
func NewFactory() exporter.Factory {
	return xexporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xexporter.WithProfiles(createProfiles, metadata.ProfilesStability),
	)
}

func createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	e, err := newPprofExporter(cfg.(*Config), set)
	if err != nil {
		return nil, err
	}
	set.Logger = repeatlog.Quiet(set.Logger)
	options := []exporterhelper.Option{
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		// The timeout of the client is that of one request, and a payload makes several.
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithStart(e.start),
		exporterhelper.WithShutdown(e.shutdown),
	}
	// With the options of what is disabled, errors would advise to enable it.
	if e.config.SendingQueue.HasValue() {
		options = append(options, xexporterhelper.WithQueueBatch(e.config.SendingQueue, xexporterhelper.NewProfilesQueueBatchSettings()))
	}
	if e.config.RetryOnFailure.Enabled {
		options = append(options, exporterhelper.WithRetry(e.config.RetryOnFailure))
	}
	return xexporterhelper.NewProfiles(ctx, set, e.config, e.consume, options...)
}
