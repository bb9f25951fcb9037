// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesviewextension

import (
	"fmt"
	"net"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/page"
)

// Config is the configuration of the extension: confighttp's server configuration with the
// extension's own keys beside it.
type Config struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`

	// Directory is the directory with the profile files, such as that of the profiles_file exporter. It may be
	// created later, or be one in an object store: s3://bucket/prefix?endpoint=URL&region=NAME.
	Directory string `mapstructure:"directory"`

	// MaxMemory limits the memory of all requests together. It must be at least 16MiB. Default: 10%.
	MaxMemory config.Size `mapstructure:"max_memory"`

	// AllowedHosts are further host names that requests may name.
	AllowedHosts []string `mapstructure:"allowed_hosts"`

	// TraceURL is the address of a trace in a tracing UI, with {trace_id} for its ID. The page of a trace links to it.
	TraceURL string `mapstructure:"trace_url"`

	// MCP serves the Model Context Protocol at /mcp, with which assistants ask questions about profiles: `mcp: {}`. Who may read
	// the page may ask.
	MCP configoptional.Optional[MCPConfig] `mapstructure:"mcp"`

	// AllowUnauthenticated allows an endpoint that other computers reach without auth or client certificates.
	AllowUnauthenticated bool `mapstructure:"allow_unauthenticated"`
}

// MCPConfig has no keys.
type MCPConfig struct{}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// minMemory is the least for max_memory: profiles of a few hundred KiB fit.
const minMemory = 16 * config.MiB

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:4041"
	server.ReadTimeout = 10 * time.Second
	server.ReadHeaderTimeout = 10 * time.Second
	server.WriteTimeout = 60 * time.Second
	server.MaxRequestBodySize = int64(64 * config.KiB)
	return &Config{
		HTTP:      server,
		Directory: "./profiles",
		MaxMemory: max(config.MemoryLimit()/10, minMemory),
		MCP:       configoptional.Default(MCPConfig{}),
	}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return config.Unmarshal(conf, c) }

// Validate checks the configuration as a whole.
func (c *Config) Validate() error {
	var checks config.Checks
	endpoint := c.HTTP.NetAddr.Endpoint
	checks.That(endpoint != "", "endpoint", endpoint, "an address such as localhost:4041")
	checks.That(c.Directory != "", "directory", c.Directory, "the directory of the profiles_file exporter")
	if bucket.IsURL(c.Directory) {
		if _, err := bucket.ParseURL(c.Directory); err != nil {
			checks.Add(fmt.Errorf("directory: %w", err))
		}
	} else {
		checks.Path("directory", c.Directory)
	}
	checks.Memory("max_memory", c.MaxMemory, minMemory, config.TiB)
	mutualTLS := c.HTTP.TLS.HasValue() && c.HTTP.TLS.Get().ClientCAFile != ""
	checks.That(c.isLocal() || c.HTTP.Auth.HasValue() || mutualTLS || c.AllowUnauthenticated, "endpoint", endpoint,
		"an address of this computer, such as localhost:4041, unless auth or tls::client_ca_file is set, or allow_unauthenticated is true")
	const shortest = time.Second
	checks.That(c.HTTP.WriteTimeout == 0 || c.HTTP.WriteTimeout >= shortest, "write_timeout", c.HTTP.WriteTimeout, "0 (no timeout) or at least %v", shortest)
	for _, host := range c.AllowedHosts {
		checks.That(host != "" && !strings.ContainsAny(host, "/:*"), "allowed_hosts", host, "host names without scheme and port")
	}
	if c.TraceURL != "" {
		const example = "https://tempo.example.com/trace/{trace_id}"
		_, err := config.ParseURL("trace_url", c.TraceURL, example)
		checks.Add(err)
		checks.That(err != nil || strings.Contains(c.TraceURL, page.TraceIDInURL), "trace_url", c.TraceURL, "a URL with {trace_id}, such as %s", example)
	}
	return checks.Err()
}

// isLocal reports whether only this computer reaches the endpoint.
func (c *Config) isLocal() bool {
	if c.HTTP.NetAddr.Transport == confignet.TransportTypeUnix {
		return true
	}
	host := c.host()
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// host is that of the endpoint.
func (c *Config) host() string {
	host, _, err := net.SplitHostPort(c.HTTP.NetAddr.Endpoint)
	if err != nil {
		return ""
	}
	return host
}
