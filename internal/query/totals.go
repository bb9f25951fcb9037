// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Totals returns the Rows of List with their Series, and reads each file once.
func (s *Source) Totals(ctx context.Context, sel *Selection) (all []Total, err error) {
	err = Repeat(func() error {
		all, err = s.totals(ctx, sel)
		return err
	})
	return all, err
}

func (s *Source) totals(ctx context.Context, sel *Selection) ([]Total, error) {
	tally := NewTally(sel, s.Options.MaxMemory/windowShare)
	reached, _ := sel.around()
	whole := sel.withoutKeys()
	whole.From, whole.To = time.Time{}, time.Time{}
	r := s.timesOf(ctx, whole, nil, func(t *Times) error {
		if _, none := reached.timeOf(t.Summary); none || !sel.MatchesKey(ctx, &t.Key) {
			return ctx.Err()
		}
		return tally.AddTimes(t)
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
			return tally.addSelected(ctx, sel, slices.DeleteFunc(summaries, func(of contents.Summary) bool {
				all, _ := sel.timeOf(&of)
				return !all
			}))
		}
	}
	r.visitSelected(ctx, sel, summarizing(func(summaries []contents.Summary) error { return tally.addSelected(ctx, sel, summaries) }))
	if err := s.read(ctx, reached, r); err != nil {
		return nil, err
	}
	return tally.Totals(), nil
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
