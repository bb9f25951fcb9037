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
	var tag uint64
	if b := c.data[c.at]; b < 0x80 {
		tag = uint64(b)
		c.at++
	} else if tag = c.varint(); c.err != nil {
		return false
	}
	c.field, c.wire = tag>>3, uint8(tag&7)
	switch c.wire {
	case wireVarint:
		if c.at < c.end && c.data[c.at] < 0x80 {
			c.value = uint64(c.data[c.at])
			c.at++
			return true
		}
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

// scalars reads all of the message into values by field number, if it holds
// nothing but varints with the numbers 1 to 7; otherwise it reads nothing and
// returns false. Most messages of a pprof are like that, and this is several times
// as fast as next.
func (c *cursor) scalars(values *[8]uint64) bool {
	data, at := c.data[:c.end], c.at
	for at+1 < len(data) {
		tag, v := data[at], uint64(data[at+1])
		if tag >= 8<<3 || tag&7 != wireVarint {
			return false
		}
		at += 2
		if v >= 0x80 {
			v &= 0x7F
			for shift := 7; ; shift += 7 {
				if at == len(data) || shift == 63 {
					return false
				}
				b := data[at]
				at++
				v |= uint64(b&0x7F) << shift
				if b < 0x80 {
					break
				}
			}
		}
		values[tag>>3] = v
	}
	if at != len(data) {
		return false
	}
	c.at = at
	return true
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
	if c.wire != wireBytes && c.err == nil {
		c.err = fmt.Errorf("wire type is %d, not length-delimited", c.wire)
	}
	if c.err != nil {
		return cursor{}
	}
	return cursor{data: c.data, at: c.start, end: c.stop}
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
