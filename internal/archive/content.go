// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/regularfile"
)

// Object is an object of an object store, such as a file or its index.
type Object interface {
	Size() int64
	// Reader reads the object until ctx ends. It may read ahead up to end. Its error is a *StorageError, or wraps fs.ErrNotExist if
	// the object was removed or changed after it was listed.
	Reader(ctx context.Context, end int64) io.ReaderAt
	// Fetch reads parts ahead, several in one request if they are close to each other. Readers then need no request for them,
	// and have the error if there was one.
	Fetch(ctx context.Context, parts []Part)
}

// StorageError says that an object store did not answer or denied access, so that nothing is known about the files.
type StorageError struct {
	Operation, Path string
	Err             error
}

func (e *StorageError) Error() string { return e.Operation + " " + e.Path + ": " + e.Err.Error() }

func (e *StorageError) Unwrap() error { return e.Err }

// IsStorageError reports whether err is or wraps a *StorageError.
func IsStorageError(err error) bool {
	_, is := errors.AsType[*StorageError](err)
	return is
}

// Stats counts what was read.
type Stats struct {
	Requests atomic.Int64 // to object stores
	Bytes    atomic.Int64
}

// content is an open file.
type content struct {
	io.Reader
	io.ReaderAt

	size  int64 // negative if it is not a regular file, and can be read once and in order only
	close func()
}

// open opens a file, of which the caller reads a part. An incomplete file may have been closed, and so renamed, after it was
// found.
func (o *Options) open(ctx context.Context, file File, part Part) (*content, error) {
	if file.Object != nil {
		return ofObject(ctx, file.Object, part), nil
	}
	return o.owned(open(file.Path))
}

func open(path string) (*os.File, error) {
	if path == Stdin {
		return os.Stdin, nil
	}
	if isDescriptor(path) {
		return os.Open(path)
	}
	f, err := regularfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) && isPartial(path) {
		return regularfile.Open(strings.TrimSuffix(path, partialSuffix))
	}
	return f, err
}

func ofObject(ctx context.Context, object Object, part Part) *content {
	end := object.Size()
	if part.End > 0 {
		end = min(end, part.End)
	}
	reader := object.Reader(ctx, end)
	return &content{io.NewSectionReader(reader, 0, object.Size()), reader, object.Size(), func() {}}
}

// owned returns the content of a file that was opened for it.
func (o *Options) owned(file *os.File, err error) (*content, error) {
	if err != nil {
		return nil, err
	}
	c, err := o.opened(file)
	if err != nil {
		_ = file.Close()
	}
	return c, err
}

// opened returns the content of a file of the operating system.
func (o *Options) opened(file *os.File) (*content, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	c := &content{file, file, -1, func() { _ = file.Close() }}
	if info.Mode().IsRegular() {
		c.size = info.Size()
	}
	if o.Stats != nil {
		counting := &counter{file, o.Stats}
		c.Reader, c.ReaderAt = counting, counting
	}
	return c, nil
}

// counter counts the bytes that are read from a file.
type counter struct {
	file  *os.File
	stats *Stats
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	c.stats.Bytes.Add(int64(n))
	return n, err
}

func (c *counter) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.file.ReadAt(p, offset)
	c.stats.Bytes.Add(int64(n))
	return n, err
}

const (
	// FilesAhead is for how many files one call of FetchIndexes or Fetch is.
	FilesAhead = 64
	// fetching is how many objects are fetched at once.
	fetching = 32
	// fetchShare is the part of MaxMemory that fetched parts may take.
	fetchShare = 16
)

// Fetch fetches parts of files in object stores together, for Records.
func (o *Options) Fetch(ctx context.Context, files []File, parts [][]Part) {
	o.fetch(ctx, len(files), func(i int) (Object, []Part) { return files[i].Object, parts[i] })
}

// fetch fetches parts of n objects, up to a share of the memory limit.
func (o *Options) fetch(ctx context.Context, n int, of func(i int) (Object, []Part)) {
	var group errgroup.Group
	group.SetLimit(fetching)
	room := o.MaxMemory / fetchShare
	for i := range n {
		object, parts := of(i)
		if object == nil {
			continue
		}
		for _, part := range parts {
			room -= cmp.Or(part.End, object.Size()) - part.Start
		}
		if room < 0 {
			break
		}
		group.Go(panics.Guarded(func() error {
			object.Fetch(ctx, parts)
			return nil
		}))
	}
	panics.Rethrow(group.Wait()) // readers have the errors
}
