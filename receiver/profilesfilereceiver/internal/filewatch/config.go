// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

// Config says which files a Watcher finds. Embed it in a section of a component's
// configuration with `mapstructure:",squash"`.
type Config struct {
	// Directory is one that a profiles_file exporter writes, and that is not compacted: its closed files are read. This or
	// include is required.
	Directory string `mapstructure:"directory"`

	// Include are doublestar globs of files of other programs: *, ?, **, [class] and {this,that}.
	Include []string `mapstructure:"include"`

	// Exclude are globs of files to skip.
	Exclude []string `mapstructure:"exclude"`

	// PollInterval is the time between two searches for files.
	PollInterval time.Duration `mapstructure:"poll_interval"`

	// Storage is the storage extension for checkpoints of the files that were read, such as file_storage. Without it,
	// a restart reads all files again.
	Storage *component.ID `mapstructure:"storage"`
}

// Unmarshal reads a single glob without a list as it is: confmap would split it at the
// commas of {this,that}.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	lists := map[string]any{}
	for _, key := range []string{"include", "exclude"} {
		if glob, single := conf.Get(key).(string); single {
			lists[key] = []any{glob}
		}
	}
	if err := conf.Merge(confmap.NewFromStringMap(lists)); err != nil {
		return err
	}
	return conf.Unmarshal(c, confmap.WithIgnoreUnused()) // of the section that embeds c
}

// Check checks all keys, for the Validate method of the section that embeds c.
func (c *Config) Check(checks *config.Checks) {
	const example = "a glob such as /var/lib/profiles/**/*.pb.gz"
	checks.That(c.Directory != "" || len(c.Include) > 0, "include", c.Include, example+", as there is no directory")
	checks.Path("directory", c.Directory)
	for _, glob := range c.Include {
		checks.That(validGlob(glob), "include", glob, example)
		checks.Path("include", glob)
		checks.That(!hasSkippedName(glob), "include", glob, "a glob of finished files: names that end in one of %q are skipped", skippedSuffixes)
	}
	for _, glob := range c.Exclude {
		checks.That(validGlob(glob), "exclude", glob, example)
		checks.Path("exclude", glob)
	}
	checks.That(c.PollInterval >= time.Millisecond, "poll_interval", c.PollInterval, "at least 1ms")
}

func validGlob(glob string) bool {
	return glob != "" && doublestar.ValidatePattern(filepath.ToSlash(glob))
}

// skippedSuffixes are of names that programs give to unfinished files. Hidden files are skipped as well.
var skippedSuffixes = []string{".tmp", ".temp", ".partial", ".part", ".swp", "~"}

func hasSkippedName(path string) bool {
	return slices.ContainsFunc(skippedSuffixes, func(suffix string) bool { return strings.HasSuffix(path, suffix) })
}
