// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filestorageextension

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

// Config is the configuration of contrib's extension.
type Config filestorage.Config

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

func createDefaultConfig() component.Config {
	return (*Config)(contrib.CreateDefaultConfig().(*filestorage.Config))
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return config.Unmarshal(conf, c) }

// Validate checks the configuration as contrib's extension does.
func (c *Config) Validate() error { return (*filestorage.Config)(c).Validate() }
