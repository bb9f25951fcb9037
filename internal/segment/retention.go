// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// Retention says which closed files are kept, of the directory and all groups together. A
// limit of 0 is none.
type Retention struct {
	MaxFiles int
	// MaxAge is the time since a file was created, as its name says.
	MaxAge time.Duration
	// MaxTotalSize is the sum of the sizes in bytes.
	MaxTotalSize int64
}

// storedFile is a closed file.
type storedFile struct {
	group string // path below the directory
	name  Name
	size  int64
}

// surplus returns the files to remove, the oldest first. It sorts files.
func (r Retention) surplus(files []storedFile, now time.Time) []storedFile {
	slices.SortFunc(files, func(a, b storedFile) int {
		return cmp.Or(a.name.Time.Compare(b.name.Time), cmp.Compare(a.name.Sequence, b.name.Sequence),
			cmp.Compare(a.group, b.group), cmp.Compare(a.name.String(), b.name.String()))
	})
	total := int64(0)
	for _, f := range files {
		total += f.size
	}
	for i, f := range files {
		switch {
		case r.MaxFiles > 0 && len(files)-i > r.MaxFiles:
		case r.MaxTotalSize > 0 && total > r.MaxTotalSize:
		case r.MaxAge > 0 && now.Sub(f.name.Time) > r.MaxAge:
		default:
			return files[:i] // the others are younger
		}
		total -= f.size
	}
	return files
}

// removeOld removes the files that Retention does not keep, and then the directories of
// groups that are empty because of that.
func (w *Writer) removeOld() error {
	dir, err := w.options.OpenDir(w.options.Directory)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	var files []storedFile
	errs := []error{w.walk(dir, nil, func(dir Dir, group []string, entries []fs.DirEntry) error {
		for _, entry := range entries {
			name, ours := ParseName(entry.Name())
			if !ours || name.Partial || !entry.Type().IsRegular() {
				continue
			}
			if info, err := dir.Lstat(entry.Name()); err == nil {
				files = append(files, storedFile{group: filepath.Join(group...), name: name, size: info.Size()})
			}
		}
		return nil
	})}
	for _, f := range w.options.Retention.surplus(files, w.options.Now()) {
		path := filepath.Join(f.group, f.name.String())
		err := dir.Remove(path)
		switch {
		case err == nil:
			w.options.FileRemoved(w.pathOf(path), f.size)
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, w.pathError("remove", err, path))
		}
		for group := f.group; group != "" && group != "." && dir.Remove(group) == nil; { // it fails unless the directory is empty
			group = filepath.Dir(group)
		}
	}
	return errors.Join(errs...)
}
