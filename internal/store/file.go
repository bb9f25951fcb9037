// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// ErrGone means that another process removed, moved, truncated or replaced a file or directory.
var ErrGone = errors.New("removed, moved, truncated or replaced by another process")

// errRecovered means that another process closed the file, while its descriptors were closed.
var errRecovered = fmt.Errorf("recovered by another process: %w", ErrGone)

// partialFile is a file that is being written. While it has descriptors, it has a shared lock of its directory, so that no other process
// recovers it. Its owner writes to it until finish or abandon.
type partialFile struct {
	ClosedFile // Size is the end of the last accepted record; Path is that of the partial file, until it is closed

	stem    string
	format  segment.Format
	created time.Time
	info    fs.FileInfo // identifies the file; its size is outdated

	dir  layout.Dir    // locked; nil while the descriptors are closed
	file layout.Handle // nil while dir is

	torn          bool      // there may be bytes after Size
	unsyncedSince time.Time // the write of the oldest record that may not be on the disk
	nameUnsynced  bool      // the directory has not been synced since the file got its name
	making        bool      // a join may have left a file

	bounds  layout.Bounds
	records []segment.Record
	index   *contents.Builder
}

// createPartial creates a file in a directory that it takes over. If it fails after that, it removes the file.
func createPartial(dir layout.Dir, path, stem string, format segment.Format, now time.Time, memory *semaphore.Weighted) (*partialFile, error) {
	f := &partialFile{
		ClosedFile: ClosedFile{Path: filepath.Join(path, layout.PartialBase(stem, format))},
		stem:       stem, format: format, created: now, dir: dir, nameUnsynced: true, index: contents.NewBuilder(memory),
	}
	var err error
	if f.file, err = dir.Create(f.base()); err != nil {
		return nil, err
	}
	if f.info, err = f.file.Stat(); err != nil {
		_, removeErr := f.file.Close(), dir.Remove(f.base())
		return nil, errors.Join(err, removeErr)
	}
	return f, nil
}

func (f *partialFile) base() string { return filepath.Base(f.Path) }

// reopen opens a file whose descriptors were closed. It returns ErrGone if it is not as it was left.
func (f *partialFile) reopen(open func(path string, inside ...string) (layout.Dir, error)) error {
	if f.file != nil {
		return nil
	}
	dir, err := open(filepath.Dir(f.Path))
	if err != nil {
		return err
	}
	locked, err := dir.TryLock(true)
	if err == nil && !locked {
		err = errRecovered // now
	}
	var file layout.Handle
	if err == nil {
		file, err = dir.Open(f.base())
		if errors.Is(err, fs.ErrNotExist) {
			err = f.whyGone(dir, open)
		}
	}
	if err != nil {
		_ = dir.Close() // nothing was written through it
		return err
	}
	f.dir, f.file = dir, file
	if err := f.check(); err != nil {
		f.release()
		return err
	}
	return nil
}

// whyGone returns errRecovered if the file was closed, or its partition compacted after that, else ErrGone.
func (f *partialFile) whyGone(dir layout.Dir, open func(path string, inside ...string) (layout.Dir, error)) error {
	names, err := dir.Names()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, f.stem+".") }) {
		return errRecovered
	}
	partition := filepath.Dir(f.Path)
	for range layout.Day { // the hour, and the day
		above, err := open(filepath.Dir(partition))
		if err != nil {
			return err
		}
		names, err := above.Names()
		_ = above.Close() // nothing was written through it
		if err != nil {
			return err
		}
		if layout.HasCompacted(names, filepath.Base(partition), "") {
			return errRecovered
		}
		partition = filepath.Dir(partition)
	}
	return ErrGone
}

// park closes the descriptors. The file stays one that is being written, unless another process recovers it.
func (f *partialFile) park() {
	if f.file != nil && !f.torn {
		f.release()
	}
}

// release closes the descriptors.
func (f *partialFile) release() {
	if f.file != nil {
		_ = f.file.Close() // what must be on the disk was synced
		_ = f.dir.Close()
		f.file, f.dir = nil, nil
	}
}

// check returns ErrGone if the name does not lead to the file, or the file does not have the size that was written.
func (f *partialFile) check() error { return f.compare(f.dir.Lstat(f.base())) }

// checkPath is check by path: it detects that the directory was removed or replaced, too.
func (f *partialFile) checkPath() error { return f.compare(f.dir.LstatPath(f.base())) }

func (f *partialFile) compare(named fs.FileInfo, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return ErrGone
	case err != nil:
		return err
	case !os.SameFile(f.info, named), named.Size() != f.Size && !(f.torn && named.Size() > f.Size):
		return ErrGone
	default:
		return nil
	}
}

// write writes a record after the last accepted one. As long as torn is set, truncate undoes it.
func (f *partialFile) write(encoded []byte, now time.Time) error {
	f.torn = true
	if f.unsyncedSince.IsZero() {
		f.unsyncedSince = now
	}
	return layout.WriteAt(f.file, encoded, f.Size)
}

// accept adds the record that was written to the file.
func (f *partialFile) accept(record *Record, size int64, now time.Time) {
	f.torn = false
	start, end := uint64(0), uint64(0)
	if record.Entry != nil {
		start, end = record.Entry.Start, record.Entry.End
	}
	f.bounds.Add(start, end, now)
	if err := panics.Guarded(func() error {
		f.records = append(f.records, segment.Record{Offset: f.Size, Length: size, Entry: f.index.Add(record.Entry)})
		return nil
	})(); err != nil {
		f.IndexError = err // the record is safe, and the file gets no index
	}
	f.add(record, size)
}

// truncate removes the bytes after the last accepted record. Until the next sync, a record that was not acknowledged may be there after
// a crash.
func (f *partialFile) truncate() error {
	if !f.torn {
		return nil
	}
	if err := f.file.Truncate(f.Size); err != nil {
		return err
	}
	f.torn = false
	if f.unsyncedSince.IsZero() {
		f.unsyncedSince = f.created
	}
	return nil
}

// sync puts the file and its name on the disk.
func (f *partialFile) sync() error {
	if err := f.syncContent(); err != nil || !f.nameUnsynced {
		return err
	}
	err := f.dir.Sync()
	f.nameUnsynced = err != nil
	return err
}

func (f *partialFile) syncContent() error {
	if f.unsyncedSince.IsZero() {
		return nil
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.unsyncedSince = time.Time{}
	return nil
}

// finish closes an open file: it joins its records unless join is nil, writes the index, syncs and renames it, or removes it if it has no
// records. After an error but ErrGone, it has what it had.
func (f *partialFile) finish(join func() (bool, error)) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.truncate(); err != nil {
		return err
	}
	if f.Records == 0 {
		// A file that a power loss brings back has no acknowledged record, so the removal need not be synced.
		if err := f.dir.Remove(f.base()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := f.syncContent(); err != nil {
		return err
	}
	isJoined := false
	if join != nil {
		isJoined, f.JoinError = join()
	}
	if !isJoined {
		f.IndexError = cmp.Or(f.IndexError, f.writeIndex())
	}
	if err := f.removeMaking(); err != nil {
		return err
	}
	name := layout.WrittenBase(f.stem, &f.bounds, f.format)
	if err := f.dir.Rename(f.base(), name); err != nil {
		return err
	}
	f.Path = filepath.Join(filepath.Dir(f.Path), name)
	// If it fails, the file may have its other name after a crash, by which it is recovered.
	if err := f.dir.Sync(); err != nil {
		f.IndexError = errors.Join(f.IndexError, err)
	}
	return nil
}

// writeIndex writes the index after the records. The error is why the file has none, or an incomplete one.
func (f *partialFile) writeIndex() (err error) {
	if f.format != segment.Proto || f.IndexError != nil {
		return nil
	}
	defer panics.Catch(&err)
	frame, err := segment.AppendIndex(nil, &segment.Index{Records: f.records, Tables: f.index.Tables()}, f.Size)
	if err == nil {
		f.torn = true
		err = layout.WriteAt(f.file, frame, f.Size)
		if err == nil {
			err = f.file.Sync()
		}
	}
	if err == nil {
		return f.index.Incomplete()
	}
	if truncateErr := f.truncate(); truncateErr != nil {
		err = errors.Join(err, truncateErr) // readers see that it is damaged
	}
	return fmt.Errorf("write index of %s: %w", f.Path, err)
}
