// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Cursor reads values of a chunk. After the first malformed one, failed says what is wrong,
// and all that follow are zero.
type Cursor struct {
	Data   []byte
	At     int
	Failed string
}

func (c *Cursor) fail(what string) {
	if c.Failed == "" {
		c.Failed = what
	}
	c.At = len(c.Data)
}

const truncated = "ends too early"

// Varint reads an integer: seven bits a byte, the lowest first, of which the ninth byte
// has eight.
func (c *Cursor) Varint() uint64 {
	if c.At < len(c.Data) {
		if b := c.Data[c.At]; b < 0x80 {
			c.At++
			return uint64(b)
		}
	}
	return c.longVarint()
}

const highBits = 0x8080808080808080

func (c *Cursor) longVarint() (v uint64) {
	const last = 8 // the ninth byte
	if c.At+last < len(c.Data) {
		word := binary.LittleEndian.Uint64(c.Data[c.At:])
		ends := ^word & highBits
		if ends == 0 {
			c.At += last + 1
			return pack(word) | uint64(c.Data[c.At-1])<<(7*last)
		}
		n := bits.TrailingZeros64(ends)/8 + 1
		c.At += n
		return pack(word << (64 - 8*n) >> (64 - 8*n))
	}
	for i := range last + 1 {
		if c.At >= len(c.Data) {
			break
		}
		b := c.Data[c.At]
		c.At++
		if b < 0x80 || i == last {
			return v | uint64(b)<<(7*i)
		}
		v |= uint64(b&0x7f) << (7 * i)
	}
	c.fail(truncated)
	return 0
}

// pack moves the seven low bits of each byte together.
func pack(word uint64) uint64 {
	word &^= highBits
	word = word&0x00ff00ff00ff00ff | word&0xff00ff00ff00ff00>>1
	word = word&0x0000ffff0000ffff | word&0xffff0000ffff0000>>2
	return word&0x00000000ffffffff | word>>32<<28
}

// skipVarints skips n integers, eight bytes at a time.
func (c *Cursor) skipVarints(n int) {
	const step = 8
	at, open := c.At, 0 // open bytes of an integer have been read
	for n > step && at+step <= len(c.Data) {
		ends := ^binary.LittleEndian.Uint64(c.Data[at:]) & highBits
		if open+bits.TrailingZeros64(ends)/8 >= step { // one of nine bytes
			c.At = at - open
			c.Varint()
			at, open = c.At, 0
			n--
			continue
		}
		n -= bits.OnesCount64(ends)
		open = bits.LeadingZeros64(ends) / 8
		at += step
	}
	c.At = at - open
	for range n {
		if c.Varint(); c.Failed != "" {
			return
		}
	}
}

// Count reads the number of elements that follow, each of which takes a byte or more.
func (c *Cursor) Count() int {
	n := c.Varint()
	if n > uint64(len(c.Data)-c.At) {
		c.fail("has more elements than bytes")
		return 0
	}
	return int(n)
}

// Bytes reads n bytes.
func (c *Cursor) Bytes(n int) []byte {
	if n > len(c.Data)-c.At {
		c.fail(truncated)
		return nil
	}
	c.At += n
	return c.Data[c.At-n : c.At]
}

// Encodings of strings.
const (
	textNull byte = iota
	textEmpty
	textConstant // the id of a constant
	textUTF8
	textUTF16 // code units as integers
	textLatin1
)

const unknownText = "has an unknown encoding of strings"

// text reads a string, in memory of the chunk or of scratch. If it is a constant, text
// returns its id instead.
func (c *Cursor) text(scratch *[]byte) (text []byte, constant uint64, isConstant bool) {
	encoding := c.Bytes(1)
	if len(encoding) == 0 {
		return nil, 0, false
	}
	switch encoding[0] {
	case textNull, textEmpty:
	case textConstant:
		return nil, c.Varint(), true
	case textUTF8:
		return c.Bytes(c.Count()), 0, false
	case textUTF16:
		*scratch = c.appendUTF16((*scratch)[:0])
		return *scratch, 0, false
	case textLatin1:
		*scratch = (*scratch)[:0]
		for _, b := range c.Bytes(c.Count()) {
			*scratch = utf8.AppendRune(*scratch, rune(b))
		}
		return *scratch, 0, false
	default:
		c.fail(unknownText)
	}
	return nil, 0, false
}

func (c *Cursor) appendUTF16(dst []byte) []byte {
	for n := c.Count(); n > 0; n-- {
		r := rune(uint16(c.Varint()))
		if utf16.IsSurrogate(r) {
			after := *c
			if pair := utf16.DecodeRune(r, rune(uint16(after.Varint()))); n > 1 && pair != utf8.RuneError {
				*c, r = after, pair
				n--
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

func (c *Cursor) skipText() {
	encoding := c.Bytes(1)
	if len(encoding) == 0 {
		return
	}
	switch encoding[0] {
	case textNull, textEmpty:
	case textConstant:
		c.Varint()
	case textUTF8, textLatin1:
		c.Bytes(c.Count())
	case textUTF16:
		c.skipVarints(c.Count())
	default:
		c.fail(unknownText)
	}
}
