// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
)

// Stats counts what was read.
type Stats struct {
	Bytes atomic.Int64
}

// content is an open file.
type content struct {
	io.Reader
	io.ReaderAt

	size     int64     // negative if it is not a regular file, and can be read once and in order only
	modified time.Time // the last change of a regular file
	close    func()
}

func open(path string) (*os.File, error) {
	switch {
	case path == Stdin:
		return os.Stdin, nil
	case isDescriptor(path):
		return os.Open(path)
	default:
		return regularfile.Open(path)
	}
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
	c := &content{Reader: file, ReaderAt: file, size: -1, close: func() { _ = file.Close() }}
	if o.Stats != nil {
		counting := &counter{file, o.Stats}
		c.Reader, c.ReaderAt = counting, counting
	}
	if info.Mode().IsRegular() {
		c.modified = info.ModTime()
		c.limit(info.Size())
	}
	return c, nil
}

// limit ends the content after a size: what another program adds while it is read may be part of a record.
func (c *content) limit(size int64) {
	c.size = size
	c.Reader = io.LimitReader(c.Reader, size)
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
