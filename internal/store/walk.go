// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

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

// branch is a directory of the tree of groups, years, months, days and hours.
type branch struct {
	dir   Dir
	root  string   // the path of the store
	path  string   // below root, with slashes
	group string   // path of its group
	date  []string // year, month, day, hour, as far as the directory is one of these
}

var (
	yearDir   = regexp.MustCompile(`^[0-9]{4}$`)
	numberDir = regexp.MustCompile(`^[0-9]{2}$`)
)

// layouts are those of branch.date.
var layouts = [...]string{"", "2006", monthPath, dayPath, hourPath}

// time is the start of the directory's span of time.
func (b *branch) time() time.Time {
	t, _ := time.Parse(layouts[len(b.date)], strings.Join(b.date, "/")) // the names of directories were checked
	return t
}

// isChild reports whether a name is one of a directory of the tree.
func (b *branch) isChild(name string) bool { return isChild(len(b.date), name) }

func isChild(dated int, name string) bool {
	switch dated {
	case 0:
		return yearDir.MatchString(name) || IsGroupDir(name)
	case 1, 2, 3:
		return numberDir.MatchString(name)
	default:
		return false
	}
}

// child opens a directory in this one. It is nil if there is none.
func (b *branch) child(name string) (*branch, error) {
	dir, err := b.dir.OpenChild(name)
	if errors.Is(err, ErrNotDirectory) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is no such directory, which is no error
	}
	if err != nil {
		return nil, b.fail("open", name, err)
	}
	c := &branch{dir: dir, root: b.root, path: path.Join(b.path, name), group: b.group}
	if len(b.date) == 0 && !yearDir.MatchString(name) {
		c.group = c.path
		return c, nil
	}
	c.date = append(slices.Clone(b.date), name)
	if _, err := time.Parse(layouts[len(c.date)], strings.Join(c.date, "/")); err != nil {
		_ = dir.Close() // nothing was written through it
		return nil, nil //nolint:nilnil // it is no directory of ours
	}
	return c, nil
}

// children yields the directories of the tree in this one to do, each until do returns. An error in one does not stop it.
func (b *branch) children(do func(*branch) error) (err error) {
	names, listErr := b.dir.Names()
	if listErr != nil {
		return b.fail("list", "", listErr)
	}
	for _, name := range names {
		if !b.isChild(name) {
			continue
		}
		c, openErr := b.child(name)
		err = errors.Join(err, openErr)
		if c != nil {
			err = errors.Join(err, c.use(do))
		}
	}
	return err
}

// use closes the directory after a call, also if that panics: it may have locked the directory.
func (b *branch) use(do func(*branch) error) error {
	defer func() { _ = b.dir.Close() }() // what must be on the disk was synced
	return do(b)
}

// files returns the segments in the directory. It looks at those that select accepts only.
func (b *branch) files(selects func(*File) bool) (files []File, err error) {
	names, err := b.dir.Names()
	if err != nil {
		return nil, b.fail("list", "", err)
	}
	for _, name := range names {
		f, ok := ParsePath(path.Join(b.path, name))
		if !ok || selects != nil && !selects(&f) {
			continue
		}
		info, statErr := b.dir.Lstat(name)
		switch {
		case errors.Is(statErr, fs.ErrNotExist):
		case statErr != nil:
			err = errors.Join(err, b.fail("find", name, statErr))
		case info.Mode().IsRegular():
			f.Size = info.Size()
			files = append(files, f)
		}
	}
	return files, err
}

func (b *branch) fail(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: filepath.Join(b.root, filepath.FromSlash(b.path), name), Err: err}
}
