// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// Config is the configuration of the connector.
type Config struct {
	// Timestamps keeps the time of each sample. Without it, equal samples of a record are
	// summed. Default: true.
	Timestamps bool `mapstructure:"timestamps"`

	// MaxDecompressedSize limits the size of the profile of one record, decompressed.
	// Default: 64MiB.
	MaxDecompressedSize config.Size `mapstructure:"max_decompressed_size"`

	// MaxInFlight limits the memory of all profiles in progress. All splunk_profiling connectors share the
	// largest. Default: 25%.
	MaxInFlight config.Size `mapstructure:"max_in_flight"`
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

func createDefaultConfig() component.Config {
	return &Config{
		Timestamps:          true,
		MaxDecompressedSize: 64 * config.MiB,
		MaxInFlight:         ingest.DefaultMaxInFlight(),
	}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return config.Unmarshal(conf, c) }

// Validate checks the configuration.
func (c *Config) Validate() error {
	var checks config.Checks
	ingest.CheckMaxDecompressedSize(&checks, c.MaxDecompressedSize)
	ingest.CheckMaxInFlight(&checks, c.MaxInFlight)
	return checks.Err()
}
