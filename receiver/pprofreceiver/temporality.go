// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// attributeTemporality is the attribute of a Profile that says whether its values
// may be added up over time.
const attributeTemporality = "profile.temporality"

// temporality is a value of profile.temporality.
type temporality string

const (
	temporalityUnknown    temporality = ""
	temporalityDelta      temporality = "delta"      // over an interval; intervals may be summed
	temporalityCumulative temporality = "cumulative" // since the process began; a reading
	temporalityInstant    temporality = "instant"    // at one moment; a reading
)

// always is the temporality of a kind whose sample types all have the same.
func always(t temporality) func(string) temporality {
	return func(string) temporality { return t }
}

// heapTemporality is that of Go's heap and allocs profiles.
func heapTemporality(sampleType string) temporality {
	switch {
	case strings.HasPrefix(sampleType, "alloc_"):
		return temporalityCumulative
	case isInUse(sampleType):
		return temporalityInstant
	}
	return temporalityUnknown
}

// isInUse tells of sample types that are the heap in use: those of Go, and those of
// Datadog's libraries for .NET and native code.
func isInUse(sampleType string) bool {
	return strings.HasPrefix(sampleType, "inuse_") || strings.HasPrefix(sampleType, "inuse-")
}

// ofKind is the temporality of Go's profiles, by their kind. deltas tells that
// what Go counts from the start of the process comes as differences.
func ofKind(kind string, deltas bool) func(string) temporality {
	counted := temporalityCumulative
	if deltas {
		counted = temporalityDelta
	}
	switch kind {
	case kindCPU, kindWall:
		return always(temporalityDelta)
	case kindGoroutine:
		return always(temporalityInstant)
	case kindMutex, kindBlock:
		return always(counted)
	case kindHeap:
		return func(sampleType string) temporality {
			t := heapTemporality(sampleType)
			if t == temporalityCumulative {
				t = counted
			}
			return t
		}
	}
	return nil
}

// sampleTypes are the names of the sample types of Profiles.
func sampleTypes(dictionary pprofile.ProfilesDictionary, profiles pprofile.ProfilesSlice) ([]string, error) {
	table := dictionary.StringTable()
	types := make([]string, 0, profiles.Len())
	for i, profile := range profiles.All() {
		index := profile.SampleType().TypeStrindex()
		if index < 0 || int(index) >= table.Len() {
			return nil, fmt.Errorf("profile %d: sample type %d of %d strings", i, index, table.Len())
		}
		types = append(types, table.At(int(index)))
	}
	return types, nil
}
