// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
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
	return temporalityOf(dict, p.AttributeIndices())
}

func temporalityOf(dict pprofile.ProfilesDictionary, attributes pcommon.Int32Slice) string {
	table, strings := dict.AttributeTable(), dict.StringTable()
	for k := range attributes.Len() { // without the iterator, which takes twice as long
		i := int(attributes.At(k))
		if i <= 0 || i >= table.Len() {
			continue
		}
		a := table.At(i)
		if key := int(a.KeyStrindex()); key >= 0 && key < strings.Len() && strings.At(key) == temporality {
			return a.Value().AsString()
		}
	}
	return ""
}
