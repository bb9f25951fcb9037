// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"errors"
	"io/fs"
	"slices"
	"time"
)

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
	f := newPartial(dir, path, name, file, name.Time, nil)
	recovered := &RecoveredFile{Partial: f.Path}
	if err := f.recover(recovered); err != nil {
		_ = file.Close() // the next recovery continues
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
	if f.renamed {
		recovered.ClosedFile = f.ClosedFile
	}
	return nil
}

// scan finds the last complete record, and counts the damaged places before it.
func (f *partialFile) scan(size int64) (damaged int, err error) {
	reader, err := NewReader(f.file, size, f.name.Format, MaxRecordSize)
	if err != nil {
		return 0, err
	}
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
