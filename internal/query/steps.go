// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// Steps divides a range into equal parts.
type Steps struct {
	From   time.Time // of the first step
	Length time.Duration
	Count  int
}

// To is the end of the last step, which it does not contain.
func (s Steps) To() time.Time { return s.From.Add(time.Duration(s.Count) * s.Length) }

// of returns the step of a time in the range, in nanoseconds since the epoch.
func (s Steps) of(t uint64) int { return int((int64(t) - s.From.UnixNano()) / int64(s.Length)) }

func (s Steps) contains(t uint64) bool {
	return int64(t) >= s.From.UnixNano() && int64(t) < s.To().UnixNano()
}

// EachStep calls visit with the summaries of the selected profiles in each step, and their values of the labels by, none of which
// is a KeyLabel. The range of the selection must be that of the steps. It takes summaries from the index of a file if that
// answers the same as the file.
func (s *Source) EachStep(ctx context.Context, sel *Selection, steps Steps, by []string, visit func(step int, values []string, of *recordfile.Summary) error) error {
	read := func(from *Source) error {
		return from.eachGroup(ctx, sel, by, func(record *archive.Record, values []string, pd pprofile.Profiles) error {
			return steps.split(pd, func(step int, part pprofile.Profiles) error {
				return eachSummary(record, part, func(of *recordfile.Summary) error { return visit(step, values, of) })
			})
		})
	}
	if len(by) > 0 {
		return read(s)
	}
	return s.eachIndexed(ctx, sel, func(x *recordfile.Index) (bool, error) {
		summaries, ok := steps.indexed(x, sel)
		for i := range summaries {
			if err := visit(steps.of(summaries[i].Start), nil, &summaries[i]); err != nil {
				return false, err
			}
		}
		return ok, nil
	}, read)
}

// indexed returns the selected summaries of the records of a file, each of one step. ok is false if the file must be read.
func (s Steps) indexed(x *recordfile.Index, sel *Selection) (all []recordfile.Summary, ok bool) {
	records, err := x.Records()
	if err != nil {
		return nil, false
	}
	for _, record := range records {
		selected, ok := sel.selectedOf(record.Summaries)
		if !ok || slices.ContainsFunc(selected, func(of recordfile.Summary) bool { return s.of(of.Start) != s.of(of.Latest) }) {
			return nil, false
		}
		all = append(all, selected...)
	}
	return all, true
}

// split calls visit with the part of pd in each step that has one. pd has nothing outside of the steps.
func (s Steps) split(pd pprofile.Profiles, visit func(int, pprofile.Profiles) error) error {
	found := map[int]bool{}
	add := func(t uint64) {
		if s.contains(t) {
			found[s.of(t)] = true
		}
	}
	for p := range sampletypes.ProfilesOf(pd) {
		add(uint64(p.Time()))
		for _, sample := range p.Samples().All() {
			for _, t := range sample.TimestampsUnixNano().All() {
				add(t)
			}
		}
	}
	for _, step := range slices.Sorted(maps.Keys(found)) {
		part := pd
		if len(found) > 1 {
			part = pprofile.NewProfiles()
			pd.CopyTo(part)
			from := s.From.Add(time.Duration(step) * s.Length)
			(&Selection{From: from, To: from.Add(s.Length)}).Filter(part)
		}
		if err := visit(step, part); err != nil {
			return err
		}
	}
	return nil
}
