// Copyright The otelcol-profiles Authors
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
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
)

// When a payload is acknowledged.
const (
	acknowledgeOnReceive = "on_receive"
	acknowledgeOnFlush   = "on_flush"
)

// What becomes of readings: Profiles that hold a state, not what happened during
// an interval.
const (
	snapshotsKeep   = "keep"
	snapshotsLatest = "latest"
	snapshotsSum    = "sum"
)

// What becomes of timestamps.
const (
	timestampsKeep = "keep"
	timestampsDrop = "drop"
)

// How finely locations are told apart.
var granularities = map[string]dictionary.Granularity{
	"address":  dictionary.ByAddress,
	"line":     dictionary.ByLine,
	"function": dictionary.ByFunction,
}

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
	// retain. A window is flushed early at a third of it.
	MemoryLimit bytesize.Size `mapstructure:"memory_limit"`
	// Snapshots is what becomes of readings: keep leaves those of each payload by
	// themselves, latest keeps the last one of each resource, sum adds them up like
	// intervals.
	Snapshots string `mapstructure:"snapshots"`
	// SnapshotSampleTypes are the sample types whose Profiles are readings where
	// they do not say themselves what they are.
	SnapshotSampleTypes []string `mapstructure:"snapshot_sample_types"`
	// Timestamps is what becomes of the timestamps of samples: keep, or drop, which
	// leaves the values, and of timestamps alone their count.
	Timestamps string `mapstructure:"timestamps"`
	// DropZeroSamples leaves out samples whose value is 0. Those with timestamps stay.
	DropZeroSamples bool `mapstructure:"drop_zero_samples"`
	// Granularity is how finely locations are told apart: address, line, function.
	Granularity string `mapstructure:"granularity"`
	// RebaseMappings makes one of the mappings of one binary at several addresses.
	RebaseMappings bool `mapstructure:"rebase_mappings"`
	// DropSampleAttributes and DropResourceAttributes are the keys of attributes that
	// are left out of samples and of resources, so that more of them are equal.
	DropSampleAttributes   []string `mapstructure:"drop_sample_attributes"`
	DropResourceAttributes []string `mapstructure:"drop_resource_attributes"`
	// SplitBy are keys of resource attributes. A window is passed on as one payload for
	// each combination of their values, with client metadata of those names.
	SplitBy []string `mapstructure:"split_by"`
	// RepeatHorizon is how long a Profile is known after it was acknowledged: one that
	// comes again is dropped. 0 drops none.
	RepeatHorizon time.Duration `mapstructure:"repeat_horizon"`
	// RetryOnFailure is how a window that the next component did not accept is
	// offered again.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`
	// ShutdownTimeout bounds the flush at shutdown.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
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
		Timestamps:             timestampsKeep,
		DropZeroSamples:        true,
		Granularity:            "address",
		DropSampleAttributes:   []string{},
		DropResourceAttributes: []string{},
		SplitBy:                []string{},
		RepeatHorizon:          5 * time.Minute,
		RetryOnFailure:         retry,
		ShutdownTimeout:        10 * time.Second,
	}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strictconfig.Unmarshal(conf, c) }

// Validate names the field, its value and what is allowed.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Window != 0 && c.Window < leastDuration {
		refuse("window is %v: it must be 0s (each payload by itself) or at least %v, with its unit", c.Window, leastDuration)
	}
	oneOf := func(name, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			last := len(allowed) - 1
			refuse("%s is %q: it must be %s or %s", name, value, strings.Join(allowed[:last], ", "), allowed[last])
		}
	}
	oneOf("acknowledge", c.Acknowledge, acknowledgeOnReceive, acknowledgeOnFlush)
	oneOf("snapshots", c.Snapshots, snapshotsKeep, snapshotsLatest, snapshotsSum)
	oneOf("timestamps", c.Timestamps, timestampsKeep, timestampsDrop)
	oneOf("granularity", c.Granularity, "address", "line", "function")
	if c.Acknowledge == acknowledgeOnFlush && c.Window > maxOnFlushWindow {
		refuse("window is %v: with acknowledge on_flush it must be at most %v, as callers wait for it", c.Window, maxOnFlushWindow)
	}
	if c.MemoryLimit < bytesize.MiB {
		refuse("memory_limit is %v: it must be at least 1MiB", c.MemoryLimit)
	}
	list := func(name string, keys []string, example string) {
		for i, key := range keys {
			if key == "" {
				refuse("%s[%d] is empty: it must be %s", name, i, example)
			} else if slices.Contains(keys[:i], key) {
				refuse("%s[%d] is %q: that is there already", name, i, key)
			}
		}
	}
	list("snapshot_sample_types", c.SnapshotSampleTypes, "the type of a sample, as inuse_space")
	list("drop_sample_attributes", c.DropSampleAttributes, "the key of an attribute, as thread.id")
	list("drop_resource_attributes", c.DropResourceAttributes, "the key of an attribute, as service.instance.id")
	list("split_by", c.SplitBy, "the key of a resource attribute, as service.name")
	for i, key := range c.SplitBy {
		if slices.Contains(c.DropResourceAttributes, key) {
			refuse("split_by[%d] is %q: it must not be one of drop_resource_attributes", i, key)
		}
		if slices.ContainsFunc(c.SplitBy[:i], func(other string) bool { return strings.EqualFold(other, key) && other != key }) {
			refuse("split_by[%d] is %q: client metadata has no upper and lower case, and that is there already", i, key)
		}
	}
	if c.RepeatHorizon != 0 && c.RepeatHorizon < leastDuration {
		refuse("repeat_horizon is %v: it must be 0s (no repeats are dropped) or at least %v, with its unit", c.RepeatHorizon, leastDuration)
	}
	if c.RetryOnFailure.Enabled && c.RetryOnFailure.InitialInterval < leastDuration {
		refuse("retry_on_failure::initial_interval is %v: it must be at least %v, with its unit", c.RetryOnFailure.InitialInterval, leastDuration)
	}
	if c.RetryOnFailure.Enabled && c.RetryOnFailure.MaxInterval < c.RetryOnFailure.InitialInterval {
		refuse("retry_on_failure::max_interval is %v: it must be at least initial_interval (%v)", c.RetryOnFailure.MaxInterval, c.RetryOnFailure.InitialInterval)
	}
	if elapsed := c.RetryOnFailure.MaxElapsedTime; c.RetryOnFailure.Enabled && elapsed != 0 && elapsed < leastDuration {
		refuse("retry_on_failure::max_elapsed_time is %v: it must be 0s (no limit) or at least %v, with its unit", elapsed, leastDuration)
	}
	if c.ShutdownTimeout < leastDuration {
		refuse("shutdown_timeout is %v: it must be at least %v, with its unit", c.ShutdownTimeout, leastDuration)
	}
	return errors.Join(errs...)
}

func (c *Config) mergeSettings() mergeSettings {
	return mergeSettings{
		snapshots:       c.Snapshots,
		snapshotTypes:   setOf(c.SnapshotSampleTypes),
		dropTimestamps:  c.Timestamps == timestampsDrop,
		dropZeroSamples: c.DropZeroSamples,
		coarsening: dictionary.Coarsening{
			Granularity:    granularities[c.Granularity],
			RebaseMappings: c.RebaseMappings,
		},
		dropSampleAttributes:   setOf(c.DropSampleAttributes),
		dropResourceAttributes: setOf(c.DropResourceAttributes),
		splitBy:                c.SplitBy,
	}
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
