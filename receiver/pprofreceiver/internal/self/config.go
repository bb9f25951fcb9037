// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// Config is the self section.
type Config struct {
	// CollectionInterval is the time between two collections. The first one starts
	// immediately. Default: 60s.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`

	// CPUDuration is the length of each CPU profile. 0 means half of CollectionInterval, but at most 10s.
	CPUDuration time.Duration `mapstructure:"cpu_duration"`

	// Profiles are the profile types to collect: cpu, heap, allocs, goroutine,
	// goroutineleak (if the build has it), mutex and block. Default: cpu, heap and goroutine.
	Profiles []string `mapstructure:"profiles"`

	// MutexProfileFraction makes the runtime report one in so many mutex contentions. 0 keeps the setting of the
	// process.
	MutexProfileFraction int `mapstructure:"mutex_profile_fraction"`

	// BlockProfileFraction makes the runtime report one blocking event per so many nanoseconds. 1 reports all. 0
	// keeps the setting of the process.
	BlockProfileFraction int `mapstructure:"block_profile_fraction"`
}

// maxDefaultCPUDuration is the longest default of cpu_duration.
const maxDefaultCPUDuration = 10 * time.Second

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		CollectionInterval: time.Minute,
		Profiles:           []string{ingest.ProfileTypeCPU, ingest.ProfileTypeHeap, ingest.ProfileTypeGoroutine},
	}
}

// Validate checks all keys.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.CollectionInterval >= time.Millisecond, "collection_interval", c.CollectionInterval, "at least 1ms")
	checks.That(c.CPUDuration == 0 || c.CPUDuration > 0 && c.CPUDuration < c.CollectionInterval, "cpu_duration", c.CPUDuration,
		"shorter than collection_interval (%v), or 0 for the smaller of %v and half of it", c.CollectionInterval, maxDefaultCPUDuration)
	checks.That(c.MutexProfileFraction >= 0, "mutex_profile_fraction", c.MutexProfileFraction, "at least 0")
	checks.That(c.BlockProfileFraction >= 0, "block_profile_fraction", c.BlockProfileFraction, "at least 0")
	checks.That(len(c.Profiles) > 0, "profiles", c.Profiles, "some of %s", strings.Join(profileTypes, ", "))
	for i, name := range c.Profiles {
		checks.That(slices.Contains(profileTypes, name), "profiles", name, "one of %s", strings.Join(profileTypes, ", "))
		checks.That(!slices.Contains(c.Profiles[:i], name), "profiles", name, "listed once")
	}
	return checks.Err()
}

// cpuDuration is CPUDuration or its default.
func (c *Config) cpuDuration() time.Duration {
	if c.CPUDuration > 0 {
		return c.CPUDuration
	}
	return min(maxDefaultCPUDuration, c.CollectionInterval/2)
}
