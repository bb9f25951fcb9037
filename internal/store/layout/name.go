// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
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

// Span is how long the partition of a level is.
func (l Level) Span() time.Duration {
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
	ETag string // in a bucket
}

const (
	PartialSuffix = ".partial"
	// MakingSuffix is for a segment that is being compacted. It does not count.
	MakingSuffix = ".making"
	// DamagedDir has the damaged inputs of compacted files, by their paths. They do not count.
	DamagedDir = "damaged"
	// SamplesDir and ProcessesDir have Parquet files: see package lake.
	SamplesDir   = "parquet"
	ProcessesDir = "parquet_processes"
	CreatedTime  = "20060102T150405.000Z"
	BoundTime    = "20060102T150405Z"
	HourPath     = "2006/01/02/15"
	DayPath      = "2006/01/02"
	MonthPath    = "2006/01"
)

var (
	writtenStem   = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}\.[0-9]{3}Z-[0-9a-f]{12}$`)
	compactedStem = regexp.MustCompile(`^[0-9]{2}_[0-9a-f]{12}$`)
	datePath      = regexp.MustCompile(`^(.*?)(?:^|/)([0-9]{4}/[0-9]{2}(?:/[0-9]{2}){0,2})$`)
)

// IsDamaged reports whether a path below the directory of a store is in DamagedDir.
func IsDamaged(name string) bool { return strings.HasPrefix(name, DamagedDir+"/") }

// ParsePath parses the path of a segment. ok is false if this package writes no file of that path.
func ParsePath(name string) (f File, ok bool) {
	dir, base := path.Split(name)
	d, ok := ParseDir(strings.TrimSuffix(dir, "/"))
	if !ok {
		return f, false
	}
	return d.Parse(base)
}

// FileDir is a directory that has segments.
type FileDir struct {
	path, group, date string
	level             Level
	hour              time.Time // of Written segments
}

// ParseDir parses the path of a directory. ok is false if it has no segments.
func ParseDir(name string) (d FileDir, ok bool) {
	dated := datePath.FindStringSubmatch(name)
	if dated == nil {
		return d, false
	}
	d = FileDir{path: name, group: dated[1], date: dated[2]}
	switch len(d.date) {
	case len(HourPath):
		d.level = Written
		var err error
		if d.hour, err = time.Parse(HourPath, d.date); err != nil {
			return d, false
		}
	case len(DayPath):
		d.level = Hour
	default:
		d.level = Day
	}
	if d.group == "" {
		return d, true
	}
	for group := range strings.SplitSeq(d.group, "/") {
		if !IsGroupDir(group) {
			return d, false
		}
	}
	return d, true
}

// Join returns the path of a file in the directory.
func (d *FileDir) Join(base string) string { return d.path + "/" + base }

// Parse parses the name of a segment in the directory.
func (d *FileDir) Parse(base string) (f File, ok bool) {
	rest, partial := strings.CutSuffix(base, PartialSuffix)
	f = File{Group: d.group, Level: d.level, Partition: d.hour, Partial: partial}
	if f.Format = segment.Proto; !strings.HasSuffix(rest, "."+string(f.Format)) {
		if f.Format = segment.JSON; !strings.HasSuffix(rest, "."+string(f.Format)) || d.level != Written {
			return f, false
		}
	}
	rest = strings.TrimSuffix(rest, "."+string(f.Format))
	stem, layout := writtenStem, HourPath
	if d.level > Written {
		stem = compactedStem
	}
	if d.level == Day {
		layout = DayPath
	}
	var err error
	if !partial {
		const size = 1 + 2*len("20060102T150405Z") + 1
		if len(rest) < size {
			return f, false
		}
		start, end, found := strings.Cut(rest[len(rest)-size+1:], "-")
		if rest[len(rest)-size] != '.' || !found {
			return f, false
		}
		if f.Start, err = time.Parse(BoundTime, start); err != nil {
			return f, false
		}
		if f.End, err = time.Parse(BoundTime, end); err != nil {
			return f, false
		}
		rest = rest[:len(rest)-size]
	}
	if f.Stem = rest; !stem.MatchString(rest) || partial && d.level > Written {
		return f, false
	}
	if d.level > Written {
		if f.Partition, err = time.Parse(layout, d.date+"/"+rest[:2]); err != nil {
			return f, false
		}
	}
	f.Path = d.Join(base)
	return f, true
}

// Dir is the directory of the file.
func (f *File) Dir() string { return path.Dir(f.Path) }

// ID identifies the file before and after it is closed.
func (f *File) ID() string { return path.Dir(f.Path) + "/" + f.Stem }

// Overlaps reports whether the file may have Profiles of a time.
func (f *File) Overlaps(from, to time.Time) bool {
	return f.Partial || !f.End.Before(from) && !f.Start.After(to)
}

// Age is the time from which the age of the file counts. A clock far ahead does not keep a file for ever.
func (f *File) Age() time.Time {
	end := f.Partition.Add(f.Level.Span())
	if !f.Partial && f.End.Before(end) {
		return f.End
	}
	return end
}

// Bounds are the earliest start and the latest end of some records, in nanoseconds since the epoch.
type Bounds struct {
	Start, End uint64
	some       bool
}

// Add adds a record. Without a time, it may be of any time up to now.
func (b *Bounds) Add(start, end uint64, now time.Time) {
	if start == 0 {
		end = max(end, uint64(max(0, now.UnixNano())))
	}
	end = min(end, math.MaxInt64)
	if !b.some {
		b.Start, b.End, b.some = start, end, true
		return
	}
	b.Start, b.End = min(b.Start, start), max(b.End, end)
}

// AddFile adds the Bounds in a name.
func (b *Bounds) AddFile(f *File) {
	b.Add(uint64(max(0, f.Start.UnixNano())), uint64(max(0, f.End.UnixNano())), f.End)
}

func (b *Bounds) String() string {
	end := b.End
	if rest := end % uint64(time.Second); rest > 0 {
		end = min(end+uint64(time.Second)-rest, math.MaxInt64)
	}
	return time.Unix(0, int64(min(b.Start, math.MaxInt64))).UTC().Format(BoundTime) + "-" + time.Unix(0, int64(end)).UTC().Format(BoundTime)
}

// WrittenBase is the name of a closed or compacted file.
func WrittenBase(stem string, b *Bounds, format segment.Format) string {
	return fmt.Sprintf("%s.%s.%s", stem, b, format)
}

// PartialBase is the name of a file that is being written.
func PartialBase(stem string, format segment.Format) string {
	return stem + "." + string(format) + PartialSuffix
}

// HasFileBelow reports whether files, which are in the order of their paths, have one of a lower level of the partition of f.
func HasFileBelow(files []File, f *File) bool {
	partition := f.Path[:len(f.Dir())+1+2] // the hour or day of its name
	prefix := partition + "/"
	at, _ := slices.BinarySearchFunc(files, prefix, func(f File, prefix string) int { return cmp.Compare(f.Path, prefix) })
	return at < len(files) && strings.HasPrefix(files[at].Path, prefix)
}

// HasCompacted reports whether names has a file that was compacted from the partition with the name of a directory, such as "14",
// by the writer with an ID, or by any if it is "".
func HasCompacted(names []string, partition, id string) bool {
	for _, name := range names {
		if strings.HasPrefix(name, partition+"_"+id) && strings.HasSuffix(name, "."+string(segment.Proto)) {
			return true
		}
	}
	return false
}
