// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filestorageextension

import (
	"context"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/extension/filestorageextension/internal/metadata"
)

var contrib = filestorage.NewFactory()

// NewFactory returns the factory of the extension file_storage.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func create(ctx context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	config := (*filestorage.Config)(cfg.(*Config))
	inner, err := contrib.Create(ctx, set, config)
	if err != nil {
		return nil, err
	}
	return &fileStorage{
		Extension: inner.(storage.Extension),
		directory: config.Directory,
		logger:    set.Logger,
		telemetry: telemetry,
		instance:  metric.WithAttributes(attribute.String("extension", set.ID.String())),
	}, nil
}
