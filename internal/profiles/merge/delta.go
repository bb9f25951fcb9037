// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// ErrRestarted says that the baseline and the profile after it are of different processes.
var ErrRestarted = errors.New("the process restarted")

// Delta returns current without what baseline, an earlier snapshot of the same process, counted: Profiles of cumulative sample
// types have the values of the time since baseline, without those that are 0, and cover this time. The other Profiles of
// current stay as they are, and those of baseline do not count. Both inputs are only read.
//
// Nothing cumulative falls while a process lives, and its code stays at its addresses. So the error wraps ErrRestarted if a
// sum would become negative, or if current does not have a Profile of baseline.
func Delta(current, baseline pprofile.Profiles, cumulative func(sampleType string) bool) (pprofile.Profiles, error) {
	options := &Options{DropZeroSamples: true, keepAddresses: true}
	w := NewWindow(options)
	payload, err := Check(current, options)
	if err == nil {
		err = w.Add(payload)
	}
	if err != nil {
		return pprofile.Profiles{}, err
	}
	ofCurrent := map[*mergedProfile]bool{}
	for _, merged := range w.profiles {
		ofCurrent[merged] = true
	}
	if payload, err = Check(baseline, options); err != nil {
		return pprofile.Profiles{}, err
	}
	skip := make([]bool, len(payload.Profiles))
	for i := range skip {
		skip[i] = !cumulative(payload.text(payload.Profiles[i].from.SampleType().TypeStrindex()))
	}
	if err := w.add(payload.Without(skip), true); err != nil {
		return pprofile.Profiles{}, err
	}
	for key, merged := range w.profiles {
		switch sampleType := w.tables.StringAt(key.sampleType); {
		case !cumulative(sampleType):
			continue
		case !ofCurrent[merged]:
			return pprofile.Profiles{}, fmt.Errorf("%w: its sample types changed", ErrRestarted)
		case merged.column.HasNegative():
			return pprofile.Profiles{}, fmt.Errorf("%w: a sum of %s is negative", ErrRestarted, sampleType)
		}
		merged.cover(merged.start, merged.end)
		merged.of = processSet{} // its process is that of its resource
	}
	return w.Emit(""), nil
}

// profiles is an iterator of all merged profiles.
func (w *Window) profiles(yield func(profileKey, *mergedProfile) bool) {
	for _, r := range w.resources {
		for _, s := range r.scopes {
			for key, merged := range s.profiles {
				if !yield(key, merged) {
					return
				}
			}
		}
	}
}
