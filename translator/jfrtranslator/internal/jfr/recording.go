// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package jfr reads the file format of JFR: chunks, the metadata of their types, their
// constant pools and the values of fields. The meaning of events is not its job.
package jfr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// Recording reads the chunks of a recording, one at a time. Its data of the chunk are
// valid until the next call of LoadChunk. The first error of a chunk is in Err.
type Recording struct {
	Memory
	ChunkSize int // the limit, in bytes

	content []byte      // of a recording in memory
	file    io.ReaderAt // of another one
	size    int64
	next    int64 // where the next chunk starts

	// Of the chunk.
	Chunk  int   // its number, from 1
	Start  int64 // where it is
	Header Header
	Data   []byte
	Meta   Metadata
	Event  int // where the last event that was read starts
	stop   int // where the last complete event ends
	pools  []Table

	buffer, scratch []byte
}

// Open prepares r for a recording of the given size, which is data or, if these are nil, in a file.
func (r *Recording) Open(data []byte, file io.ReaderAt, size int64) {
	r.content, r.file, r.size = data, file, size
	r.Rewind()
}

// Rewind goes back to the first chunk.
func (r *Recording) Rewind() { r.next, r.Chunk = 0, 0 }

// Back goes back to the last chunk.
func (r *Recording) Back() { r.next, r.Chunk = r.Start, r.Chunk-1 }

// More reports whether a chunk follows.
func (r *Recording) More() bool { return r.next < r.size }

// Release drops all references to the recording, and keeps the memory for the next one.
func (r *Recording) Release() { r.content, r.file, r.Data = nil, nil, nil }

// read returns n bytes at a position, in memory of the recording or of buffer.
func (r *Recording) read(buffer *[]byte, at int64, n int) ([]byte, error) {
	if r.file == nil {
		return r.content[at:][:n:n], nil
	}
	if *buffer = Grow(&r.Memory, (*buffer)[:0], n); r.Err != nil {
		return nil, r.Err
	}
	*buffer = (*buffer)[:n]
	if _, err := r.file.ReadAt(*buffer, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return *buffer, nil
}

// LoadChunk reads the next chunk and its metadata. Unless the chunk is found, there is no next one. It reports whether
// the metadata are other ones than those of the chunk before.
func (r *Recording) LoadChunk() (changed bool, err error) {
	at := r.next
	r.Start, r.next, r.Event, r.Data, r.Err = at, r.size, 0, nil, nil
	r.Chunk++
	head, err := r.read(&r.buffer, at, int(min(headerSize, r.size-at)))
	if err != nil {
		return false, err
	}
	if r.Header, err = readHeader(head); err != nil {
		return false, r.At("", err)
	}
	size := r.size - at
	switch {
	case r.Header.Unfinished:
		// The size is that of the last flush. More events may follow.
		if flushed := r.Header.size; flushed >= headerSize && flushed <= size-headerSize {
			if after, err := r.read(&r.scratch, at+flushed, len(magic)); err == nil && bytes.Equal(after, magic) {
				size = flushed
			}
		}
	case r.Header.size > size:
		return false, r.At("", fmt.Errorf("the chunk has %d of %d bytes", size, r.Header.size))
	default:
		size = r.Header.size
	}
	if r.next = at + size; size > int64(r.ChunkSize) {
		return false, r.At("", &wire.LimitError{What: "bytes of the chunk", Limit: int64(r.ChunkSize)})
	}
	if r.Data, err = r.read(&r.buffer, at, int(size)); err != nil {
		return false, err
	}
	r.stop = len(r.Data)
	return r.readMetadata()
}

// Unfinished reports whether a chunk of the file is unfinished, or it or its header is longer than the rest of the file:
// its program may still write it.
func (r *Recording) Unfinished() bool {
	var head [headerSize]byte
	for at := int64(0); at < r.size; {
		n, _ := r.file.ReadAt(head[:], at) // an error is that of the header, or of LoadChunk
		h, err := readHeader(head[:n])
		switch {
		case r.size-at < headerSize, err == nil && (h.Unfinished || h.size > r.size-at):
			return true
		case err != nil:
			return false
		}
		at += h.size
	}
	return false
}

// At says in which chunk, at which byte of it and in which event an error is.
func (r *Recording) At(event string, err error) error {
	if event != "" {
		event = ", event " + event
	}
	return fmt.Errorf("chunk %d, byte %d%s: %w", r.Chunk, r.Event, event, err)
}

// Types of events that have the same number in every chunk.
const (
	TypeMetadata   = 0
	TypeCheckpoint = 1
)

// errIncomplete says that a chunk ends inside an event.
var errIncomplete = errors.New("the event is not complete")

// Events yields the type of each event and its fields, until there is an error. The last event of an unfinished chunk
// need not be complete.
func (r *Recording) Events(yield func(typeID uint64, fields *Cursor) bool) {
	var c Cursor
	for at := headerSize; at < r.stop && r.Err == nil; at = len(c.Data) {
		typeID, complete := r.EventAt(&c, at)
		switch {
		case complete:
			if !yield(typeID, &c) {
				return
			}
		case r.Header.Unfinished:
			r.stop = at
		default:
			r.Err = r.At("", errIncomplete)
		}
	}
}

// EventAt sets c to the fields of the event at a position.
func (r *Recording) EventAt(c *Cursor, at int) (typeID uint64, complete bool) {
	r.Event = at
	c.Data, c.At, c.Err = r.Data[:r.stop], at, nil
	size := c.Varint()
	if size > uint64(r.stop-at) || int(size) < c.At-at || c.Err != nil {
		return 0, false
	}
	c.Data = r.Data[:at+int(size)]
	typeID = c.Varint()
	return typeID, c.Err == nil
}

// Header is that of a chunk. Its numbers are big-endian.
type Header struct {
	size     int64 // of the chunk, in bytes
	metadata int64 // where the metadata event is that counts
	Start    int64 // nanoseconds since the epoch
	Duration int64 // nanoseconds
	ticks    int64 // at start
	rate     int64 // ticks a second
	// Unfinished means that the JVM still wrote the chunk, or was killed.
	Unfinished bool
}

const (
	headerSize   = 68
	majorVersion = 2
	compressed   = 1 // a flag: integers are varints
)

var magic = []byte("FLR\x00")

// IsRecording reports whether data starts as a recording does.
func IsRecording(data []byte) bool { return bytes.HasPrefix(data, magic) }

func readHeader(data []byte) (h Header, err error) {
	if len(data) < headerSize {
		return h, fmt.Errorf("the header has %d of %d bytes", len(data), headerSize)
	}
	if !IsRecording(data) {
		return h, fmt.Errorf("a chunk starts with %q: must be FLR and a zero byte", data[:len(magic)])
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(data[at:])) }
	major, flags := binary.BigEndian.Uint16(data[4:]), binary.BigEndian.Uint16(data[66:])
	h = Header{
		size: number(8), metadata: number(24), Start: number(32), Duration: number(40), ticks: number(48), rate: number(56),
		Unfinished: data[64] != 0,
	}
	switch {
	case major != majorVersion:
		return h, fmt.Errorf("the major version is %d: must be %d", major, majorVersion)
	case flags&compressed == 0:
		return h, errors.New("integers are not compressed, which is not supported")
	case h.rate <= 0:
		return h, fmt.Errorf("ticks a second are %d: must be 1 or more", h.rate)
	case !h.Unfinished && h.size < headerSize:
		return h, fmt.Errorf("the size of the chunk is %d: must be %d or more", h.size, headerSize)
	}
	return h, nil
}

// Time returns the time of a number of ticks, in nanoseconds since the epoch, at least 0.
func (h *Header) Time(ticks int64) uint64 {
	t := uint64(max(h.Start, 0))
	if ticks < h.ticks {
		return t - min(t, uint64(h.In(UnitTicks, h.ticks-ticks)))
	}
	return t + uint64(h.In(UnitTicks, ticks-h.ticks))
}

// In returns a time span of the given unit in nanoseconds, at least 0.
func (h *Header) In(u Unit, span int64) int64 {
	switch u {
	case UnitTicks:
		return Scale(span, 1e9, h.rate)
	case UnitNone:
		return max(span, 0)
	}
	return Scale(span, int64(u), 1)
}

// Scale returns n * by / divisor, at most the largest int64 and at least 0.
func Scale(n, by, divisor int64) int64 {
	const maxInt64 = 1<<63 - 1
	if n <= 0 || by == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(by))
	if hi >= uint64(divisor) {
		return maxInt64
	}
	quotient, _ := bits.Div64(hi, lo, uint64(divisor))
	return int64(min(quotient, maxInt64))
}
