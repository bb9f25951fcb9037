// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// TotalOf returns the total of a summary: of snapshots, those before the latest do not count.
func TotalOf(s *recordfile.Summary) recordfile.Total {
	t := s.Total
	if s.Snapshot != 0 {
		t.Start = t.Latest
	}
	return t
}

// within returns the part of p that starts in [from, to), which is estimated unless it is all or nothing.
func within(p *recordfile.Total, from, to uint64) (part recordfile.Total, ok bool) {
	part = *p
	start, latest := max(p.Start, from), min(p.Latest, to-1)
	if start > latest {
		return part, false
	}
	if start > p.Start || latest < p.Latest {
		share := float64(latest-start) / float64(p.Latest-p.Start)
		part.Start, part.Latest, part.End = start, latest, min(p.End, to)
		part.Covered = min(uint64(float64(p.Covered)*share), part.End-part.Start)
		part.Sum, part.Samples = int64(float64(p.Sum)*share), int(float64(p.Samples)*share)
		part.Profiles = max(1, int(float64(p.Profiles)*share))
	}
	return part, true
}

// details are the Profiles of a file: those with one key, one of each record.
type details map[recordfile.Key][]recordfile.Total

// size estimates the bytes that details take.
func (d details) size() int64 {
	size := uintptr(0)
	for key, profiles := range d {
		const spare = 2 // a map has about half of its places free
		size += spare*unsafe.Sizeof(key) + uintptr(len(key.Service)+len(key.Type)+len(key.SampleType)+len(key.Unit)) +
			spare*unsafe.Sizeof(profiles) + uintptr(cap(profiles))*unsafe.Sizeof(recordfile.Total{})
	}
	return int64(size)
}

// has reports whether some of the Profiles are selected.
func (d details) has(selects func(*recordfile.Key) bool) bool {
	for key := range d {
		if selects(&key) {
			return true
		}
	}
	return false
}

func (d details) add(summaries []recordfile.Summary) {
	for i := range summaries {
		s := &summaries[i]
		d[s.Key] = append(d[s.Key], TotalOf(s))
	}
}

// file is the catalog's entry of a file.
type file struct {
	archive.File
	created int64 // when the exporter created it, by its name, in nanoseconds since the epoch; 0 of another file
	partial bool  // the exporter is writing it: it only grows

	read     bool   // the following are known
	grown    bool   // there is more in the file, which was not read
	profiles Extent // all Profiles
	errs     []error
	details  details     // nil if they were dropped
	labels   *labels.Set // of the records that were read for the details or, after a call of Catalog.Labels, of the index; may be nil
	// readEnd is the offset after the records that were read, and records is their number.
	readEnd int64
	records int
}

// size estimates the bytes of the details and labels.
func (f *file) size() int64 {
	if f.labels == nil {
		return f.details.size()
	}
	return f.details.size() + f.labels.Size()
}

// entrySize estimates the bytes of the entry besides details and labels.
func (f *file) entrySize() int64 {
	const place = 40 // in a map
	return int64(unsafe.Sizeof(*f)) + place + int64(len(f.Path))
}

func newFile(found archive.File) *file {
	f := &file{File: found}
	if name, ok := recordfile.ParseName(filepath.Base(found.Path)); ok {
		f.created, f.partial = name.Time.UnixNano(), name.Partial
	}
	return f
}

// continues reports whether found is the file with more records.
func (f *file) continues(found *archive.File) bool {
	return f.partial && f.details != nil && found.Size >= f.readEnd
}

// maxErrors is how many errors of a file are kept.
const maxErrors = 5

// pending reports whether some of the file was not read.
func (f *file) pending() bool { return !f.read || f.grown }

// readTimes reads from the index of which time the Profiles of the file are. It returns false if there is no index.
func (f *file) readTimes(ctx context.Context, options *archive.Options) bool {
	x := options.StoredIndex(ctx, f.File)
	if x == nil {
		return false
	}
	f.read, f.profiles = true, Extent{}
	for _, of := range x.Totals {
		f.profiles.add(Extent{of.Profiles, of.Start, of.Latest})
	}
	return true
}

// load reads the details of the file, or of the records that were not read. It returns fs.ErrNotExist if the file is gone, or the
// error of an object store. It may end at the deadline, if there is one: the rest is for the next call.
func (f *file) load(ctx context.Context, options *archive.Options, deadline time.Time) error {
	var records []recordfile.IndexRecord
	if f.details == nil {
		if f.readEnd > 0 { // what was read is lost, as it could be again
			deadline = time.Time{}
		}
		f.details, f.labels, f.errs, f.readEnd, f.records = details{}, nil, nil, 0, 0
		if x := options.StoredIndex(ctx, f.File); x != nil {
			records, _ = x.Records() // after an error the file is read
		}
	}
	for _, r := range records {
		f.details.add(r.Summaries)
	}
	f.read, f.grown, f.profiles = true, false, Extent{}
	if len(records) == 0 {
		if err := f.readRecords(ctx, options, deadline); err != nil {
			return err
		}
	}
	for _, profiles := range f.details {
		for _, p := range profiles {
			f.profiles.add(Extent{p.Profiles, p.Start, p.Latest})
		}
	}
	return nil
}

// readRecords adds the records of the file after those that were read. Its errors are those of load. After the deadline, if there
// is one, it stops: the file then counts as grown.
func (f *file) readRecords(ctx context.Context, options *archive.Options, deadline time.Time) error {
	for record, err := range options.Records(ctx, f.File, archive.Part{Start: f.readEnd, Before: f.records}) {
		switch {
		case err == nil:
			f.readEnd, f.records = record.End, record.Number
			f.partial = f.partial && record.End >= 0 // else it is read as a whole when it has grown
			f.addRecord(record)
		case errors.Is(err, fs.ErrNotExist), archive.IsStorageError(err):
			return err
		default:
			f.addError(err)
		}
		if record != nil && record.End >= 0 && record.End < f.Size && !deadline.IsZero() && time.Now().After(deadline) {
			f.grown = true
			return nil
		}
	}
	return nil
}

// addRecord adds the Profiles of a record, or the errors of its parts.
func (f *file) addRecord(record *archive.Record) {
	for part, err := range record.Parts(nil) {
		var pd pprofile.Profiles
		if err == nil {
			pd, err = part.Profiles()
		}
		var summaries []recordfile.Summary
		if err == nil {
			if summaries, err = recordfile.Summarize(pd); err != nil {
				err = part.Fail(err)
			}
		}
		if err != nil {
			f.addError(err)
		} else {
			f.details.add(summaries)
			if f.labels == nil {
				f.labels = &labels.Set{}
			}
			f.labels.AddProfiles(pd)
		}
	}
}

func (f *file) addError(err error) {
	if len(f.errs) < maxErrors {
		f.errs = append(f.errs, err)
	}
}

// lateness is how long before the creation of its file a Profile usually starts, at most: profiles wait in
// windows and queues. earliness is how much later than the last write of its file, by a clock that is
// ahead.
const (
	lateness  = int64(time.Hour)
	earliness = int64(time.Minute)
)

// earliest is when a Profile of the file usually starts at the earliest, by the time when the file was written.
func (f *file) earliest() int64 { return cmp.Or(f.created, f.Modified) - lateness }

// isOdd reports whether p starts far from the time when the file was written.
func (f *file) isOdd(p *recordfile.Total) bool {
	return int64(p.Start) < f.earliest() || int64(p.Start) > f.Modified+earliness
}

// extent is that of all Profiles. Before the file was read, it is the time in which they usually start, with one Profile.
func (f *file) extent() Extent {
	if f.read {
		return f.profiles
	}
	return Extent{1, uint64(max(0, f.earliest())), uint64(max(0, f.Modified))}
}

// writtenIn reports whether the file may have been written in [from, to).
func (f *file) writtenIn(from, to int64) bool { return f.Modified >= from && f.created < to }

// mayStartIn reports whether a Profile of the file may start in [from, to), in nanoseconds since the epoch.
func (f *file) mayStartIn(from, to int64) bool {
	if f.read && f.profiles.Profiles > 0 && f.profiles.First < uint64(max(0, to)) && f.profiles.Last >= uint64(max(0, from)) {
		return true
	}
	return f.pending() && f.Modified >= from && f.created-lateness < to
}
