// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

// CompactConfig says which closed files become one.
type CompactConfig struct {
	// After is how long after the end of a span of Into its files become one.
	After time.Duration `mapstructure:"after"`
	// Into lists the spans of time that a file has then. Each is a multiple of the one before, whose files it is made of.
	Into []time.Duration `mapstructure:"into"`
	// Resolution lists the length of the slots in which Profiles are merged, one for each span of Into.
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
		After: time.Hour, Into: []time.Duration{time.Hour, 24 * time.Hour}, Resolution: []time.Duration{time.Minute, 10 * time.Minute},
		MaxMemory: min(max(config.MemoryLimit()/10, minCompactMemory), maxCompactMemory),
	}
}

func (c *CompactConfig) check(checks *config.Checks) {
	checks.That(c.After >= 0, "compact::after", c.After, "0 or more")
	checks.That(c.MaxMemory >= minCompactMemory, "compact::max_memory", c.MaxMemory, "at least %v", minCompactMemory)
	checks.That(len(c.Into) > 0, "compact::into", c.Into, "one duration or more, such as [1h, 24h]")
	checks.That(len(c.Resolution) == len(c.Into), "compact::resolution", c.Resolution, "a duration for each of compact::into, which has %d", len(c.Into))
	multiples(checks, "compact::into", c.Into, time.Minute)
	multiples(checks, "compact::resolution", c.Resolution, time.Second)
	for i := range min(len(c.Into), len(c.Resolution)) {
		into, resolution := c.Into[i], c.Resolution[i]
		checks.That(resolution <= 0 || into%resolution == 0, "compact::resolution", resolution, "a divisor of compact::into, which is %v", into)
	}
}

// multiples checks that each duration is a larger multiple of the one before, the first one of unit.
func multiples(checks *config.Checks, key string, durations []time.Duration, unit time.Duration) {
	before, smallest := unit, unit
	for _, d := range durations {
		checks.That(d >= smallest && d%before == 0, key, d, "a multiple of %v", before)
		if d > 0 {
			before, smallest = d, d+1
		}
	}
}

// compact makes few files of many until ctx ends.
func (e *fileExporter) compact(ctx context.Context, c *CompactConfig) {
	options := compact.Options{
		Directory: e.options.Directory, Levels: e.options.Levels, Format: e.options.Format, After: c.After, MaxMemory: int64(c.MaxMemory),
		Keep: e.options.Keep, Compacted: e.logCompacted,
		Skipped: func(paths []string, err error) {
			e.count(e.telemetry.ExporterProfilesFileCompactionErrors, 1)
			e.logger.Warn("Files are not compacted", zap.String("path", paths[0]), zap.Int("files", len(paths)), zap.Error(err))
		},
	}
	for i := range c.Into {
		options.Into = append(options.Into, compact.Level{Into: c.Into[i], Resolution: c.Resolution[i]})
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
	e.count(e.telemetry.ExporterProfilesFileCompactions, 1)
	e.count(e.telemetry.ExporterProfilesFileCompactedFiles, int64(r.Inputs))
	e.count(e.telemetry.ExporterProfilesFileCompactionReadBytes, r.Before)
	e.count(e.telemetry.ExporterProfilesFileCompactionWrittenBytes, r.After)
	e.logger.Info("Compacted files", zap.String("path", r.Path), zap.Int("files", r.Inputs), zap.Int("records", r.Records),
		zap.Int64("bytes_before", r.Before), zap.Int64("bytes_after", r.After), zap.Duration("duration", r.Duration))
}
