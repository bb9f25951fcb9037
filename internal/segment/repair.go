// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// RecoveredFile describes an incomplete file that was closed, or removed because it had no
// complete record.
type RecoveredFile struct {
	ClosedFile // zero if the file was removed
	// Partial is the path that it had.
	Partial string
	// Cut is the number of bytes cut off at the end.
	Cut int64
	// Damaged is the number of damaged places between the records of a compressed file.
	Damaged int
}

// recoverFiles closes the incomplete files of processes that no longer run. Maintain
// retries it if it fails.
func (w *Writer) recoverFiles() {
	err := w.walk(func(dir Dir, group []string) error {
		list, err := dir.List()
		errs := []error{w.pathError("list", group, err)}
		for _, entry := range list {
			if name, ok := ParseName(entry); ok && name.Partial {
				recovered, err := recoverFile(dir, w.pathOf(group...), name)
				errs = append(errs, w.pathError("recover", append(group[:len(group):len(group)], entry), err))
				if recovered != nil {
					w.options.FileRecovered(*recovered)
				}
			}
		}
		if len(group) < w.options.Levels {
			// A crash may have left directories that are not on the disk.
			errs = append(errs, w.pathError("sync", group, dir.Sync()))
		}
		return errors.Join(errs...)
	})
	if w.recovered = err == nil; err != nil {
		w.options.Failed(err)
	}
}

// recoverFile closes one incomplete file. Both results are nil if there is none: the name
// is not that of a file, or the file is in use or gone.
func recoverFile(dir Dir, path string, name Name) (*RecoveredFile, error) {
	info, err := dir.Lstat(name.String())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	file, err := dir.Open(name.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	recovered, err := recoverOpen(dir, path, name, file)
	if recovered == nil {
		err = errors.Join(err, file.Close())
	}
	return recovered, err
}

// recoverOpen closes the file, but not if recovered is nil.
func recoverOpen(dir Dir, path string, name Name, file File) (recovered *RecoveredFile, err error) {
	if locked, err := file.Lock(); err != nil || !locked {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	// Its Writer or another repair may have closed it before the lock was free.
	if named, err := dir.Lstat(name.String()); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(named, info) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}

	f := newPartial(dir, path, name, file, name.Time)
	f.info, f.torn, f.unsynced = info, true, time.Now()
	recovered = &RecoveredFile{Partial: f.Path}
	if closed, err := dir.Lstat(name.closed().String()); err == nil && os.SameFile(closed, info) {
		// A crash between the two steps of Rename left both names.
		recovered.ClosedFile = ClosedFile{Path: filepath.Join(path, name.closed().String()), Size: info.Size()}
		return recovered, errors.Join(dir.Remove(name.String()), dir.Sync(), file.Close())
	}
	if !name.Format.bare() {
		if recovered.Damaged, err = f.scan(info.Size()); err != nil {
			return nil, err
		}
	}
	recovered.Cut = info.Size() - f.Size
	if err := f.close(&names{used: name.Sequence}); err != nil {
		return nil, err
	}
	if f.renamed {
		recovered.ClosedFile = f.ClosedFile
	}
	return recovered, nil
}

// scan finds the last complete record, and counts the damaged places before it.
func (f *partialFile) scan(size int64) (damaged int, err error) {
	reader, err := NewReader(f.file, size, f.name.Format, ReaderOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = reader.Close() }()
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
