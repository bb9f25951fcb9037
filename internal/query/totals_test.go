// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// TestTotalsAreThoseOfList: what is around the range tells the rates only, also of profiles with timestamps that the range cuts.
func TestTotalsAreThoseOfList(t *testing.T) {
	stamped := profileOf{pod: "a", typ: "wall", sampleType: "wall", unit: "nanoseconds", start: 590, duration: 40, value: 5, timestamps: []int{595, 610}}
	s := indexed(t, segment.Proto, append(replicas(t, 20), payload(t, stamped))...)
	for name, source := range map[string]*query.Source{"indexed": s.Source, "plain": s.plain} {
		for _, sel := range []*query.Selection{
			{}, {From: at(600)}, {To: at(600)}, {From: at(600), To: at(900)}, {Types: []string{"wall"}, From: at(600)}, {From: at(603), To: at(610)}, {From: at(9000)},
		} {
			rows, err := source.List(t.Context(), sel)
			require.NoError(t, err, name)
			totals, err := source.Totals(t.Context(), sel)
			require.NoError(t, err, name)
			require.Len(t, totals, len(rows), "%s %+v", name, sel)
			for i, row := range rows {
				assert.Equal(t, row, totals[i].Row, "%s %+v", name, sel)
				assert.NotNil(t, totals[i].Series, "%s %+v", name, sel)
			}
		}
	}
}
