// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
)

// kind identifies Profiles that are summed.
type kind query.Kind

func kindOf(s *contents.Key) kind { return kind(query.KindOf(s)) }

// TypeName is the profile type, or without one the sample type.
func (k kind) TypeName() string { return cmp.Or(k.Type, k.SampleType) }

// isCPU reports whether the values are CPU time.
func (k kind) isCPU() bool { return k.SampleType == "cpu" && webui.IsNanoseconds(k.Unit) }

// value writes a level, or a rate.
func (k kind) value(v float64) string {
	if k.Snapshot {
		return k.quantity(v)
	}
	return webui.Rate(k.SampleType, k.Unit, v)
}

// quantity writes a sum.
func (k kind) quantity(v float64) string { return webui.Quantity(k.Unit, v) }

// period is the period type with its unit.
func (k kind) period() string { return k.PeriodType + "/" + k.PeriodUnit }

// total sums the Profiles of a kind in a range.
type total struct {
	kind
	// Ambiguous: the selector selects other Profiles of the service as well, of another profile type or period type, such as
	// those of profilers of two languages. One pprof cannot hold both.
	Ambiguous         bool
	Profiles, Samples int
	// Sum is that of the intervals, or of the last snapshot of each series.
	Sum int64 // saturated
	// First is the earliest start, and Last the latest end, in nanoseconds since the epoch.
	First, Last uint64

	// series has the processes. It is nil in a total of a trace.
	series *query.Series
	rate.Summary
	Living int    // processes, of snapshots
	At     uint64 // time of the latest snapshot

}

// newTotal is of the range of a selection.
func newTotal(of *query.Total, sel *query.Selection) *total {
	t := &total{
		kind: kind(of.Kind), Profiles: of.Profiles, Samples: of.Samples, Sum: of.Sum, First: of.Start, Last: of.End, series: of.Series,
	}
	if t.series == nil {
		return t
	}
	from, to := uint64(sel.From.UnixNano()), uint64(sel.To.UnixNano())
	t.Summary = t.series.Summary(from, to)
	if t.Snapshot {
		t.Sum, t.Living, t.At = t.series.Living(from, to)
	}
	return t
}

// room is the memory that totals and charts take.
type room struct {
	size, limit int64 // in bytes
}

// take returns an error if there is no room for size more bytes.
func (r *room) take(size int64) error {
	if r.size += size; r.size > r.limit {
		return fmt.Errorf("the totals of services and sample types take more than %d MiB of memory, the part of max_memory that a query has: "+
			"select less, by service, type or time", r.limit>>20)
	}
	return nil
}

// room is the memory of a query.
func (p *Page) room() *room { return &room{limit: p.options().MaxMemory} }

// scope is the Profiles that a page sums.
type scope struct {
	*query.Selection
	selects func(*contents.Key) bool
	// by is a label, or "". Its values take the place of the services.
	by string
	// offers: selects must get the series of all services of the range.
	offers bool
	// joined: there are also totals of all groups together.
	joined bool
}

// scopeOf is the scope of a selection.
func scopeOf(ctx context.Context, sel *query.Selection) *scope {
	return &scope{Selection: sel, selects: func(k *contents.Key) bool { return sel.MatchesKey(ctx, k) }}
}

// tally is a query.Tally that takes its memory from a room.
type tally struct {
	*query.Tally

	sel  *query.Selection
	room *room
}

// newTally returns one that takes at most a part of the room.
func newTally(sel *query.Selection, room *room, share int64) *tally {
	return &tally{query.NewTally(sel, (room.limit-room.size)/share), sel, room}
}

// add adds Times to a group, in place of their service. in is what of them is in the range, or nil if nothing is.
func (t *tally) add(group string, of *query.Times, in *contents.Total) error {
	before, renamed := t.Size(), *of.Summary
	renamed.Key.Service = group
	if in != nil {
		if err := t.AddSum(&renamed.Key, in); err != nil {
			return err
		}
	}
	if err := t.AddTimes(&query.Times{Summary: &renamed, Whole: of.Whole, IsWhole: of.IsWhole}); err != nil {
		return err
	}
	return t.room.take(t.Size() - before)
}

// addPayload adds the Profiles of a payload of a record, without times.
func (t *tally) addPayload(record *archive.Record, pd pprofile.Profiles) error {
	before := t.Size()
	summaries, err := contents.Summarize(pd)
	if err != nil {
		return record.Fail(err)
	}
	for i := range summaries {
		total := catalog.TotalOf(&summaries[i])
		if err := t.AddSum(&summaries[i].Key, &total); err != nil {
			return err
		}
	}
	return t.room.take(t.Size() - before)
}

// totalSize estimates the bytes of a total with its row of a page or of JSON.
const totalSize = 1 << 10

// totals returns what was added, by service or group, type and sample type.
func (t *tally) totals() (all []*total, err error) {
	size := t.Size()
	found := t.Totals()
	for i := range found {
		key := found[i].Key()
		if err := t.room.take(totalSize + 4*key.TextSize()); err != nil {
			return nil, err
		}
		all = append(all, newTotal(&found[i], t.sel))
	}
	return all, t.room.take(t.Size() - size)
}

// summed are the totals of a scope. They take room.
type summed struct {
	groups []*total      // by service or value, type and sample type
	joined []*total      // of all groups together, without a service
	timed  map[kind]bool // the kinds of joined that have timestamps
	missed *catalog.Missing
}

// release frees the times of processes, which only charts need.
func (s *summed) release() {
	for _, t := range slices.Concat(s.groups, s.joined) {
		t.series = nil
	}
}

// totalsOf sums the Profiles of a scope.
func totalsOf(ctx context.Context, of *catalog.Catalog, s *scope, room *room) (*summed, error) {
	found := &summed{missed: &catalog.Missing{}, timed: map[kind]bool{}}
	var by []string
	ofSamples := s.by != "" || s.SelectsSamples()
	scanned := s.Selection
	if s.offers {
		scanned = &query.Selection{From: s.From, To: s.To}
	}
	if s.offers && ofSamples { // of what is not selected, the index says enough
		err := of.Scan(ctx, scanned, nil, s.selects, found.missed, func(*query.Times, *contents.Total) error { return nil })
		if err != nil {
			return nil, err
		}
		scanned = s.Selection
	}
	if s.by != "" {
		by = []string{s.by}
	}
	share := int64(seriesShare)
	if s.joined {
		share *= 2
	}
	groups, joined := newTally(s.Selection, room, share), newTally(s.Selection, room, share)
	err := of.Scan(ctx, scanned, by, s.selects, found.missed, func(of *query.Times, in *contents.Total) error {
		if in == nil && !s.MatchesKey(ctx, &of.Key) {
			return nil
		}
		group := of.Key.Service
		if s.by != "" && !of.IsWhole {
			group = of.Values[0]
		}
		err := groups.add(group, of, in)
		if err == nil && s.joined {
			if k := kindOf(&of.Key); of.Timestamps && in != nil {
				k.Service = ""
				found.timed[k] = true
			}
			err = joined.add("", of, in)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if found.groups, err = groups.totals(); err == nil && s.joined {
		found.joined, err = joined.totals()
	}
	return found, err
}

// seriesShare is the part of the memory of a query that the times of processes take at most.
const seriesShare = 2

// markAmbiguous sets Ambiguous.
func markAmbiguous(totals []*total) {
	type name struct{ service, selector string }
	type profiler struct{ typ, period string }
	selected, several := map[name]profiler{}, map[name]bool{}
	for _, t := range totals {
		p := profiler{t.Type, t.period()}
		for _, selector := range [...]string{t.Type, t.SampleType, t.kind.selector()} {
			n := name{t.Service, selector}
			if of, known := selected[n]; known && of != p {
				several[n] = true
			}
			selected[n] = p
		}
	}
	for _, t := range totals {
		t.Ambiguous = several[name{t.Service, t.kind.selector()}]
	}
}

// selector selects the Profiles of the total, and no others of its service that one pprof cannot hold with them.
func (t *total) selector() string {
	if !t.Ambiguous {
		return t.kind.selector()
	}
	key := query.Kind(t.kind).Key()
	return query.TypeID(&key)
}

// Differs says what tells an ambiguous total from others of its type.
func (t *total) Differs() string {
	return t.SampleType + "/" + t.Unit + ", period " + t.period()
}
