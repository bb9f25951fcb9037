// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// partialFile is a file that is being written. It holds the file's lock. Its states:
//   - open: Reason is "". write adds a record, which the owner accepts, or truncate follows.
//   - closing: Reason is set. The file gets no more records. finalize renames it, or removes
//     it if it has no records. It is retried after errors.
//   - renamed: as closing, but the name is no longer that of a partial file, and only the sync of the directory is left.
//   - parked: an open file without descriptors and lock. resume comes before all else.
//
// Its owner closes it with release when finalize returned nil or ErrGone, or to leave an incomplete file.
type partialFile struct {
	ClosedFile // Size is the end of the last accepted record

	dir     Dir // nil while it is parked, as is file
	file    File
	info    fs.FileInfo // identifies the file; its size is outdated
	name    Name
	created time.Time

	torn          bool      // there may be bytes after Size
	unsyncedSince time.Time // the write of the oldest record that may not be on the disk
	nameUnsynced  bool      // the directory has not been synced since the file got its name

	index *IndexBuilder
}

func newPartial(dir Dir, path string, name Name, file File, created time.Time, index *IndexBuilder) *partialFile {
	return &partialFile{
		ClosedFile: ClosedFile{Path: filepath.Join(path, name.String())},
		dir:        dir, file: file, name: name, created: created, nameUnsynced: true, index: index,
	}
}

// createPartial creates a file under the next free name. If it cannot lock the file, it
// returns both the error and the file, which the caller must finalize to remove it.
func createPartial(dir Dir, path string, names *names, now time.Time, index *IndexBuilder) (*partialFile, error) {
	for range 10_000 {
		name := names.next(now)
		name.Partial = true
		file, err := dir.Create(name.String())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := newPartial(dir, path, name, file, now, index)
		if err = f.lock(); errors.Is(err, ErrLocked) || errors.Is(err, ErrGone) {
			_ = file.Close() // another Writer, which recovers files, has it
			continue
		}
		if err != nil {
			f.Reason = ByError
		}
		return f, err
	}
	return nil, fmt.Errorf("no free file name after %s", names.next(now))
}

// ErrLocked says that another open file has the lock.
var ErrLocked = errors.New("another process has the lock")

// lock takes the lock of the file, so that other Writers do not recover it. It returns
// ErrGone if one already has.
func (f *partialFile) lock() error {
	if err := f.file.Lock(); err != nil {
		return err
	}
	return f.check()
}

// check returns ErrGone if the name does not lead to the file, or if the file does not
// have the size that was written.
func (f *partialFile) check() error {
	if f.info == nil {
		info, err := f.file.Stat()
		if err != nil {
			return err
		}
		f.info = info
	}
	return f.compare(f.dir.Lstat(f.name.String()))
}

// checkPath is check by the path of the directory: it detects that the directory was
// removed or replaced, too.
func (f *partialFile) checkPath() error {
	return f.compare(f.dir.LstatPath(filepath.Base(f.Path)))
}

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
func (f *partialFile) write(encoded [][]byte, now time.Time) error {
	f.torn = true
	if f.unsyncedSince.IsZero() {
		f.unsyncedSince = now
	}
	at := f.Size
	for _, chunk := range encoded {
		if err := writeAt(f.file, chunk, at); err != nil {
			return err
		}
		at += int64(len(chunk))
	}
	return nil
}

func writeAt(f File, data []byte, at int64) error {
	n, err := f.WriteAt(data, at)
	if err == nil && n != len(data) {
		err = io.ErrShortWrite
	}
	return err
}

// truncate removes the bytes after the last accepted record.
func (f *partialFile) truncate() error {
	if !f.torn || f.parked() {
		return nil
	}
	if err := f.file.Truncate(f.Size); err != nil {
		return err
	}
	f.torn = false
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

// finalize truncates, syncs and renames the file, or removes it if it has no records.
// After an error, another call continues; but ErrGone is final.
func (f *partialFile) finalize(names *names) error {
	if f.name.Partial {
		if err := f.check(); err != nil {
			return err
		}
		if f.Records == 0 {
			// A file that a power loss brings back has no acknowledged record, so the removal
			// need not be synced.
			if err := f.dir.Remove(f.name.String()); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if err := f.rename(names); err != nil {
			return err
		}
	}
	return f.sync()
}

// rename gives the file its final name, or the next one that is free. The content is
// synced before: a closed file is never empty, even after a power loss.
func (f *partialFile) rename(names *names) error {
	if err := f.truncate(); err != nil {
		return err
	}
	if err := f.syncContent(); err != nil {
		return err
	}
	name := f.name
	for name.Partial = false; ; name.Sequence = names.next(f.created).Sequence {
		err := f.dir.Rename(f.name.String(), name.String())
		if err == nil {
			f.Path, f.name = filepath.Join(filepath.Dir(f.Path), name.String()), name
			f.nameUnsynced = true
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// release closes the file, which releases its lock. One that was not finalized keeps its .partial name, if it still exists.
func (f *partialFile) release() {
	_ = f.truncate() // a file that was moved still ends on a record
	f.closeDescriptors()
	f.index.Release()
}

// parked reports whether the file has no descriptors.
func (f *partialFile) parked() bool { return f.file == nil }

// park closes the descriptors, and so gives up the lock, unless there are bytes after the last record: another Writer could take them
// for one. What was written is synced when it is due, after resume: the system keeps an error of writing it until then.
func (f *partialFile) park() bool {
	if f.truncate() != nil {
		return false
	}
	f.closeDescriptors()
	return true
}

func (f *partialFile) closeDescriptors() {
	if f.parked() {
		return
	}
	_ = f.file.Close()
	_ = f.dir.Close() // what was created in it is synced with the file
	f.dir, f.file = nil, nil
}

// resume opens a parked file again, takes its lock, and checks that the file is as it was left. The error is ErrGone if not: another
// Writer may have recovered it. dir is that of the file, which is closed after an error.
func (f *partialFile) resume(dir Dir) error {
	file, err := dir.Open(f.name.String())
	if err != nil {
		_ = dir.Close()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
			err = ErrGone
		}
		return err
	}
	f.dir, f.file = dir, file
	if err = f.lock(); err == nil {
		info, statErr := file.Stat()
		if err = statErr; err == nil && !os.SameFile(f.info, info) {
			err = ErrGone
		}
	}
	if err != nil {
		_ = file.Close()
		_ = dir.Close()
		f.dir, f.file = nil, nil
	}
	return err
}

// names generates the names of files in one directory.
type names struct {
	format Format
	latest time.Time
	used   uint64
}

// next returns a name that sorts after all names before it, even if the
// clock was set back.
func (n *names) next(now time.Time) Name {
	if now = now.UTC().Truncate(time.Millisecond); now.After(n.latest) {
		n.latest = now
	}
	n.used++
	return Name{Time: n.latest, Sequence: n.used, Format: n.format}
}
