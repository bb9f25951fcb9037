// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes

import (
	"cmp"
	"slices"
)

// Span is a time from Start to End, in nanoseconds since the epoch.
type Span struct{ Start, End uint64 }

// Spans are the times that Profiles cover. Those that were profiled at the same time cover it once.
type Spans struct {
	spans    []Span
	distinct int // length of spans when they were united last
}

// Add adds the time of a Profile. Most continue the last one.
func (s *Spans) Add(start, end uint64) {
	const few = 4
	switch n := len(s.spans); {
	case start >= end: // covers nothing
	case n > 0 && start >= s.spans[n-1].Start && start <= s.spans[n-1].End:
		s.spans[n-1].End = max(s.spans[n-1].End, end)
	default:
		if s.spans = append(s.spans, Span{start, end}); n >= few+2*s.distinct {
			s.Union()
		}
	}
}

// Union returns the times in order, without overlaps. The next Add may change them.
func (s *Spans) Union() []Span {
	slices.SortFunc(s.spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	united := s.spans[:0]
	for _, span := range s.spans {
		if n := len(united); n > 0 && span.Start <= united[n-1].End {
			united[n-1].End = max(united[n-1].End, span.End)
		} else {
			united = append(united, span)
		}
	}
	s.spans, s.distinct = united, len(united)
	return s.spans
}

// Length is how long the times are together, in nanoseconds.
func (s *Spans) Length() uint64 {
	length := uint64(0)
	for _, span := range s.Union() {
		length += span.End - span.Start
	}
	return length
}

// Retained is how many bytes s retains.
func (s *Spans) Retained() int {
	const spanSize = 16
	return spanSize * cap(s.spans)
}
