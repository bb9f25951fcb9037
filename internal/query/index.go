// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
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
func (s *Selection) mayMatch(ctx context.Context, summaries []recordfile.Summary) bool {
	return slices.ContainsFunc(summaries, func(of recordfile.Summary) bool {
		_, none := s.timeOf(&of)
		return !none && s.MatchesKey(ctx, &of.Key)
	})
}

// selectsAll reports whether an index cannot say that a record is not selected.
func (s *Selection) selectsAll() bool {
	return len(s.Services) == 0 && len(s.Types) == 0 && len(s.Labels) == 0 && s.From.IsZero() && s.To.IsZero()
}

// selectedParts returns the parts of a file in which something may be selected according to its index: the whole file without
// an index, and none if there is nothing.
func (s *Source) selectedParts(ctx context.Context, file archive.File, sel *Selection) []archive.Part {
	whole := []archive.Part{{}}
	if sel.selectsAll() {
		return whole
	}
	x := s.Options.StoredIndex(ctx, file)
	if x == nil {
		return whole
	}
	if !sel.mayMatch(ctx, x.Totals) || !sel.MayMatchLabels(ctx, &x.Labels) {
		return nil
	}
	records, err := x.Records()
	if err != nil {
		return whole
	}
	var parts []archive.Part
	for i, r := range records {
		if !sel.mayMatch(ctx, r.Summaries) {
			continue
		}
		if n := len(parts); n > 0 && parts[n-1].End == r.Offset {
			parts[n-1].End += r.Length
		} else {
			parts = append(parts, archive.Part{Start: r.Offset, End: r.Offset + r.Length, Before: i})
		}
	}
	return parts
}

// selectedOf returns those summaries of an index that are selected. ok is false if the time range has a part of one: then
// the file must be read.
func (s *Selection) selectedOf(ctx context.Context, summaries []recordfile.Summary) (selected []recordfile.Summary, ok bool) {
	for _, of := range summaries {
		all, none := s.timeOf(&of)
		switch {
		case none || !s.MatchesKey(ctx, &of.Key):
		case !all:
			return nil, false
		default:
			selected = append(selected, of)
		}
	}
	return selected, true
}

// eachIndexed calls use with the index of each file, in order, and read with a file that has none, or whose index use
// reports as not sufficient. A selection of parts of Profiles by more than their time is read without indexes.
func (s *Source) eachIndexed(ctx context.Context, sel *Selection, use func(*recordfile.Index) (sufficient bool, err error), read func(*Source) error) error {
	if sel.SelectsSamples() {
		return read(s)
	}
	for files := range slices.Chunk(s.Files, archive.FilesAhead) {
		s.Options.FetchIndexes(ctx, files)
		for _, file := range files {
			sufficient, err := false, ctx.Err()
			if x := s.Options.StoredIndex(ctx, file); x != nil && err == nil {
				if sufficient, err = use(x); err == nil {
					err = ctx.Err() // use may have selected too little
				}
			}
			if !sufficient && err == nil {
				one := *s
				one.Files = []archive.File{file}
				err = read(&one)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
