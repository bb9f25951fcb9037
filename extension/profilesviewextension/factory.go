// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesviewextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/metadata"
)

// NewFactory returns the factory of the extension profiles_view.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return &view{config: cfg.(*Config), settings: set}, nil
}
