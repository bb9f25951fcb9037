// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

const (
	// usualDelay is how long before its file was created a Profile starts, at most: profiles wait in windows and queues.
	usualDelay = time.Hour
	// usualAhead is how long after its file is closed, at the latest, one starts by a clock that is ahead a little.
	usualAhead = time.Minute
	// maxOdd is how many files Odd looks into.
	maxOdd = 100
)

// created is when a segment or the first of its inputs was created, at the earliest.
func created(s *store.Segment) time.Time {
	if stamp := s.Stem[:min(len(s.Stem), len(layout.CreatedTime))]; s.Level == layout.Written {
		if at, err := time.Parse(layout.CreatedTime, stamp); err == nil {
			return at
		}
	}
	return s.Partition
}

// Odd returns when those Profiles start that were written in the range of a selection, but long before or after they started, and outside
// of the range. selects says which series count. It is zero if there are none.
func (c *Catalog) Odd(ctx context.Context, sel *query.Selection, selects func(*contents.Key) bool) (odd Extent, err error) {
	if c.given != nil {
		return odd, nil
	}
	list, err := c.list(ctx, sel.From)
	if err != nil {
		return odd, err
	}
	looked := 0
	for _, s := range list.found {
		begin := created(s)
		end := begin.Add(s.Level.Span())
		early, late := begin.Add(-usualDelay), end.Add(usualAhead)
		isUsual := !s.Partial && !s.Start.Before(early) && !s.End.After(late)
		if isUsual || !begin.Before(sel.To) || end.Before(sel.From) {
			continue
		}
		if looked++; looked > maxOdd || ctx.Err() != nil {
			break
		}
		x, err := s.Index(ctx)
		if err != nil {
			continue // the scan has the error
		}
		for i := range x.Records {
			entry, err := x.Entry(i)
			if err != nil {
				continue
			}
			for k := range entry.Summaries {
				of := &entry.Summaries[k]
				first, last := query.TimeOf(of.Start), query.TimeOf(of.Latest)
				if outside := last.Before(sel.From) || !first.Before(sel.To); outside && (first.Before(early) || last.After(late)) && selects(&of.Key) {
					odd.add(first, last)
				}
			}
		}
	}
	return odd, ctx.Err()
}
