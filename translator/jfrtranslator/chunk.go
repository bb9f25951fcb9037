// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// header is that of a chunk. Its numbers are big-endian.
type header struct {
	size     int64 // of the chunk, in bytes
	metadata int64 // where the metadata event is that counts
	start    int64 // nanoseconds since the epoch
	duration int64 // nanoseconds
	ticks    int64 // at start
	rate     int64 // ticks a second
	// unfinished means that the JVM still wrote the chunk, or was killed.
	unfinished bool
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
func readHeader(data []byte) (h header, err error) {
	if len(data) < headerSize {
		return h, fmt.Errorf("the header has %d of %d bytes", len(data), headerSize)
	}
	if !IsRecording(data) {
		return h, fmt.Errorf("a chunk starts with %q: must be FLR and a zero byte", data[:len(magic)])
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(data[at:])) }
	major, flags := binary.BigEndian.Uint16(data[4:]), binary.BigEndian.Uint16(data[66:])
	h = header{
		size: number(8), metadata: number(24), start: number(32), duration: number(40), ticks: number(48), rate: number(56),
		unfinished: data[64] != 0,
	}
	switch {
	case major != majorVersion:
		return h, fmt.Errorf("the major version is %d: must be %d", major, majorVersion)
	case flags&compressed == 0:
		return h, errors.New("integers are not compressed, which is not supported")
	case h.rate <= 0:
		return h, fmt.Errorf("ticks a second are %d: must be 1 or more", h.rate)
	case !h.unfinished && h.size < headerSize:
		return h, fmt.Errorf("the size of the chunk is %d: must be %d or more", h.size, headerSize)
	}
	return h, nil
}

// time returns the time of a number of ticks, in nanoseconds since the epoch, at least 0.
func (h *header) time(ticks int64) uint64 {
	t, after := uint64(max(h.start, 0)), uint64(h.nanoseconds(ticks-h.ticks))
	if ticks < h.ticks {
		after = uint64(h.nanoseconds(h.ticks - ticks))
		return t - min(t, after)
	}
	return t + after
}

// nanoseconds returns the length of ticks, at most the largest int64 and at least 0.
func (h *header) nanoseconds(ticks int64) int64 { return scale(ticks, 1e9, h.rate) }

// scale returns n * by / divisor, at most the largest int64 and at least 0.
func scale(n, by, divisor int64) int64 {
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

// in returns a time span of the given unit in nanoseconds.
func (h *header) in(u unit, span int64) int64 {
	switch u {
	case unitTicks:
		return h.nanoseconds(span)
	case unitMicroseconds:
		return scale(span, 1e3, 1)
	case unitMilliseconds:
		return scale(span, 1e6, 1)
	case unitSeconds:
		return scale(span, 1e9, 1)
	default:
		return max(span, 0)
	}
}

// Types of events that have the same number in every chunk.
const (
	typeMetadata   = 0
	typeCheckpoint = 1
)

// errIncomplete says that a chunk ends inside an event.
var errIncomplete = errors.New("the event is not complete")

// eventAt sets c to the fields of the event at a position, and returns the type of the
// event and the position of the next one.
func (d *decoder) eventAt(c *cursor, at int) (typeID uint64, next int, err error) {
	*c = cursor{data: d.data, at: at}
	size := c.varint()
	if c.failed != "" || size == 0 || size > uint64(len(d.data)-at) {
		return 0, at, errIncomplete
	}
	next = at + int(size)
	c.data = d.data[:next]
	if typeID = c.varint(); c.failed != "" {
		return 0, at, errIncomplete
	}
	return typeID, next, nil
}

// events calls do for each event of the chunk, in order. The last one of an unfinished
// chunk need not be complete.
func (d *decoder) events(do func(typeID uint64, c *cursor, at int) error) error {
	var c cursor // one for all, as it escapes
	for at := headerSize; at < d.stop; {
		typeID, next, err := d.eventAt(&c, at)
		if err != nil {
			if d.header.unfinished {
				d.stop = at
				return nil
			}
			return d.at(at, "", err)
		}
		if err := do(typeID, &c, at); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// at says in which chunk, at which byte of it and in which event an error is.
func (d *decoder) at(at int, event string, err error) error {
	if event != "" {
		event = ", event " + event
	}
	return fmt.Errorf("chunk %d, byte %d%s: %w", d.chunk, at, event, err)
}

// readChunk translates the chunk d.data.
func (d *decoder) readChunk() error {
	d.stop = len(d.data)
	if err := d.findMetadata(); err != nil {
		return err
	}
	if d.header.metadata == 0 {
		return nil // nothing was written but the header, or no event can be read
	}
	if err := d.bind(); err != nil {
		return d.at(int(d.header.metadata), "metadata", err)
	}
	if err := d.readPools(); err != nil {
		return err
	}
	for _, step := range []func() error{d.readFrameTypes, d.readStates, d.readSettings, d.resetSets, d.readSamples} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// findMetadata reads the metadata event that counts: the one that the header names. That of
// an unfinished chunk may be out of date, so the last complete one counts there.
func (d *decoder) findMetadata() error {
	if d.header.unfinished {
		d.header.metadata = 0
		if err := d.events(func(typeID uint64, _ *cursor, at int) error {
			if typeID == typeMetadata {
				d.header.metadata = int64(at)
			}
			return nil
		}); err != nil || d.header.metadata == 0 {
			return err
		}
	}
	at := d.header.metadata
	if at < headerSize || at >= int64(d.stop) {
		return d.at(0, "", fmt.Errorf("the metadata are at byte %d: must be inside the chunk, %d to %d", at, headerSize, d.stop-1))
	}
	var c cursor
	typeID, _, err := d.eventAt(&c, int(at))
	if err == nil && typeID != typeMetadata {
		err = fmt.Errorf("the event has the type %d: must be %d", typeID, typeMetadata)
	}
	if err == nil {
		err = d.readMetadata(&c)
	}
	if err != nil {
		return d.at(int(at), "metadata", err)
	}
	return nil
}
