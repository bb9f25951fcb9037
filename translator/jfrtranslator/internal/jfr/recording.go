// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package jfr reads the file format of JFR: chunks, the metadata of their types, their
// constant pools and the values of fields. What events mean is not its business.
package jfr

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Recording reads the chunks of a recording, one at a time. What it says of the chunk is
// valid until the next call of LoadChunk.
type Recording struct {
	source
	// ChunkSize and StringLength are limits, in bytes.
	ChunkSize, StringLength int
	Memory                  Memory
	next                    int64 // where the next chunk starts

	// Of the chunk.
	Chunk  int // its number, from 1
	Header Header
	Data   []byte
	Stop   int // where the last complete event ends
	Meta   Metadata
	Pools  []Pool

	buffer, scratch []byte
}

// Open prepares r for the recording that data are.
func (r *Recording) Open(data []byte) {
	r.source = source{content: data, size: int64(len(data))}
	r.Rewind()
}

// OpenFile prepares r for the recording in a file of the given size.
func (r *Recording) OpenFile(from io.ReaderAt, size int64) {
	r.source = source{file: from, size: size}
	r.Rewind()
}

// Rewind goes back to the first chunk.
func (r *Recording) Rewind() { r.next, r.Chunk = 0, 0 }

// More reports whether a chunk follows.
func (r *Recording) More() bool { return r.next < r.size }

// End skips the chunks that follow.
func (r *Recording) End() { r.next = r.size }

// Release drops all references to the recording, and keeps the memory for the next one.
func (r *Recording) Release() {
	r.source, r.Data, r.Memory.Reserve = source{}, nil, nil
	m := &r.Meta
	m.strings, m.Classes, m.annotations, m.fields = Cleared(m.strings), Cleared(m.Classes), Cleared(m.annotations), Cleared(m.fields)
}

// source is where a recording is.
type source struct {
	content []byte // or
	file    io.ReaderAt
	size    int64
}

// read returns n bytes at a position, in memory of the recording or of buffer.
func (s *source) read(m *Memory, buffer *[]byte, at int64, n int) (_ []byte, err error) {
	if s.file == nil {
		return s.content[at:][:n], nil
	}
	if *buffer, err = Room(m, (*buffer)[:0], n); err != nil {
		return nil, err
	}
	*buffer = (*buffer)[:n]
	if _, err := s.file.ReadAt(*buffer, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return *buffer, nil
}

// LoadChunk reads the chunk at r.next and advances r.next. Unless the chunk is found, there
// is no next one.
func (r *Recording) LoadChunk() error {
	at, s := r.next, &r.source
	r.next = s.size
	r.Chunk++
	head, err := s.read(&r.Memory, &r.buffer, at, int(min(headerSize, s.size-at)))
	if err != nil {
		return err
	}
	if r.Header, err = readHeader(head); err != nil {
		return r.At(0, "", err)
	}
	size := s.size - at
	switch {
	case r.Header.Unfinished:
		// The size is that of what was flushed last. More events may follow.
		if flushed := r.Header.size; flushed >= headerSize && flushed <= size-headerSize {
			if after, err := s.read(&r.Memory, &r.scratch, at+flushed, len(magic)); err == nil && bytes.Equal(after, magic) {
				size = flushed
			}
		}
	case r.Header.size > size:
		return r.At(0, "", fmt.Errorf("the chunk has %d of %d bytes", size, r.Header.size))
	default:
		size = r.Header.size
	}
	if r.next = at + size; size > int64(r.ChunkSize) {
		return r.At(0, "", &LimitError{What: "bytes of the chunk", Limit: int64(r.ChunkSize)})
	}
	r.Data, err = s.read(&r.Memory, &r.buffer, at, int(size))
	return err
}
