// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"path"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/difference"
)

// scrapeKind is a kind of profile that targets serve.
type scrapeKind struct {
	name        string // what the configuration calls it
	path        string // below the target's endpoint
	profileType string // profile.type
	temporality ingest.TemporalityFunc
	lasting     bool // takes ?seconds=
	// sinceLast: the target answers with what happened since it was asked last,
	// as godeltaprof does.
	sinceLast bool
}

var scrapeKinds = indexKinds(
	scrapeKind{name: ingest.ProfileTypeCPU, path: "profile", profileType: ingest.ProfileTypeCPU, temporality: ingest.Always(ingest.TemporalityDelta), lasting: true},
	scrapeKind{name: ingest.ProfileTypeHeap, path: "heap", profileType: ingest.ProfileTypeHeap, temporality: ingest.HeapTemporality},
	scrapeKind{name: ingest.ProfileTypeAllocs, path: "allocs", profileType: ingest.ProfileTypeAllocs, temporality: ingest.HeapTemporality},
	scrapeKind{name: ingest.ProfileTypeGoroutine, path: "goroutine", profileType: ingest.ProfileTypeGoroutine, temporality: ingest.Always(ingest.TemporalityInstant)},
	scrapeKind{name: ingest.ProfileTypeThreadCreate, path: "threadcreate", profileType: ingest.ProfileTypeThreadCreate, temporality: ingest.Always(ingest.TemporalityInstant)},
	scrapeKind{name: ingest.ProfileTypeMutex, path: "mutex", profileType: ingest.ProfileTypeMutex, temporality: ingest.Always(ingest.TemporalityCumulative)},
	scrapeKind{name: ingest.ProfileTypeBlock, path: "block", profileType: ingest.ProfileTypeBlock, temporality: ingest.Always(ingest.TemporalityCumulative)},
	scrapeKind{name: "delta_heap", path: "delta_heap", profileType: ingest.ProfileTypeHeap, temporality: deltaHeapTemporality, sinceLast: true},
	scrapeKind{name: "delta_mutex", path: "delta_mutex", profileType: ingest.ProfileTypeMutex, temporality: ingest.Always(ingest.TemporalityDelta), sinceLast: true},
	scrapeKind{name: "delta_block", path: "delta_block", profileType: ingest.ProfileTypeBlock, temporality: ingest.Always(ingest.TemporalityDelta), sinceLast: true},
)

func indexKinds(kinds ...scrapeKind) map[string]scrapeKind {
	index := make(map[string]scrapeKind, len(kinds))
	for _, kind := range kinds {
		index[kind.name] = kind
	}
	return index
}

// kindOfPath is the kind of profile that the last part of a URL's path names,
// which is one of ours, fgprof's, or unknown.
func kindOfPath(urlPath string) scrapeKind {
	last := path.Base(urlPath)
	for _, kind := range scrapeKinds {
		if kind.path == last {
			return kind
		}
	}
	if last == "fgprof" {
		return scrapeKind{name: last, profileType: last, temporality: ingest.Always(ingest.TemporalityDelta), lasting: true}
	}
	return scrapeKind{temporality: ingest.Always(ingest.TemporalityUnknown)}
}

// maxStacks is how many stacks with labels a profile may have whose values count
// from the start of the process and are not 0: some 8 MiB of a heap profile. It
// bounds what is kept between scrapes.
const maxStacks = 1 << 18

// series is that of the profiles of this kind of one target. deltas tells that what
// counts from the start of the process is to become differences.
func (k scrapeKind) series(deltas bool) *difference.Series {
	has := func(wanted ingest.Temporality) func(string) bool {
		return func(sampleType string) bool { return k.temporality(sampleType) == wanted }
	}
	switch {
	case k.sinceLast:
		return difference.SinceLast(has(ingest.TemporalityDelta))
	case deltas && k.temporality("alloc_space") == ingest.TemporalityCumulative: // or of any sample type
		return difference.Cumulative(has(ingest.TemporalityCumulative), maxStacks)
	}
	return &difference.Series{}
}

// temporalityOf is that of a part of a profile of this kind.
func (k scrapeKind) temporalityOf(part difference.Part) ingest.TemporalityFunc {
	if part.Difference {
		return ingest.Always(ingest.TemporalityDelta)
	}
	return k.temporality
}

// deltaHeapTemporality is that of godeltaprof's heap profiles.
func deltaHeapTemporality(sampleType string) ingest.Temporality {
	if strings.HasPrefix(sampleType, "alloc_") {
		return ingest.TemporalityDelta
	}
	return ingest.HeapTemporality(sampleType)
}
