// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
)

// Values of attrkey.Temporality. Only deltas may be summed over time.
const (
	Delta      = "delta"      // over an interval
	Cumulative = "cumulative" // since the process started
	Instant    = "instant"    // at one moment
)

// SnapshotSampleTypes are the sample types of snapshots, unless a configuration has others.
var SnapshotSampleTypes = []string{"inuse_objects", "inuse_space", "goroutine", "goroutines", "goroutineleak", "threadcreate"}

// TemporalityOf returns the value of attrkey.Temporality among the attributes of a Profile. It is "" without one, and if the
// value is not a string. Indices outside the tables count as no attribute.
func TemporalityOf(dict pprofile.ProfilesDictionary, attributes pcommon.Int32Slice) string {
	table, strings := dict.AttributeTable(), dict.StringTable()
	for k := range attributes.Len() { // without the iterator, which takes twice as long
		i := attributes.At(k)
		if uint32(i) >= uint32(table.Len()) {
			continue
		}
		if a := table.At(int(i)); stringAt(strings, a.KeyStrindex()) == attrkey.Temporality {
			return a.Value().Str() // "" of other types
		}
	}
	return ""
}

// stringAt does not repair the string, which would change none that is compared with.
func stringAt(strings pcommon.StringSlice, i int32) string {
	if uint32(i) >= uint32(strings.Len()) {
		return ""
	}
	return strings.At(int(i))
}

// IsSnapshot reports whether the values of p are a state at its time, and not events that happened during its
// duration. Without a known attribute otelcol_profiles.temporality, Profiles of the sample types snapshotTypes are snapshots, and
// those without a duration unless a type is a time.
func IsSnapshot(dict pprofile.ProfilesDictionary, p pprofile.Profile, snapshotTypes []string) bool {
	switch TemporalityOf(dict, p.AttributeIndices()) {
	case Delta:
		return false
	case Cumulative, Instant:
		return true
	}
	sampleType := stringAt(dict.StringTable(), p.SampleType().TypeStrindex())
	periodType := stringAt(dict.StringTable(), p.PeriodType().TypeStrindex())
	return p.DurationNano() == 0 && !isTime(sampleType) && !isTime(periodType) || slices.Contains(snapshotTypes, sampleType)
}

// isTime reports whether values of a type add up as time passes, also if no duration is
// stated.
func isTime(typ string) bool { return typ == "cpu" || typ == "wall" }
