// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// Config is the server section: confighttp's server configuration with the receiver's own
// limits in the same section.
type Config struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`

	// MaxDecompressedSize limits the profiles of one request, decompressed. Default: 64MiB.
	MaxDecompressedSize config.Size `mapstructure:"max_decompressed_size"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:4040"
	server.ReadTimeout = 30 * time.Second
	server.ReadHeaderTimeout = 10 * time.Second
	// It starts at the end of the headers: the body may take ReadTimeout, and then a
	// window with acknowledge: on_flush delays the response.
	server.WriteTimeout = 60 * time.Second
	server.MaxRequestBodySize = int64(64 * config.MiB)
	return Config{HTTP: server, MaxDecompressedSize: 64 * config.MiB}
}

// Validate makes the checks that confighttp does not.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.HTTP.NetAddr.Endpoint != "", "endpoint", c.HTTP.NetAddr.Endpoint, "an address such as localhost:4040")
	checks.That(c.HTTP.MaxRequestBodySize > 0, "max_request_body_size", c.HTTP.MaxRequestBodySize, "above 0")
	ingest.CheckMaxDecompressedSize(&checks, c.MaxDecompressedSize)
	for i, algorithm := range c.HTTP.CompressionAlgorithms {
		checks.That(slices.Contains(contentEncodings, algorithm), fmt.Sprintf("compression_algorithms[%d]", i), algorithm, "one of %q", contentEncodings)
	}
	checks.That(c.HTTP.ReadTimeout >= 0, "read_timeout", c.HTTP.ReadTimeout, "0 (no timeout) or more")
	checks.That(c.HTTP.ReadHeaderTimeout >= 0, "read_header_timeout", c.HTTP.ReadHeaderTimeout, "0 (no timeout) or more")
	checks.That(c.HTTP.WriteTimeout >= 0, "write_timeout", c.HTTP.WriteTimeout, "0 (no timeout) or more")
	return checks.Err()
}
