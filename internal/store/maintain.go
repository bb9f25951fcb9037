// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
)

// Maintain applies Retention, counts groups, and recovers files that could not be closed. It may take long.
func (w *Writer) Maintain() { w.maintain(w.options.Retention, false) }

// maintain does the same with a Retention. idle is set if this process has no file: then hours that are not over are recovered as well.
func (w *Writer) maintain(retention Retention, idle bool) {
	w.maintaining.Lock()
	defer w.maintaining.Unlock()
	err := panics.Guarded(func() error {
		err := w.recoverAbandoned()
		if !w.recovered.Load() || retention != (Retention{}) || w.options.MaxGroups > 0 {
			err = errors.Join(err, w.visit(retention, idle))
		}
		return err
	})()
	if err != nil {
		if _, panicked := errors.AsType[*panics.Error](err); panicked {
			w.recovered.Store(false) // some files may be left
		}
		w.options.Failed(err)
	}
}

// visit looks through all directories once. An error in one does not stop it.
func (w *Writer) visit(retention Retention, idle bool) error {
	dir, err := w.options.OpenDir(w.options.Directory)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // what must be on the disk was synced
	complete := w.recovered.Swap(true) // a file that is left after this makes it false again
	groups, busy := map[string]bool{}, false
	var files []layout.File
	var look func(b *layout.Branch) error
	look = func(b *layout.Branch) error {
		if len(b.Date) > 0 && b.Group != "" {
			groups[b.Group] = true
		}
		err := b.Children(look)
		if len(b.Date) < 2 {
			return err
		}
		if len(b.Date) == layout.HourDepth && !complete {
			done, recoverErr := w.recoverPartition(b, idle)
			err, busy = errors.Join(err, recoverErr), busy || !done
		}
		if retention != (Retention{}) {
			closed, listErr := b.Files(func(f *layout.File) bool { return !f.Partial })
			files, err = append(files, closed...), errors.Join(err, listErr)
		}
		return err
	}
	err = look(&layout.Branch{Dir: dir, Root: w.options.Directory})
	if err != nil && !complete || busy {
		w.recovered.Store(false)
	}
	if w.options.MaxGroups > 0 {
		w.setAdmitted(groups, err == nil)
	}
	if retention != (Retention{}) {
		damaged, listErr := damagedFiles(dir, w.options.Directory)
		files, err = append(files, damaged...), errors.Join(err, listErr)
	}
	if surplus := retention.surplus(files, w.options.Now(), w.options.Keep); len(surplus) > 0 {
		err = errors.Join(err, w.expire(dir, surplus))
	}
	return err
}

// damagedFiles returns the files in layout.DamagedDir, with the time of their last write as their end.
func damagedFiles(root layout.Dir, directory string) (files []layout.File, err error) {
	above := &layout.Branch{Dir: root, Root: directory}
	dir, err := above.Dir.OpenChild(layout.DamagedDir)
	if errors.Is(err, layout.ErrNotDirectory) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, above.Fail("open", layout.DamagedDir, err)
	}
	defer func() { _ = dir.Close() }() // nothing was written through it
	var look func(b *layout.Branch) error
	look = func(b *layout.Branch) error {
		err := b.Children(look)
		names, listErr := b.Dir.Names()
		if listErr != nil {
			return errors.Join(err, b.Fail("list", "", listErr))
		}
		for _, name := range names {
			info, statErr := b.Dir.Lstat(name)
			switch {
			case statErr == nil && info.Mode().IsRegular():
				files = append(files, layout.File{Path: path.Join(b.Path, name), Partition: info.ModTime(), End: info.ModTime(), Size: info.Size()})
			case statErr != nil && !errors.Is(statErr, fs.ErrNotExist):
				err = errors.Join(err, b.Fail("find", name, statErr))
			}
		}
		return err
	}
	err = look(&layout.Branch{Dir: dir, Root: directory, Path: layout.DamagedDir})
	return files, err
}

// recoverPartition closes the files that processes which do not run any more left in a partition. done is false if others may have files
// there.
func (w *Writer) recoverPartition(b *layout.Branch, idle bool) (done bool, err error) {
	if !idle && w.options.Now().Before(b.Time().Add(time.Hour)) {
		return false, nil // this process may write there
	}
	isPartial := func(f *layout.File) bool { return f.Partial }
	files, err := b.Files(isPartial)
	if err != nil || len(files) == 0 {
		return true, err
	}
	if locked, err := b.Dir.TryLock(false); err != nil || !locked {
		return false, err
	}
	files, err = b.Files(isPartial) // that are still there
	for i := range files {
		err = errors.Join(err, w.recoverIn(b, &files[i], files[i].Size))
	}
	return true, err
}

func (w *Writer) recoverIn(b *layout.Branch, f *layout.File, size int64) error {
	recovered, err := RecoverFile(b, f, size, w.options.Now())
	if err == nil && w.options.FileRecovered != nil {
		w.options.FileRecovered(recovered)
	}
	return err
}

// recoverAbandoned closes files that this process could not close. It has their locks.
func (w *Writer) recoverAbandoned() (err error) {
	w.mu.Lock()
	abandoned := w.abandoned
	w.abandoned = nil
	w.mu.Unlock()
	for _, f := range abandoned {
		failed := panics.Guarded(func() error { return w.recoverOwn(f) })()
		if failed == nil || errors.Is(failed, ErrGone) || errors.Is(failed, fs.ErrNotExist) {
			f.release()
			continue
		}
		w.abandon(f)
		err = errors.Join(err, failed)
	}
	return err
}

func (w *Writer) recoverOwn(f *partialFile) error {
	name, err := filepath.Rel(w.options.Directory, f.Path)
	file, ok := layout.ParsePath(filepath.ToSlash(name))
	if err != nil || !ok {
		return ErrGone
	}
	if err := f.reopen(w.options.OpenDir); err != nil {
		return err
	}
	return w.recoverIn(&layout.Branch{Dir: f.dir, Root: w.options.Directory, Path: file.Dir()}, &file, f.Size)
}

// setAdmitted takes over the groups whose directories were found. Retention and other processes remove some, and other Writers create
// some. Those with a groupWriter stay, because their directories may not exist yet, and all do unless the directories could be
// read completely.
func (w *Writer) setAdmitted(found map[string]bool, complete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for group := range found {
		if isOther(group) {
			delete(found, group)
		}
	}
	for _, g := range w.groups {
		if !g.other && len(g.group) > 0 {
			found[strings.Join(g.group, "/")] = true
		}
	}
	if !complete {
		maps.Copy(found, w.admitted)
	}
	w.admitted = found
}

// isOther reports whether a group is the one of groups beyond the limit.
func isOther(group string) bool {
	return !slices.ContainsFunc(strings.Split(group, "/"), func(name string) bool { return !strings.HasSuffix(name, "="+layout.Other) })
}

// surplus returns the files to remove, the oldest first, and the files of a level before those that were made of them. MaxAge does not
// apply to files that keep keeps, unless it is nil. It sorts files.
func (r Retention) surplus(files []layout.File, now time.Time, keep func(string) bool) (surplus []layout.File) {
	slices.SortFunc(files, func(a, b layout.File) int {
		return cmp.Or(a.Age().Compare(b.Age()), cmp.Compare(a.Level, b.Level), cmp.Compare(a.Path, b.Path))
	})
	total := int64(0)
	for i := range files {
		total += files[i].Size
	}
	for i := range files {
		f := &files[i]
		over := r.MaxFiles > 0 && len(files)-len(surplus) > r.MaxFiles || r.MaxTotalSize > 0 && total > r.MaxTotalSize
		switch {
		case !over && (r.MaxAge == 0 || now.Sub(f.Age()) <= r.MaxAge):
			return surplus // the others are younger
		case over || keep == nil || !keep(f.Path) || layout.IsDamaged(f.Path):
			surplus, total = append(surplus, *f), total-f.Size
		}
	}
	return surplus
}

// expire removes files, unless the directory is being compacted, and then the directories that are empty. The named inputs of a compacted
// file are removed before it, as they would count again.
func (w *Writer) expire(root layout.Dir, surplus []layout.File) (err error) {
	if locked, err := root.TryLock(false); err != nil || !locked {
		return err
	}
	for i := range surplus {
		f := &surplus[i]
		if isRead(root, f) { // it is removed when it was sent, or by a later call
			continue
		}
		removeErr := removeFile(root, f)
		switch {
		case removeErr == nil:
			if w.options.FileRemoved != nil {
				w.options.FileRemoved(f.Path, f.Size)
			}
			removeEmpty(root, f.Dir())
		case !errors.Is(removeErr, fs.ErrNotExist):
			err = errors.Join(err, &fs.PathError{Op: "remove", Path: filepath.Join(w.options.Directory, f.Path), Err: removeErr})
		}
	}
	return err
}

// Remove removes a closed file of a directory, such as one that was sent. RemoveEmpty removes the directories.
func Remove(directory string, f *layout.File) error {
	return takeOut(directory, f, func(root layout.Dir) error { return root.Remove(f.Path) })
}

// Move moves a closed file of a directory to a path of the same file system that leads to nothing.
func Move(directory string, f *layout.File, to string) error {
	return takeOut(directory, f, func(layout.Dir) error { return os.Rename(filepath.Join(directory, filepath.FromSlash(f.Path)), to) })
}

// takeOut removes the named inputs of a compacted file, which would count again, and then the file.
func takeOut(directory string, f *layout.File, remove func(root layout.Dir) error) error {
	root, err := layout.OpenDir(directory)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // a file that a crash brings back is sent again
	if err := removeInputs(root, f); err != nil {
		return err
	}
	return remove(root)
}

// RemoveEmpty removes the directories of groups, years, months, days and hours that are empty and not of now. It takes the lock of an
// hour alone, so that no file is in it.
func RemoveEmpty(directory string, now time.Time) error {
	root, err := layout.OpenDir(directory)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // a directory that a crash brings back is removed again
	var look func(b *layout.Branch) error
	look = func(b *layout.Branch) error {
		err := b.Children(look)
		if len(b.Date) > 0 && !layout.EndOf(b.Date).Before(now) {
			return err
		}
		if names, listErr := b.Dir.Names(); listErr != nil || len(names) > 0 {
			return err
		}
		if len(b.Date) == layout.HourDepth {
			if locked, lockErr := b.Dir.TryLock(false); lockErr != nil || !locked {
				return err
			}
		}
		_ = root.Remove(b.Path) // a Writer may have put something into it
		return err
	}
	return (&layout.Branch{Dir: root, Root: directory}).Children(look)
}

// removeFile removes a file, and the named inputs of a compacted one before it.
func removeFile(root layout.Dir, f *layout.File) error {
	if err := removeInputs(root, f); err != nil {
		return err
	}
	return root.Remove(f.Path)
}

func removeInputs(root layout.Dir, f *layout.File) error {
	if f.Level == layout.Written {
		return nil
	}
	inputs, err := InputsOf(root, f)
	if err != nil && !errors.Is(err, ErrNoInputs) {
		return err
	}
	for _, input := range inputs {
		if err := root.Remove(path.Join(f.Dir(), input.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// isRead reports whether a process that sends the file has a lock of it.
func isRead(root layout.Dir, f *layout.File) bool {
	handle, err := root.OpenToRead(f.Path)
	if err != nil {
		return false
	}
	defer func() { _ = handle.Close() }()
	file, isFile := handle.(*os.File)
	if !isFile {
		return false
	}
	locked, err := regularfile.TryLock(file)
	return err == nil && !locked
}

// removeEmpty removes a directory and those above it as long as they are empty. Writers look whether theirs still exists after they have
// locked it.
func removeEmpty(root layout.Dir, dir string) {
	for dir != "." && dir != "" && root.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
}
