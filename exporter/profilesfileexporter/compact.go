// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
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

// compact makes few files of many until ctx ends.
func (e *fileExporter) compact(ctx context.Context, c *CompactConfig) {
	options := compact.Options{
		Directory: e.options.Directory, After: c.After, Resolutions: c.Resolution, MaxMemory: int64(c.MaxMemory),
		Compacted: e.logCompacted, OpenDir: e.options.OpenDir,
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
