// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/temporality"
)

// SnapshotSampleTypes are the sample types of Profiles that are snapshots unless their
// attribute profile.temporality says otherwise, as of the processor by default.
var SnapshotSampleTypes = []string{"inuse_objects", "inuse_space", "goroutine", "goroutines", "threadcreate"}

// Snapshot reports whether p is a snapshot or cumulative: a state at its time, which is not
// summed over time.
func Snapshot(dict pprofile.ProfilesDictionary, p pprofile.Profile) bool {
	return temporality.IsSnapshotProfile(dict, p, SnapshotSampleTypes)
}

// hasText reports whether the string at index i is a text, which is valid UTF-8.
func hasText(strings pcommon.StringSlice, i int32, text string) bool {
	return i >= 0 && int(i) < strings.Len() && strings.At(int(i)) == text
}
