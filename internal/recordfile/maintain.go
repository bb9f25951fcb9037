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

// Maintain applies Retention, counts groups, and retries to recover incomplete files. It may
// take long.
func (w *Writer) Maintain() { w.maintain(w.options.Retention) }

// maintain looks through all directories once.
func (w *Writer) maintain(retention Retention) {
	w.maintaining.Lock()
	defer w.maintaining.Unlock()
	retain, count := retention != (Retention{}), w.options.MaxGroups > 0 && w.options.Levels > 0
	if w.recovered && !retain && !count {
		return
	}
	dir, err := w.options.OpenDir(w.options.Directory)
	if err != nil {
		w.options.Failed(err)
		return
	}
	defer func() { _ = dir.Close() }() // everything in it was synced
	found := map[string]struct{}{}
	var files []storedFile
	complete, err := w.walk(dir, nil, found, func(dir Dir, group []string) (err error) {
		if !w.recovered {
			err = w.recoverFiles(dir, group)
		}
		if retain {
			stored, listErr := storedFiles(dir, strings.Join(group, "/"))
			files = append(files, stored...)
			err = errors.Join(err, w.pathError("list", listErr, group...))
		}
		return err
	})
	w.recovered = w.recovered || err == nil
	if retain {
		err = errors.Join(err, w.removeSurplus(dir, retention.surplus(files, w.options.Now()), found))
	}
	if complete && count {
		w.setAdmitted(found)
	}
	if err != nil {
		w.options.Failed(err)
	}
}

// walk visits the directory and those of all groups, and adds those groups to found. An error in one directory
// does not stop it. complete is set if all groups were found: that a file cannot be recovered, or the directory
// of a group read, does not matter.
func (w *Writer) walk(dir Dir, group []string, found map[string]struct{}, visit func(dir Dir, group []string) error) (complete bool, err error) {
	if len(group) == w.options.Levels {
		return true, visit(dir, group)
	}
	names, err := dir.Names()
	complete = err == nil
	errs := []error{w.pathError("list", err, group...)}
	for _, name := range names {
		if !IsGroupName(name) {
			continue
		}
		child, err := dir.OpenChild(name)
		if errors.Is(err, ErrNotDirectory) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		below := append(slices.Clone(group), name)
		isGroup := len(below) == w.options.Levels
		if isGroup && below[0] != Other {
			found[strings.Join(below, "/")] = struct{}{}
		}
		if err != nil {
			complete = complete && isGroup
			errs = append(errs, w.pathError("open", err, below...))
			continue
		}
		all, err := w.walk(child, below, found, visit)
		_ = child.Close() // everything in it was synced
		complete = complete && all
		errs = append(errs, err)
	}
	return complete, errors.Join(append(errs, visit(dir, group))...)
}

// admit reports whether a group may have its own directory: it has one, or there are fewer than
// MaxGroups. w.mu is held. path is empty if records have no group.
func (w *Writer) admit(path string) bool {
	if path == "" || w.options.MaxGroups == 0 {
		return true
	}
	if _, known := w.directories[path]; known {
		return true
	}
	if len(w.directories) >= w.options.MaxGroups {
		return false
	}
	w.directories[path] = struct{}{}
	return true
}

// setAdmitted takes over the groups whose directories were found. Retention and other processes remove
// some, and other Writers create some. Those used since the last call stay, because their directories may not
// exist yet.
func (w *Writer) setAdmitted(found map[string]struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, g := range w.groups {
		if g.lastUse > w.countedUses && !g.other && path != "" {
			found[path] = struct{}{}
		}
	}
	w.directories, w.countedUses = found, w.uses
}

// RecoveredFile describes an incomplete file that was closed, or removed because it had no
// complete record.
type RecoveredFile struct {
	ClosedFile // zero if the file was removed
	// Partial is the path that it had.
	Partial string
	// Truncated is the number of bytes removed from the end.
	Truncated int64
	// Damaged is the number of damaged places between the records.
	Damaged int
}

// recoverFiles closes the incomplete files in a directory of processes that no longer run.
func (w *Writer) recoverFiles(dir Dir, group []string) error {
	names, err := dir.Names()
	errs := []error{w.pathError("list", err, group...)}
	for _, of := range names {
		name, ours := ParseName(of)
		if !ours || !name.Partial {
			continue
		}
		info, err := dir.Lstat(of)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		var recovered *RecoveredFile
		if err == nil {
			recovered, err = recoverFile(dir, w.pathOf(group...), name)
		}
		errs = append(errs, w.pathError("recover", err, append(slices.Clone(group), of)...))
		if recovered != nil {
			w.options.FileRecovered(*recovered)
		}
	}
	if len(group) < w.options.Levels {
		// A crash may have left directories that are not on the disk.
		errs = append(errs, w.pathError("sync", dir.Sync(), group...))
	}
	return errors.Join(errs...)
}

// recoverFile closes one incomplete file. Both results are nil if the file is in use or
// gone.
func recoverFile(dir Dir, path string, name Name) (*RecoveredFile, error) {
	file, err := dir.Open(name.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // after an error, the next recovery continues
	f := newPartial(dir, path, name, file, name.Time, nil)
	recovered := &RecoveredFile{Partial: f.Path}
	if err := f.recover(recovered); err != nil {
		if errors.Is(err, errLocked) || errors.Is(err, ErrGone) {
			err = nil
		}
		return nil, err
	}
	return recovered, nil
}

// recover locks the file, looks for its last complete record, and closes the file after it.
func (f *partialFile) recover(recovered *RecoveredFile) (err error) {
	f.torn, f.unsyncedSince = true, time.Now()
	if err := f.lock(); err != nil {
		return err
	}
	size := f.info.Size()
	if recovered.Damaged, err = f.scan(size); err != nil {
		return err
	}
	recovered.Truncated = size - f.Size
	if err := f.finalize(&names{used: f.name.Sequence}); err != nil {
		return err
	}
	if !f.name.Partial {
		recovered.ClosedFile = f.ClosedFile
	}
	return nil
}

// scan finds the last complete record, and counts the damaged places before it.
func (f *partialFile) scan(size int64) (damaged int, err error) {
	reader := NewReader(f.file, size, f.name.Format, MaxRecordSize)
	defer reader.Close()
	damages := 0
	for _, err := range reader.All() {
		if _, isDamage := errors.AsType[*DamageError](err); isDamage {
			damages++
			continue
		}
		if err != nil {
			return 0, err
		}
		f.Records++
		f.Size, damaged = reader.Offset(), damages
	}
	return damaged, nil
}

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
