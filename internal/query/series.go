// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Around is how far before and after a range Series and EachProcess read: what is there tells how often a process is profiled, and where
// the first and last intervals of the range cease to stand.
const Around = 15 * time.Minute

// Series is the time of the processes of a kind, with the same values of some labels. Its methods are those of rate.Series: they
// compute all rates and levels that readers show.
type Series struct {
	Kind

	// Values are those of the labels by which profiles were grouped.
	Values []string
	// First is the earliest start in the range of the selection, and Last the latest end, in nanoseconds since the epoch. They are 0 if
	// there is none.
	First, Last uint64
	rate.Series
}

// Bounds returns the time range of a selection in nanoseconds since the epoch, or where it has no bound, that of the series.
func (s *Series) Bounds(sel *Selection) (from, to uint64) {
	from, to = s.First, s.Last+1
	if !sel.From.IsZero() {
		from = nanosecondsOf(sel.From)
	}
	if !sel.To.IsZero() {
		to = nanosecondsOf(sel.To)
	}
	return from, max(from, to)
}

// Series returns the time of the processes of the selected Profiles, by kind and values of the labels by, in this order. by are no
// KeyLabels. It includes what is in Around before and after the range. It takes that from the index of a file if the index has it.
//
// With a selection by attributes of samples, or by such labels, values are those of the samples that are selected, and the time is that of all
// Profiles whose samples may have such attributes: a process without selected samples is idle. See Times.
func (s *Source) Series(ctx context.Context, sel *Selection, by []string) (all []*Series, err error) {
	err = Repeat(func() error {
		c := NewSeriesCollector(sel, s.Options.MaxMemory/windowShare)
		err = s.EachProcess(ctx, sel, by, c.Add)
		all = c.Series()
		return err
	})
	return all, err
}

// EachProcess calls visit with the Times of the selected Profiles, by the values of labels. Rows may be of times outside of the range, up to
// Around before and after it.
func (s *Source) EachProcess(ctx context.Context, sel *Selection, by []string, visit func(*Times) error) error {
	reached, whole := sel.around()
	r := s.timesOf(ctx, sel, by, func(t *Times) error {
		if _, none := reached.timeOf(t.Summary); none {
			return nil
		}
		return visit(t)
	})
	r.filter = whole
	return s.read(ctx, reached, r)
}

// eachTimed is Each that also adds the times of the processes to a collector, those of all services together. What is Around the range tells
// how long processes stand in it; of that, it takes the times from the index of a file if the index has them.
func (s *Source) eachTimed(ctx context.Context, sel *Selection, times *SeriesCollector, visit func(*archive.Record, pprofile.Profiles) error) error {
	reached, whole := sel.around()
	r := s.timesOf(ctx, sel, nil, func(t *Times) error {
		if _, none := reached.timeOf(t.Summary); none {
			return nil
		}
		t.Service = ""
		return times.Add(t)
	})
	r.filter = whole
	r.suffices = func(of *contents.Summary) bool {
		_, none := sel.timeOf(of)
		return none
	}
	r.visitSelected(ctx, sel, visit)
	return s.read(ctx, reached, r)
}

// visitSelected makes a reading of Times also call visit with what is selected of each payload, in the range of the selection.
func (r *reading) visitSelected(ctx context.Context, sel *Selection, visit func(*archive.Record, pprofile.Profiles) error) {
	record, timed := r.record, r.timed
	r.record = func(of *archive.Record, pd pprofile.Profiles) error {
		if err := record(of, pd); err != nil {
			return err
		}
		return visitRange(ctx, sel, of, pd, visit)
	}
	if timed == nil {
		return
	}
	r.timed = func(of *archive.Record, pd pprofile.Profiles, timeOnly []bool) error {
		if err := timed(of, pd, timeOnly); err != nil {
			return err
		}
		removeProfiles(pd, timeOnly)
		return visitRange(ctx, sel, of, pd, visit)
	}
}

// visitRange calls visit with what is in the range of a selection, if something is.
func visitRange(ctx context.Context, sel *Selection, of *archive.Record, pd pprofile.Profiles, visit func(*archive.Record, pprofile.Profiles) error) error {
	if err := (&Selection{From: sel.From, To: sel.To}).filter(ctx, pd); err != nil || pd.ProfileCount() == 0 {
		return err
	}
	return visit(of, pd)
}

// removeProfiles removes Profiles by their number. Scopes state the sample types of those that are left.
func removeProfiles(pd pprofile.Profiles, remove []bool) {
	if !slices.Contains(remove, true) {
		return
	}
	text := func(i int32) string { return dictionary.ValidString(pd.Dictionary().StringTable(), i) }
	number := -1
	pd.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
			all, order := sampletypes.Read(sp.Scope().Attributes(), sampletypes.Of(sp, text))
			i, kept := -1, make([]int, 0, len(order))
			sp.Profiles().RemoveIf(func(pprofile.Profile) bool {
				i++
				number++
				if remove[number] {
					return true
				}
				if all != nil {
					kept = append(kept, order[i])
				}
				return false
			})
			if all != nil && len(kept) < len(order) {
				sampletypes.Write(sp.Scope().Attributes(), all, kept)
			}
			return sp.Profiles().Len() == 0
		})
		return rp.ScopeProfiles().Len() == 0
	})
}

// around returns the selection with Around before and after the range, which selects records as it does entries, and the one of all times
// that is for their Profiles: cut ones would not be those of their table of processes.
func (s *Selection) around() (reached, whole *Selection) {
	around, all := *s, *s
	if !s.From.IsZero() {
		around.From = s.From.Add(-Around)
	}
	if !s.To.IsZero() {
		around.To = s.To.Add(Around)
	}
	all.From, all.To = time.Time{}, time.Time{}
	return &around, &all
}

// SeriesCollector collects Series from summaries.
//
// When the rows take too much memory, those of a process that begin in the same slot of time are joined, as a window of merging does.
// Rates stay what they are, and steps that are longer than a slot.
type SeriesCollector struct {
	from, to    uint64
	all         map[string]*collected // by kind and values
	wholes      map[string]*collected // see Times
	size, limit int64                 // in bytes
	slot        uint64                // in nanoseconds; 0 if nothing is joined
	key         []byte
}

type collected struct {
	Series

	rows map[uint64][]processes.Row // by process; of a part, those that have a value
	// whole is that of a part, or what a whole was joined with: a series that has parts of several wholes has the time of all.
	whole *collected
}

// root returns the whole that has the time of this one.
func (s *collected) root() *collected {
	for s.whole != nil {
		s = s.whole
	}
	return s
}

const (
	// rowSize and processSize estimate the memory of a row, with what computing rates takes, and of a process.
	rowSize     = 160
	processSize = 250
	// leastSlot is the first slot, which is doubled until there is room, up to the part slotShare of the range.
	leastSlot = uint64(time.Minute)
	slotShare = 48
)

// NewSeriesCollector returns one for the range of a selection, which takes at most limit bytes.
func NewSeriesCollector(sel *Selection, limit int64) *SeriesCollector {
	c := &SeriesCollector{from: nanosecondsOf(sel.From), to: math.MaxUint64, all: map[string]*collected{}, wholes: map[string]*collected{}, limit: limit}
	if sel.From.IsZero() {
		c.from = 0
	}
	if !sel.To.IsZero() {
		c.to = nanosecondsOf(sel.To)
	}
	return c
}

// Add adds Times, of which it keeps the Values. An error says what to narrow.
func (c *SeriesCollector) Add(t *Times) error {
	s := c.seriesOf(t)
	isPart := t.Whole != "" && !t.IsWhole
	if isPart {
		c.link(s, t.Whole)
	}
	for i := range t.Rows {
		row := t.Rows[i]
		if row.Start < c.to && (row.End > c.from || row.Start >= c.from) {
			if first := max(row.Start, c.from); s.First == 0 || first < s.First {
				s.First = first
			}
			s.Last = max(s.Last, row.End)
		}
		if !isPart || row.Value != 0 {
			s.rows[row.Hash] = c.joined(s.rows[row.Hash], row, s.Snapshot)
		}
	}
	for c.size > c.limit {
		if !c.coarsen() {
			return fmt.Errorf("the times of processes take more than %d MiB of memory; %s", c.limit>>20, narrow)
		}
	}
	return nil
}

func (c *SeriesCollector) seriesOf(t *Times) *collected {
	if t.IsWhole {
		return c.wholeOf(t.Whole, t.Snapshot != 0)
	}
	c.key = appendKind(c.key[:0], &t.Key)
	for _, text := range t.Values {
		c.key = append(append(c.key, text...), 0)
	}
	s := c.all[string(c.key)]
	if s == nil {
		s = c.newSeries(&Series{Kind: KindOf(&t.Key), Values: t.Values}, len(c.key))
		c.all[string(c.key)] = s
	}
	return s
}

func (c *SeriesCollector) wholeOf(id string, snapshots bool) *collected {
	w := c.wholes[id]
	if w == nil {
		w = c.newSeries(&Series{Kind: Kind{Snapshot: snapshots}}, len(id))
		c.wholes[id] = w
	}
	return w
}

func (c *SeriesCollector) newSeries(of *Series, keySize int) *collected {
	const seriesSize = 1 << 10
	c.size += seriesSize + 2*int64(keySize)
	of.Snapshots = of.Snapshot
	return &collected{Series: *of, rows: map[uint64][]processes.Row{}}
}

// link makes a series a part of a whole.
func (c *SeriesCollector) link(s *collected, id string) {
	whole := c.wholeOf(id, s.Snapshot).root()
	switch {
	case s.whole == nil:
		s.whole = whole
	case s.root() != whole:
		whole.whole = s.root()
	}
}

// appendKind appends what identifies the kind of a key.
func appendKind(id []byte, key *contents.Key) []byte {
	snapshot := byte('0')
	if key.Snapshot != 0 {
		snapshot = '1'
	}
	id = append(id, snapshot)
	for _, text := range [...]string{key.Service, key.Type, key.SampleType, key.Unit, key.PeriodType, key.PeriodUnit} {
		id = append(append(id, text...), 0)
	}
	return id
}

// joined returns the rows of a process with one more.
func (c *SeriesCollector) joined(rows []processes.Row, row processes.Row, snapshot bool) []processes.Row {
	if n := len(rows); n > 0 && c.slot > 0 && rows[n-1].Start/c.slot == row.Start/c.slot {
		last := &rows[n-1]
		switch {
		case !snapshot:
			*last = processes.Join(rows[n-1:], []processes.Row{row})[0]
		case row.Start > last.Start:
			*last = row
		case row.Start == last.Start: // a part of it
			last.Value = sampletypes.AddSaturated(last.Value, row.Value)
		}
		return rows
	}
	if len(rows) == 0 {
		c.size += processSize
	}
	c.size += rowSize
	return append(rows, row)
}

// coarsen makes slots longer. It returns false if they would be too long.
func (c *SeriesCollector) coarsen() bool {
	slot, first, last := max(leastSlot, 2*c.slot), c.to, c.from
	all := slices.AppendSeq(slices.Collect(maps.Values(c.all)), maps.Values(c.wholes))
	for _, s := range all {
		if s.Last > 0 {
			first, last = min(first, s.First), max(last, s.Last)
		}
	}
	if last = min(last, c.to); slot > (last-min(first, last))/slotShare {
		return false
	}
	c.slot = slot
	for _, s := range all {
		for process, rows := range s.rows {
			c.size -= processSize + int64(len(rows))*rowSize
			slices.SortStableFunc(rows, func(a, b processes.Row) int { return cmp.Compare(a.Start, b.Start) })
			var joined []processes.Row
			for _, row := range rows {
				joined = c.joined(joined, row, s.Snapshot)
			}
			s.rows[process] = joined
		}
	}
	return true
}

// Size estimates the memory in bytes.
func (c *SeriesCollector) Size() int64 { return c.size }

// Series returns what was collected, by kind and values. Nothing can be added after it.
func (c *SeriesCollector) Series() []*Series {
	for _, id := range slices.Sorted(maps.Keys(c.wholes)) {
		w := c.wholes[id]
		root := w.root()
		root.addRows(w.rows)
		if root.First == 0 || w.First > 0 && w.First < root.First {
			root.First = w.First
		}
		root.Last = max(root.Last, w.Last)
	}
	all := make([]*Series, 0, len(c.all))
	for _, s := range c.all {
		s.addRows(s.rows)
		if s.whole != nil {
			root := s.root()
			s.Whole, s.First, s.Last = &root.Series.Series, root.First, root.Last
		}
		all = append(all, &s.Series)
	}
	slices.SortFunc(all, func(a, b *Series) int {
		return cmp.Or(a.Compare(b.Kind), slices.CompareFunc(a.Values, b.Values, strings.Compare))
	})
	return all
}

// addRows makes intervals of rows, which it empties.
func (s *collected) addRows(of map[uint64][]processes.Row) {
	for process, rows := range of {
		for i := range rows {
			row := &rows[i]
			s.Add(rate.Interval{
				Process: process, Start: row.Start, End: row.End, Covered: row.Covered, Value: row.Value, Profiles: row.Profiles, Processes: row.Processes,
			})
		}
	}
	clear(of)
}
