// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlplimitextension

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

// Config is the configuration of the extension.
type Config struct {
	// MaxMessageMemory limits the memory of one decoded message, by an estimate. Default: 40%.
	MaxMessageMemory config.Size `mapstructure:"max_message_memory"`
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// minMemory is the least for max_message_memory: payloads of about 200 KiB fit.
const minMemory = config.MiB

func createDefaultConfig() component.Config {
	return &Config{MaxMessageMemory: max(config.MemoryLimit()/100*40, minMemory)}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return config.Unmarshal(conf, c) }

// Validate checks the configuration as a whole.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.Memory("max_message_memory", c.MaxMessageMemory, minMemory, config.TiB)
	return checks.Err()
}
