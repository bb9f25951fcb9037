// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// profilesOf are the Profiles of a translated pprof, with their sample types.
func profilesOf(pd pprofile.Profiles) iter.Seq2[string, pprofile.Profile] {
	return func(yield func(string, pprofile.Profile) bool) {
		for _, resource := range pd.ResourceProfiles().All() {
			for _, scope := range resource.ScopeProfiles().All() {
				for _, p := range scope.Profiles().All() {
					if !yield(sampleTypeOf(pd, p), p) {
						return
					}
				}
			}
		}
	}
}

func sampleTypeOf(pd pprofile.Profiles, p pprofile.Profile) string {
	return pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))
}

var mergeOptions = &merge.Options{DropZeroSamples: true}

// newWindow returns a window with the profiles of one pprof.
func newWindow(pd pprofile.Profiles) (*merge.Window, error) {
	window := merge.NewWindow(mergeOptions)
	payload, err := merge.Prepare(pd, mergeOptions)
	if err != nil {
		return nil, err
	}
	return window, window.Add(payload)
}

// keepProfiles drops the Profiles of other sample types from a translated pprof.
func keepProfiles(pd pprofile.Profiles, keep func(sampleType string) bool) (pprofile.Profiles, error) {
	return merge.Keep(pd, mergeOptions, func(p pprofile.Profile) bool { return keep(sampleTypeOf(pd, p)) })
}
