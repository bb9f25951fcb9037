// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Total is a Row with the time of its processes, from which its rate is computed.
type Total struct {
	Row

	Series *Series // nil if no times were added
}

// Tally adds up Profiles by kind, and collects the times of their processes. All lists of services and types are made of one.
type Tally struct {
	sums        map[contents.Key]*contents.Summary
	size, limit int64 // of the sums, in bytes
	times       *SeriesCollector
}

// NewTally returns one for the range of a selection. Its sums, and the times, take at most limit bytes.
func NewTally(sel *Selection, limit int64) *Tally {
	return &Tally{sums: map[contents.Key]*contents.Summary{}, limit: limit, times: NewSeriesCollector(sel, limit)}
}

// AddSum adds Profiles to the sum of their kind. Of the snapshots of one Key, the latest counts. An error says what to narrow.
func (t *Tally) AddSum(key *contents.Key, sum *contents.Total) error {
	if known := t.sums[*key]; known != nil {
		other := contents.Summary{Key: *key, Total: *sum}
		other.Rows = nil // sums have none
		known.Add(&other)
		return nil
	}
	const sumSize = 500 // with its place in the map, which grows
	if t.size += sumSize + key.TextSize(); t.size > t.limit {
		return fmt.Errorf("the sums by service and type take more than %d MiB of memory; %s", t.limit>>20, narrow)
	}
	own := &contents.Summary{Key: *key, Total: *sum}
	own.Rows = nil
	t.sums[*key] = own
	return nil
}

// addSelected adds the summaries whose keys are selected.
func (t *Tally) addSelected(ctx context.Context, sel *Selection, summaries []contents.Summary) error {
	for i := range summaries {
		of := &summaries[i]
		if !sel.MatchesKey(ctx, &of.Key) {
			continue
		}
		if err := t.AddSum(&of.Key, &of.Total); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// AddTimes adds the times of processes. An error says what to narrow.
func (t *Tally) AddTimes(of *Times) error { return t.times.Add(of) }

// Size estimates the memory in bytes.
func (t *Tally) Size() int64 { return t.size + t.times.Size() }

// Totals returns the sums of all kinds, in their order, with the times that were added of them. Kinds of which only times were added have
// none. Nothing can be added after it, and Size is that of the times.
func (t *Tally) Totals() []Total {
	series := map[Kind]*Series{}
	for _, of := range t.times.Series() {
		series[of.Kind] = of
	}
	byKind := map[Kind]*contents.Summary{} // with the snapshots of all resources
	for _, sum := range t.sums {
		kind := KindOf(&sum.Key)
		sum.Snapshot = 0
		if known := byKind[kind]; known != nil {
			known.Add(sum)
		} else {
			byKind[kind] = sum
		}
	}
	t.sums, t.size = nil, 0
	all := make([]Total, 0, len(byKind))
	for _, kind := range slices.SortedFunc(maps.Keys(byKind), Kind.Compare) {
		sum := byKind[kind]
		all = append(all, Total{
			Row{kind, sum.Start, sum.End, sum.Profiles, sum.Samples, sum.Sum, sampletypes.Saturated(sum.Sum)}, series[kind],
		})
	}
	return all
}
