// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
)

// Span is the time of a Profile, in nanoseconds since the epoch.
type Span struct{ Start, End uint64 }

// Union returns the spans in order, without overlaps. It changes them.
func Union(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 && s.Start <= merged[n-1].End {
			merged[n-1].End = max(merged[n-1].End, s.End)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}
