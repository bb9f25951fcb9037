// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Maintain applies Retention, counts groups, and retries to recover incomplete files. It may
// take long.
func (w *Writer) Maintain() {
	w.maintain(w.options.Retention)
	w.dropIdle()
}

func (w *Writer) maintain(retention Retention) {
	w.maintaining.Lock()
	defer w.maintaining.Unlock()
	if w.abandoned.Swap(false) {
		w.recovered = false
	}
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
	v := visit{writer: w, retain: retain, groups: map[string]bool{}}
	v.directory(dir, nil)
	w.recovered = w.recovered || len(v.errs) == 0
	if retain {
		v.removeSurplus(dir, retention.surplus(v.files, w.options.Now(), w.options.Keep))
	}
	if count {
		w.setAdmitted(v.groups, len(v.errs) == 0)
	}
	if err := errors.Join(v.errs...); err != nil {
		w.options.Failed(err)
	}
}

// visit looks through the directory and those of all groups once. An error in one does not stop it.
type visit struct {
	writer *Writer
	retain bool            // files are needed
	files  []storedFile    // the closed ones
	groups map[string]bool // that have a directory
	errs   []error
}

// fail adds an error, unless it is nil.
func (v *visit) fail(op string, err error, names ...string) {
	if err != nil {
		v.errs = append(v.errs, &fs.PathError{Op: op, Path: v.writer.pathOf(names...), Err: err})
	}
}

// directory visits those below it, recovers the incomplete files in it, and collects the closed ones. It removes
// indexes without a file, which remain if the file was removed by another process or before its index was written.
func (v *visit) directory(dir Dir, group []string) {
	names, err := dir.Names()
	v.fail("list", err, group...)
	last := ""                     // name of the last one of v.files
	for _, listed := range names { // sorted: an index follows its file
		at := append(slices.Clone(group), listed)
		if len(at) <= v.writer.options.Levels && IsGroupName(listed) && v.child(dir, listed, at) {
			continue
		}
		of, isIndex := strings.CutSuffix(listed, IndexSuffix)
		name, ours := ParseName(of)
		if !ours || name.Partial && (isIndex || v.writer.recovered) || !name.Partial && !v.retain {
			continue
		}
		info, err := dir.Lstat(listed)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && !info.Mode().IsRegular():
		case err != nil:
			v.fail("find", err, at...)
		case name.Partial:
			v.recoverFile(dir, group, name)
		case !isIndex:
			last = of
			v.files = append(v.files, storedFile{group: strings.Join(group, "/"), name: name, size: info.Size()})
		case of == last:
			v.files[len(v.files)-1].size += info.Size()
		case name.Span == 0: // otherwise its file may get its name now
			_ = dir.Remove(listed)
		}
	}
	if !v.writer.recovered && len(group) < v.writer.options.Levels {
		// A crash may have left directories that are not on the disk.
		v.fail("sync", dir.Sync(), group...)
	}
}

// child visits a subdirectory. It returns false if there is none of that name.
func (v *visit) child(dir Dir, name string, group []string) bool {
	child, err := dir.OpenChild(name)
	if errors.Is(err, ErrNotDirectory) || errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if len(group) == v.writer.options.Levels && group[0] != Other {
		v.groups[strings.Join(group, "/")] = true
	}
	if err != nil {
		v.fail("open", err, group...)
		return true
	}
	v.directory(child, group)
	_ = child.Close() // everything in it was synced
	return true
}

// admit reports whether a group may have its own directory: it has one, or there are fewer than
// MaxGroups. w.mu is held. path is empty if records have no group.
func (w *Writer) admit(path string) bool {
	if path == "" || w.options.MaxGroups == 0 || w.directories[path] {
		return true
	}
	if len(w.directories) >= w.options.MaxGroups {
		return false
	}
	w.directories[path] = true
	return true
}

// setAdmitted takes over the groups whose directories were found. Retention and other processes remove
// some, and other Writers create some. Those used since the last call stay, because their directories may not
// exist yet, and all do unless the directories could be read completely.
func (w *Writer) setAdmitted(found map[string]bool, complete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, g := range w.groups {
		if g.used && !g.other && path != "" {
			found[path] = true
		}
		g.used = false
	}
	if !complete {
		maps.Copy(found, w.directories)
	}
	w.directories = found
}

// RecoveredFile describes an incomplete file that was closed, or removed because it had no
// complete record.
type RecoveredFile struct {
	ClosedFile // zero if the file was removed
	// Partial is the path that it had.
	Partial string
	// Truncated is the number of bytes removed from the end.
	Truncated int64
}

// recoverFile closes an incomplete file, unless it is in use or gone.
func (v *visit) recoverFile(dir Dir, group []string, name Name) {
	if v.writer.holds(group, name) {
		return
	}
	recovered, err := recoverFile(dir, v.writer.pathOf(group...), name)
	switch {
	case err == nil:
		if v.writer.options.FileRecovered != nil {
			v.writer.options.FileRecovered(recovered)
		}
	case !errors.Is(err, ErrLocked) && !errors.Is(err, ErrGone) && !errors.Is(err, fs.ErrNotExist):
		v.fail("recover", err, append(slices.Clone(group), name.String())...)
	}
}

// recoverFile locks a file, looks for its last complete record, and closes the file after it.
func recoverFile(dir Dir, path string, name Name) (recovered RecoveredFile, err error) {
	file, err := dir.Open(name.String())
	if err != nil {
		return recovered, err
	}
	defer func() { _ = file.Close() }() // after an error, the next recovery continues
	f := newPartial(dir, path, name, file, name.Time, nil)
	f.torn, f.unsyncedSince = true, time.Now()
	recovered.Partial = f.Path
	if err := f.lock(); err != nil {
		return recovered, err
	}
	size := f.info.Size()
	reader := NewReader(file, size, name.Format, MaxRecordSize)
	defer reader.Close()
	for _, err := range reader.All() {
		if err == nil {
			f.Records++
			f.Size = reader.Offset()
		} else if _, isDamage := errors.AsType[*DamageError](err); !isDamage {
			return recovered, err
		}
	}
	recovered.Truncated = size - f.Size
	err = f.finalize(&names{used: name.Sequence})
	if !f.name.Partial {
		recovered.ClosedFile = f.ClosedFile
	}
	return recovered, err
}

// Retention says which closed files are kept, of the directory and all groups together. Files that
// a reader has locked are kept as well. A limit of 0 is none.
type Retention struct {
	MaxFiles int
	// MaxAge is the time since the End of a name.
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

// surplus returns the files to remove, the oldest first. It sorts files. MaxAge does not apply to files that keep keeps, unless it is nil.
func (r Retention) surplus(files []storedFile, now time.Time, keep func(name string) bool) (surplus []storedFile) {
	slices.SortFunc(files, func(a, b storedFile) int {
		return cmp.Or(a.name.End().Compare(b.name.End()), cmp.Compare(a.name.Sequence, b.name.Sequence),
			cmp.Compare(a.group, b.group), cmp.Compare(a.name.String(), b.name.String()))
	})
	total := int64(0)
	for _, f := range files {
		total += f.size
	}
	for _, f := range files {
		over := r.MaxFiles > 0 && len(files)-len(surplus) > r.MaxFiles || r.MaxTotalSize > 0 && total > r.MaxTotalSize
		switch {
		case !over && (r.MaxAge == 0 || now.Sub(f.name.End()) <= r.MaxAge):
			return surplus // the others are younger
		case over || keep == nil || !keep(path.Join(f.group, f.name.String())):
			surplus, total = append(surplus, f), total-f.size
		}
	}
	return surplus
}

// removeSurplus removes the files that Retention does not keep, and then the directories of groups that
// are empty because of that, also from groups.
func (v *visit) removeSurplus(dir Dir, surplus []storedFile) {
	for _, f := range surplus {
		name := path.Join(f.group, f.name.String())
		err := RemoveFile(dir, name)
		switch {
		case err == nil:
			if v.writer.options.FileRemoved != nil {
				v.writer.options.FileRemoved(v.writer.pathOf(name), f.size)
			}
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrLocked):
			v.fail("remove", err, name)
		}
		for group := f.group; group != "" && group != "." && dir.Remove(group) == nil; { // it fails unless the directory is empty
			delete(v.groups, group)
			group = path.Dir(group)
		}
	}
}

// RemoveFile removes a file with its index and its manifest, unless a reader has locked it: then the error is
// ErrLocked.
func RemoveFile(dir Dir, name string) error {
	file, err := dir.Open(name)
	if err == nil {
		defer func() { _ = file.Close() }()
		if err := file.Lock(); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrPermission) { // such a file can be removed, but not opened
		return err
	}
	_ = dir.Remove(name + IndexSuffix) // it may have none; otherwise the next call removes it
	err = dir.Remove(name)
	group, base := path.Split(name)
	if parsed, ours := ParseName(base); err == nil && ours && parsed.Span > 0 {
		_ = dir.Remove(group + ManifestName(base)) // after its file, which must never be without it
	}
	return err
}
