// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"iter"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

const (
	attributeSampleTypeOrder   = "pprof.scope.sample_type_order"
	attributeDefaultSampleType = "pprof.scope.default_sample_type"
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

// keepProfiles drops the Profiles of other sample types from a translated pprof, as if
// the pprof did not have them.
func keepProfiles(pd pprofile.Profiles, keep func(sampleType string) bool) (pprofile.Profiles, error) {
	for _, resource := range pd.ResourceProfiles().All() {
		for _, scope := range resource.ScopeProfiles().All() {
			var kept []int64 // places in the pprof
			attributes := scope.Scope().Attributes()
			order, _ := attributes.Get(attributeSampleTypeOrder)
			next := -1
			scope.Profiles().RemoveIf(func(p pprofile.Profile) bool {
				next++
				if !keep(sampleTypeOf(pd, p)) {
					return true
				}
				if next < order.Slice().Len() { // others have the sample type of one before
					kept = append(kept, order.Slice().At(next).Int())
				}
				return false
			})
			places := slices.Sorted(slices.Values(kept))
			to := attributes.PutEmptySlice(attributeSampleTypeOrder)
			for _, place := range kept {
				to.AppendEmpty().SetInt(int64(slices.Index(places, place)))
			}
			if name, found := attributes.Get(attributeDefaultSampleType); found && !keep(name.Str()) {
				attributes.Remove(attributeDefaultSampleType)
			}
		}
	}
	if pd.ProfileCount() == 0 {
		return pprofile.NewProfiles(), nil
	}
	window, err := newWindow(pd) // drops what only the others referred to
	if err != nil {
		return pd, err
	}
	return window.Emit(""), nil
}
