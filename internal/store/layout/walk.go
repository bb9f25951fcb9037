// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Branch is a directory of the tree of groups, years, months, days and hours.
type Branch struct {
	Dir   Dir
	Root  string   // the path of the store
	Path  string   // below root, with slashes
	Group string   // path of its group
	Date  []string // year, month, day, hour, as far as the directory is one of these
}

var (
	yearDir   = regexp.MustCompile(`^[0-9]{4}$`)
	numberDir = regexp.MustCompile(`^[0-9]{2}$`)
)

// HourDepth is the length of Branch.Date of an hour.
const HourDepth = len(layouts) - 1

// IsYear reports whether a name may be the directory of a year.
func IsYear(name string) bool { return yearDir.MatchString(name) }

// layouts are those of Branch.Date.
var layouts = [...]string{"", "2006", MonthPath, DayPath, HourPath}

// Time is the start of the directory's span of time.
func (b *Branch) Time() time.Time {
	t, _ := time.Parse(layouts[len(b.Date)], strings.Join(b.Date, "/")) // the names of directories were checked
	return t
}

// IsChild reports whether a name is one of a directory of the tree.
func (b *Branch) IsChild(name string) bool { return IsChild(len(b.Date), name) }

// IsChild reports whether a name is one of a directory of the tree, in one with so many elements of a date.
func IsChild(dated int, name string) bool {
	switch dated {
	case 0:
		return yearDir.MatchString(name) || IsGroupDir(name)
	case 1, 2, 3:
		return numberDir.MatchString(name)
	default:
		return false
	}
}

// Child opens a directory in this one. It is nil if there is none.
func (b *Branch) Child(name string) (*Branch, error) {
	dir, err := b.Dir.OpenChild(name)
	if errors.Is(err, ErrNotDirectory) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // there is no such directory, which is no error
	}
	if err != nil {
		return nil, b.Fail("open", name, err)
	}
	c := &Branch{Dir: dir, Root: b.Root, Path: path.Join(b.Path, name), Group: b.Group}
	if len(b.Date) == 0 && !yearDir.MatchString(name) {
		c.Group = c.Path
		return c, nil
	}
	c.Date = append(slices.Clone(b.Date), name)
	if _, err := time.Parse(layouts[len(c.Date)], strings.Join(c.Date, "/")); err != nil {
		_ = dir.Close() // nothing was written through it
		return nil, nil //nolint:nilerr,nilnil // it is no directory of ours
	}
	return c, nil
}

// Names returns the names of the directories of the tree in this one.
func (b *Branch) Names() ([]string, error) {
	names, err := b.Dir.Names()
	if err != nil {
		return nil, b.Fail("list", "", err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !b.IsChild(name) }), nil
}

// Visit opens a directory in this one until do returns, also if that panics: it may have locked the directory. It does nothing if
// there is none.
func (b *Branch) Visit(name string, do func(*Branch) error) error {
	c, err := b.Child(name)
	if c == nil {
		return err
	}
	defer func() { _ = c.Dir.Close() }() // what must be on the disk was synced
	return do(c)
}

// Children visits the directories of the tree in this one. An error in one does not stop it.
func (b *Branch) Children(do func(*Branch) error) error {
	names, err := b.Names()
	for _, name := range names {
		err = errors.Join(err, b.Visit(name, do))
	}
	return err
}

// Files returns the segments in the directory. It looks at those that select accepts only.
func (b *Branch) Files(selects func(*File) bool) (files []File, err error) {
	names, err := b.Dir.Names()
	if err != nil {
		return nil, b.Fail("list", "", err)
	}
	dir, ok := ParseDir(b.Path)
	if !ok {
		return nil, nil
	}
	for _, name := range names {
		f, ok := dir.Parse(name)
		if !ok || selects != nil && !selects(&f) {
			continue
		}
		info, statErr := b.Dir.Lstat(name)
		switch {
		case errors.Is(statErr, fs.ErrNotExist):
		case statErr != nil:
			err = errors.Join(err, b.Fail("find", name, statErr))
		case info.Mode().IsRegular():
			f.Size = info.Size()
			files = append(files, f)
		}
	}
	return files, err
}

// Fail returns an error about a file in the directory, or about the directory if the name is "".
func (b *Branch) Fail(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: filepath.Join(b.Root, filepath.FromSlash(b.Path), name), Err: err}
}

// StartOf returns when the time of a directory starts, whose path ends in so many elements of a date.
func StartOf(date []string) time.Time {
	start, _ := time.Parse(layouts[len(date)], strings.Join(date, "/")) // it is zero otherwise
	return start
}

// SplitPath returns the group of a directory, by its path below that of the store, and the elements of its date.
func SplitPath(name string) (group string, date []string) {
	all := strings.Split(name, "/")
	if at := slices.IndexFunc(all, IsYear); at >= 0 {
		return strings.Join(all[:at], "/"), all[at:]
	}
	return name, nil
}

// EndOf returns the end of the year, month, day or hour of directories, or zero if there is no such time.
func EndOf(date []string) time.Time {
	start, err := time.Parse(layouts[len(date)], strings.Join(date, "/"))
	switch {
	case err != nil:
		return time.Time{}
	case len(date) == 1:
		return start.AddDate(1, 0, 0)
	case len(date) == 2:
		return start.AddDate(0, 1, 0)
	case len(date) == 3:
		return start.AddDate(0, 0, 1)
	default:
		return start.Add(time.Hour)
	}
}
