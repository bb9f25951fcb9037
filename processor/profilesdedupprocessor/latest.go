// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// addedUp is the sum of scopes, which it does not change: the readings of several
// resources that have become one.
func addedUp(scopes []*scope) *scope {
	if len(scopes) == 1 {
		return scopes[0]
	}
	sum := &scope{scope: scopes[0].scope, schemaURL: scopes[0].schemaURL, series: map[seriesKey]*series{}}
	for _, s := range scopes {
		rows := make([]int32, s.family.samples.Len())
		for row := range rows {
			rows[row] = sum.family.row(s.family.samples.Identity(int32(row)))
		}
		for key, from := range s.series {
			to := sum.series[key]
			if to == nil {
				to = &series{key: key, place: from.place}
				sum.series[key] = to
			}
			to.addReading(from, rows)
		}
	}
	return sum
}

// addReading adds from, whose rows are called rows in s. A sum of readings is of the
// time of the last one, and lasts as long as the longest: it covers no interval.
func (s *series) addReading(from *series, rows []int32) {
	s.place = min(s.place, from.place)
	s.sources += from.sources
	s.id = pprofile.ProfileID{}
	if s.sources == 1 {
		s.id = from.id
	}
	s.start = max(s.start, from.start)
	s.duration = max(s.duration, from.duration, from.end-from.start)
	s.end = s.start + min(s.duration, math.MaxUint64-s.start)
	s.dropped += min(from.dropped, math.MaxUint32-s.dropped)
	s.format, s.payload, s.verbatim = from.format, from.payload, from.verbatim
	for i, row := range from.column.rows {
		s.column.addSum(rows[row], &from.column, int32(i))
	}
	for _, e := range from.events {
		e.row = rows[e.row]
		s.events = append(s.events, e)
	}
}
