// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// CompactConfig says when the closed files of an hour become one, and those of a day.
type CompactConfig struct {
	// After is how long after the end of an hour or a day its files become one.
	After time.Duration `mapstructure:"after"`
	// Resolution lists the length of the slots in which Profiles are merged: in hours, and in days. Without the second, days
	// are not made.
	Resolution []time.Duration `mapstructure:"resolution"`
	// MaxMemory limits the memory of compaction. Default: 10% of the memory limit, at most 256MiB.
	MaxMemory config.Size `mapstructure:"max_memory"`
}

// ParquetConfig says how long Parquet files stay. With object_storage, they are uploaded and removed from the directory.
type ParquetConfig struct {
	// Retention says which Parquet files are removed, of the directory or, with object_storage, of the bucket.
	Retention ParquetRetentionConfig `mapstructure:"retention"`
}

// ParquetRetentionConfig limits the Parquet files; 0 is no limit.
type ParquetRetentionConfig struct {
	// MaxAge removes a Parquet file this long after its day ended. 0 means no limit.
	MaxAge time.Duration `mapstructure:"max_age"`
	// MaxTotalSize removes the oldest Parquet files while those in the directory take more than this. 0 means no limit.
	MaxTotalSize config.Size `mapstructure:"max_total_size"`
}

const (
	minCompactMemory = 16 * config.MiB
	maxCompactMemory = 256 * config.MiB // by default
	compactInterval  = time.Minute
)

func defaultCompact() CompactConfig {
	return CompactConfig{
		After: time.Hour, Resolution: []time.Duration{time.Minute, 10 * time.Minute},
		MaxMemory: min(max(config.MemoryLimit()/10, minCompactMemory), maxCompactMemory),
	}
}

func (c *CompactConfig) check(checks *config.Checks) {
	checks.That(c.After >= 0, "compact::after", c.After, "0 or more")
	checks.That(c.MaxMemory >= minCompactMemory, "compact::max_memory", c.MaxMemory, "at least %v", minCompactMemory)
	checks.That(len(c.Resolution) == 1 || len(c.Resolution) == 2, "compact::resolution", c.Resolution, "one duration for hours, or two for hours and days, such as [1m, 10m]")
	whole, unit := time.Hour, time.Second
	for _, resolution := range c.Resolution {
		checks.That(resolution >= unit && resolution%unit == 0, "compact::resolution", resolution, "a multiple of %v", unit)
		checks.That(resolution <= 0 || whole%resolution == 0, "compact::resolution", resolution, "a divisor of %v", whole)
		whole, unit = 24*time.Hour, max(resolution, unit)
	}
}

func (c *Config) checkParquet(checks *config.Checks) {
	if !c.Parquet.HasValue() {
		return
	}
	r := c.Parquet.Get().Retention
	if !c.Compact.HasValue() {
		checks.Add(errors.New("compact is not set: must be set with parquet, which is written when an hour is compacted"))
	}
	zeroOrDuration(checks, "parquet::retention::max_age", r.MaxAge)
	notNegative(checks, "parquet::retention::max_total_size", r.MaxTotalSize)
}

// parquetOf says how compaction writes Parquet; nil if it does not.
func (e *fileExporter) parquetOf(c *Config) *compact.Parquet {
	if !c.Parquet.HasValue() {
		return nil
	}
	r := c.Parquet.Get().Retention
	retention := lake.Retention{MaxAge: r.MaxAge, MaxTotalSize: int64(r.MaxTotalSize)}
	outcome := "removed"
	if e.uploader != nil { // what is in the directory was not uploaded
		retention.MaxAge, outcome = 0, "dropped"
	}
	return &compact.Parquet{
		Retention: retention,
		Written: func(partition string, w lake.Written) {
			e.countParquet("written", w.Files)
			e.count(e.telemetry.ExporterProfilesFileParquetRows, w.Samples+w.Processes)
			e.count(e.telemetry.ExporterProfilesFileParquetBytes, w.Bytes)
			e.logger.Debug("Wrote Parquet", zap.String("partition", partition),
				zap.Int64("samples", w.Samples), zap.Int64("processes", w.Processes), zap.Int64("bytes", w.Bytes))
		},
		LeftOut: func(partition string, err error) {
			e.count(e.telemetry.ExporterProfilesFileParquetLeftOut, 1)
			e.logger.Error("Compacting without Parquet, which has failed for a day; write it with otelprof convert",
				append(stackOf(err), zap.String("partition", partition), zap.Error(err))...)
		},
		Removed: func(path string, size int64) {
			e.countParquet(outcome, 1)
			e.logger.Debug("Removed old Parquet file", zap.String("path", path), zap.Int64("bytes", size))
		},
	}
}

func (e *fileExporter) countParquet(outcome string, files int64) {
	e.count(e.telemetry.ExporterProfilesFileParquetFiles, files, attribute.String("outcome", outcome))
}

// compact makes few files of many until ctx ends.
func (e *fileExporter) compact(ctx context.Context, c *CompactConfig) {
	options := compact.Options{
		Directory: e.options.Directory, After: c.After, Resolutions: c.Resolution, MaxMemory: int64(c.MaxMemory),
		Compacted: e.logCompacted, OpenDir: e.options.OpenDir, Parquet: e.parquetOf(e.config),
		Skipped: func(path string, err error) {
			e.count(e.telemetry.ExporterProfilesFileCompactionErrors, 1)
			e.logger.Warn("File is not compacted", zap.String("path", path), zap.Error(err))
		},
		Damaged: func(path string) {
			e.count(e.telemetry.ExporterProfilesFileDamagedFiles, 1)
			e.logger.Warn("Moved a damaged file after its readable records were compacted", zap.String("path", path),
				zap.String("moved_to", filepath.Join(e.options.Directory, layout.DamagedDir)))
		},
	}
	if e.uploader != nil { // otherwise a day could count twice in the bucket
		options.Ready = func(path string) bool { return !e.uploader.Waits(path) }
	}
	compactor := compact.New(options)
	e.every(ctx, compactInterval, func() {
		if err := compactor.Run(ctx); err != nil && ctx.Err() == nil {
			e.count(e.telemetry.ExporterProfilesFileCompactionErrors, 1)
			e.logger.Warn("Compaction failed; will retry", append(stackOf(err), zap.Error(err))...)
		}
	})
}

func (e *fileExporter) logCompacted(r compact.Result) {
	if e.uploader != nil {
		e.uploader.FileClosed()
	}
	e.count(e.telemetry.ExporterProfilesFileCompactions, 1)
	e.count(e.telemetry.ExporterProfilesFileCompactedFiles, int64(r.Inputs))
	e.count(e.telemetry.ExporterProfilesFileCompactionReadBytes, r.Before)
	e.count(e.telemetry.ExporterProfilesFileCompactionWrittenBytes, r.After)
	e.logger.Info("Compacted files", zap.String("path", r.Path), zap.Int("files", r.Inputs), zap.Int("records", r.Records),
		zap.Int64("bytes_before", r.Before), zap.Int64("bytes_after", r.After), zap.Duration("duration", r.Duration))
}
