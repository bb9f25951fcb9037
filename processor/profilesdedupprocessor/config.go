// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
)

// When a payload is acknowledged.
const (
	acknowledgeOnReceive = "on_receive"
	acknowledgeOnFlush   = "on_flush"
)

// What becomes of readings: Profiles that hold a state, not what happened during
// an interval.
const (
	snapshotsKeep = "keep"
	snapshotsSum  = "sum"
)

// maxOnFlushWindow keeps callers that wait for a flush below the timeouts of
// clients, of which many are 10 s.
const maxOnFlushWindow = 5 * time.Second

// leastDuration catches durations without a unit, which are read as nanoseconds.
const leastDuration = time.Millisecond

// Config of the processor.
type Config struct {
	// Window is how long payloads are gathered before they are passed on as one. 0
	// passes each on by itself, deduplicated within itself.
	Window time.Duration `mapstructure:"window"`
	// Acknowledge is when the caller gets its answer: on_receive, when the payload
	// is in the window; on_flush, when the next component has accepted the window.
	Acknowledge string `mapstructure:"acknowledge"`
	// MemoryLimit bounds, in bytes, what the filling window and those on their way
	// retain. A window is flushed early at half of it.
	MemoryLimit bytesize.Size `mapstructure:"memory_limit"`
	// Snapshots is what becomes of readings: keep leaves those of each payload by
	// themselves, sum adds them up like intervals.
	Snapshots string `mapstructure:"snapshots"`
	// SnapshotSampleTypes are the sample types whose Profiles are readings where
	// they do not say themselves what they are.
	SnapshotSampleTypes []string `mapstructure:"snapshot_sample_types"`
	// DropZeroSamples leaves out samples whose value is 0. Those with timestamps stay.
	DropZeroSamples bool `mapstructure:"drop_zero_samples"`
	// RetryOnFailure is how a window that the next component did not accept is
	// offered again.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`
	// ShutdownTimeout bounds the flush at shutdown.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
}

var (
	_ component.Config  = (*Config)(nil)
	_ confmap.Validator = (*Config)(nil)
)

func createDefaultConfig() component.Config {
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval = time.Second
	retry.MaxInterval = 30 * time.Second
	retry.MaxElapsedTime = 0
	return &Config{
		Window:      10 * time.Second,
		Acknowledge: acknowledgeOnReceive,
		MemoryLimit: 256 * bytesize.MiB,
		Snapshots:   snapshotsKeep,
		SnapshotSampleTypes: []string{
			"inuse_objects", "inuse_space", "goroutine", "goroutines", "threadcreate",
		},
		DropZeroSamples: true,
		RetryOnFailure:  retry,
		ShutdownTimeout: 10 * time.Second,
	}
}

// Validate names the field, its value and what is allowed.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Window != 0 && c.Window < leastDuration {
		refuse("window is %v: it must be 0s (each payload by itself) or at least %v, with its unit", c.Window, leastDuration)
	}
	if allowed := []string{acknowledgeOnReceive, acknowledgeOnFlush}; !slices.Contains(allowed, c.Acknowledge) {
		refuse("acknowledge is %q: it must be %s", c.Acknowledge, strings.Join(allowed, " or "))
	}
	if c.Acknowledge == acknowledgeOnFlush && c.Window > maxOnFlushWindow {
		refuse("window is %v: with acknowledge on_flush it must be at most %v, as callers wait for it", c.Window, maxOnFlushWindow)
	}
	if c.MemoryLimit < bytesize.MiB {
		refuse("memory_limit is %v: it must be at least 1MiB", c.MemoryLimit)
	}
	if allowed := []string{snapshotsKeep, snapshotsSum}; !slices.Contains(allowed, c.Snapshots) {
		refuse("snapshots is %q: it must be %s", c.Snapshots, strings.Join(allowed, " or "))
	}
	if i := slices.Index(c.SnapshotSampleTypes, ""); i >= 0 {
		refuse("snapshot_sample_types[%d] is empty: it must be the type of a sample, as inuse_space", i)
	}
	if c.RetryOnFailure.Enabled && c.RetryOnFailure.InitialInterval < leastDuration {
		refuse("retry_on_failure::initial_interval is %v: it must be at least %v, with its unit", c.RetryOnFailure.InitialInterval, leastDuration)
	}
	if c.RetryOnFailure.Enabled && c.RetryOnFailure.MaxInterval < c.RetryOnFailure.InitialInterval {
		refuse("retry_on_failure::max_interval is %v: it must be at least initial_interval (%v)", c.RetryOnFailure.MaxInterval, c.RetryOnFailure.InitialInterval)
	}
	if c.ShutdownTimeout < leastDuration {
		refuse("shutdown_timeout is %v: it must be at least %v, with its unit", c.ShutdownTimeout, leastDuration)
	}
	return errors.Join(errs...)
}

func (c *Config) mergeSettings() mergeSettings {
	types := make(map[string]bool, len(c.SnapshotSampleTypes))
	for _, t := range c.SnapshotSampleTypes {
		types[t] = true
	}
	return mergeSettings{
		sumSnapshots:    c.Snapshots == snapshotsSum,
		snapshotTypes:   types,
		dropZeroSamples: c.DropZeroSamples,
	}
}
