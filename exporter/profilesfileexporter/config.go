// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
)

// Config says where and how the exporter writes. The README tells what each key
// means to its user.
type Config struct {
	// Directory that the files go into. It is made if it is missing. Required.
	Directory string `mapstructure:"directory"`
	// Format is "proto" (default), "json" or "pprof".
	Format string `mapstructure:"format"`
	// Framing of format proto: "length_prefixed" (default), or "none" for one
	// message a file. JSON records are lines always; pprof has "none" only, which is
	// its default when the configuration is read.
	Framing string `mapstructure:"framing"`
	// Compression is "none", "gzip" or "zstd" (default). Pprof has "gzip" only, which
	// is its default when the configuration is read.
	Compression string `mapstructure:"compression"`
	// Sync is "none", "interval" (default) or "record".
	Sync string `mapstructure:"sync"`
	// SyncInterval is how long a record may wait for the disk with Sync "interval".
	SyncInterval time.Duration `mapstructure:"sync_interval"`
	// Rotation says when a file is finished.
	Rotation RotationConfig `mapstructure:"rotation"`
	// Retention says which finished files are removed.
	Retention RetentionConfig `mapstructure:"retention"`
	// GroupBy are the keys of the resource attributes whose values name directories,
	// one inside the other.
	GroupBy []string `mapstructure:"group_by"`
	// MaxOpenFiles is how many groups may have a file open.
	MaxOpenFiles int `mapstructure:"max_open_files"`
	// SendingQueue is off unless it is there.
	SendingQueue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	// RetryOnFailure is how a record that the disk refuses is tried again.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`

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

// RetentionConfig are limits of all finished files together; 0 is none. While one is
// exceeded, the oldest file is removed.
type RetentionConfig struct {
	// MaxFiles that there may be.
	MaxFiles int `mapstructure:"max_files"`
	// MaxAge of a file since it was begun.
	MaxAge time.Duration `mapstructure:"max_age"`
	// MaxTotalSize on the disk.
	MaxTotalSize bytesize.Size `mapstructure:"max_total_size"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

const (
	formatProto           = "proto"
	formatJSON            = "json"
	formatPprof           = "pprof"
	framingLengthPrefixed = "length_prefixed"
	framingNone           = "none"
	compressionNone       = "none"
	compressionGzip       = "gzip"
	compressionZstd       = "zstd"
	syncNone              = "none"
	syncInterval          = "interval"
	syncRecord            = "record"
)

// maxGroupKeys bounds how deep directories go.
const maxGroupKeys = 8

func createDefaultConfig() component.Config {
	retry := configretry.NewDefaultBackOffConfig()
	// A disk is asked again soon: it is not far away, and callers wait.
	retry.InitialInterval = 200 * time.Millisecond
	retry.MaxInterval = time.Second
	retry.MaxElapsedTime = 10 * time.Second
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer = exporterhelper.RequestSizerTypeBytes
	queue.QueueSize = int64(256 * bytesize.MiB)
	queue.Batch = configoptional.None[exporterhelper.BatchConfig]()
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
		MaxOpenFiles:   100,
		SendingQueue:   configoptional.Default(queue),
		RetryOnFailure: retry,
	}
}

// Unmarshal sets the defaults that depend on other keys, and reads the size of the
// queue as all our sizes are written.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	const queueSize = "sending_queue::queue_size"
	if text, ok := conf.Get(queueSize).(string); ok {
		size, err := bytesize.Parse(text)
		if err != nil {
			return fmt.Errorf("%s %w", queueSize, err)
		}
		read := map[string]any{"sending_queue": map[string]any{"queue_size": int64(size)}}
		if err := conf.Merge(confmap.NewFromStringMap(read)); err != nil {
			return err
		}
	}
	if err := strictconfig.Unmarshal(conf, c); err != nil {
		return err
	}
	if c.Format == formatJSON && conf.IsSet("framing") && c.Framing == framingLengthPrefixed {
		return errors.New("framing: is length_prefixed with format: json: leave it out (JSON records are lines)")
	}
	if c.Format == formatPprof {
		if !conf.IsSet("framing") {
			c.Framing = framingNone
		}
		if !conf.IsSet("compression") {
			c.Compression = compressionGzip
		}
	}
	// What is in a queue was acknowledged: it is not given up.
	if c.SendingQueue.HasValue() && !conf.IsSet("retry_on_failure::max_elapsed_time") {
		c.RetryOnFailure.MaxElapsedTime = 0
	}
	return nil
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
		oneOf("format", c.Format, formatProto, formatJSON, formatPprof),
		oneOf("framing", c.Framing, framingLengthPrefixed, framingNone),
		oneOf("compression", c.Compression, compressionNone, compressionGzip, compressionZstd),
		oneOf("sync", c.Sync, syncNone, syncInterval, syncRecord),
	)
	if c.Format == formatJSON && c.Framing == framingNone {
		errs = append(errs, errors.New(
			"framing: is none with format: json: leave it out (JSON records are lines)"))
	}
	if c.Format == formatPprof && c.Framing != framingNone {
		errs = append(errs, fmt.Errorf("framing: is %s with format: pprof: want none, or leave it out (each pprof is a file)", c.Framing))
	}
	if c.Format == formatPprof && c.Compression != compressionGzip {
		errs = append(errs, fmt.Errorf("compression: is %s with format: pprof: want gzip, or leave it out (pprof files are gzipped)", c.Compression))
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
	errs = append(errs, c.validateRetention(), c.validateGroups(), c.validateQueue(), c.validateRetry())
	return errors.Join(errs...)
}

func (c *Config) validateRetention() error {
	var errs []error
	if c.Retention.MaxFiles < 0 {
		errs = append(errs, fmt.Errorf("retention::max_files: is %d: want 0 for no limit, or more", c.Retention.MaxFiles))
	}
	if c.Retention.MaxAge < leastDuration && c.Retention.MaxAge != 0 {
		errs = append(errs, fmt.Errorf("retention::max_age: is %v: want 0 for no limit, or at least %v, with a unit as in 24h", c.Retention.MaxAge, leastDuration))
	}
	if age, file := c.Retention.MaxAge, c.Rotation.MaxAge; age >= leastDuration && age < file && c.Framing != framingNone {
		errs = append(errs, fmt.Errorf("retention::max_age: is %v: want at least rotation::max_age, which is %v (a file would be removed as soon as it is finished)", age, file))
	}
	switch size, file := c.Retention.MaxTotalSize, c.Rotation.MaxSize; {
	case size < 0:
		errs = append(errs, fmt.Errorf("retention::max_total_size: is %v: want 0 for no limit, or more", size))
	case size > 0 && file == 0 && c.Framing != framingNone:
		errs = append(errs, fmt.Errorf("retention::max_total_size: is %v with rotation::max_size: 0: want a rotation::max_size that is no larger (a larger file would be removed as soon as it is finished)", size))
	case size > 0 && size < file && c.Framing != framingNone:
		errs = append(errs, fmt.Errorf("retention::max_total_size: is %v: want at least rotation::max_size, which is %v", size, file))
	}
	return errors.Join(errs...)
}

func (c *Config) validateGroups() error {
	var errs []error
	if len(c.GroupBy) > maxGroupKeys {
		errs = append(errs, fmt.Errorf("group_by: has %d keys: want at most %d", len(c.GroupBy), maxGroupKeys))
	}
	for i, key := range c.GroupBy {
		if key == "" {
			errs = append(errs, fmt.Errorf("group_by[%d]: is empty: want the key of a resource attribute as in service.name", i))
		} else if slices.Contains(c.GroupBy[:i], key) {
			errs = append(errs, fmt.Errorf("group_by[%d]: %q is there twice: want each key once", i, key))
		}
	}
	if c.MaxOpenFiles < 1 {
		errs = append(errs, fmt.Errorf("max_open_files: is %d: want 1 or more", c.MaxOpenFiles))
	}
	return errors.Join(errs...)
}

func (c *Config) validateQueue() error {
	if !c.SendingQueue.HasValue() {
		return nil
	}
	queue := c.SendingQueue.Get()
	var errs []error
	if queue.Batch.HasValue() {
		errs = append(errs, errors.New("sending_queue::batch: is set: want none (it copies the whole dictionary into every part; put profiles_dedup before this exporter)"))
	}
	if queue.Sizer != exporterhelper.RequestSizerTypeBytes {
		errs = append(errs, fmt.Errorf("sending_queue::sizer: is %s: want bytes, or leave it out", queue.Sizer.String()))
	}
	if !queue.WaitForResult {
		// Acknowledged is what is in the queue: the disk has it only if that is stored, and
		// it leaves the queue when its record was synced.
		if c.Sync == syncRecord && queue.StorageID == nil {
			errs = append(errs, errors.New("sync: is record with a sending_queue that acknowledges what is in memory only: want sending_queue::storage, or sending_queue::wait_for_result: true, or another sync"))
		}
		if !c.RetryOnFailure.Enabled {
			errs = append(errs, errors.New("retry_on_failure::enabled: is false with a sending_queue: want true (what the queue has acknowledged would be dropped at the first error), or sending_queue::wait_for_result: true"))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateRetry() error {
	retry := c.RetryOnFailure
	if !retry.Enabled {
		return nil
	}
	var errs []error
	if retry.InitialInterval < leastDuration {
		errs = append(errs, fmt.Errorf("retry_on_failure::initial_interval: is %v: want at least %v, with a unit as in 200ms", retry.InitialInterval, leastDuration))
	}
	if retry.MaxInterval < leastDuration {
		errs = append(errs, fmt.Errorf("retry_on_failure::max_interval: is %v: want at least %v, with a unit as in 1s", retry.MaxInterval, leastDuration))
	}
	if retry.MaxElapsedTime < leastDuration && retry.MaxElapsedTime != 0 {
		errs = append(errs, fmt.Errorf("retry_on_failure::max_elapsed_time: is %v: want 0 for no limit, or at least %v, with a unit as in 10s", retry.MaxElapsedTime, leastDuration))
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
	case c.Format == formatPprof:
		options.Format.Content, options.Format.Framing = segment.Pprof, segment.Bare
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

func (c *Config) setOptions() segment.SetOptions {
	return segment.SetOptions{
		Levels:  len(c.GroupBy),
		MaxOpen: c.MaxOpenFiles,
		Retention: segment.Retention{
			MaxFiles:     c.Retention.MaxFiles,
			MaxAge:       c.Retention.MaxAge,
			MaxTotalSize: int64(c.Retention.MaxTotalSize),
		},
	}
}
