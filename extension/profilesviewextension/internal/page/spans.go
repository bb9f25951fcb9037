// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/catalog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// TraceIDInURL is what a template of URLs has in place of the ID of a trace.
const TraceIDInURL = "{trace_id}"

// maxSpans is how many spans of a service a page shows, and maxSpanSums how many of a trace are summed.
const (
	maxSpans    = 100
	maxSpanSums = 20_000
)

// tracedSpan is a span with rows of its samples.
type tracedSpan struct {
	ID   string
	Rows []*row
}

// spanTotals are those of the spans of a trace, which take the memory of a query together.
type spanTotals struct {
	of          map[pcommon.SpanID]*totals
	size, limit int64 // in bytes
}

func (p *Page) newSpanTotals() *spanTotals {
	return &spanTotals{of: map[pcommon.SpanID]*totals{}, limit: p.options().MaxMemory}
}

func (t *spanTotals) add(ctx context.Context, pd pprofile.Profiles) error {
	return query.EachSpan(pd, func(id pcommon.SpanID, pd pprofile.Profiles) error {
		ofSpan := t.of[id]
		if ofSpan == nil {
			if len(t.of) == maxSpanSums || ctx.Err() != nil {
				return ctx.Err()
			}
			ofSpan = &totals{of: map[kind]*total{}}
			t.of[id] = ofSpan
		}
		summaries, err := recordfile.Summarize(pd)
		for _, s := range summaries {
			before := ofSpan.size
			ofSpan.limit = t.limit - t.size + before
			if err := ofSpan.add(&s.Key, []recordfile.Total{catalog.TotalOf(&s)}); err != nil {
				return err
			}
			t.size += ofSpan.size - before
		}
		return err
	})
}

// addSpans adds the spans of each service, the longest ones first.
func (t *tracePage) addSpans(spans *spanTotals) {
	byName := map[string]*service{}
	for _, s := range t.Services {
		byName[s.Name] = s
	}
	for id, totals := range spans.of {
		text := hex.EncodeToString(id[:])
		ofSpan := byService(totals.sorted(t.selected.To), func(total *total) *row {
			shown := between("", t.selected.From, t.selected.To)
			shown["service"], shown["type"], shown["span_id"] = total.Service, total.selector(), text
			return &row{total: total, Value: total.quantity(float64(total.Sum)), Query: t.with(shown)}
		})
		for _, s := range ofSpan {
			of := byName[s.Name]
			rows := s.order()
			of.Spans = append(of.Spans, tracedSpan{text, rows[:min(len(rows), rowsPerService)]})
		}
	}
	for _, s := range t.Services {
		slices.SortFunc(s.Spans, func(a, b tracedSpan) int {
			return cmp.Or(cmp.Compare(a.Rows[0].stands(), b.Rows[0].stands()), cmp.Compare(b.Rows[0].Sum, a.Rows[0].Sum), cmp.Compare(a.ID, b.ID))
		})
		s.MoreSpans = max(0, len(s.Spans)-maxSpans)
		s.Spans = s.Spans[:len(s.Spans)-s.MoreSpans]
	}
}
