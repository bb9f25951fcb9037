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
		if a := table.At(i); hasText(strings, a.KeyStrindex(), temporality) {
			return a.Value().AsString()
		}
	}
	return ""
}

// hasText reports whether the string at index i is a text, which is valid UTF-8.
func hasText(strings pcommon.StringSlice, i int32, text string) bool {
	return i >= 0 && int(i) < strings.Len() && strings.At(int(i)) == text
}
