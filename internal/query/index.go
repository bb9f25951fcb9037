// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// MatchesKey reports whether the service and the type of a series are selected.
func (s *Selection) MatchesKey(k *recordfile.Key) bool {
	return (len(s.Services) == 0 || slices.ContainsFunc(s.Services, func(want string) bool { return dictionary.ValidUTF8(want) == k.Service })) &&
		s.matchesType(k.Type, k.SampleType)
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
		return !none && s.MatchesKey(&of.Key)
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

var errNoIndex = errors.New("no index says what is selected of the file")

// indexed returns the selected summaries of a file from its index. The error says that the file must be read.
func (s *Source) indexed(file archive.File, sel *Selection) ([]recordfile.Summary, error) {
	if sel.selectsSamples() || len(sel.Resource) > 0 {
		return nil, errNoIndex
	}
	x := s.Options.StoredIndex(file)
	if x == nil {
		return nil, errNoIndex
	}
	if selected, err := sel.within(nil, x.Totals); err == nil {
		return selected, nil
	}
	records, err := x.Records()
	var selected []recordfile.Summary
	for _, r := range records {
		if selected, err = sel.within(selected, r.Summaries); err != nil {
			return nil, err
		}
	}
	return selected, err
}

// within appends the summaries whose service, type and time are selected. The error is errNoIndex if the time range
// cuts one.
func (s *Selection) within(selected, summaries []recordfile.Summary) ([]recordfile.Summary, error) {
	for _, of := range summaries {
		all, none := s.timeOf(&of)
		switch {
		case none || !s.MatchesKey(&of.Key):
		case !all:
			return nil, errNoIndex
		default:
			selected = append(selected, of)
		}
	}
	return selected, nil
}
