// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// ErrChanged means that a file is no longer the version that was found. A later poll finds it again.
var ErrChanged = errors.New("file changed while it was read")

// RetryError is an error after which the file is handled again at a later poll.
type RetryError struct {
	Err      error
	Rejected bool // by the pipeline, which may reject other files, too
}

func (e *RetryError) Error() string { return e.Err.Error() }
func (e *RetryError) Unwrap() error { return e.Err }

// File is a version of a file.
type File struct {
	Path     string    // absolute
	Size     int64     // bytes
	Modified time.Time // last change of the content
	Resent   bool      // the pipeline rejected an earlier attempt

	base     string // a directory; no link leads out of it
	relative string // to base
	version  version
}

// Open opens the file. The error is ErrChanged, or a *RetryError if the file cannot be opened.
func (f *File) Open() (*os.File, error) {
	root, err := os.OpenRoot(f.base)
	if err != nil {
		return nil, &RetryError{Err: err}
	}
	defer func() { _ = root.Close() }()
	opened, err := root.OpenFile(f.relative, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO without a writer blocks otherwise
	if err != nil {
		return nil, &RetryError{Err: err}
	}
	if err := f.Unchanged(opened); err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

// Relative is the path of the file below the fixed part of the glob that it matches.
func (f *File) Relative() string { return f.relative }

// CheckPath returns ErrChanged if the path leads to another file or to other content than the one
// found, and fs.ErrNotExist if it leads to no file.
func (f *File) CheckPath() error {
	root, err := os.OpenRoot(f.base)
	if err == nil {
		defer func() { _ = root.Close() }()
		var info fs.FileInfo
		if info, err = root.Stat(f.relative); err == nil && !versionOf(info).sameContent(f.version) {
			return ErrChanged
		}
	}
	return err
}

// Unchanged returns an error unless the open file is still the version that was found, under a
// name: removing a name changes the version, on systems with inodes.
func (f *File) Unchanged(opened *os.File) error {
	info, err := opened.Stat()
	switch {
	case err != nil:
		return &RetryError{Err: err}
	case !info.Mode().IsRegular() || versionOf(info) != f.version:
		return ErrChanged
	}
	return nil
}
