// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"path"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// profileType is a profile that targets serve.
type profileType struct {
	path         string // in the directory of the target
	profileType  string // profile.type
	temporality  ingest.TemporalityFunc
	takesSeconds bool // its length is a parameter

	// sinceLast: the target answers with the delta since it was last asked, as
	// godeltaprof does.
	sinceLast bool

	optional bool // targets without it answer 404
}

// profileTypes are the values of the key profiles.
var profileTypes = map[string]profileType{
	"cpu":           {path: "profile", profileType: ingest.ProfileTypeCPU, temporality: ingest.Always(sampletypes.Delta), takesSeconds: true},
	"heap":          {path: "heap", profileType: ingest.ProfileTypeHeap, temporality: ingest.HeapTemporality},
	"allocs":        {path: "allocs", profileType: ingest.ProfileTypeAllocs, temporality: ingest.HeapTemporality},
	"goroutine":     {path: "goroutine", profileType: ingest.ProfileTypeGoroutine, temporality: ingest.Always(sampletypes.Instant)},
	"goroutineleak": {path: "goroutineleak", profileType: ingest.ProfileTypeGoroutineLeak, temporality: ingest.Always(sampletypes.Instant), optional: true},
	"threadcreate":  {path: "threadcreate", profileType: ingest.ProfileTypeThreadCreate, temporality: ingest.Always(sampletypes.Instant)},
	"mutex":         {path: "mutex", profileType: ingest.ProfileTypeMutex, temporality: ingest.Always(sampletypes.Cumulative)},
	"block":         {path: "block", profileType: ingest.ProfileTypeBlock, temporality: ingest.Always(sampletypes.Cumulative)},
	"delta_heap":    {path: "delta_heap", profileType: ingest.ProfileTypeHeap, temporality: ingest.Deltas(ingest.HeapTemporality), sinceLast: true},
	"delta_mutex":   {path: "delta_mutex", profileType: ingest.ProfileTypeMutex, temporality: ingest.Always(sampletypes.Delta), sinceLast: true},
	"delta_block":   {path: "delta_block", profileType: ingest.ProfileTypeBlock, temporality: ingest.Always(sampletypes.Delta), sinceLast: true},
}

// profileTypeOfPath is the profile type that the last part of a URL's path names: one of
// ours, fgprof's, or an unknown one.
func profileTypeOfPath(urlPath string) profileType {
	last := path.Base(urlPath)
	for _, of := range profileTypes {
		if of.path == last {
			return of
		}
	}
	if last == "fgprof" {
		return profileType{profileType: last, temporality: ingest.Always(sampletypes.Delta), takesSeconds: true}
	}
	return profileType{temporality: ingest.Always("")}
}

// isCumulative reports whether values of this type count from the start of the process.
func (p profileType) isCumulative() bool {
	return p.temporality("alloc_space") == sampletypes.Cumulative // as any type of mutex and block
}
