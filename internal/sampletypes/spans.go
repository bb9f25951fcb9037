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
	// Gap is the longest time between two Profiles that counts as covered, in nanoseconds.
	Gap uint64
	// Since may be set, and again, to the earliest start of the Profiles that are still to be added: of those that ended before
	// it, only the length is kept.
	Since uint64

	ended    uint64 // length of what is no longer in spans
	spans    []Span
	distinct int // length of spans when they were united last
}

// Add adds the time of a Profile. Most continue the last one.
func (s *Spans) Add(start, end uint64) {
	const few = 4
	switch n := len(s.spans); {
	case start >= end: // covers nothing
	case n > 0 && start >= s.spans[n-1].Start && s.continues(s.spans[n-1], start):
		s.spans[n-1].End = max(s.spans[n-1].End, end)
	default:
		if s.spans = append(s.spans, Span{start, end}); n >= few+2*s.distinct {
			s.Union()
		}
	}
}

// continues reports whether a Profile that starts at start, not before span, leaves no gap after it.
func (s *Spans) continues(span Span, start uint64) bool {
	return start <= span.End || start-span.End <= s.Gap
}

// Union returns the times in order, without overlaps and without those that ended before Since. The next Add may change them.
func (s *Spans) Union() []Span {
	slices.SortFunc(s.spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	united := s.spans[:0]
	for _, span := range s.spans {
		if n := len(united); n > 0 && s.continues(united[n-1], span.Start) {
			united[n-1].End = max(united[n-1].End, span.End)
		} else {
			united = append(united, span)
		}
	}
	ended := 0
	for ; ended < len(united) && !s.continues(united[ended], s.Since); ended++ {
		s.ended += united[ended].End - united[ended].Start
	}
	s.spans, s.distinct = slices.Delete(united, 0, ended), len(united)-ended
	return s.spans
}

// Length is how long the times are together, in nanoseconds.
func (s *Spans) Length() uint64 {
	length := uint64(0)
	for _, span := range s.Union() {
		length += span.End - span.Start
	}
	return s.ended + length
}

// Retained is how many bytes s retains.
func (s *Spans) Retained() int {
	const spanSize = 16
	return spanSize * cap(s.spans)
}
