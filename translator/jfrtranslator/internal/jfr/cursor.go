// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Cursor reads values of a chunk. After the first malformed one, Failed says what is wrong,
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

// lastByte is the index of the last byte that an integer can have.
const lastByte = 8

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

func (c *Cursor) longVarint() (v uint64) {
	for i, b := range c.Data[c.At:min(len(c.Data), c.At+lastByte+1)] {
		if b < 0x80 || i == lastByte {
			c.At += i + 1
			return v | uint64(b)<<(7*i)
		}
		v |= uint64(b&0x7f) << (7 * i)
	}
	c.fail(truncated)
	return 0
}

const highBits = 0x8080808080808080

// word returns the eight bytes at a position of the chunk, which may go beyond c.Data. It needs them.
func (c *Cursor) word(at int) uint64 { return binary.LittleEndian.Uint64(c.Data[at : at+8]) }

// skipVarints skips n integers, eight bytes at a time.
func (c *Cursor) skipVarints(n int) {
	const step = 8
	at, open := c.At, 0 // open bytes of an integer have been read
	for n > 0 && at < len(c.Data) && at+step <= cap(c.Data) {
		ends := ^c.word(at) & highBits
		if open+bits.TrailingZeros64(ends)/8 >= lastByte { // one of nine bytes
			c.At = at - open
			c.Varint()
			at, open = c.At, 0
			n--
			continue
		}
		if found := bits.OnesCount64(ends); found < n {
			n -= found
			open = bits.LeadingZeros64(ends) / 8
			at += step
			continue
		}
		for ; n > 1; n-- {
			ends &= ends - 1
		}
		if c.At = at + bits.TrailingZeros64(ends)/8 + 1; c.At > len(c.Data) {
			c.fail(truncated)
		}
		return
	}
	c.At = min(at-open, len(c.Data))
	for ; n > 0 && c.Failed == ""; n-- {
		c.Varint()
	}
}

// ShortVarints reads n integers, at least one, if they have eight bytes or fewer, and returns these.
func (c *Cursor) ShortVarints(n int) (bytes uint64, ok bool) {
	if c.At+8 > cap(c.Data) {
		return 0, false
	}
	bytes = c.word(c.At)
	ends := ^bytes & highBits
	for ; n > 1; n-- {
		ends &= ends - 1
	}
	size := bits.TrailingZeros64(ends)/8 + 1
	if ends == 0 || c.At+size > len(c.Data) {
		return 0, false
	}
	c.At += size
	return bytes & (1<<(8*size) - 1), true
}

// count reads the number of elements that follow, each of which takes a byte or more.
func (c *Cursor) count() int {
	n := c.Varint()
	if n > uint64(len(c.Data)-c.At) {
		c.fail("has more elements than bytes")
		return 0
	}
	return int(n)
}

// bytes reads n bytes.
func (c *Cursor) bytes(n int) []byte {
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

// text reads a string without decoding it.
func (c *Cursor) text() (encoding byte, content []byte) {
	first := c.bytes(1)
	if len(first) == 0 {
		return textNull, nil
	}
	switch encoding = first[0]; encoding {
	case textNull, textEmpty:
		return textNull, nil
	case textUTF8, textLatin1:
		return encoding, c.bytes(c.count())
	case textConstant, textUTF16:
		n := 1
		if encoding == textUTF16 {
			n = c.count()
		}
		from := c.At
		c.skipVarints(n)
		if encoding == textUTF16 && c.At-from == n { // all are ASCII
			encoding = textUTF8
		}
		return encoding, c.Data[from:c.At]
	default:
		c.fail("has an unknown encoding of strings")
		return textNull, nil
	}
}

// appendText appends what text has read, in UTF-8.
func appendText(dst []byte, encoding byte, content []byte) []byte {
	switch encoding {
	case textLatin1:
		for _, b := range content {
			dst = utf8.AppendRune(dst, rune(b))
		}
	case textUTF16:
		for c := (Cursor{Data: content}); c.At < len(content); {
			r := rune(uint16(c.Varint()))
			if utf16.IsSurrogate(r) {
				after := c
				if pair := utf16.DecodeRune(r, rune(uint16(after.Varint()))); pair != utf8.RuneError {
					c, r = after, pair
				}
			}
			dst = utf8.AppendRune(dst, r)
		}
	default:
		dst = append(dst, content...)
	}
	return dst
}
