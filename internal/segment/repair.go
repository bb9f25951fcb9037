// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// RecoveredFile describes an incomplete file that was closed or removed.
type RecoveredFile struct {
	// Path is the final path. It is empty if the file was removed because it had no
	// complete record.
	Path string
	// Partial is the path that it had.
	Partial string
	Records int
	// Size is the number of bytes kept, Cut that of the bytes cut off after them.
	Size, Cut int64
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

	f := &partialFile{dir: dir, file: file, info: info, torn: true, unsynced: time.Now(), unlisted: true}
	f.setName(filepath.Join(path, name.String()), name)
	recovered = &RecoveredFile{Partial: f.Path}
	if closed, err := dir.Lstat(name.closed().String()); err == nil && os.SameFile(closed, info) {
		// A crash between the two steps of linkAndRemove left both names.
		recovered.Path, recovered.Size = filepath.Join(path, name.closed().String()), info.Size()
	} else if name.Format.Framing != Bare {
		if err := recovered.scan(f, info.Size(), name.Format); err != nil {
			return nil, err
		}
	}
	recovered.Cut = info.Size() - recovered.Size
	if err := f.close(&names{used: name.Sequence}); err != nil {
		return nil, err
	}
	if f.renamed {
		recovered.Path = f.Path
	}
	return recovered, nil
}

// scan finds the end of the last complete record.
func (r *RecoveredFile) scan(f *partialFile, size int64, format Format) error {
	reader, err := NewReader(f.file, size, format, ReaderOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	damaged := 0
	for {
		_, err := reader.Next()
		if _, isDamage := errors.AsType[*DamageError](err); isDamage {
			damaged++
			continue
		}
		if errors.Is(err, io.EOF) {
			f.Records, f.Size = r.Records, r.Size
			return nil
		}
		if err != nil {
			return err
		}
		r.Records++
		r.Size = reader.Offset()
		r.Damaged = damaged
	}
}
