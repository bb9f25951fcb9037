// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
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
	group string // its names joined with "/"
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
	var files []storedFile
	err := w.walk(func(dir Dir, group []string) error {
		list, err := dir.List()
		for _, entry := range list {
			name, ok := ParseName(entry)
			if !ok || name.Partial {
				continue
			}
			if info, err := dir.Lstat(entry); err == nil && info.Mode().IsRegular() {
				files = append(files, storedFile{group: strings.Join(group, "/"), name: name, size: info.Size()})
			}
		}
		return w.pathError("list", group, err)
	})
	surplus := map[string][]storedFile{}
	for _, f := range w.options.Retention.surplus(files, w.options.Now()) {
		surplus[f.group] = append(surplus[f.group], f)
	}
	if len(surplus) == 0 {
		return err
	}
	emptied := map[string][]string{} // by group, names of directories in it that may be empty
	return errors.Join(err, w.walk(func(dir Dir, group []string) error {
		key := strings.Join(group, "/")
		var errs []error
		for _, f := range surplus[key] {
			path := filepath.Join(w.pathOf(group...), f.name.String())
			if err := dir.Remove(f.name.String()); err == nil {
				w.options.FileRemoved(path, f.size)
			} else if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, &fs.PathError{Op: "remove", Path: path, Err: err})
			}
		}
		for _, name := range emptied[key] {
			w.removeUnused(dir, name, strings.TrimPrefix(key+"/"+name, "/"))
		}
		if n := len(group); n > 0 && len(surplus[key])+len(emptied[key]) > 0 {
			parent := strings.Join(group[:n-1], "/")
			emptied[parent] = append(emptied[parent], group[n-1])
		}
		return errors.Join(errs...)
	}))
}

// removeUnused removes a directory that is empty, unless a group in use is at or below it.
func (w *Writer) removeUnused(dir Dir, name, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.groups {
		if key.path == path || strings.HasPrefix(key.path, path+"/") {
			return
		}
	}
	_ = dir.Remove(name) // it fails unless the directory is empty
}
