// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"io/fs"
	"os"
)

func (o *Options) counted(f *os.File) *countedFile {
	return &countedFile{File: f, progress: o.Progress}
}

// open opens a file. An incomplete file may have been closed, and so renamed, after it was
// found. size is negative for anything but a regular file, such as a pipe.
func (o *Options) open(path string) (*countedFile, int64, error) {
	if path == Stdin {
		return o.counted(os.Stdin), -1, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && isPartial(path) {
		f, err = os.Open(closedPath(path))
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return o.counted(f), -1, nil
	}
	return o.counted(f), info.Size(), nil
}

// withoutPath removes the path, which Error repeats.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// countedFile reports how much of a file was read.
type countedFile struct {
	*os.File
	progress func(n int)
}

func (f *countedFile) count(n int) {
	if f.progress != nil && n > 0 {
		f.progress(n)
	}
}

func (f *countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.count(n)
	return n, err
}

func (f *countedFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	f.count(n)
	return n, err
}
