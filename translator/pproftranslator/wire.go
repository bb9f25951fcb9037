// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Wire types of protocol buffers.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var (
	errTruncated = errors.New("the message ends inside a field")
	errVarint    = errors.New("a varint is longer than 10 bytes")
)

// cursor reads the fields of one message: data[at:end]. It accepts what
// google/pprof accepts, which is more than protowire does: field number 0, and
// varints whose tenth byte has bits to spare. Positions stay absolute so that a
// message can be found again.
type cursor struct {
	data    []byte
	at, end int

	// The field that next has read.
	field uint64
	wire  uint8
	value uint64 // of a varint or fixed field
	start int    // of a length-delimited field: data[start:stop]
	stop  int
	err   error
}

func (c *cursor) next() bool {
	if c.at >= c.end || c.err != nil {
		return false
	}
	data, at := c.data[:c.end], c.at
	if at+1 < len(data) && data[at] < 0x80 && data[at+1] < 0x80 { // most fields
		tag, v := data[at], int(data[at+1])
		at += 2
		switch {
		case tag&7 == wireVarint:
			c.field, c.wire, c.value, c.at = uint64(tag>>3), wireVarint, uint64(v), at
			return true
		case tag&7 == wireBytes && v <= len(data)-at:
			c.field, c.wire, c.start, c.stop, c.at = uint64(tag>>3), wireBytes, at, at+v, at+v
			return true
		}
	}
	tag := c.varint()
	if c.err != nil {
		return false
	}
	c.field, c.wire = tag>>3, uint8(tag&7)
	switch c.wire {
	case wireVarint:
		c.value = c.varint()
	case wireBytes:
		n := c.varint()
		if c.err == nil && n > uint64(c.end-c.at) {
			c.err = errTruncated
		}
		if c.err != nil {
			return false
		}
		c.start, c.stop = c.at, c.at+int(n)
		c.at = c.stop
	case wireFixed64:
		if c.end-c.at < 8 {
			c.err = errTruncated
			return false
		}
		c.value = binary.LittleEndian.Uint64(c.data[c.at:])
		c.at += 8
	case wireFixed32:
		if c.end-c.at < 4 {
			c.err = errTruncated
			return false
		}
		c.value = uint64(binary.LittleEndian.Uint32(c.data[c.at:]))
		c.at += 4
	default:
		c.err = fmt.Errorf("wire type %d is unknown", c.wire)
	}
	return c.err == nil
}

func (c *cursor) varint() uint64 {
	var v uint64
	for shift := uint(0); shift < 70; shift += 7 {
		if c.at >= c.end {
			c.err = errTruncated
			return 0
		}
		b := c.data[c.at]
		c.at++
		v |= uint64(b&0x7F) << shift
		if b < 0x80 {
			return v
		}
	}
	c.err = errVarint
	return 0
}

// scalars reads into values, by field number, the fields at the beginning that are
// varints and have a place there (of 16 at most), and leaves the rest to next. Most
// messages of a pprof hold little else, and this is several times as fast.
func (c *cursor) scalars(values []uint64) {
	data, at := c.data[:c.end], c.at
	for at+1 < len(data) {
		tag, v := data[at], uint64(data[at+1])
		if int(tag>>3) >= len(values) || tag&7 != wireVarint {
			break
		}
		next := at + 2
		if v >= 0x80 {
			v &= 0x7F
			for shift := 7; ; shift += 7 {
				if next == len(data) || shift == 63 {
					c.at = at
					return
				}
				b := data[next]
				next++
				v |= uint64(b&0x7F) << shift
				if b < 0x80 {
					break
				}
			}
		}
		values[tag>>3] = v
		at = next
	}
	c.at = at
}

// uint is the value of the present field, which must be a varint.
func (c *cursor) uint() uint64 {
	if c.wire != wireVarint && c.err == nil {
		c.err = fmt.Errorf("wire type is %d, not varint", c.wire)
	}
	return c.value
}

func (c *cursor) int() int64 { return int64(c.uint()) }

// message is a cursor on the present field, which must be length-delimited.
func (c *cursor) message() cursor {
	m := cursor{data: c.data}
	m.enter(c)
	return m
}

// enter makes c, a cursor on the same data without an error, what outer.message
// returns: that is faster for many messages.
func (c *cursor) enter(outer *cursor) {
	if outer.wire != wireBytes && outer.err == nil {
		outer.err = fmt.Errorf("wire type is %d, not length-delimited", outer.wire)
	}
	c.at, c.end = outer.start, outer.stop
	if outer.err != nil {
		c.at, c.end = 0, 0
	}
}

// appendRepeated appends the values of the present field, which is a varint or a
// packed run of them. It leaves off after most and one values in dst, which take
// eight times the space they had.
func (c *cursor) appendRepeated(dst []uint64, most int) []uint64 {
	if c.wire != wireBytes {
		return append(dst, c.uint())
	}
	packed := cursor{data: c.data, at: c.start, end: c.stop}
	for packed.at < packed.end && len(dst) <= most {
		if b := packed.data[packed.at]; b < 0x80 {
			packed.at++
			dst = append(dst, uint64(b))
			continue
		}
		dst = append(dst, packed.varint())
		if packed.err != nil {
			c.err = packed.err
			break
		}
	}
	return dst
}
