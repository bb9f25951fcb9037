// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// SnapshotSampleTypes are the sample types of Profiles that are snapshots unless their
// attribute profile.temporality says otherwise, as of the processor by default.
var SnapshotSampleTypes = []string{"inuse_objects", "inuse_space", "goroutine", "goroutines", "threadcreate"}

// Snapshot reports whether p is a snapshot or cumulative: a state at its time, which is not
// summed over time.
func Snapshot(dict pprofile.ProfilesDictionary, p pprofile.Profile) bool {
	text := func(i int32) string { return dictionary.Text(dict.StringTable(), i) }
	return merge.IsSnapshot(Temporality(dict, p), text(p.SampleType().TypeStrindex()),
		text(p.PeriodType().TypeStrindex()), p.DurationNano(), SnapshotSampleTypes)
}

const temporality = "profile.temporality"

// Temporality returns this attribute of p: delta, cumulative, instant or nothing.
func Temporality(dict pprofile.ProfilesDictionary, p pprofile.Profile) string {
	for _, i := range p.AttributeIndices().All() {
		if i <= 0 || int(i) >= dict.AttributeTable().Len() {
			continue
		}
		if a := dict.AttributeTable().At(int(i)); dictionary.Text(dict.StringTable(), a.KeyStrindex()) == temporality {
			return a.Value().AsString()
		}
	}
	return ""
}
