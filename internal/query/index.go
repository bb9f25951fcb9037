// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// timeOf reports whether the time range contains all Profiles and samples of a summary, or none of them.
func (s *Selection) timeOf(of *recordfile.Summary) (all, none bool) {
	before := !s.From.IsZero() && of.Latest < nanosecondsOf(s.From)
	if of.Timestamps && !(s.From.IsZero() && s.To.IsZero()) { // a sample without one may be in a Profile without a time
		return false, before
	}
	after := !s.To.IsZero() && of.Start >= nanosecondsOf(s.To)
	return s.contains(of.Start) && s.contains(of.Latest), before || after
}

// mayMatch reports whether a Profile of the summaries may be selected.
func (s *Selection) mayMatch(summaries []recordfile.Summary) bool {
	return slices.ContainsFunc(summaries, func(of recordfile.Summary) bool {
		_, none := s.timeOf(&of)
		return !none && s.MatchesKey(&of.Key)
	})
}

// selectedPart returns the part of a file in which something may be selected according to its index. It is the
// whole file without an index, and found is false if there is nothing.
func (s *Source) selectedPart(file archive.File, sel *Selection) (part archive.Part, found bool) {
	if len(sel.Services) == 0 && len(sel.Types) == 0 && len(sel.Labels) == 0 && sel.From.IsZero() && sel.To.IsZero() {
		return archive.Part{}, true
	}
	x := s.Options.StoredIndex(file)
	if x == nil {
		return archive.Part{}, true
	}
	if !sel.mayMatch(x.Totals) || !sel.MayMatchLabels(&x.Labels) {
		return archive.Part{}, false
	}
	records, err := x.Records()
	if err != nil {
		return archive.Part{}, true
	}
	for i, r := range records {
		if !sel.mayMatch(r.Summaries) {
			continue
		}
		if !found {
			part.Start, part.Before, found = r.Offset, i, true
		}
		part.End = r.Offset + r.Length
	}
	return part, found
}

// indexed returns the selected summaries of a file from its index. ok is false if the file must be read, because it has
// no index or that cannot tell what is selected.
func (s *Source) indexed(file archive.File, sel *Selection) (selected []recordfile.Summary, ok bool) {
	if sel.SelectsSamples() {
		return nil, false
	}
	x := s.Options.StoredIndex(file)
	if x == nil {
		return nil, false
	}
	for _, of := range x.Totals {
		all, none := sel.timeOf(&of)
		switch {
		case none || !sel.MatchesKey(&of.Key):
		case !all: // a part of the records
			return nil, false
		default:
			selected = append(selected, of)
		}
	}
	return selected, true
}
