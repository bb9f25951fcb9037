// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package regularfile opens and reads regular files, and locks them on systems that have flock.
package regularfile

import (
	"errors"
	"fmt"
	"io"
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

// Read reads a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}
