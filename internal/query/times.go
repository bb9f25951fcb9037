// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Times is a summary with the Rows of processes.
//
// If labels of samples are selected, or divide the samples, a process is profiled for longer than it has such samples. Then the time of its
// Profiles comes apart from the values, as that of a whole, and a SeriesCollector brings both together.
type Times struct {
	*contents.Summary

	// Values are those of the labels by which profiles are grouped. A whole has none.
	Values []string
	// Whole identifies the whole that has the time of the summary. It is "" if that is the time of the Rows.
	Whole string
	// IsWhole: it is the time of a whole. The values of its Rows mean nothing.
	IsWhole bool
}

// timesOf calls visit with the Times of the Profiles of a reading, by the values of labels.
func (s *Source) timesOf(ctx context.Context, sel *Selection, by []string, visit func(*Times) error) *reading {
	r := &reading{parts: true}
	for _, m := range sel.Labels {
		if isAttribute(m) {
			r.names = append(r.names, m.Name)
		}
	}
	each := func(summaries []contents.Summary, isWhole bool) error {
		for i := range summaries {
			t := &Times{Summary: &summaries[i], IsWhole: isWhole}
			if isWhole {
				t.Whole = wholeOf(&t.Key, make([]string, len(r.names)), len(by))
			}
			if err := visit(t); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	if len(by)+len(r.names) == 0 {
		r.entry = func(summaries []contents.Summary) error { return each(summaries, false) }
		r.record = summarizing(r.entry)
		return r
	}
	r.names = slices.Concat(by, r.names)
	r.idle = func(summaries []contents.Summary) error { return each(summaries, true) }
	r.timed = func(record *archive.Record, pd pprofile.Profiles, timeOnly []bool) error {
		return s.divideTimes(record, pd, timeOnly, by, r.names, visit)
	}
	return r
}

// wholeOf identifies the whole of Profiles of a kind, by the values of labels that they or their resources have. Of the first ones, by which profiles
// are grouped, the values count. Of those that are selected it counts whether they have the label at all: where others have it on samples, they may.
func wholeOf(key *contents.Key, values []string, by int) string {
	var id strings.Builder
	id.Write(appendKind(nil, key))
	for i, value := range values {
		if i >= by && value != "" {
			value = "selected"
		}
		id.WriteString(value)
		id.WriteByte(0)
	}
	return id.String()
}

// divideTimes calls visit with the Times of a payload: with what each group of samples has of each whole, and with the time of the wholes.
// names are all labels that a whole has in common, by first.
func (s *Source) divideTimes(record *archive.Record, pd pprofile.Profiles, timeOnly []bool, by, names []string, visit func(*Times) error) error {
	pd, err := toDivide(record, pd, by)
	if err != nil {
		return err
	}
	limit := s.Options.MaxMemory / windowShare
	const noGroup = -1
	type part struct{ group, whole int }
	var (
		of      = newDivision(pd, by, nil, limit)
		wholes  = newGroups(pd, names, limit)
		parts   []part // by index
		indices = map[part]int{}
		divided []contents.Part
		number  = -1 // of the Profile
	)
	add := func(p contents.Part, at part) {
		i, known := indices[at]
		if !known {
			i = len(parts)
			parts, indices[at] = append(parts, at), i
		}
		p.Index = i
		divided = append(divided, p)
	}
	divide := func(rp pprofile.ResourceProfiles, p pprofile.Profile) []contents.Part {
		number++
		divided = divided[:0]
		wholes.startResource(rp)
		whole := wholes.ofProfileAlone(p)
		isIdle := p.Samples().Len() == 0
		if wholes.err != nil {
			return nil
		}
		// Without samples, a Profile has no value of a label that only samples have.
		if !(timeOnly != nil && timeOnly[number]) && !(isIdle && slices.Contains(wholes.values[whole][:len(by)], "")) {
			for _, p := range of.partsOf(rp, p) {
				add(p, part{p.Index, whole})
			}
		}
		time := newPart(0, uint64(p.Time()), p.DurationNano())
		time.Whole = true
		add(time, part{noGroup, whole})
		return divided
	}
	err = eachPart(pd, int(limit/summarySize), divide, func(index int, summary *contents.Summary) error {
		at := parts[index]
		t := &Times{Summary: summary, Whole: wholeOf(&summary.Key, wholes.values[at.whole], len(by)), IsWhole: at.group == noGroup}
		if !t.IsWhole {
			t.Values = of.groups.values[at.group]
		}
		return visit(t)
	})
	if of.groups.err != nil || wholes.err != nil || errors.Is(err, errManySums) {
		return fmt.Errorf("the sums of a record take more than %d MiB of memory, a quarter of the memory limit; %s", limit>>20, narrow)
	}
	return err
}
