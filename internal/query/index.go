// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// matchesSummary reports whether the service and the type of a summary are selected.
func (s *Selection) matchesSummary(of *recordfile.Summary) bool {
	return (len(s.Services) == 0 || slices.ContainsFunc(s.Services, func(want string) bool { return dictionary.ValidUTF8(want) == of.Service })) &&
		s.MatchesType(of.Type, of.SampleType)
}

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
		return !none && s.matchesSummary(&of)
	})
}

// selectedPart returns the part of a file in which something may be selected according to its index. It is the
// whole file without an index, and found is false if there is nothing.
func (s *Source) selectedPart(file archive.File, sel *Selection) (part archive.Part, found bool) {
	if len(sel.Services) == 0 && len(sel.Types) == 0 && sel.From.IsZero() && sel.To.IsZero() {
		return archive.Part{}, true
	}
	x := s.Options.StoredIndex(file)
	if x == nil {
		return archive.Part{}, true
	}
	if !sel.mayMatch(x.Totals) {
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

// addIndex adds the selected Profiles of a file from its index. It returns false if the file must be read.
func (s *Source) addIndex(t *totals, file archive.File, sel *Selection) (bool, error) {
	if sel.selectsSamples() || len(sel.Resource) > 0 {
		return false, nil
	}
	x := s.Options.StoredIndex(file)
	if x == nil {
		return false, nil
	}
	selected, ok := sel.within(x.Totals)
	if !ok {
		records, err := x.Records()
		if err != nil {
			return false, nil //nolint:nilerr // the file is read instead
		}
		selected = nil
		for _, r := range records {
			ofRecord, ok := sel.within(r.Summaries)
			if !ok {
				return false, nil
			}
			selected = append(selected, ofRecord...)
		}
	}
	s.progress(file.Size)
	return true, t.add(selected, sel)
}

// within returns the summaries whose time range is selected. ok is false if the range cuts one.
func (s *Selection) within(summaries []recordfile.Summary) (selected []recordfile.Summary, ok bool) {
	for i := range summaries {
		of := &summaries[i]
		if !s.matchesSummary(of) {
			continue
		}
		switch all, none := s.timeOf(of); {
		case all:
			selected = append(selected, *of)
		case !none:
			return nil, false
		}
	}
	return selected, true
}
