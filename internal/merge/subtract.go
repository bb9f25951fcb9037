// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
)

// ErrRestarted says that the baseline and the profile after it are of different processes.
var ErrRestarted = errors.New("the process restarted")

// Subtract takes baseline, an earlier snapshot of the same process, off the added Profiles:
// only the Profiles of cumulative sample types. Values that are 0 then are dropped if
// Options.DropZeroSamples is set, and these Profiles last from the start of baseline.
//
// The error wraps ErrRestarted if a sum has become negative, or a mapping or a Profile of
// baseline is missing from the added Profiles. Do not use w after an error.
func (w *Window) Subtract(baseline *Payload, cumulative func(sampleType string) bool) error {
	skip := func(i int) bool {
		return !cumulative(baseline.text(baseline.Profiles[i].from.SampleType().TypeStrindex()))
	}
	mappings, profiles := w.tables.Mappings(), w.profiles()
	switch err := w.add(baseline, skip, true); {
	case err != nil:
		return err
	case w.tables.Mappings() > mappings:
		return fmt.Errorf("%w: a mapping is missing", ErrRestarted)
	case w.profiles() > profiles:
		return fmt.Errorf("%w: its sample types changed", ErrRestarted)
	}
	for _, r := range w.resources {
		for _, s := range r.scopes {
			for key, merged := range s.profiles {
				sampleType := w.tables.StringAt(key.sampleType)
				if !cumulative(sampleType) {
					continue
				}
				if merged.column.HasNegative() {
					return fmt.Errorf("%w: a sum of %s is negative", ErrRestarted, sampleType)
				}
				merged.cover(merged.start, merged.end)
			}
		}
	}
	return nil
}

// profiles is the number of merged profiles.
func (w *Window) profiles() (n int) {
	for _, r := range w.resources {
		for _, s := range r.scopes {
			n += len(s.profiles)
		}
	}
	return n
}
