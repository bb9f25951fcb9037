// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// endOfTime is later than any Profile.
var endOfTime = time.Unix(1<<40, 0)

// Live returns the segments of a list that may have selected Profiles. An error of some of them may come with the others.
func (s *Selection) Live(ctx context.Context, from Lister) ([]*store.Segment, error) {
	to := s.To
	if to.IsZero() {
		to = endOfTime
	}
	return from.Live(ctx, s.From, to, func(group string) bool { return s.AcceptsGroup(ctx, group) })
}

// AcceptsGroup reports whether a group or one below it may have selected services, by the path of its directories.
func (s *Selection) AcceptsGroup(ctx context.Context, group string) bool {
	first, _, _ := strings.Cut(group, "/")
	key, name, isGroup := strings.Cut(first, "=")
	if !isGroup || key != serviceName || strings.HasPrefix(name, "_") || strings.Contains(name, "~") { // several services, or a shortened name
		return true
	}
	service, err := url.PathUnescape(name)
	if err != nil {
		return true
	}
	k := contents.Key{Service: dictionary.ValidUTF8(service)}
	return s.MatchesService(k.Service) && !slices.ContainsFunc(s.Labels, func(m *labels.Matcher) bool {
		return isServiceLabel(m.Name) && !m.Matches(ctx, k.Service)
	})
}

const (
	// ahead is of how many files indexes and records are fetched together.
	ahead = 32
	// aheadShare is the part of MaxMemory that fetched records may take.
	aheadShare = 16
)

// plan is what a query needs of a segment.
type plan struct {
	*store.Segment

	index     *store.Index
	err       error // of the index
	allLabels bool  // the labels of the index are all that is needed
	records   []planned
	needed    []segment.Record // of records: those to be read
}

// planned is a record of which something may be selected.
type planned struct {
	number   int                // from 0
	entry    *contents.Entry    // nil if it is malformed
	selected []contents.Summary // all that is selected, if the record is not read
	isRead   bool
	isIdle   bool // selected is there for its time only
}

// readStore is read for a store.
func (s *Source) readStore(ctx context.Context, lister Lister, sel *Selection, r *reading) error {
	segments, err := sel.Live(ctx, lister)
	if err := s.reportListing(err); err != nil {
		return err
	}
	for at := 0; at < len(segments); at += ahead {
		plans, err := planAll(ctx, segments[at:min(len(segments), at+ahead)], sel, r)
		if err != nil {
			return err
		}
		s.fetch(ctx, plans)
		for _, p := range plans {
			if err := s.readSegment(ctx, p, sel, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportListing is report for the error of a list, which may be several.
func (s *Source) reportListing(err error) error {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		for _, err := range joined.Unwrap() {
			if err := s.reportListing(err); err != nil {
				return err
			}
		}
		return nil
	}
	if err == nil || errors.Is(err, store.ErrGone) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return s.Failed(err)
}

// endsReading reports whether an error says nothing about a file: others would have it, too, or a new list has another one.
func endsReading(err error) bool {
	return errors.Is(err, store.ErrGone) || bucket.IsStorageError(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// planAll reads indexes side by side, which takes as long as one if they are in a bucket.
func planAll(ctx context.Context, segments []*store.Segment, sel *Selection, r *reading) ([]*plan, error) {
	var group errgroup.Group
	plans := make([]*plan, len(segments))
	for i, of := range segments {
		plans[i] = &plan{Segment: of}
		group.Go(panics.Guarded(func() error {
			plans[i].make(ctx, sel, r)
			return nil
		}))
	}
	panics.Rethrow(group.Wait())
	return plans, ctx.Err() // after its end, too little may be selected
}

// make reads the index and selects records.
func (p *plan) make(ctx context.Context, sel *Selection, r *reading) {
	if p.index, p.err = p.Index(ctx); p.err != nil {
		return
	}
	mayMatch, samples := sel.mayMatchLabels(ctx, &p.index.Labels), sel.SelectsSamples()
	p.allLabels = r.labels != nil && !samples && p.index.Labels.IsComplete()
	isIdle := !mayMatch && r.idle != nil && !slices.ContainsFunc(r.names, func(name string) bool { return p.index.Labels.MayHave(name) })
	for i := range p.index.Records {
		of := planned{number: i}
		of.entry, _ = p.index.Entry(i)
		if of.entry == nil || of.entry.Incomplete {
			p.allLabels = false
			if of.entry == nil || sel.mayContain(of.entry) {
				of.isRead = true
				p.records = append(p.records, of)
			}
			continue
		}
		selected, whole := sel.selectedOf(ctx, of.entry.Summaries, r.parts)
		p.allLabels = p.allLabels && whole && len(selected) == len(of.entry.Summaries)
		if !mayMatch && r.timed == nil || whole && len(selected) == 0 {
			continue
		}
		if of.selected, of.isIdle = selected, isIdle && whole; of.isIdle {
			p.records = append(p.records, of)
			continue
		}
		of.isRead = !whole || samples || r.entry == nil || r.suffices != nil && slices.ContainsFunc(selected, func(s contents.Summary) bool { return !r.suffices(&s) })
		p.records = append(p.records, of)
	}
	if p.allLabels {
		p.records = nil
	}
	for _, of := range p.records {
		if of.isRead {
			p.needed = append(p.needed, p.index.Records[of.number])
		}
	}
}

// fetch fetches records of a bucket together, as many as have room.
func (s *Source) fetch(ctx context.Context, plans []*plan) {
	var group errgroup.Group
	room := s.Options.MaxMemory / aheadShare
	for _, p := range plans {
		for _, record := range p.needed {
			room -= record.Length
		}
		if room < 0 {
			break
		}
		if len(p.needed) > 0 {
			group.Go(panics.Guarded(func() error {
				p.Fetch(ctx, p.needed)
				return nil
			}))
		}
	}
	panics.Rethrow(group.Wait()) // readers have the errors
}

// readSegment does with the records of a plan what a query does.
func (s *Source) readSegment(ctx context.Context, p *plan, sel *Selection, r *reading) error {
	if p.err != nil {
		return s.report(s.failure(p, 0, p.err), nil)
	}
	for _, damage := range p.index.Damage {
		if err := s.report(s.failure(p, 0, damage), nil); err != nil {
			return err
		}
	}
	if p.allLabels {
		r.labels(&p.index.Labels)
	}
	next, stop := iter.Pull2(p.Records(ctx, p.index, p.needed))
	defer stop()
	for _, of := range p.records {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !of.isRead {
			take := r.entry
			if of.isIdle {
				take = r.idle
			}
			if err := take(of.selected); err != nil {
				return err
			}
			continue
		}
		data, err, some := next()
		if !some { // the error that ended it was reported
			return nil
		}
		if err != nil {
			err = s.failure(p, of.number+1, err)
		} else {
			err = s.visit(ctx, p.record(&of, data, &s.Options), of.entry, cmp.Or(r.filter, sel), r)
		}
		if err := s.report(err, servicesOf(of.entry)); err != nil {
			return err
		}
	}
	return nil
}

// record is one for visitors.
func (p *plan) record(of *planned, data []byte, options *archive.Options) *archive.Record {
	at := p.index.Records[of.number]
	return options.RecordOf(archive.Record{
		File: p.Name(), Number: of.number + 1, Offset: at.Offset, Encoding: archive.EncodingOf(p.Format), Data: data,
	})
}

// failure returns the error of a segment or, if number is not 0, of a record of it: an *archive.Error, unless the error says nothing
// about the file.
func (s *Source) failure(p *plan, number int, err error) error {
	if endsReading(err) {
		return err
	}
	if damage, isDamage := errors.AsType[*segment.DamageError](err); isDamage {
		return s.Options.Damage(p.Name(), number, damage)
	}
	if path, isPath := errors.AsType[*fs.PathError](err); isPath {
		err = path.Err
	}
	return &archive.Error{File: p.Name(), Record: number, Offset: -1, Err: err}
}

// servicesOf are the services of a record, nil if they are not known.
func servicesOf(entry *contents.Entry) (names []string) {
	if entry == nil || entry.Incomplete {
		return nil
	}
	for i := range entry.Summaries {
		if name := entry.Summaries[i].Service; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// timeOf reports whether the time range contains all Profiles and samples of a summary, or none of them.
func (s *Selection) timeOf(of *contents.Summary) (all, none bool) {
	before := !s.From.IsZero() && of.Latest < nanosecondsOf(s.From)
	if s.overlaps {
		return false, !s.mayContain(&contents.Entry{Start: of.Start, End: of.End})
	}
	if of.Timestamps && !(s.From.IsZero() && s.To.IsZero()) { // a sample without one may be in a Profile without a time
		return false, before
	}
	after := !s.To.IsZero() && of.Start >= nanosecondsOf(s.To)
	return s.contains(of.Start) && s.contains(of.Latest), before || after
}

// selectedOf returns those summaries of a record that are selected. all is false if the time range has a part of one: then the
// record must be read, unless parts count as selected.
func (s *Selection) selectedOf(ctx context.Context, summaries []contents.Summary, parts bool) (selected []contents.Summary, all bool) {
	for i := range summaries {
		whole, none := s.timeOf(&summaries[i])
		switch {
		case none || !s.MatchesKey(ctx, &summaries[i].Key):
		case !whole && !parts:
			return nil, false
		default:
			selected = append(selected, summaries[i])
		}
	}
	return selected, true
}

// mayContain reports whether a record without summaries may have something of the time range. Without times it may have any.
func (s *Selection) mayContain(of *contents.Entry) bool {
	before := !s.From.IsZero() && of.End != 0 && of.End < nanosecondsOf(s.From)
	after := !s.To.IsZero() && of.Start >= nanosecondsOf(s.To)
	return !before && !after
}
