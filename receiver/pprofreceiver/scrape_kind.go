// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"path"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/difference"
)

const (
	kindAllocs       = "allocs"
	kindThreadCreate = "threadcreate"
)

// scrapeKind is a kind of profile that targets serve.
type scrapeKind struct {
	name        string // what the configuration calls it
	path        string // below the target's endpoint
	profileType string // profile.type
	temporality func(sampleType string) temporality
	lasting     bool // takes ?seconds=
	// sinceLast: the target answers with what happened since it was asked last,
	// as godeltaprof does.
	sinceLast bool
}

var scrapeKinds = indexKinds(
	scrapeKind{name: kindCPU, path: "profile", profileType: kindCPU, temporality: always(temporalityDelta), lasting: true},
	scrapeKind{name: kindHeap, path: "heap", profileType: kindHeap, temporality: heapTemporality},
	scrapeKind{name: kindAllocs, path: "allocs", profileType: kindAllocs, temporality: heapTemporality},
	scrapeKind{name: kindGoroutine, path: "goroutine", profileType: kindGoroutine, temporality: always(temporalityInstant)},
	scrapeKind{name: kindThreadCreate, path: "threadcreate", profileType: kindThreadCreate, temporality: always(temporalityInstant)},
	scrapeKind{name: kindMutex, path: "mutex", profileType: kindMutex, temporality: always(temporalityCumulative)},
	scrapeKind{name: kindBlock, path: "block", profileType: kindBlock, temporality: always(temporalityCumulative)},
	scrapeKind{name: "delta_heap", path: "delta_heap", profileType: kindHeap, temporality: deltaHeapTemporality, sinceLast: true},
	scrapeKind{name: "delta_mutex", path: "delta_mutex", profileType: kindMutex, temporality: always(temporalityDelta), sinceLast: true},
	scrapeKind{name: "delta_block", path: "delta_block", profileType: kindBlock, temporality: always(temporalityDelta), sinceLast: true},
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
		return scrapeKind{name: last, profileType: last, temporality: always(temporalityDelta), lasting: true}
	}
	return scrapeKind{temporality: always(temporalityUnknown)}
}

// maxStacks is how many stacks with labels a profile may have whose values count
// from the start of the process and are not 0: some 8 MiB of a heap profile. It
// bounds what is kept between scrapes.
const maxStacks = 1 << 18

// series is that of the profiles of this kind of one target. deltas tells that what
// counts from the start of the process is to become differences.
func (k scrapeKind) series(deltas bool) *difference.Series {
	has := func(wanted temporality) func(string) bool {
		return func(sampleType string) bool { return k.temporality(sampleType) == wanted }
	}
	switch {
	case k.sinceLast:
		return difference.SinceLast(has(temporalityDelta))
	case deltas && k.temporality("alloc_space") == temporalityCumulative: // or of any sample type
		return difference.Cumulative(has(temporalityCumulative), maxStacks)
	}
	return &difference.Series{}
}

// temporalityOf is that of a part of a profile of this kind.
func (k scrapeKind) temporalityOf(part difference.Part) func(sampleType string) temporality {
	if part.Difference {
		return always(temporalityDelta)
	}
	return k.temporality
}

// deltaHeapTemporality is that of godeltaprof's heap profiles.
func deltaHeapTemporality(sampleType string) temporality {
	if strings.HasPrefix(sampleType, "alloc_") {
		return temporalityDelta
	}
	return heapTemporality(sampleType)
}
