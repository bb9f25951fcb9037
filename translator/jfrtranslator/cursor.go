// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// cursor reads values of a chunk. After the first malformed one, failed says what is wrong,
// and all that follow are zero.
type cursor struct {
	data   []byte
	at     int
	failed string
}

func (c *cursor) fail(what string) {
	if c.failed == "" {
		c.failed = what
	}
	c.at = len(c.data)
}

const truncated = "ends too early"

// varint reads an integer: seven bits a byte, the lowest first, of which the ninth byte
// has eight.
func (c *cursor) varint() uint64 {
	if c.at < len(c.data) {
		if b := c.data[c.at]; b < 0x80 {
			c.at++
			return uint64(b)
		}
	}
	return c.longVarint()
}

const highBits = 0x8080808080808080

func (c *cursor) longVarint() (v uint64) {
	const last = 8 // the ninth byte
	if c.at+last < len(c.data) {
		word := binary.LittleEndian.Uint64(c.data[c.at:])
		ends := ^word & highBits
		if ends == 0 {
			c.at += last + 1
			return pack(word) | uint64(c.data[c.at-1])<<(7*last)
		}
		n := bits.TrailingZeros64(ends)/8 + 1
		c.at += n
		return pack(word << (64 - 8*n) >> (64 - 8*n))
	}
	for i := range last + 1 {
		if c.at >= len(c.data) {
			break
		}
		b := c.data[c.at]
		c.at++
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
func (c *cursor) skipVarints(n int) {
	const step = 8
	at, open := c.at, 0 // open bytes of an integer have been read
	for n > step && at+step <= len(c.data) {
		ends := ^binary.LittleEndian.Uint64(c.data[at:]) & highBits
		if open+bits.TrailingZeros64(ends)/8 >= step { // one of nine bytes
			c.at = at - open
			c.varint()
			at, open = c.at, 0
			n--
			continue
		}
		n -= bits.OnesCount64(ends)
		open = bits.LeadingZeros64(ends) / 8
		at += step
	}
	c.at = at - open
	for range n {
		if c.varint(); c.failed != "" {
			return
		}
	}
}

// count reads the number of elements that follow, each of which takes a byte or more.
func (c *cursor) count() int {
	n := c.varint()
	if n > uint64(len(c.data)-c.at) {
		c.fail("has more elements than bytes")
		return 0
	}
	return int(n)
}

// bytes reads n bytes.
func (c *cursor) bytes(n int) []byte {
	if n > len(c.data)-c.at {
		c.fail(truncated)
		return nil
	}
	c.at += n
	return c.data[c.at-n : c.at]
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
func (c *cursor) text(scratch *[]byte) (text []byte, constant uint64, isConstant bool) {
	encoding := c.bytes(1)
	if len(encoding) == 0 {
		return nil, 0, false
	}
	switch encoding[0] {
	case textNull, textEmpty:
	case textConstant:
		return nil, c.varint(), true
	case textUTF8:
		return c.bytes(c.count()), 0, false
	case textUTF16:
		*scratch = c.appendUTF16((*scratch)[:0])
		return *scratch, 0, false
	case textLatin1:
		*scratch = (*scratch)[:0]
		for _, b := range c.bytes(c.count()) {
			*scratch = utf8.AppendRune(*scratch, rune(b))
		}
		return *scratch, 0, false
	default:
		c.fail(unknownText)
	}
	return nil, 0, false
}

func (c *cursor) appendUTF16(dst []byte) []byte {
	for n := c.count(); n > 0; n-- {
		r := rune(uint16(c.varint()))
		if utf16.IsSurrogate(r) {
			after := *c
			if pair := utf16.DecodeRune(r, rune(uint16(after.varint()))); n > 1 && pair != utf8.RuneError {
				*c, r = after, pair
				n--
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

func (c *cursor) skipText() {
	encoding := c.bytes(1)
	if len(encoding) == 0 {
		return
	}
	switch encoding[0] {
	case textNull, textEmpty:
	case textConstant:
		c.varint()
	case textUTF8, textLatin1:
		c.bytes(c.count())
	case textUTF16:
		c.skipVarints(c.count())
	default:
		c.fail(unknownText)
	}
}
