// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// The directories of the tables, in that of the store or in the prefix of a bucket.
const (
	SamplesDir   = layout.SamplesDir
	ProcessesDir = layout.ProcessesDir
)

const (
	suffix     = ".parquet"
	dateLayout = "date=2006-01-02"
	late       = "late"
)

// File is a file of a table.
type File struct {
	// Path is below the directory or prefix of the store, with slashes.
	Path string
	// Group are the directories of its group, with slashes; "" is no group.
	Group string
	Day   time.Time
	// Stem is that of its segment, or late and the ID of the directory.
	Stem string
	Size int64
	// making is set while the file is being written.
	making bool
}

var fileStem = regexp.MustCompile(`^(?:[0-9]{2}|` + late + `)_[0-9a-f]{12}$`)

// LateStem is the stem of what came too late for the hours of a day, in a directory with an ID.
func LateStem(id string) string { return late + "_" + id }

// Dir is the directory of a table for the day of a group.
func Dir(table, group string, day time.Time) string {
	return path.Join(table, group, day.Format(dateLayout))
}

// ParsePath parses the path of a file. ok is false if this package writes no file of that path.
func ParsePath(name string) (f File, ok bool) {
	elements := strings.Split(name, "/")
	n := len(elements)
	if n < 3 || !isTable(elements[0]) {
		return f, false
	}
	day, err := time.Parse(dateLayout, elements[n-2])
	if err != nil || slices.ContainsFunc(elements[1:n-2], func(group string) bool { return !layout.IsGroupDir(group) }) {
		return f, false
	}
	f = File{Path: name, Group: path.Join(elements[1 : n-2]...), Day: day}
	base := elements[n-1]
	if rest, is := strings.CutSuffix(base, layout.MakingSuffix); is {
		base, f.making = strings.TrimPrefix(rest, "."), true
	}
	stem, isParquet := strings.CutSuffix(base, suffix)
	f.Stem = stem
	return f, isParquet && fileStem.MatchString(f.Stem)
}

func isTable(name string) bool { return name == SamplesDir || name == ProcessesDir }

// IsCommitted reports whether the segment that the file was written with has its name, so that the file never changes any more. All segments of
// its time may be gone again.
func (f *File) IsCommitted(root layout.Dir) (bool, error) {
	partition, id, _ := strings.Cut(f.Stem, "_")
	dayDir := path.Join(f.Group, f.Day.Format(layout.DayPath))
	below := dayDir
	if partition != late {
		below = path.Join(dayDir, partition)
	}
	_, err := root.Lstat(below)
	if errors.Is(err, fs.ErrNotExist) { // what it was made of was removed
		return true, nil
	}
	if err != nil {
		return false, err
	}
	committed, err := hasCompacted(root, path.Dir(dayDir), path.Base(dayDir), id)
	if err != nil || committed || partition == late {
		return committed, err
	}
	return hasCompacted(root, dayDir, partition, id)
}

func hasCompacted(root layout.Dir, dir, partition, id string) (bool, error) {
	names, err := namesIn(root, dir)
	return layout.HasCompacted(names, partition, id), err
}

// namesIn lists a directory below another one. There may be none.
func namesIn(root layout.Dir, name string) ([]string, error) {
	dir, err := openBelow(root, name)
	if dir == nil || err != nil {
		return nil, err
	}
	names, err := dir.Names()
	return names, errors.Join(err, dir.Close())
}

// openBelow opens a directory below another one. It is nil if there is none.
func openBelow(root layout.Dir, name string) (layout.Dir, error) {
	dir := root
	for element := range strings.SplitSeq(name, "/") {
		child, err := dir.OpenChild(element)
		if dir != root {
			_ = dir.Close() // nothing was written through it
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, layout.ErrNotDirectory) {
			return nil, nil //nolint:nilnil // there is no directory, which is no error
		}
		if err != nil {
			return nil, err
		}
		dir = child
	}
	return dir, nil
}

// List returns the files of both tables in a directory, the oldest day first, and those that are being written.
func List(root layout.Dir) (files []File, err error) {
	for _, table := range []string{SamplesDir, ProcessesDir} {
		err = errors.Join(err, list(root, table, &files))
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Path, b.Path)) })
	return files, err
}

func list(root layout.Dir, name string, files *[]File) error {
	names, err := namesIn(root, name)
	if err != nil {
		return err
	}
	for _, entry := range names {
		child := path.Join(name, entry)
		f, ok := ParsePath(child)
		switch {
		case ok:
			info, statErr := root.Lstat(child)
			if statErr == nil && info.Mode().IsRegular() {
				f.Size = info.Size()
				*files = append(*files, f)
			} else if statErr != nil && !errors.Is(statErr, fs.ErrNotExist) {
				err = errors.Join(err, statErr)
			}
		case layout.IsGroupDir(entry): // also that of a day
			err = errors.Join(err, list(root, child, files))
		}
	}
	return err
}

// Closed returns the files that are not being written.
func Closed(files []File) []File {
	return slices.DeleteFunc(files, func(f File) bool { return f.making })
}

// Retention limits the files of both tables together; 0 is no limit.
type Retention struct {
	// MaxAge is how long after its day a file is removed.
	MaxAge time.Duration
	// MaxTotalSize is the size of all files in bytes, beyond which the oldest are removed.
	MaxTotalSize int64
}

// IsOld reports whether a file is beyond MaxAge.
func (r Retention) IsOld(f *File, now time.Time) bool {
	return r.MaxAge > 0 && now.Sub(f.Day.Add(24*time.Hour)) > r.MaxAge
}

// Expire removes the files beyond a Retention, and returns those that were removed.
func (r Retention) Expire(root layout.Dir, now time.Time) (removed []File, err error) {
	if r == (Retention{}) {
		return nil, nil
	}
	files, err := List(root)
	total := int64(0)
	for i := range files {
		total += files[i].Size
	}
	for i := range files {
		f := &files[i]
		if !r.IsOld(f, now) && (r.MaxTotalSize == 0 || total <= r.MaxTotalSize) {
			break // the others are younger
		}
		if removeErr := Remove(root, f); removeErr != nil {
			err = errors.Join(err, removeErr)
			continue
		}
		total -= f.Size
		removed = append(removed, *f)
	}
	return removed, err
}

// Remove removes a file, and the directories that are empty then.
func Remove(root layout.Dir, f *File) error {
	if err := root.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := path.Dir(f.Path)
	for dir != "." && root.Remove(dir) == nil { // until one is not empty
		dir = path.Dir(dir)
	}
	return nil
}
