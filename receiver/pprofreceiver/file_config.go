// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
)

// FileConfig says which files are read.
type FileConfig struct {
	// Include are patterns of paths, as doublestar has them: *, ?, **, [class] and
	// {this,that}. A name in braces, as in {service.name}, stands for a part of a
	// path without slashes, and becomes a resource attribute with that part as its
	// value; {profile_type} becomes the kind of profile. Required.
	Include []string `mapstructure:"include"`

	// Exclude are patterns of paths to leave out, without names in braces.
	Exclude []string `mapstructure:"exclude"`

	// PollInterval is the time from one look at the files to the next. A file is
	// read when it has not changed for that long. Default: 10s.
	PollInterval time.Duration `mapstructure:"poll_interval"`

	// Storage is the extension that keeps what has been read across restarts.
	// Without it, a restart reads everything again.
	Storage *component.ID `mapstructure:"storage"`

	// MaxDecompressedSize bounds one profile, after decompression through all its
	// layers, and its file. Default: 64MiB.
	MaxDecompressedSize bytesize.Size `mapstructure:"max_decompressed_size"`
}

var (
	_ confmap.Unmarshaler = (*FileConfig)(nil)
	_ confmap.Validator   = (*FileConfig)(nil)
)

func defaultFileConfig() FileConfig {
	return FileConfig{PollInterval: 10 * time.Second, MaxDecompressedSize: 64 * bytesize.MiB}
}

// Unmarshal reads the section. Where one pattern stands without a list, its commas
// are those of its alternatives, and do not part it.
func (fc *FileConfig) Unmarshal(conf *confmap.Conf) error {
	lists := map[string]any{}
	for _, key := range []string{"include", "exclude"} {
		if pattern, single := conf.Get(key).(string); single {
			lists[key] = []any{pattern}
		}
	}
	whole := confmap.New()
	if err := errors.Join(whole.Merge(conf), whole.Merge(confmap.NewFromStringMap(lists))); err != nil {
		return err
	}
	type keys FileConfig // without this method
	return whole.Unmarshal((*keys)(fc))
}

// Validate checks patterns and limits.
func (fc *FileConfig) Validate() error {
	var errs []error
	if len(fc.Include) == 0 {
		errs = append(errs, errors.New("include: must not be empty, want patterns of paths as in /var/lib/profiles/**/*.pb.gz"))
	}
	for i, pattern := range fc.Include {
		if _, err := parsePathPattern(pattern); err != nil {
			errs = append(errs, fmt.Errorf("include::%d: %q %w", i, pattern, err))
		}
	}
	for i, pattern := range fc.Exclude {
		if pattern == "" || !doublestar.ValidatePattern(filepath.ToSlash(pattern)) {
			errs = append(errs, fmt.Errorf("exclude::%d: %q is not a pattern, want one as in /var/lib/profiles/old/**", i, pattern))
		}
	}
	if fc.PollInterval < shortestDuration {
		errs = append(errs, fmt.Errorf("poll_interval: %v, must be at least %v, with a unit as in 10s", fc.PollInterval, shortestDuration))
	}
	if fc.MaxDecompressedSize <= 0 || fc.MaxDecompressedSize > largestPayload {
		errs = append(errs, fmt.Errorf("max_decompressed_size: %v, must be above 0 and at most %v", fc.MaxDecompressedSize, largestPayload))
	}
	return errors.Join(errs...)
}
