// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"encoding/hex"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
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

// spanTotals are those of the spans of a trace.
type spanTotals map[pcommon.SpanID]*totals

// add adds the spans of a payload, which share the memory of all.
func (t spanTotals) add(pd pprofile.Profiles, all *totals) error {
	return query.EachSpan(pd, all.room.limit-all.room.size, func(id pcommon.SpanID) bool {
		if t[id] == nil && len(t) < maxSpanSums {
			t[id] = newTotals(all.room)
		}
		return t[id] != nil
	}, func(id pcommon.SpanID, of *contents.Summary) error { return t[id].addSummary(of) })
}

// addSpans adds the spans of each service, the longest ones first.
func (t *tracePage) addSpans(spans spanTotals) {
	byName := map[string]*service{}
	for _, s := range t.Services {
		byName[s.Name] = s
	}
	for id, totals := range spans {
		text := hex.EncodeToString(id[:])
		ofSpan := byService(totals.sorted(t.selected), func(total *total) *row {
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
