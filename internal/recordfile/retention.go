// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Retention says which closed files are kept, of the directory and all groups together. Files that
// a reader has locked are kept as well. A limit of 0 is none.
type Retention struct {
	MaxFiles int
	// MaxAge is the time since a file was created, as its name says.
	MaxAge time.Duration
	// MaxTotalSize is the sum of the sizes in bytes, with those of the indexes.
	MaxTotalSize int64
}

// storedFile is a closed file.
type storedFile struct {
	group string // path below the directory
	name  Name
	size  int64 // with its index
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

// removeSurplus removes the files that Retention does not keep, and then the directories of groups that
// are empty because of that, also from groups.
func (w *Writer) removeSurplus(dir Dir, surplus []storedFile, groups map[string]struct{}) error {
	var errs []error
	for _, f := range surplus {
		name := path.Join(f.group, f.name.String())
		err := removeFile(dir, name)
		switch {
		case err == nil:
			w.options.FileRemoved(w.pathOf(name), f.size)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errLocked):
			errs = append(errs, w.pathError("remove", err, name))
		}
		for group := f.group; group != "" && group != "." && dir.Remove(group) == nil; { // it fails unless the directory is empty
			delete(groups, group)
			group = path.Dir(group)
		}
	}
	return errors.Join(errs...)
}

// removeFile removes a file and its index, unless a reader has locked it: then the error is
// errLocked.
func removeFile(dir Dir, path string) error {
	file, err := dir.Open(path)
	if err == nil {
		defer func() { _ = file.Close() }()
		locked, err := file.Lock()
		if err == nil && !locked {
			err = errLocked
		}
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrPermission) { // such a file can be removed, but not opened
		return err
	}
	_ = dir.Remove(path + IndexSuffix) // it may have none; otherwise the next call removes it
	return dir.Remove(path)
}

// storedFiles returns the closed files in a directory. It removes indexes without a
// file, which remain if the file was removed by another process or before its index was written.
func storedFiles(dir Dir, group string) (files []storedFile, err error) {
	names, err := dir.Names()
	last := ""                     // name of the last one of files
	for _, listed := range names { // sorted: an index follows its file
		of, isIndex := strings.CutSuffix(listed, IndexSuffix)
		name, ours := ParseName(of)
		if !ours || name.Partial {
			continue
		}
		info, err := dir.Lstat(listed)
		switch {
		case err != nil || !info.Mode().IsRegular():
		case !isIndex:
			last = of
			files = append(files, storedFile{group: group, name: name, size: info.Size()})
		case of == last:
			files[len(files)-1].size += info.Size()
		default:
			_ = dir.Remove(listed)
		}
	}
	return files, err
}
