// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
)

// Config says where symbols come from.
type Config struct {
	// Directories lists directories with debug files below `.build-id`, such as /usr/lib/debug, or any ELF files. The processor finds new files
	// within five minutes.
	Directories []string `mapstructure:"directories"`
	// Debuginfod configures servers of debug files.
	Debuginfod DebuginfodConfig `mapstructure:"debuginfod"`
	// Cache configures the symbol tables that are made of debug files.
	Cache CacheConfig `mapstructure:"cache"`
	// Timeout is how long a payload waits for files that are being searched for or read.
	Timeout time.Duration `mapstructure:"timeout"`
	// MaxFileSize limits a downloaded file, and the sections of a file, decompressed.
	MaxFileSize config.Size `mapstructure:"max_file_size"`
	// MaxMemory limits the memory of reading a file, one at a time, and of what is added to a payload. Default: 10%.
	MaxMemory config.Size `mapstructure:"max_memory"`
	// Demangle says how names of C++ and Rust are written: none leaves them, short omits parameters and template
	// arguments, full has them.
	Demangle string `mapstructure:"demangle"`
}

// DebuginfodConfig configures debuginfod servers.
type DebuginfodConfig struct {
	// HTTP configures the client. Its endpoint is not used.
	HTTP confighttp.ClientConfig `mapstructure:",squash"`
	// URLs lists the servers. They are asked in this order.
	URLs []string `mapstructure:"urls"`
}

// CacheConfig configures the directory of symbol tables.
type CacheConfig struct {
	// Directory is the directory of the tables and of temporary files. One process uses it.
	Directory string `mapstructure:"directory"`
	// MaxSize limits the tables. Those that were not used for longest are removed.
	MaxSize config.Size `mapstructure:"max_size"`
}

var (
	_ confmap.Validator   = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

const minMemory = 16 * config.MiB

func createDefaultConfig() component.Config {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 5 * time.Minute
	return &Config{
		Directories: []string{},
		Debuginfod:  DebuginfodConfig{HTTP: client, URLs: []string{}},
		Cache:       CacheConfig{Directory: "./symbols", MaxSize: 2048 * config.MiB},
		Timeout:     5 * time.Second,
		MaxFileSize: 2048 * config.MiB,
		MaxMemory:   max(config.MemoryLimit()/10, minMemory),
		Demangle:    symbolize.DemangleShort,
	}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return config.Unmarshal(conf, c) }

// Validate returns an error for each invalid key.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(len(c.Directories)+len(c.Debuginfod.URLs) > 0, "directories", c.Directories, "a list of directories with debug files, unless debuginfod::urls has a server")
	for i, directory := range c.Directories {
		checks.That(directory != "", fmt.Sprintf("directories[%d]", i), directory, "a directory such as /usr/lib/debug")
	}
	for i, server := range c.Debuginfod.URLs {
		_, err := config.ParseURL(fmt.Sprintf("debuginfod::urls[%d]", i), server, "https://debuginfod.debian.net")
		checks.Add(err)
	}
	checks.That(c.Debuginfod.HTTP.Endpoint == "", "debuginfod::endpoint", c.Debuginfod.HTTP.Endpoint, "left out: the servers are in urls")
	checks.That(c.Debuginfod.HTTP.Timeout >= time.Millisecond, "debuginfod::timeout", c.Debuginfod.HTTP.Timeout, "at least 1ms")
	checks.That(c.Cache.Directory != "", "cache::directory", c.Cache.Directory, "a directory")
	checks.That(c.Cache.MaxSize >= config.MiB, "cache::max_size", c.Cache.MaxSize, "at least 1MiB")
	checks.That(c.Timeout >= 0, "timeout", c.Timeout, "at least 0s")
	checks.That(c.MaxFileSize >= config.MiB, "max_file_size", c.MaxFileSize, "at least 1MiB")
	checks.That(c.MaxMemory >= minMemory, "max_memory", c.MaxMemory, "at least %v", minMemory)
	checks.OneOf("demangle", c.Demangle, symbolize.DemangleNone, symbolize.DemangleShort, symbolize.DemangleFull)
	return checks.Err()
}
