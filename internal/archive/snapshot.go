// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// SnapshotSampleTypes are the sample types of Profiles that are snapshots unless their
// attribute profile.temporality says otherwise, as of the processor by default.
var SnapshotSampleTypes = []string{"inuse_objects", "inuse_space", "goroutine", "goroutines", "threadcreate"}

// Snapshot reports whether p is a snapshot or cumulative: a state at its time, which is not
// summed over time. It applies the rule of internal/merge to a Profile.
func Snapshot(dict pprofile.ProfilesDictionary, p pprofile.Profile) bool {
	switch Temporality(dict, p) {
	case "delta":
		return false
	case "cumulative", "instant":
		return true
	}
	sampleType, periodType := textAt(dict, p.SampleType().TypeStrindex()), textAt(dict, p.PeriodType().TypeStrindex())
	return p.DurationNano() == 0 && !isTime(sampleType) && !isTime(periodType) || slices.Contains(SnapshotSampleTypes, sampleType)
}

// isTime reports whether a type counts what happens as time passes, even if no duration is stated.
func isTime(typ string) bool { return typ == "cpu" || typ == "wall" }

// Temporality returns the attribute profile.temporality of p: delta, cumulative, instant or nothing.
func Temporality(dict pprofile.ProfilesDictionary, p pprofile.Profile) string {
	for _, i := range p.AttributeIndices().All() {
		if i <= 0 || int(i) >= dict.AttributeTable().Len() {
			continue
		}
		if a := dict.AttributeTable().At(int(i)); textAt(dict, a.KeyStrindex()) == "profile.temporality" {
			return a.Value().AsString()
		}
	}
	return ""
}

func textAt(dict pprofile.ProfilesDictionary, i int32) string {
	if i < 0 || int(i) >= dict.StringTable().Len() {
		return ""
	}
	return dict.StringTable().At(int(i))
}
