// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Keep returns the Profiles of pd that keep selects, and of the dictionary what they refer
// to. It does not change pd.
func Keep(pd pprofile.Profiles, options *Options, keep func(p pprofile.Profile) bool) (pprofile.Profiles, error) {
	payload, err := Prepare(pd, options)
	if err != nil {
		return pd, err
	}
	n := 0
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				payload.Profiles[n].Skip = !keep(p)
				n++
			}
		}
	}
	w := NewWindow(options)
	if err := w.Add(payload); err != nil {
		return pd, err
	}
	return w.Emit(""), nil
}
