// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Keep leaves the Profiles that keep selects, merged as options say. It takes the memory of a copy meanwhile.
func (r *Result) Keep(keep func(p pprofile.Profile) bool, options *merge.Options) error {
	bytes := int64(r.Bytes)
	if err := r.lease.Take(bytes); err != nil {
		return err
	}
	defer r.lease.Free(bytes)
	payload, err := merge.Check(r.Profiles, options)
	if err != nil {
		return err
	}
	var skip []bool
	for p := range sampletypes.ProfilesOf(r.Profiles) {
		skip = append(skip, !keep(p))
	}
	window := merge.NewWindow(options)
	if err := window.Add(payload.Without(skip)); err != nil {
		return err
	}
	r.Profiles = pprofile.NewProfiles() // in the window now
	r.Profiles = window.Emit("")
	return nil
}
