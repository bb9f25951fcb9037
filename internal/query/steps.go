// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
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
func (s *Source) EachStep(ctx context.Context, sel *Selection, steps Steps, by []string, visit func(step int, values []string, of *contents.Summary) error) error {
	if len(by) > 0 {
		return s.read(ctx, sel, s.division(by, &steps, visit))
	}
	r := s.division(nil, &steps, visit)
	r.suffices = func(of *contents.Summary) bool { return steps.of(of.Start) == steps.of(of.Latest) }
	r.entry = func(summaries []contents.Summary) error {
		for i := range summaries {
			if err := visit(steps.of(summaries[i].Start), nil, &summaries[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return s.read(ctx, sel, r)
}

// EachSummary calls visit with the summaries of the selected part of each payload, and their values of the labels by, none of which is
// a KeyLabel.
func (s *Source) EachSummary(ctx context.Context, sel *Selection, by []string, visit func(values []string, of *contents.Summary) error) error {
	if len(by) > 0 {
		return s.read(ctx, sel, s.division(by, nil, func(_ int, values []string, of *contents.Summary) error { return visit(values, of) }))
	}
	return s.Each(ctx, sel, summarizing(func(summaries []contents.Summary) error {
		for i := range summaries {
			if err := visit(nil, &summaries[i]); err != nil {
				return err
			}
		}
		return nil
	}))
}

// division calls visit with the summaries of the parts of each payload that differ in the labels by, or in their step if there are
// steps.
func (s *Source) division(by []string, steps *Steps, visit func(step int, values []string, of *contents.Summary) error) *reading {
	limit := s.Options.MaxMemory / windowShare
	return &reading{record: func(record *archive.Record, pd pprofile.Profiles) error {
		var err error
		if len(by) > 0 {
			pd, err = Resolve(record, pd)
		} else if invalid := dictionary.CheckValues(pd); invalid != nil {
			err = record.Fail(invalid)
		}
		if err != nil {
			return err
		}
		d := newDivision(pd, by, steps, limit)
		err = eachPart(pd, int(limit/summarySize), d.partsOf, func(part int, of *contents.Summary) error {
			return visit(part%d.steps.Count, d.groups.values[part/d.steps.Count], of)
		})
		if d.groups.err != nil || errors.Is(err, errManySums) {
			return fmt.Errorf("the sums of a record take more than %d MiB of memory, a quarter of the memory limit; %s", limit>>20, narrow)
		}
		return err
	}}
}
