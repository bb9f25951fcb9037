// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"strings"
)

// attributeTemporality is the attribute of a Profile that says whether its values may
// be summed over time.
const attributeTemporality = "profile.temporality"

// Temporality is a value of profile.temporality.
type Temporality string

// The temporalities. Only delta profiles may be summed over time.
const (
	TemporalityUnknown    Temporality = ""
	TemporalityDelta      Temporality = "delta"      // over an interval
	TemporalityCumulative Temporality = "cumulative" // since the process started
	TemporalityInstant    Temporality = "instant"    // at one moment
)

// TemporalityFunc returns the temporality of a sample type, by its name.
type TemporalityFunc func(sampleType string) Temporality

// Profile types that Go and others use, as values of profile.type.
const (
	ProfileTypeCPU          = "cpu"
	ProfileTypeHeap         = "heap"
	ProfileTypeAllocs       = "allocs"
	ProfileTypeGoroutine    = "goroutine"
	ProfileTypeThreadCreate = "threadcreate"
	ProfileTypeMutex        = "mutex"
	ProfileTypeBlock        = "block"
	ProfileTypeWall         = "wall"
)

// Always returns t for every sample type.
func Always(t Temporality) TemporalityFunc {
	return func(string) Temporality { return t }
}

// HeapTemporality is that of Go's heap and allocs profiles.
func HeapTemporality(sampleType string) Temporality {
	switch {
	case strings.HasPrefix(sampleType, "alloc_"):
		return TemporalityCumulative
	case IsInUse(sampleType):
		return TemporalityInstant
	}
	return TemporalityUnknown
}

// IsInUse reports whether a sample type is the heap in use, as Go or Datadog's
// libraries for .NET and native code name it.
func IsInUse(sampleType string) bool {
	return strings.HasPrefix(sampleType, "inuse_") || strings.HasPrefix(sampleType, "inuse-")
}

// GoTemporality is that of cpu, wall, goroutine, mutex, block and heap profiles; nil for
// any other type (allocs: use HeapTemporality). deltas means that the sender turned
// cumulative values into deltas.
func GoTemporality(profileType string, deltas bool) TemporalityFunc {
	counted := TemporalityCumulative
	if deltas {
		counted = TemporalityDelta
	}
	switch profileType {
	case ProfileTypeCPU, ProfileTypeWall:
		return Always(TemporalityDelta)
	case ProfileTypeGoroutine:
		return Always(TemporalityInstant)
	case ProfileTypeMutex, ProfileTypeBlock:
		return Always(counted)
	case ProfileTypeHeap:
		return func(sampleType string) Temporality {
			t := HeapTemporality(sampleType)
			if t == TemporalityCumulative {
				t = counted
			}
			return t
		}
	}
	return nil
}
