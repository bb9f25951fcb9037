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
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
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

// Spread divides the value of the time from start to end among the steps in proportion to how much of it they have, so that what is before,
// in and after the steps adds up to the value. It calls visit with each step that has some of the time, and the share of it. A moment is in one step.
func (s Steps) Spread(start, end uint64, value int64, visit func(step int, part int64, share float64)) {
	if end <= start {
		if s.contains(start) {
			visit(s.of(start), value, 1)
		}
		return
	}
	from, to := nanosecondsOf(s.From), nanosecondsOf(s.To())
	if start >= to || end <= from {
		return
	}
	var weights []uint64 // before the first step, of each step, after the last one
	first := s.of(max(start, from))
	weights = append(weights, max(start, from)-start)
	for at := max(start, from); at < min(end, to); {
		next := min(end, from+uint64(s.of(at)+1)*uint64(s.Length))
		weights = append(weights, next-at)
		at = next
	}
	weights = append(weights, end-min(end, to))
	parts := processes.Divide(value, weights)
	for i := 1; i < len(parts)-1; i++ {
		visit(first+i-1, parts[i], float64(weights[i])/float64(end-start))
	}
}

// EachStep calls visit with the Times of the selected profiles, by the values of labels, none of which is a KeyLabel. The range of the selection
// must be that of the steps. Of profiles with timestamps, they are what is in a step. Others have no step but Rows, which may be of times outside of
// the range: step is -1. Only snapshots have wholes. It takes summaries from the index of a file if that answers the same as the file.
func (s *Source) EachStep(ctx context.Context, sel *Selection, steps Steps, by []string, visit func(step int, t *Times) error) error {
	reached, whole := sel.around()
	divided := func(of func(*contents.Summary) bool) *reading {
		return s.division(by, &steps, func(step int, values []string, summary *contents.Summary) error {
			if !of(summary) {
				return nil
			}
			if step == steps.Count {
				step = -1
			}
			return visit(step, &Times{Summary: summary, Values: values})
		})
	}
	snapshots := s.timesOf(ctx, sel, by, func(t *Times) error {
		if t.Snapshot == 0 {
			return nil
		}
		return visit(-1, t)
	})
	if snapshots.timed != nil {
		intervals := divided(func(of *contents.Summary) bool { return of.Snapshot == 0 })
		snapshots.filter = whole
		timed := snapshots.timed
		snapshots.timed = func(record *archive.Record, pd pprofile.Profiles, timeOnly []bool) error {
			n := 0 // mostly all or none, as one type is selected
			for p := range sampletypes.ProfilesOf(pd) {
				if sampletypes.IsSnapshot(pd.Dictionary(), p, sampletypes.SnapshotSampleTypes) {
					n++
				}
			}
			if n > 0 {
				if err := timed(record, pd, timeOnly); err != nil {
					return err
				}
			}
			if n == pd.ProfileCount() {
				return nil
			}
			removeProfiles(pd, timeOnly)
			return intervals.record(record, pd)
		}
		return s.read(ctx, reached, snapshots)
	}
	r := divided(func(*contents.Summary) bool { return true })
	r.filter, r.parts = whole, true
	outside := func(of *contents.Summary) bool {
		return of.Latest < nanosecondsOf(steps.From) || of.Start >= nanosecondsOf(steps.To())
	}
	r.suffices = func(of *contents.Summary) bool {
		return !of.Timestamps || outside(of) || steps.contains(of.Start) && steps.contains(of.Latest) && steps.of(of.Start) == steps.of(of.Latest)
	}
	r.entry = func(summaries []contents.Summary) error {
		for i := range summaries {
			of, step := &summaries[i], -1
			if of.Timestamps {
				if outside(of) {
					continue
				}
				step = steps.of(of.Start)
			}
			if err := visit(step, &Times{Summary: of}); err != nil {
				return err
			}
		}
		return nil
	}
	return s.read(ctx, reached, r)
}

// EachSummary calls visit with the summaries of the selected part of each payload, and their values of the labels by, none of which is
// a KeyLabel.
func (s *Source) EachSummary(ctx context.Context, sel *Selection, by []string, visit func(values []string, of *contents.Summary) error) error {
	return s.read(ctx, sel, s.division(by, nil, func(_ int, values []string, of *contents.Summary) error { return visit(values, of) }))
}

// toDivide returns a payload that is checked as far as dividing it by labels needs it, without the string references that labels may have.
func toDivide(record *archive.Record, pd pprofile.Profiles, by []string) (pprofile.Profiles, error) {
	if len(by) > 0 {
		return Resolve(record, pd)
	}
	if err := dictionary.CheckValues(pd); err != nil {
		return pd, record.Fail(err)
	}
	return pd, nil
}

// division calls visit with the summaries of the parts of each payload that differ in the labels by. If there are steps, parts of profiles
// with timestamps differ in their step, and the step of others is that after the last one.
func (s *Source) division(by []string, steps *Steps, visit func(step int, values []string, of *contents.Summary) error) *reading {
	limit := s.Options.MaxMemory / windowShare
	return &reading{record: func(record *archive.Record, pd pprofile.Profiles) error {
		pd, err := toDivide(record, pd, by)
		if err != nil {
			return err
		}
		d := newDivision(pd, by, steps, limit)
		if steps != nil {
			d.stride++
		}
		err = eachPart(pd, int(limit/summarySize), d.partsOf, func(part int, of *contents.Summary) error {
			return visit(part%d.stride, d.groups.values[part/d.stride], of)
		})
		if d.groups.err != nil || errors.Is(err, errManySums) {
			return fmt.Errorf("the sums of a record take more than %d MiB of memory, a quarter of the memory limit; %s", limit>>20, narrow)
		}
		return err
	}}
}
