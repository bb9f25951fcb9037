// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
)

// TemporalityFunc returns the value of attrkey.Temporality for Profiles of a sample type, by
// its name; "" is unknown.
type TemporalityFunc func(sampleType string) string

// Profile types that Go and others use, as values of otelcol_profiles.type.
const (
	ProfileTypeCPU           = "cpu"
	ProfileTypeHeap          = "heap"
	ProfileTypeAllocs        = "allocs"
	ProfileTypeGoroutine     = "goroutine"
	ProfileTypeGoroutineLeak = "goroutineleak" // of Go 1.26 and later
	ProfileTypeThreadCreate  = "threadcreate"
	ProfileTypeMutex         = "mutex"
	ProfileTypeBlock         = "block"
	ProfileTypeWall          = "wall"
	ProfileTypeGoroutineTime = gotracetranslator.SampleType // of execution traces
)

// Always returns t for every sample type.
func Always(t string) TemporalityFunc {
	return func(string) string { return t }
}

// HeapTemporality is that of Go's heap and allocs profiles.
func HeapTemporality(sampleType string) string {
	switch {
	case strings.HasPrefix(sampleType, "alloc_"):
		return sampletypes.Cumulative
	case IsInUse(sampleType):
		return sampletypes.Instant
	}
	return ""
}

// IsInUse reports whether a sample type is the heap in use, as Go or Datadog's
// libraries for .NET and native code name it.
func IsInUse(sampleType string) bool {
	return strings.HasPrefix(sampleType, "inuse_") || strings.HasPrefix(sampleType, "inuse-")
}

// GoTemporality is that of cpu, wall, goroutine, goroutineleak, mutex, block and heap profiles; nil for
// any other type (allocs: use HeapTemporality). deltas means that the sender turned
// cumulative values into deltas.
func GoTemporality(profileType string, deltas bool) (of TemporalityFunc) {
	switch profileType {
	case ProfileTypeCPU, ProfileTypeWall:
		return Always(sampletypes.Delta)
	case ProfileTypeGoroutine, ProfileTypeGoroutineLeak:
		return Always(sampletypes.Instant)
	case ProfileTypeMutex, ProfileTypeBlock:
		of = Always(sampletypes.Cumulative)
	case ProfileTypeHeap:
		of = HeapTemporality
	}
	if of != nil && deltas {
		of = Deltas(of)
	}
	return of
}

// onlyAllocations reports whether all sample types are allocations. A pprof with a duration and without the heap in use
// beside them has the allocations of that time: Go's, which are those since the start of the process, have both.
func onlyAllocations(types []string) bool {
	return !slices.ContainsFunc(types, func(t string) bool { return !strings.HasPrefix(t, "alloc_") })
}

// Deltas is the temporality after cumulative values have become deltas.
func Deltas(of TemporalityFunc) TemporalityFunc {
	return func(sampleType string) string {
		if t := of(sampleType); t != sampletypes.Cumulative {
			return t
		}
		return sampletypes.Delta
	}
}
