// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// When a payload is acknowledged.
const (
	acknowledgeOnReceive = "on_receive"
	acknowledgeOnFlush   = "on_flush"
)

// Whether timestamps are kept.
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

const minMemoryLimit = config.MiB

// maxTypes is how many sample types a service may have in a window: a page of profiles lists them all.
const maxTypes = 1024

// Config of the processor.
type Config struct {
	// Window is how long payloads are merged before they are sent as one. 0 merges only within each payload.
	Window time.Duration `mapstructure:"window"`
	// Acknowledge says when the client gets a response: on_receive, when the payload is in the window; on_flush, when
	// the next component has accepted the window. on_flush requires a window of 5s or less.
	Acknowledge string `mapstructure:"acknowledge"`
	// MemoryLimit bounds the memory of windows, retries and duplicate IDs. Default: 25%.
	MemoryLimit config.Size `mapstructure:"memory_limit"`
	// Snapshots says how snapshots merge: keep does not merge them, latest keeps the last one of
	// each resource in each slot, sum adds them like intervals.
	Snapshots string `mapstructure:"snapshots"`
	// SnapshotSampleTypes are the sample types of Profiles that are snapshots unless their
	// attribute otelcol_profiles.temporality says otherwise.
	SnapshotSampleTypes []string `mapstructure:"snapshot_sample_types"`
	// Timestamps says whether samples keep their timestamps: keep, or drop, which Profiles then say.
	Timestamps string `mapstructure:"timestamps"`
	// DropZeroSamples drops samples without timestamps whose value is 0.
	DropZeroSamples bool `mapstructure:"drop_zero_samples"`
	// Granularity says which locations are equal: those with the same address, line or function.
	Granularity string `mapstructure:"granularity"`
	// DropSampleAttributes are attributes to drop from samples, so that more are equal and merge.
	DropSampleAttributes []string `mapstructure:"drop_sample_attributes"`
	// DropResourceAttributes are attributes to drop from resources, so that more are equal and merge. Resources of
	// Profiles with timestamps keep them and, with `snapshots: keep`, those of snapshots.
	DropResourceAttributes []string `mapstructure:"drop_resource_attributes"`
	// SplitBy lists keys of resource attributes. A window is sent as one payload for each combination of their
	// values.
	SplitBy []string `mapstructure:"split_by"`
	// DuplicateTTL is how long duplicates of an acknowledged Profile are dropped. 0 disables this.
	DuplicateTTL time.Duration `mapstructure:"duplicate_ttl"`
	// NumConsumers is how many payloads are sent at once.
	NumConsumers int `mapstructure:"num_consumers"`
	// RetryOnFailure says how a payload is retried. It has no effect without a window.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`
	// ShutdownTimeout is the maximum time to send remaining windows at shutdown. It has no effect
	// without a window.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
}

var (
	_ confmap.Validator   = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

func createDefaultConfig() component.Config {
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval = time.Second
	retry.MaxInterval = 30 * time.Second
	retry.MaxElapsedTime = 0
	return &Config{
		Window:                 10 * time.Second,
		Acknowledge:            acknowledgeOnReceive,
		MemoryLimit:            max(config.MemoryLimit()/4, minMemoryLimit),
		Snapshots:              string(merge.SnapshotsKeep),
		SnapshotSampleTypes:    slices.Clone(sampletypes.SnapshotSampleTypes),
		Timestamps:             timestampsKeep,
		DropZeroSamples:        true,
		Granularity:            "address",
		DropSampleAttributes:   []string{},
		DropResourceAttributes: []string{},
		SplitBy:                []string{},
		DuplicateTTL:           5 * time.Minute,
		NumConsumers:           10,
		RetryOnFailure:         retry,
		ShutdownTimeout:        10 * time.Second,
	}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	return config.Unmarshal(conf, c)
}

// Validate returns errors that name the key, its value and what is allowed.
func (c *Config) Validate() error {
	var checks config.Checks
	duration := func(key string, d time.Duration, zero string) {
		must := "at least 1ms"
		if zero != "" {
			must = "0s (" + zero + ") or " + must
		}
		checks.That(d >= time.Millisecond || d == 0 && zero != "", key, d, "%s", must)
	}
	keys := func(key string, values []string, what string) {
		for i, value := range values {
			checks.That(value != "", fmt.Sprintf("%s[%d]", key, i), value, "%s", what)
		}
	}

	duration("window", c.Window, "no window")
	checks.OneOf("acknowledge", c.Acknowledge, acknowledgeOnReceive, acknowledgeOnFlush)
	checks.That(c.Acknowledge != acknowledgeOnFlush || c.Window <= maxOnFlushWindow, "window", c.Window,
		"at most %v with acknowledge on_flush, as clients wait for it", maxOnFlushWindow)
	checks.That(c.MemoryLimit >= minMemoryLimit, "memory_limit", c.MemoryLimit, "at least %v", minMemoryLimit)
	checks.OneOf("snapshots", c.Snapshots, string(merge.SnapshotsKeep), string(merge.SnapshotsLatest), string(merge.SnapshotsSum))
	keys("snapshot_sample_types", c.SnapshotSampleTypes, "a sample type, such as inuse_space")
	checks.OneOf("timestamps", c.Timestamps, timestampsKeep, timestampsDrop)
	checks.OneOf("granularity", c.Granularity, slices.Sorted(maps.Keys(granularities))...)
	keys("drop_sample_attributes", c.DropSampleAttributes, "the key of an attribute, such as thread.id")
	keys("drop_resource_attributes", c.DropResourceAttributes, "the key of an attribute, such as service.instance.id")
	keys("split_by", c.SplitBy, "the key of a resource attribute, such as service.name")
	for i, name := range c.SplitBy {
		key := fmt.Sprintf("split_by[%d]", i)
		checks.That(!slices.Contains(c.DropResourceAttributes, name), key, name, "a key that is not listed in drop_resource_attributes")
		same := func(other string) bool { return strings.EqualFold(other, name) }
		checks.That(!slices.ContainsFunc(c.SplitBy[:i], same), key, name,
			"different from the others in more than case (client metadata keys are case-insensitive)")
	}
	duration("duplicate_ttl", c.DuplicateTTL, "no duplicates are dropped")
	checks.That(c.NumConsumers >= 1, "num_consumers", c.NumConsumers, "at least 1")
	if retry := c.RetryOnFailure; retry.Enabled {
		duration("retry_on_failure::initial_interval", retry.InitialInterval, "")
		checks.That(retry.MaxInterval >= retry.InitialInterval, "retry_on_failure::max_interval", retry.MaxInterval,
			"at least initial_interval (%v)", retry.InitialInterval)
		duration("retry_on_failure::max_elapsed_time", retry.MaxElapsedTime, "no limit")
	}
	duration("shutdown_timeout", c.ShutdownTimeout, "")
	return checks.Err()
}

func (c *Config) mergeOptions() *merge.Options {
	return &merge.Options{
		SlotLength:             c.Window,
		Snapshots:              merge.Snapshots(c.Snapshots),
		SnapshotSampleTypes:    c.SnapshotSampleTypes,
		DropTimestamps:         c.Timestamps == timestampsDrop,
		DropZeroSamples:        c.DropZeroSamples,
		Granularity:            granularities[c.Granularity],
		DropSampleAttributes:   c.DropSampleAttributes,
		DropResourceAttributes: c.DropResourceAttributes,
		SplitBy:                c.SplitBy,
		MaxTypes:               maxTypes,
		ProfileKeys:            c.DuplicateTTL > 0,
	}
}
