// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Source is what queries read.
type Source struct {
	Stores []Lister
	// Files are those of other programs.
	Files   []archive.File
	Options archive.Options
	// Failed gets each *archive.Error, and each error of listing files, one at a time. Reading continues after it if it returns nil.
	Failed func(error) error
	// Gone, unless it is nil, is called when a segment of a list is gone: later lists must be new ones.
	Gone func()
	// Change, unless it is nil, may change the selected part of each payload, such as by symbolizing it.
	Change func(pprofile.Profiles)
}

// Lister lists segments of a store, such as a *store.Store, whose method it has.
type Lister interface {
	Live(ctx context.Context, from, to time.Time, accepts func(group string) bool) ([]*store.Segment, error)
}

// Repeat calls do, which starts anew each time, until no file is removed meanwhile that it reads: of a list from before, it might read
// some profiles twice or miss them.
func Repeat(do func() error) (err error) {
	const most = 8
	for range most {
		if err = do(); !errors.Is(err, store.ErrGone) {
			return err
		}
	}
	return err
}

// Each calls visit with the selected part of each payload, in the order of the files. visit may change it. Records are not read if their
// entry in the index of their file says that nothing of them is selected. If visit returns an *archive.Error, that goes to Failed; any
// other error ends Each. One that wraps store.ErrGone is for Repeat.
func (s *Source) Each(ctx context.Context, sel *Selection, visit func(*archive.Record, pprofile.Profiles) error) error {
	return s.read(ctx, sel, &reading{record: visit})
}

// EachOverlapping is Each for the Profiles of which a part is in the range, and maybe others. They are not cut: what lasts into the range may
// have its timestamp outside of it.
func (s *Source) EachOverlapping(ctx context.Context, sel *Selection, visit func(*archive.Record, pprofile.Profiles) error) error {
	overlapping, whole := *sel, *sel
	overlapping.overlaps = true
	whole.From, whole.To = time.Time{}, time.Time{}
	return s.read(ctx, &overlapping, &reading{record: visit, filter: &whole})
}

// summarizing returns a visitor of records that passes on their summaries.
func summarizing(visit func([]contents.Summary) error) func(*archive.Record, pprofile.Profiles) error {
	return func(record *archive.Record, pd pprofile.Profiles) error {
		summaries, err := contents.Summarize(pd)
		if err != nil {
			return record.Fail(err)
		}
		return visit(summaries)
	}
}

// reading is what a query does with files.
type reading struct {
	// labels, unless it is nil, gets the labels of a file all of which is selected. Nothing of the file is read then.
	labels func(*labels.Set)
	// entry, unless it is nil, gets the summaries that are selected of a record, each as a whole. The record is not read then.
	entry func([]contents.Summary) error
	// parts: entry gets summaries of which a part is in the time range, too.
	parts bool
	// suffices reports whether entry can use a summary. If it cannot, the record is read. nil is always.
	suffices func(*contents.Summary) bool
	// filter is what record gets of a payload, if that is not the selection.
	filter *Selection
	// record gets the selected part of a payload. It may change it.
	record func(*archive.Record, pprofile.Profiles) error
	// timed takes the place of record, unless it is nil. Of the Profiles of its payload, timeOnly are there for their time only, see filter.
	timed func(record *archive.Record, pd pprofile.Profiles, timeOnly []bool) error
	// idle, unless it is nil, gets the summaries of records that have none of the labels names, of which the selection requires some: all of them
	// are there for their time only. The record is not read then.
	idle  func([]contents.Summary) error
	names []string

	scratch []byte // see withoutUnselected
}

// read reads all files in their order, and the records of a file in theirs.
func (s *Source) read(ctx context.Context, sel *Selection, r *reading) error {
	for _, lister := range s.Stores {
		if err := s.readStore(ctx, lister, sel, r); err != nil {
			if errors.Is(err, store.ErrGone) && s.Gone != nil {
				s.Gone()
			}
			return err
		}
	}
	for _, file := range s.Files {
		for record, err := range s.Options.Records(file) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil {
				err = s.visit(ctx, record, nil, cmp.Or(r.filter, sel), r)
			}
			if err := s.report(err, nil); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// report returns an error that ends reading: that of a file or record goes to Failed. services are those of the record, nil if they are
// not known.
func (s *Source) report(err error, services []string) error {
	failed, isRecord := errors.AsType[*archive.Error](err)
	if !isRecord {
		return err
	}
	if failed.Services == nil {
		failed.Services = services
	}
	return s.Failed(err)
}

// visit reads the selected part of a record, if there is one. entry is what an index says of it, or nil.
func (s *Source) visit(ctx context.Context, record *archive.Record, entry *contents.Entry, sel *Selection, r *reading) error {
	// Recordings have ids as integers, and JSON may have upper-case digits.
	if record.Encoding != archive.JFR && record.Encoding != archive.OTLPJSON && sel.excludes(record.Data, record.Encoding == archive.OTLPProto) {
		return nil
	}
	pd, err := sel.withoutUnselected(ctx, record, entry, &r.scratch).Profiles()
	if err != nil {
		return err
	}
	if sel.SelectsSamples() { // attributes must show their values
		if pd, err = Resolve(record, pd); err != nil {
			return err
		}
	}
	f := newFilter(ctx, sel, pd)
	f.times = r.timed != nil
	if err := f.apply(pd); err != nil {
		return err
	}
	if pd.ProfileCount() == 0 {
		return nil
	}
	if s.Change != nil {
		s.Change(pd)
	}
	if r.timed != nil {
		return r.timed(record, pd, f.timeOnly)
	}
	return r.record(record, pd)
}

// Resolve checks the payload of a record, and returns it without string references. The error is an *archive.Error.
func Resolve(record *archive.Record, pd pprofile.Profiles) (pprofile.Profiles, error) {
	err := dictionary.Check(pd)
	if err == nil {
		pd, err = dictionary.ResolveStrings(pd)
	}
	if err != nil {
		err = record.Fail(err)
	}
	return pd, err
}
