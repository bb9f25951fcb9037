// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxSummaryNames bounds the lists of a Summary.
const maxSummaryNames = 20

// Summary describes records for the logs.
type Summary struct {
	Profiles, Samples int
	// Services and SampleTypes hold the first 20 different names.
	Services, SampleTypes []string
}

// Add adds another record's summary.
func (s *Summary) Add(other Summary) {
	s.Profiles += other.Profiles
	s.Samples += other.Samples
	s.Services = addNames(s.Services, other.Services)
	s.SampleTypes = addNames(s.SampleTypes, other.SampleTypes)
}

func addNames(names, more []string) []string {
	for _, name := range more {
		if len(names) < maxSummaryNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ClosedFile describes a file that has its final name.
type ClosedFile struct {
	Path    string
	Reason  Reason
	Records int
	Summary Summary
	// Size is the number of bytes on disk, Raw that of the records before framing and
	// compression.
	Size, Raw int64
}

// partialFile is a file that is being written. It holds the file's lock.
type partialFile struct {
	ClosedFile // Size ends the last accepted record

	dir     Dir
	file    File
	info    fs.FileInfo // identifies the file; its size is outdated
	name    Name
	created time.Time

	torn     bool      // there may be bytes after Size
	unsynced time.Time // when the oldest record was written that may not be on the disk
	unlisted bool      // the directory was not synced since the file got its name
	renamed  bool
}

func newPartial(dir Dir, path string, name Name, file File, created time.Time) *partialFile {
	return &partialFile{
		ClosedFile: ClosedFile{Path: filepath.Join(path, name.String())},
		dir:        dir, file: file, name: name, created: created, unlisted: true,
	}
}

// createPartial creates a file under the next free name. A file that it returns with an
// error must be discarded.
func createPartial(dir Dir, path string, names *names, now time.Time) (*partialFile, error) {
	for range 10_000 {
		name := names.next(now)
		if _, err := dir.Lstat(name.String()); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		name.Partial = true
		file, err := dir.Create(name.String())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := newPartial(dir, path, name, file, now)
		// Without the lock, a repair of the same directory could take the file for an
		// incomplete one and remove it.
		locked, err := file.Lock()
		if err == nil && locked {
			err = f.check()
		}
		if err == nil && !locked || errors.Is(err, ErrGone) {
			_ = file.Close() // the repair has it
			continue
		}
		return f, err
	}
	return nil, fmt.Errorf("no free file name after %s", names.next(now))
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
	named, err := f.dir.Lstat(f.name.String())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !f.matches(named) {
		return ErrGone
	}
	return err
}

// inPlace reports whether the path leads to the file. False may also mean a fault.
func (f *partialFile) inPlace() bool {
	named, err := f.dir.LstatPath(filepath.Base(f.Path))
	return err == nil && f.matches(named)
}

func (f *partialFile) matches(named fs.FileInfo) bool {
	return os.SameFile(f.info, named) && (named.Size() == f.Size || f.torn && named.Size() > f.Size)
}

// write writes a record after the last one. Until accept is called, cut undoes it.
func (f *partialFile) write(record encoded, now time.Time) error {
	f.torn = true
	if f.unsynced.IsZero() {
		f.unsynced = now
	}
	at := f.Size
	for _, chunk := range record.chunks {
		if len(chunk) == 0 {
			continue
		}
		n, err := f.file.WriteAt(chunk, at)
		if err == nil && n != len(chunk) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// accept makes the record that was written part of the file.
func (f *partialFile) accept(record Record, size int64) {
	f.Size += size
	f.Records++
	f.Raw += int64(len(record.Data))
	f.Summary.Add(record.Summary)
	f.torn = false
}

// cut removes the bytes after the last accepted record.
func (f *partialFile) cut() error {
	if !f.torn {
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
	if err := f.syncContent(); err != nil {
		return err
	}
	return f.syncName()
}

func (f *partialFile) syncContent() error {
	if f.unsynced.IsZero() {
		return nil
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.unsynced = time.Time{}
	return nil
}

func (f *partialFile) syncName() error {
	if !f.unlisted {
		return nil
	}
	if err := f.dir.Sync(); err != nil {
		return err
	}
	f.unlisted = false
	return nil
}

// close cuts, syncs, renames and closes the file, or removes it if it has no records.
// After an error it can be called again and continues; but ErrGone is final.
func (f *partialFile) close(names *names) error {
	if !f.renamed {
		if err := f.check(); err != nil {
			return err
		}
		if f.Records == 0 {
			if err := f.dir.Remove(f.name.String()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			_ = f.file.Close() // there is nothing in it
			return nil
		}
		if err := f.cut(); err != nil {
			return err
		}
		// Content before name: a closed file is never empty, even after a power loss.
		if err := f.syncContent(); err != nil {
			return err
		}
		if err := f.rename(names); err != nil {
			return err
		}
	}
	if err := f.syncName(); err != nil {
		return err
	}
	_ = f.file.Close() // everything is on the disk
	return nil
}

// rename gives the file its final name, or the next one that is free.
func (f *partialFile) rename(names *names) error {
	for name := f.name.closed(); ; name.Sequence = names.next(f.created).Sequence {
		err := f.dir.Rename(f.name.String(), name.String())
		if err == nil {
			f.Path, f.name = filepath.Join(filepath.Dir(f.Path), name.String()), name
			f.renamed, f.unlisted = true, true
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// discard makes close remove the file, whatever is in it.
func (f *partialFile) discard() {
	f.Records, f.Size, f.torn, f.renamed = 0, 0, true, false
}
