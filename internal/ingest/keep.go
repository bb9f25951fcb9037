// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// ProfilesOf iterates over all Profiles of pd.
func ProfilesOf(pd pprofile.Profiles) iter.Seq[pprofile.Profile] {
	return func(yield func(pprofile.Profile) bool) {
		for _, rp := range pd.ResourceProfiles().All() {
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}

// The functions below call reserve with the bytes that they hold in total, before they
// allocate them. bytes is the memory of pd, which they release if their caller does.

// Keep returns the Profiles of pd that keep selects.
func Keep(pd pprofile.Profiles, bytes int, options *merge.Options, keep func(p pprofile.Profile) bool, reserve func(bytes int64) error) (pprofile.Profiles, error) {
	window, err := Merge(pd, bytes, options, keep, reserve)
	if err != nil {
		return pprofile.NewProfiles(), err
	}
	return Emit(window, bytes, reserve)
}

// Merge returns a window with the Profiles of pd that keep selects. The window, and the memory for
// making it, are at most as large as pd.
func Merge(pd pprofile.Profiles, bytes int, options *merge.Options, keep func(p pprofile.Profile) bool, reserve func(bytes int64) error) (*merge.Window, error) {
	if err := reserve(2 * int64(bytes)); err != nil {
		return nil, err
	}
	payload, err := merge.Check(pd, options)
	if err != nil {
		return nil, err
	}
	n := 0
	for p := range ProfilesOf(pd) {
		payload.Profiles[n].Skip = !keep(p)
		n++
	}
	window := merge.NewWindow(options)
	return window, window.Add(payload)
}

// Emit emits a window whose profiles take at most this many bytes. The order of the
// output takes at most as much as the window.
func Emit(window *merge.Window, bytes int, reserve func(bytes int64) error) (pprofile.Profiles, error) {
	if err := reserve(2*int64(window.Size()) + int64(bytes)); err != nil {
		return pprofile.NewProfiles(), err
	}
	return window.Emit(""), nil
}
