// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Keep returns a window with the Profiles of pd that keep selects, without the parts of the
// dictionary that they do not refer to. It does not change pd, and the window does not retain it.
func Keep(pd pprofile.Profiles, options *Options, keep func(p pprofile.Profile) bool) (*Window, error) {
	payload, err := Prepare(pd, options, nil)
	if err != nil {
		return nil, err
	}
	defer payload.Release()
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
	return w, w.Add(payload)
}
