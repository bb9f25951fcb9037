// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// Keep leaves the Profiles that keep selects, merged as options say. It takes the memory of a copy meanwhile.
func (r *Result) Keep(keep func(p pprofile.Profile) bool, options *merge.Options) error {
	bytes := int64(r.Bytes)
	if err := r.lease.Take(bytes); err != nil {
		return err
	}
	defer r.lease.Free(bytes)
	window, err := r.Merge(keep, options)
	if err != nil {
		return err
	}
	r.Profiles = pprofile.NewProfiles() // in the window now
	r.Profiles = window.Emit("")
	return nil
}

// Merge returns a window with the Profiles that keep selects, all if it is nil. The window, and the memory for making it, are at most as
// large as the Profiles.
func (r *Result) Merge(keep func(p pprofile.Profile) bool, options *merge.Options) (*merge.Window, error) {
	payload, err := merge.Check(r.Profiles, options)
	if err != nil {
		return nil, err
	}
	var skip []bool
	for p := range sampletypes.ProfilesOf(r.Profiles) {
		skip = append(skip, keep != nil && !keep(p))
	}
	window := merge.NewWindow(options)
	return window, window.Add(payload, func(i int) bool { return skip[i] })
}
