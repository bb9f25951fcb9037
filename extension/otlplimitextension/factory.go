// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlplimitextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-profiles/otelcol-profiles/extension/otlplimitextension/internal/metadata"
)

// NewFactory returns the factory of the extension otlp_limit.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return &limiter{limit: int64(cfg.(*Config).MaxMessageMemory), logger: set.Logger}, nil
}
