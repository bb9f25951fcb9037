// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Header is that of a chunk. Its numbers are big-endian.
type Header struct {
	size     int64 // of the chunk, in bytes
	Metadata int64 // where the metadata event is that counts
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

// readHeader reads a header that has data for headerSize bytes or more.
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
		size: number(8), Metadata: number(24), Start: number(32), Duration: number(40), ticks: number(48), rate: number(56),
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
	t, after := uint64(max(h.Start, 0)), uint64(h.nanoseconds(ticks-h.ticks))
	if ticks < h.ticks {
		after = uint64(h.nanoseconds(h.ticks - ticks))
		return t - min(t, after)
	}
	return t + after
}

// nanoseconds returns the length of ticks, at most the largest int64 and at least 0.
func (h *Header) nanoseconds(ticks int64) int64 { return Scale(ticks, 1e9, h.rate) }

// Scale returns n * by / divisor, at most the largest int64 and at least 0.
func Scale(n, by, divisor int64) int64 {
	const maxInt64 = 1<<63 - 1
	if n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(by))
	if hi >= uint64(divisor) {
		return maxInt64
	}
	quotient, _ := bits.Div64(hi, lo, uint64(divisor))
	return int64(min(quotient, maxInt64))
}

// In returns a time span of the given unit in nanoseconds.
func (h *Header) In(u Unit, span int64) int64 {
	switch u {
	case UnitTicks:
		return h.nanoseconds(span)
	case UnitMicroseconds:
		return Scale(span, 1e3, 1)
	case UnitMilliseconds:
		return Scale(span, 1e6, 1)
	case UnitSeconds:
		return Scale(span, 1e9, 1)
	default:
		return max(span, 0)
	}
}

// Types of events that have the same number in every chunk.
const (
	TypeMetadata   = 0
	TypeCheckpoint = 1
)

// errIncomplete says that a chunk ends inside an event.
var errIncomplete = errors.New("the event is not complete")

// EventAt sets c to the fields of the event at a position, and returns the type of the
// event and the position of the next one.
func (r *Recording) EventAt(c *Cursor, at int) (typeID uint64, next int, err error) {
	*c = Cursor{Data: r.Data, At: at}
	size := c.Varint()
	if c.Failed != "" || size == 0 || size > uint64(len(r.Data)-at) {
		return 0, at, errIncomplete
	}
	next = at + int(size)
	c.Data = r.Data[:next]
	if typeID = c.Varint(); c.Failed != "" {
		return 0, at, errIncomplete
	}
	return typeID, next, nil
}

// Events calls do for each event of the chunk, in order. The last one of an unfinished
// chunk need not be complete.
func (r *Recording) Events(do func(typeID uint64, c *Cursor, at int) error) error {
	var c Cursor // one for all, as it escapes
	for at := headerSize; at < r.Stop; {
		typeID, next, err := r.EventAt(&c, at)
		if err != nil {
			if r.Header.Unfinished {
				r.Stop = at
				return nil
			}
			return r.At(at, "", err)
		}
		if err := do(typeID, &c, at); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// At says in which chunk, at which byte of it and in which event an error is.
func (r *Recording) At(at int, event string, err error) error {
	if event != "" {
		event = ", event " + event
	}
	return fmt.Errorf("chunk %d, byte %d%s: %w", r.Chunk, at, event, err)
}

// FindMetadata reads the metadata event that counts: the one that the header names. That of
// an unfinished chunk may be out of date, so the last complete one counts there.
func (r *Recording) FindMetadata() error {
	if r.Header.Unfinished {
		r.Header.Metadata = 0
		if err := r.Events(func(typeID uint64, _ *Cursor, at int) error {
			if typeID == TypeMetadata {
				r.Header.Metadata = int64(at)
			}
			return nil
		}); err != nil || r.Header.Metadata == 0 {
			return err
		}
	}
	at := r.Header.Metadata
	if at < headerSize || at >= int64(r.Stop) {
		return r.At(0, "", fmt.Errorf("the metadata are at byte %d: must be inside the chunk, %d to %d", at, headerSize, r.Stop-1))
	}
	var c Cursor
	typeID, _, err := r.EventAt(&c, int(at))
	if err == nil && typeID != TypeMetadata {
		err = fmt.Errorf("the event has the type %d: must be %d", typeID, TypeMetadata)
	}
	if err == nil {
		err = r.readMetadata(&c)
	}
	if err != nil {
		return r.At(int(at), "metadata", err)
	}
	return nil
}

// LimitError says that a recording is over a limit.
type LimitError struct {
	What  string // what was counted, and where
	Limit int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: more than the limit of %d", e.What, e.Limit)
}
