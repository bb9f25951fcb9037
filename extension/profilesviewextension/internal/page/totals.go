// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/catalog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// kind identifies Profiles that are summed.
type kind query.Kind

func kindOf(s *contents.Key) kind { return kind(query.KindOf(s)) }

// isCPU reports whether the values are CPU time.
func (k kind) isCPU() bool { return k.SampleType == "cpu" && webui.IsNanoseconds(k.Unit) }

// value writes a level, or a rate.
func (k kind) value(v float64) string {
	const seconds, least = 60, 0.1 // few are by minute or hour
	switch {
	case k.Snapshot:
		return k.quantity(v)
	case k.isCPU():
		return webui.Cores(v / 1e9)
	case v == 0 || math.Abs(v) >= least:
		return k.quantity(v) + "/s"
	case math.Abs(v)*seconds >= least:
		return k.quantity(v*seconds) + "/min"
	default:
		return k.quantity(v*seconds*seconds) + "/h"
	}
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
	// Covered is the time of the range in which a Profile was taken, of intervals only. Measured is all of the time in
	// which one was taken that is in Sum: the last ones may end after the range.
	Covered, Measured time.Duration

	longest, interval time.Duration // of a Profile, and between those of a series

	spans  sampletypes.Spans
	series map[uint64]*series // by Snapshot of the key
}

// series is what a total keeps of a series.
type series struct {
	first, last uint64 // start of a Profile
	count       int
	snapshot    contents.Total // the last one
}

func (t *total) add(s *contents.Key, profiles []contents.Total, next uint64) {
	of := t.series[s.Snapshot]
	if of == nil {
		of = &series{first: math.MaxUint64}
		t.series[s.Snapshot] = of
	}
	for _, p := range profiles {
		of.first, of.last, of.count = min(of.first, p.Start), max(of.last, p.Start), of.count+1
		t.longest = max(t.longest, time.Duration(min(p.End-p.Start, math.MaxInt64)))
		if t.Profiles == 0 || p.Start < t.First {
			t.First = p.Start
		}
		t.Last = max(t.Last, p.End)
		t.Profiles += p.Profiles
		if s.Snapshot == 0 {
			t.Samples += p.Samples
			t.Sum = sampletypes.AddSaturated(t.Sum, p.Sum)
			t.spans.Since = min(p.Start, next)
			t.spans.Add(p.Start, p.Start+p.Covered)
		} else if p.Latest >= of.snapshot.Latest {
			of.snapshot = p
		}
	}
}

// retained estimates the bytes that are freed when the total is finished.
func (t *total) retained() int64 {
	const seriesSize = 160 // with its place in the map
	return int64(t.spans.Retained() + seriesSize*len(t.series))
}

// finish computes the values that depend on all Profiles.
func (t *total) finish(to time.Time) {
	for _, s := range t.series {
		t.Samples += s.snapshot.Samples
		t.Sum = sampletypes.AddSaturated(t.Sum, s.snapshot.Sum)
		if s.count > 1 {
			t.interval = max(t.interval, time.Duration(s.last-s.first)/time.Duration(s.count-1))
		}
	}
	t.Measured = time.Duration(t.spans.Length())
	t.Covered = t.Measured
	for _, s := range t.spans.Union() {
		if end := uint64(to.UnixNano()); s.End > end {
			t.Covered -= time.Duration(s.End - max(s.Start, end))
		}
	}
	t.spans, t.series = sampletypes.Spans{}, nil
}

// totals are those of all kinds.
type totals struct {
	of   map[kind]*total
	room *room
}

// room is the memory that totals and charts take.
type room struct {
	totals      int
	size, limit int64 // in bytes
}

// take returns an error if there is no room for size more bytes.
func (r *room) take(size int64) error {
	if r.size += size; r.size > r.limit {
		return fmt.Errorf("the totals of %d services and sample types take more than %d MiB of memory, the part of max_memory that a query has: "+
			"select less, by service, type or time", r.totals, r.limit>>20)
	}
	return nil
}

func newTotals(room *room) *totals { return &totals{map[kind]*total{}, room} }

// room is the memory of a query.
func (p *Page) room() *room { return &room{limit: p.options().MaxMemory} }

// totalSize estimates the bytes of a total with its row of a page or of JSON, and its place in a map.
const totalSize = 1 << 10

// add is a catalog.Visit. It returns an error if there is no room.
func (t *totals) add(s *contents.Key, profiles []contents.Total, next uint64) error {
	k := kindOf(s)
	of, size := t.of[k], int64(0)
	if of == nil {
		t.room.totals++
		const gap = uint64(100 * time.Millisecond) // profilers restart between two intervals
		of, size = &total{kind: k, spans: sampletypes.Spans{Gap: gap}, series: map[uint64]*series{}}, totalSize+4*s.TextSize()
		t.of[k] = of
	}
	before := of.retained()
	of.add(s, profiles, next)
	return t.room.take(size + of.retained() - before)
}

// addPayload adds the Profiles of a payload of a record.
func (t *totals) addPayload(record *archive.Record, pd pprofile.Profiles) error {
	summaries, err := contents.Summarize(pd)
	if err != nil {
		return record.Fail(err)
	}
	for i := range summaries {
		if err := t.addSummary(&summaries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *totals) addSummary(s *contents.Summary) error {
	return t.add(&s.Key, []contents.Total{catalog.TotalOf(s)}, 0)
}

// sorted finishes the totals and sorts them by service, type and sample type.
func (t *totals) sorted(to time.Time) []*total {
	for _, total := range t.of {
		t.room.size -= total.retained()
		total.finish(to)
	}
	return slices.SortedFunc(maps.Values(t.of), compareTotals)
}

// scope is the Profiles that a page sums.
type scope struct {
	*query.Selection
	selects func(*contents.Key) bool
	// by is a label, or "". Its values take the place of the services.
	by string
	// offers: selects must get the series of all services of the range.
	offers bool

	read   map[contents.Key][]contents.Total // of a scope whose sums are in no index, nil before it was read
	missed catalog.Missing                   // of what was read
}

// scopeOf is the scope of a selection.
func scopeOf(ctx context.Context, sel *query.Selection) *scope {
	return &scope{Selection: sel, selects: func(k *contents.Key) bool { return sel.MatchesKey(ctx, k) }}
}

// totals returns those of all kinds, by service, type and sample type. They take room.
func (p *Page) totals(ctx context.Context, s *scope, room *room) ([]*total, *catalog.Missing, error) {
	byKind := newTotals(room)
	if err := p.scan(ctx, s, s.selects, byKind.add); err != nil {
		return nil, nil, err
	}
	return byKind.sorted(s.To), &s.missed, nil
}

// scan is Scan of the catalog, whose sums are by service and type. For a scope by other labels the files are read, once, and
// visit gets all of it.
func (p *Page) scan(ctx context.Context, s *scope, selects func(*contents.Key) bool, visit catalog.Visit) error {
	if s.by == "" && !s.SelectsSamples() {
		return p.catalog.Scan(ctx, s.scanned(), selects, &s.missed, visit)
	}
	if s.read == nil {
		if err := p.read(ctx, s); err != nil {
			return err
		}
	}
	for key, profiles := range s.read {
		if err := visit(&key, profiles, 0); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// scanned selects the files to scan: all of the range if the page offers other services, too.
func (s *scope) scanned() *query.Selection {
	if s.offers {
		return &query.Selection{From: s.From, To: s.To}
	}
	return s.Selection
}

// read reads the files of a scope.
func (p *Page) read(ctx context.Context, s *scope) (err error) {
	if s.offers {
		if err := p.catalog.Scan(ctx, s.scanned(), s.selects, &s.missed, func(*contents.Key, []contents.Total, uint64) error { return nil }); err != nil {
			return err
		}
	}
	source := p.catalog.Source(&s.missed)
	var by []string
	if s.by != "" {
		by = []string{s.by}
	}
	s.read = map[contents.Key][]contents.Total{}
	room := p.options().MaxMemory / readShare
	err = source.EachSummary(ctx, s.Selection, by, func(values []string, of *contents.Summary) error {
		if room -= s.add(*of, values); room < 0 {
			return fmt.Errorf("the sums by label take more than %d MiB of memory, a quarter of the part of max_memory that a query has: "+
				"select less, by service, type or time", p.options().MaxMemory/readShare>>20)
		}
		return nil
	})
	return err
}

// readShare is the part of the memory of a query that the Profiles of a scope take at most: a page has two of them.
const readShare = 4

// add adds a summary of profiles with these values of the label by, and returns the bytes that it takes.
func (s *scope) add(of contents.Summary, values []string) (size int64) {
	total := catalog.TotalOf(&of)
	if !s.selects(&of.Key) || total.Start < uint64(s.From.UnixNano()) || total.Start >= uint64(s.To.UnixNano()) {
		return 0
	}
	if s.by != "" {
		of.Service = values[0]
	}
	const totalSize, keySize = 128, 512 // with spare places
	if s.read[of.Key] == nil {
		size = keySize + of.TextSize()
	}
	s.read[of.Key] = append(s.read[of.Key], total)
	return size + totalSize
}

// compareTotals sorts by service, type and sample type, and then snapshots come last.
func compareTotals(a, b *total) int { return query.Kind(a.kind).Compare(query.Kind(b.kind)) }

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
