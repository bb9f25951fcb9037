// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// Level is how often the records of a segment were compacted.
type Level int

const (
	// Written segments are in the directory of their hour.
	Written Level = iota
	// Hour segments are beside the directory of their hour.
	Hour
	// Day segments are beside the directory of their day.
	Day
)

// span is how long the partition of a level is.
func (l Level) span() time.Duration {
	if l == Day {
		return 24 * time.Hour
	}
	return time.Hour
}

// File is a segment by its path. Everything about it that its path does not say is in its index.
type File struct {
	// Path is below the directory or prefix of the store, with slashes.
	Path string
	// Group are the directories of its group, with slashes; "" is no group.
	Group     string
	Level     Level
	Partition time.Time // the start of its hour or day
	// Stem identifies the file in its directory, before and after it is closed.
	Stem string
	// Start and End are the earliest start and latest end of its Profiles, to the second. A file that is Partial has neither.
	Start, End time.Time
	Format     segment.Format
	Partial    bool

	Size int64
	etag string // in a bucket
}

const (
	partialSuffix = ".partial"
	// makingSuffix is for a segment that is being compacted. It does not count.
	makingSuffix = ".making"
	createdTime  = "20060102T150405.000Z"
	boundTime    = "20060102T150405Z"
	hourPath     = "2006/01/02/15"
	dayPath      = "2006/01/02"
	monthPath    = "2006/01"
)

var (
	writtenName   = regexp.MustCompile(`^([0-9]{8}T[0-9]{6}\.[0-9]{3}Z-[0-9a-f]{12})\.(?:([0-9T]+Z)-([0-9T]+Z)\.)?(otlp\.pb\.zst|otlp\.jsonl)(\.partial)?$`)
	compactedName = regexp.MustCompile(`^([0-9]{2}_[0-9a-f]{12})\.([0-9T]+Z)-([0-9T]+Z)\.(otlp\.pb\.zst)()$`)
	datePath      = regexp.MustCompile(`^(.*?)(?:^|/)([0-9]{4}/[0-9]{2}(?:/[0-9]{2}){0,2})$`)
)

// ParsePath parses the path of a segment. ok is false if this package writes no file of that path.
func ParsePath(name string) (f File, ok bool) {
	dir, base := path.Split(name)
	dated := datePath.FindStringSubmatch(strings.TrimSuffix(dir, "/"))
	if dated == nil {
		return f, false
	}
	f = File{Path: name, Group: dated[1]}
	layout, pattern, within := hourPath, writtenName, dated[2]
	switch len(within) {
	case len(hourPath):
	case len(dayPath):
		f.Level, pattern = Hour, compactedName
		within += "/" + base[:min(2, len(base))]
	default:
		f.Level, pattern, layout = Day, compactedName, dayPath
		within += "/" + base[:min(2, len(base))]
	}
	var err error
	if f.Partition, err = time.Parse(layout, within); err != nil {
		return f, false
	}
	parts := pattern.FindStringSubmatch(base)
	if parts == nil {
		return f, false
	}
	f.Stem, f.Format, f.Partial = parts[1], segment.Format(parts[4]), parts[5] != ""
	if f.Partial != (parts[2] == "") {
		return f, false
	}
	if !f.Partial {
		f.Start, err = time.Parse(boundTime, parts[2])
		if err == nil {
			f.End, err = time.Parse(boundTime, parts[3])
		}
	}
	for _, group := range strings.Split(f.Group, "/") {
		ok = f.Group == "" || IsGroupDir(group)
		if !ok {
			break
		}
	}
	return f, ok && err == nil
}

// dir is the directory of the file.
func (f *File) dir() string { return path.Dir(f.Path) }

// id identifies the file before and after it is closed.
func (f *File) id() string { return path.Dir(f.Path) + "/" + f.Stem }

// overlaps reports whether the file may have Profiles of a time.
func (f *File) overlaps(from, to time.Time) bool {
	return f.Partial || !f.End.Before(from) && !f.Start.After(to)
}

// age is the time from which the age of the file counts. A clock far ahead does not keep a file for ever.
func (f *File) age() time.Time {
	end := f.Partition.Add(f.Level.span())
	if !f.Partial && f.End.Before(end) {
		return f.End
	}
	return end
}

// bounds are the earliest start and the latest end of some records, in nanoseconds since the epoch.
type bounds struct {
	start, end uint64
	some       bool
}

// add adds a record. Without a time, it may be of any time up to now.
func (b *bounds) add(start, end uint64, now time.Time) {
	if start == 0 {
		end = max(end, uint64(max(0, now.UnixNano())))
	}
	end = min(end, math.MaxInt64)
	if !b.some {
		b.start, b.end, b.some = start, end, true
		return
	}
	b.start, b.end = min(b.start, start), max(b.end, end)
}

// addFile adds the bounds in a name.
func (b *bounds) addFile(f *File) {
	b.add(uint64(max(0, f.Start.UnixNano())), uint64(max(0, f.End.UnixNano())), f.End)
}

func (b *bounds) String() string {
	end := b.end
	if rest := end % uint64(time.Second); rest > 0 {
		end = min(end+uint64(time.Second)-rest, math.MaxInt64)
	}
	return time.Unix(0, int64(min(b.start, math.MaxInt64))).UTC().Format(boundTime) + "-" + time.Unix(0, int64(end)).UTC().Format(boundTime)
}

func writtenBase(stem string, b *bounds, format segment.Format) string {
	return fmt.Sprintf("%s.%s.%s", stem, b, format)
}

func partialBase(stem string, format segment.Format) string {
	return stem + "." + string(format) + partialSuffix
}
