// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"encoding/binary"
)

// cursor reads a section. Beyond its end it reads zeros, and sets short.
type cursor struct {
	data  []byte
	at    uint64
	order binary.ByteOrder
	short bool
}

// skip returns the next n bytes, nil if there are fewer.
func (c *cursor) skip(n uint64) []byte {
	if n > uint64(len(c.data))-c.at {
		c.at, c.short = uint64(len(c.data)), true
		return nil
	}
	c.at += n
	return c.data[c.at-n : c.at]
}

// uint reads an integer of 1, 2, 3, 4 or 8 bytes.
func (c *cursor) uint(size int) (v uint64) {
	b := c.skip(uint64(size))
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(c.order.Uint16(b))
	case 4:
		return uint64(c.order.Uint32(b))
	case 8:
		return c.order.Uint64(b)
	}
	for i := range b {
		if c.order == binary.ByteOrder(binary.LittleEndian) {
			i = len(b) - 1 - i
		}
		v = v<<8 | uint64(b[i])
	}
	return v
}

// length reads the length of a unit, which says whether offsets in it have 8 bytes, as in the 64-bit format of DWARF, or 4.
func (c *cursor) length() (n uint64, offsetSize int) {
	if n = c.uint(4); n == 1<<32-1 {
		return c.uint(8), 8
	}
	return n, 4
}

// leb128 reads a number of groups of 7 bits, and returns how many bits these have.
func (c *cursor) leb128() (v uint64, bits int) {
	for i, b := range c.data[c.at:] {
		if bits < 64 {
			v |= uint64(b&0x7f) << bits
			bits += 7
		}
		if b < 0x80 {
			c.at += uint64(i) + 1
			return v, bits
		}
	}
	c.at, c.short = uint64(len(c.data)), true
	return 0, 64
}

func (c *cursor) uvarint() uint64 {
	v, _ := c.leb128()
	return v
}

// varint reads a number whose highest bit is the sign.
func (c *cursor) varint() int64 {
	v, bits := c.leb128()
	unused := max(0, 64-bits)
	return int64(v<<unused) >> unused
}

// text reads what ends with a zero.
func (c *cursor) text() []byte {
	n := bytes.IndexByte(c.data[c.at:], 0)
	if n < 0 {
		c.at, c.short = uint64(len(c.data)), true
		return nil
	}
	return c.skip(uint64(n) + 1)[:n]
}
