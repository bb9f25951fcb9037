// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilesfilereceiver/internal/filewatch"
)

// Actions on a file when all of it was read.
const (
	afterReadKeep   = "keep"
	afterReadDelete = "delete"
	afterReadMove   = "move"
)

// Which files are read at the first start.
const (
	startAtBeginning = "beginning"
	startAtEnd       = "end"
)

const (
	minInFlight    = 4 * config.MiB
	maxConcurrency = 1000
)

// Config of the receiver.
type Config struct {
	Watch filewatch.Config `mapstructure:",squash"`

	// PathAttributes is a regular expression that is matched against the absolute path of a file of include that is not OTLP, with
	// slashes. Each named group that is not empty sets an attribute of the resource. In a group name, _ becomes . and __ becomes
	// _: service_name sets service.name. The group profile_type sets the profile type.
	PathAttributes string `mapstructure:"path_attributes"`

	// StartAt says whether files that exist at the first start are read (beginning) or skipped (end).
	StartAt string `mapstructure:"start_at"`

	// AfterRead says what happens to a file when the next component has accepted or permanently
	// rejected each of its records: keep, delete, or move to MoveTo.
	AfterRead string `mapstructure:"after_read"`

	// MoveTo is the directory for AfterRead move, on the same file system. Files keep their path below
	// the fixed part of the glob.
	MoveTo string `mapstructure:"move_to"`

	// Rejected keeps records that the next component rejected permanently, and damaged files.
	Rejected RejectedConfig `mapstructure:"rejected"`

	// Concurrency is how many records are sent at a time.
	Concurrency int `mapstructure:"concurrency"`

	// MaxInFlight limits the memory of the records that are read or sent. Default: 25%.
	MaxInFlight config.Size `mapstructure:"max_in_flight"`

	// RetryOnFailure says how long to wait after a retryable error. Retries have no end.
	RetryOnFailure RetryConfig `mapstructure:"retry_on_failure"`

	// Once stops the Collector when all files that match were read.
	Once bool `mapstructure:"once"`
}

// RejectedConfig says where rejected records are kept.
type RejectedConfig struct {
	// Directory is where rejected records and, with after_read delete and move, damaged files are kept, on the same
	// file system. Required for after_read delete.
	Directory string `mapstructure:"directory"`

	// MaxTotalSize is the most that rejected records may take. The oldest are removed, logged and counted. Damaged
	// files stay. 0 is no limit.
	MaxTotalSize config.Size `mapstructure:"max_total_size"`
}

// RetryConfig is the exponential backoff of a record.
type RetryConfig struct {
	// InitialInterval is the wait before the first retry.
	InitialInterval time.Duration `mapstructure:"initial_interval"`
	// MaxInterval is the longest wait between two attempts.
	MaxInterval time.Duration `mapstructure:"max_interval"`
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

func createDefaultConfig() component.Config {
	return &Config{
		Watch:          filewatch.Config{PollInterval: time.Second},
		StartAt:        startAtBeginning,
		AfterRead:      afterReadKeep,
		Rejected:       RejectedConfig{MaxTotalSize: 256 * config.MiB},
		Concurrency:    8,
		MaxInFlight:    max(config.MemoryLimit()/4, minInFlight),
		RetryOnFailure: RetryConfig{InitialInterval: time.Second, MaxInterval: 30 * time.Second},
	}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return config.Unmarshal(conf, c) }

// MayRead reports whether the receiver reads files with this path, in which * is a directory of any name. The programs
// reject pipelines that lead back to the files that they read.
func (c *Config) MayRead(path string) bool { return c.Watch.MayRead(path) }

// Validate checks all keys.
func (c *Config) Validate() error {
	var checks config.Checks
	c.Watch.Check(&checks)
	expression, err := regexp.Compile(c.PathAttributes)
	checks.That(err == nil, "path_attributes", c.PathAttributes, "a regular expression: %v", err)
	checks.That(err != nil || c.PathAttributes == "" || strings.Join(expression.SubexpNames(), "") != "", "path_attributes", c.PathAttributes,
		"a regular expression with a named group such as (?P<service_name>[^/]+)")
	checks.That(!c.isDirectory(c.MoveTo), "move_to", c.MoveTo, "another directory than directory")
	checks.That(!c.isDirectory(c.Rejected.Directory), "rejected::directory", c.Rejected.Directory, "another directory than directory")
	checks.Path("move_to", c.MoveTo)
	checks.Path("rejected::directory", c.Rejected.Directory)
	checks.OneOf("start_at", c.StartAt, startAtBeginning, startAtEnd)
	checks.OneOf("after_read", c.AfterRead, afterReadKeep, afterReadDelete, afterReadMove)
	checks.That(c.AfterRead != afterReadMove || c.MoveTo != "", "move_to", c.MoveTo, "a directory, as after_read is move")
	checks.That(c.AfterRead == afterReadMove || c.MoveTo == "", "move_to", c.MoveTo, "empty unless after_read is move")
	checks.That(c.AfterRead != afterReadDelete || c.Rejected.Directory != "", "rejected::directory", c.Rejected.Directory,
		"a directory, as after_read is delete: rejected records are kept there")
	checks.That(c.Rejected.MaxTotalSize >= 0, "rejected::max_total_size", c.Rejected.MaxTotalSize, "0 (no limit) or more")
	checks.That(c.Concurrency >= 1 && c.Concurrency <= maxConcurrency, "concurrency", c.Concurrency, "between 1 and %d", maxConcurrency)
	checks.Memory("max_in_flight", c.MaxInFlight, minInFlight, config.TiB)
	retry := c.RetryOnFailure
	checks.That(retry.InitialInterval >= time.Millisecond, "retry_on_failure::initial_interval", retry.InitialInterval, "at least 1ms")
	checks.That(retry.MaxInterval >= retry.InitialInterval, "retry_on_failure::max_interval", retry.MaxInterval,
		"at least initial_interval (%v)", retry.InitialInterval)
	return checks.Err()
}

// isDirectory reports whether a path is that of the directory that is read.
func (c *Config) isDirectory(path string) bool {
	return path != "" && c.Watch.Directory != "" && filepath.Clean(path) == filepath.Clean(c.Watch.Directory)
}
