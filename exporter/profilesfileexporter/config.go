// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

// Config says where and how the exporter writes. The README tells what each key
// means to its user.
type Config struct {
	// Directory that the files go into. It is made if it is missing. Required.
	Directory string `mapstructure:"directory"`
	// Format is "proto" (default) or "json".
	Format string `mapstructure:"format"`
	// Framing of format proto: "length_prefixed" (default), or "none" for one
	// message a file. JSON records are lines always.
	Framing string `mapstructure:"framing"`
	// Compression is "none", "gzip" or "zstd" (default).
	Compression string `mapstructure:"compression"`
	// Sync is "none", "interval" (default) or "record".
	Sync string `mapstructure:"sync"`
	// SyncInterval is how long a record may wait for the disk with Sync "interval".
	SyncInterval time.Duration `mapstructure:"sync_interval"`
	// Rotation says when a file is finished.
	Rotation RotationConfig `mapstructure:"rotation"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// RotationConfig are limits of one file; 0 is none. Whichever is reached first
// finishes the file.
type RotationConfig struct {
	// MaxSize on the disk. Only a single record may make a file larger.
	MaxSize bytesize.Size `mapstructure:"max_size"`
	// MaxAge since the file's first record.
	MaxAge time.Duration `mapstructure:"max_age"`
	// MaxRecords in the file.
	MaxRecords int `mapstructure:"max_records"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var (
	_ component.Config  = (*Config)(nil)
	_ confmap.Validator = (*Config)(nil)
)

const (
	formatProto           = "proto"
	formatJSON            = "json"
	framingLengthPrefixed = "length_prefixed"
	framingNone           = "none"
	compressionNone       = "none"
	compressionGzip       = "gzip"
	compressionZstd       = "zstd"
	syncNone              = "none"
	syncInterval          = "interval"
	syncRecord            = "record"
)

func createDefaultConfig() component.Config {
	return &Config{
		Format:       formatProto,
		Framing:      framingLengthPrefixed,
		Compression:  compressionZstd,
		Sync:         syncInterval,
		SyncInterval: time.Second,
		Rotation: RotationConfig{
			MaxSize: 64 * bytesize.MiB,
			MaxAge:  time.Minute,
		},
	}
}

// leastDuration catches durations without a unit, which are read as nanoseconds.
const leastDuration = time.Millisecond

// Validate returns all that is wrong, each with the key, its value, and what is
// allowed.
func (c *Config) Validate() error {
	var errs []error
	switch {
	case c.Directory == "":
		errs = append(errs, errors.New("directory: is empty: want the path of the directory that the files go into"))
	case strings.ContainsRune(c.Directory, 0):
		errs = append(errs, fmt.Errorf("directory: %q holds a NUL: want a path", c.Directory))
	}
	errs = append(errs,
		oneOf("format", c.Format, formatProto, formatJSON),
		oneOf("framing", c.Framing, framingLengthPrefixed, framingNone),
		oneOf("compression", c.Compression, compressionNone, compressionGzip, compressionZstd),
		oneOf("sync", c.Sync, syncNone, syncInterval, syncRecord),
	)
	if c.Format == formatJSON && c.Framing == framingNone {
		errs = append(errs, errors.New(
			"framing: is none with format: json: want framing none only with format: proto (JSON records are lines)"))
	}
	if c.SyncInterval < leastDuration && (c.SyncInterval != 0 || c.Sync == syncInterval) {
		errs = append(errs, fmt.Errorf("sync_interval: is %v: want at least %v, with a unit as in 1s", c.SyncInterval, leastDuration))
	}
	if c.Rotation.MaxSize < 0 {
		errs = append(errs, fmt.Errorf("rotation::max_size: is %v: want 0 for no limit, or more", c.Rotation.MaxSize))
	}
	if c.Rotation.MaxAge < leastDuration && c.Rotation.MaxAge != 0 {
		errs = append(errs, fmt.Errorf("rotation::max_age: is %v: want 0 for no limit, or at least %v, with a unit as in 1m", c.Rotation.MaxAge, leastDuration))
	}
	if c.Rotation.MaxRecords < 0 {
		errs = append(errs, fmt.Errorf("rotation::max_records: is %d: want 0 for no limit, or more", c.Rotation.MaxRecords))
	}
	return errors.Join(errs...)
}

// oneOf returns an error unless the key's value is one of those allowed.
func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: is %q: want one of %s", key, value, strings.Join(allowed, ", "))
}

// segmentOptions translates a valid configuration.
func (c *Config) segmentOptions() segment.Options {
	options := segment.Options{
		Format: segment.Format{Content: segment.OTLPProto, Framing: segment.LengthPrefixed},
		Rotation: segment.Rotation{
			MaxSize:    int64(c.Rotation.MaxSize),
			MaxAge:     c.Rotation.MaxAge,
			MaxRecords: c.Rotation.MaxRecords,
		},
		SyncInterval: c.SyncInterval,
	}
	switch {
	case c.Format == formatJSON:
		options.Format.Content, options.Format.Framing = segment.OTLPJSON, segment.Lines
	case c.Framing == framingNone:
		options.Format.Framing = segment.Bare
	}
	switch c.Compression {
	case compressionGzip:
		options.Format.Compression = segment.Gzip
	case compressionZstd:
		options.Format.Compression = segment.Zstd
	}
	switch c.Sync {
	case syncInterval:
		options.Sync = segment.SyncInterval
	case syncRecord:
		options.Sync = segment.SyncRecord
	}
	return options
}
