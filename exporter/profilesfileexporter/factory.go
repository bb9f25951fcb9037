// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/component/repeatlog"
)

// NewFactory returns the factory of the exporter profiles_file.
func NewFactory() exporter.Factory {
	return xexporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xexporter.WithProfiles(createProfiles, metadata.ProfilesStability),
	)
}

func createProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	e, err := newFileExporter(cfg.(*Config), set)
	if err != nil {
		return nil, err
	}
	return e.withHelper(ctx, set)
}

// withHelper puts the retries of the collector before the exporter.
func (e *fileExporter) withHelper(ctx context.Context, set exporter.Settings) (xexporter.Profiles, error) {
	set.Logger = repeatlog.Quiet(set.Logger)
	options := []exporterhelper.Option{
		// Marshalling copies only payloads that others share, which are read-only. With MutatesData,
		// a receiver of two pipelines would make a copy of each payload for this exporter,
		// even if a processor in between makes profiles of its own.
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		// A write to a disk cannot be cancelled.
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithStart(e.start),
		exporterhelper.WithShutdown(e.shutdown),
	}
	if e.config.RetryOnFailure.Enabled { // otherwise, errors would advise to enable it
		options = append(options, exporterhelper.WithRetry(e.config.RetryOnFailure))
	}
	return xexporterhelper.NewProfiles(ctx, set, e.config, e.consume, options...)
}
