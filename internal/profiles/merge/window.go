// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Window merges payloads: Add takes them in, Emit writes the result.
type Window struct {
	options *Options
	tables  *dictionary.Tables
	// resources and all that they hold, by their content in binary form.
	resources  map[string]*resource
	partitions map[string]*partition
	counts     Counts
	slots      map[slot]struct{}
	types      map[uint64]struct{} // by Profile.typeHash, if they are limited
	typesOf    map[string]int      // number of types, by service
	scopes     int                 // ScopeProfiles that were added: snapshots of each are kept apart
	size       int                 // bytes retained, without tables and key: an estimate
	samples    int                 // without those that have timestamps
	key        dictionary.Value    // memory that each Add uses again

	rows, fitted []processes.Row // likewise, of one table each

	emitter *emitter // since the last Add
}

// Counts are the numbers of payloads, and of Profiles and samples that were added, in a
// window or in a partition of it.
type Counts struct {
	Payloads, Profiles, Samples int
	// Superseded Profiles were replaced by a later snapshot. The counts of a partition do
	// not include them in Profiles, nor their samples.
	Superseded int
	// Saturated is the number of values that a sum has no room for: it stays at the largest or smallest int64. It
	// is only in the counts of a window.
	Saturated int
}

// partition is the part that is emitted as one payload.
type partition struct {
	Counts
	last int // number of its last payload in the window
}

type resource struct {
	pdata     pcommon.Resource
	schemaURL string
	partition string
	scopes    map[string]*scope
	entities  entitySet
}

type scope struct {
	pdata     pcommon.InstrumentationScope
	schemaURL string
	types     []sampletypes.Type // of the pprofs that the profiles are of; nil if unknown
	slot      slot
	content   string // with the slot, in binary form, without the part that keeps snapshots apart
	// samples numbers the sample identities of all profiles of the scope, which usually
	// have the same. The number of an identity is its row.
	samples  dictionary.Samples
	profiles map[profileKey]*mergedProfile
	// latest is only in scopes of which the latest snapshot counts. Its keys have no shape.
	latest map[profileKey]latestSnapshot
}

// profileKey must be equal for Profiles of a scope to merge. Strings and sets are indices
// into the tables.
type profileKey struct {
	sampleType, sampleUnit int32
	periodType, periodUnit int32
	period                 int64
	attributes             int32
	shape                  shape
	// Snapshots of different times do not merge.
	time, duration uint64
}

// NewWindow returns an empty window. Payloads to add must be checked with these options.
func NewWindow(options *Options) *Window {
	return &Window{
		options: options, tables: dictionary.New(),
		resources: map[string]*resource{}, partitions: map[string]*partition{}, slots: map[slot]struct{}{},
		types: map[uint64]struct{}{}, typesOf: map[string]int{},
	}
}

// Estimates of the bytes that a resource, a scope or a profile, a slot, a partition, a type
// and a service take besides their content.
const (
	entrySize     = 512
	slotSize      = 32
	partitionSize = 256
	typeSize      = 32
	serviceSize   = 64
)

// scopeSize estimates the bytes that a scope with a key of this length takes.
func scopeSize(key int) int { return entrySize + 5*key }

// Size returns an estimate of the bytes that w retains.
func (w *Window) Size() int { return w.tables.Retained() + cap(w.key) + w.size }

// Samples returns the number of merged samples, without those that have timestamps.
func (w *Window) Samples() int { return w.samples }

// account counts the bytes and samples of p in place of those at its last call.
func (w *Window) account(p *mergedProfile) {
	w.size -= p.size
	w.samples -= p.samples
	p.size, p.samples = entrySize+p.retained(), p.column.Len()
	w.size += p.size
	w.samples += p.samples
}

// Slots returns the number of slots that the merged Profiles are in.
func (w *Window) Slots() int { return len(w.slots) }

// Counts returns the counts of the whole window.
func (w *Window) Counts() Counts { return w.counts }

// PartitionCounts returns the counts of a partition.
func (w *Window) PartitionCounts(key string) Counts {
	if p := w.partitions[key]; p != nil {
		return p.Counts
	}
	return Counts{}
}
