// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Growths say what grew over a range.
type Growths struct {
	// Rows are the kinds: what grew beyond noise first, then what is new, what shrank, and what may be chance. Of a profile type, they have the sample type
	// that stands for it, one of intervals and one of snapshots.
	Rows []Growth
	// First and Last select the thirds of the range that are compared. They are nil if nothing is selected.
	First, Last *Selection
}

// Growth is how a kind has changed.
type Growth struct {
	Kind
	rate.Growth

	// Weight says how much the change matters: the geometric mean of its part of the kind's own value and its part of the value that all
	// services together have of the sample type. It is negative for what shrank.
	Weight float64
}

// Change is that of the value, as a part of the one before. ok is false if that is 0.
func (g *Growth) Change() (change float64, ok bool) { return rate.Change(g.Before, g.After) }

// Growths compares the last third of the range with the first one, by kind: rates, and for snapshots the sums of living processes. It reads once,
// from the index of a file if the index has the times. A range without a bound is that of what is selected.
func (s *Source) Growths(ctx context.Context, sel *Selection) (*Growths, error) {
	all, err := s.Series(ctx, sel, nil)
	if err != nil {
		return nil, err
	}
	return GrowthsOf(all, sel), nil
}

// GrowthsOf is Growths of the series of a selection, which are sorted by kind.
func GrowthsOf(all []*Series, sel *Selection) *Growths {
	g := &Growths{}
	from, to := boundsOf(all, sel)
	if from >= to {
		return g
	}
	third := (to - from) / 3
	first, last := *sel, *sel
	first.From, first.To, last.From, last.To = TimeOf(from), TimeOf(from+third), TimeOf(to-third), TimeOf(to)
	g.First, g.Last = &first, &last
	type of struct {
		typ, sampleType, unit string
		snapshot              bool
	}
	totals := map[of]float64{}
	for _, series := range standing(all) {
		grown := Growth{Kind: series.Kind, Growth: series.Growth(from, to)}
		if grown.IsNew && grown.HasEnded {
			continue
		}
		g.Rows = append(g.Rows, grown)
		totals[of{grown.Type, grown.SampleType, grown.Unit, grown.Snapshot}] += max(grown.Before, grown.After)
	}
	for i := range g.Rows {
		row := &g.Rows[i]
		total := totals[of{row.Type, row.SampleType, row.Unit, row.Snapshot}]
		if own := max(row.Before, row.After); own > 0 && total > 0 {
			row.Weight = (row.After - row.Before) / math.Sqrt(own*total)
		}
	}
	slices.SortFunc(g.Rows, func(a, b Growth) int {
		return cmp.Or(cmp.Compare(a.class(), b.class()), cmp.Compare(b.Weight, a.Weight), a.Compare(b.Kind))
	})
	return g
}

// class orders what grew, what is new, what shrank and what may be chance. What is new has no value before by which it could be ranked among what
// grew; a service that was just deployed would hide a leak.
func (g *Growth) class() int {
	switch {
	case g.Noise:
		return 3
	case g.Weight <= 0:
		return 2
	case g.IsNew:
		return 1
	default:
		return 0
	}
}

// boundsOf returns the range of a selection, cut to the time that has data: before the first file, nothing is new.
func boundsOf(all []*Series, sel *Selection) (from, to uint64) {
	from = math.MaxUint64
	for _, series := range all {
		if series.Last > 0 {
			from, to = min(from, series.First), max(to, series.Last+1)
		}
	}
	if !sel.From.IsZero() {
		from = max(from, nanosecondsOf(sel.From))
	}
	if !sel.To.IsZero() {
		to = min(to, nanosecondsOf(sel.To))
	}
	return from, to
}

// preferred are the sample types that stand for their profile type.
var preferred = []string{"cpu", "inuse_space", "delay", "wall", "live_bytes", "alloc_space", "goroutine", "goroutines"}

// Standing says how well the sample type stands for its profile type; less is better.
func (k Kind) Standing() int {
	i := slices.Index(preferred, k.SampleType)
	switch {
	case i >= 0:
		return i
	case k.Unit == "nanoseconds" || k.Unit == "ns":
		return len(preferred)
	case k.Unit == "bytes" || k.Unit == "By":
		return len(preferred) + 1
	default:
		return len(preferred) + 2
	}
}

// IsPreferred reports whether the sample type stands for profile types by its name.
func (k Kind) IsPreferred() bool { return slices.Contains(preferred, k.SampleType) }

// standing returns those series that stand for a profile type.
func standing(all []*Series) (kept []*Series) {
	key := func(of *Series) contents.Key {
		k := contents.Key{Service: of.Service, Type: of.Type, PeriodType: of.PeriodType, PeriodUnit: of.PeriodUnit}
		if of.Type == "" { // they may be of several
			k.SampleType = of.SampleType
		}
		if of.Snapshot {
			k.Snapshot = 1
		}
		return k
	}
	best := map[contents.Key]int{}
	for _, of := range all {
		if known, found := best[key(of)]; !found || of.Standing() < known {
			best[key(of)] = of.Standing()
		}
	}
	for _, of := range all {
		if of.Standing() == best[key(of)] {
			kept = append(kept, of)
			best[key(of)] = -1 // of several that are as good, the first one
		}
	}
	return kept
}
