// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Total is a Row with the time of its processes, from which its rate is computed.
type Total struct {
	Row

	Series *Series
}

// Totals returns the Rows of List with their Series, and reads each file once.
func (s *Source) Totals(ctx context.Context, sel *Selection) (all []Total, err error) {
	err = Repeat(func() error {
		all, err = s.totals(ctx, sel)
		return err
	})
	return all, err
}

func (s *Source) totals(ctx context.Context, sel *Selection) ([]Total, error) {
	sums := &totals{summaries: map[contents.Key]*contents.Summary{}, limit: s.Options.MaxMemory / windowShare}
	collector := NewSeriesCollector(sel, s.Options.MaxMemory/windowShare)
	reached, _ := sel.around()
	addSums := func(summaries []contents.Summary) error {
		for i := range summaries {
			if !sel.MatchesKey(ctx, &summaries[i].Key) {
				continue
			}
			if err := sums.add(&summaries[i]); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	whole := sel.withoutKeys()
	whole.From, whole.To = time.Time{}, time.Time{}
	r := s.timesOf(ctx, whole, nil, func(t *Times) error {
		if _, none := reached.timeOf(t.Summary); none || !sel.MatchesKey(ctx, &t.Key) {
			return ctx.Err()
		}
		return collector.Add(t)
	})
	r.filter = whole
	// A summary of which the range has a part tells the times, but not the sum.
	r.suffices = func(of *contents.Summary) bool {
		all, none := sel.timeOf(of)
		return all || none
	}
	if addTimes := r.entry; addTimes != nil {
		r.entry = func(summaries []contents.Summary) error {
			if err := addTimes(summaries); err != nil {
				return err
			}
			return addSums(slices.DeleteFunc(summaries, func(of contents.Summary) bool {
				all, _ := sel.timeOf(&of)
				return !all
			}))
		}
	}
	r.visitSelected(ctx, sel, func(record *archive.Record, pd pprofile.Profiles) error {
		summaries, err := contents.Summarize(pd)
		if err != nil {
			return record.Fail(err)
		}
		return addSums(summaries)
	})
	if err := s.read(ctx, reached, r); err != nil {
		return nil, err
	}
	return joined(sums.rows(), collector.Series()), nil
}

// joined returns the rows with the series of their kinds. Series of which only the time around the range has profiles have no row.
func joined(rows []Row, series []*Series) []Total {
	byKind := make(map[Kind]*Series, len(series))
	for _, of := range series {
		byKind[of.Kind] = of
	}
	all := make([]Total, len(rows))
	for i, row := range rows {
		all[i] = Total{row, byKind[row.Kind]}
	}
	return all
}

// withoutKeys is s without what MatchesKey matches, by which summaries are selected, so that those of an index and of a file are equal.
func (s *Selection) withoutKeys() *Selection {
	rest := *s
	rest.Services, rest.Types, rest.Labels = nil, nil, nil
	for _, m := range s.Labels {
		if isAttribute(m) {
			rest.Labels = append(rest.Labels, m)
		}
	}
	return &rest
}
