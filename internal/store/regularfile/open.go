// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package regularfile opens regular files, and locks them on systems that have flock.
package regularfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular says that a path is that of a directory, a named pipe or another file that is not regular.
var ErrNotRegular = errors.New("is not a regular file")

// Open opens a regular file for reading. It follows links, and does not wait if the path is that of a named pipe. The error
// is an *fs.PathError, of ErrNotRegular for other files.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
