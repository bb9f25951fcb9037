// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Cursor reads values of a chunk. After the first malformed one, Err says what is wrong, and all later values are
// zero.
type Cursor struct {
	Data []byte
	At   int
	Err  error
}

func (c *Cursor) fail(err error) {
	c.Err = cmp.Or(c.Err, err)
	c.At = len(c.Data)
}

var (
	errTruncated = errors.New("ends too early")
	errCount     = errors.New("has more elements than bytes")
	errEncoding  = errors.New("has an unknown encoding of strings")
	errNoType    = errors.New("is of a type that the metadata does not have")
	errTooDeep   = errors.New("has values that nest too deep")
)

// lastByte is the index of the last byte that an integer can have.
const lastByte = 8

// Varint reads an integer: seven bits a byte, the lowest first, of which the ninth byte
// has eight.
func (c *Cursor) Varint() (v uint64) {
	if c.At < len(c.Data) && c.Data[c.At] < 0x80 {
		c.At++
		return uint64(c.Data[c.At-1])
	}
	if c.At+8 <= cap(c.Data) {
		v = c.word(c.At)
		if ends := ^v & highBits; ends != 0 {
			if size := bits.TrailingZeros64(ends)/8 + 1; c.At+size <= len(c.Data) {
				c.At += size
				v &= 1<<(8*size) - 1
				v = v&0x007f007f007f007f | v&0x7f007f007f007f00>>1
				v = v&0x00003fff00003fff | v&0x3fff00003fff0000>>2
				return v&0x0fffffff | v&0x0fffffff00000000>>4
			}
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
	c.fail(errTruncated)
	return 0
}

const highBits = 0x8080808080808080

// word returns the eight bytes at a position of the chunk, which may go beyond c.Data. It needs them.
func (c *Cursor) word(at int) uint64 { return binary.LittleEndian.Uint64(c.Data[at : at+8]) }

// SkipVarints skips n integers, those in eight bytes at a time.
func (c *Cursor) SkipVarints(n int) {
	at := c.At
	for limit := min(len(c.Data), cap(c.Data)-7); n > 0 && at < limit; {
		ends := ^c.word(at) & highBits
		switch found := bits.OnesCount64(ends); {
		case found >= n:
			for ; n > 1; n-- {
				ends &= ends - 1
			}
			if c.At = at + bits.TrailingZeros64(ends)/8 + 1; c.At > len(c.Data) {
				c.fail(errTruncated)
			}
			return
		case found > 0:
			at += 8 - bits.LeadingZeros64(ends)/8
			n -= found
		default: // one of nine bytes
			c.At = at
			c.Varint()
			at = c.At
			n--
		}
	}
	for c.At = min(at, len(c.Data)); n > 0 && c.Err == nil; n-- {
		c.Varint()
	}
}

// SharedBefore returns how many bytes before a position are those before another, at most a limit.
func (c *Cursor) SharedBefore(at, other, limit int) (n int) {
	for ; n+8 <= limit; n += 8 {
		if differ := c.word(at-n-8) ^ c.word(other-n-8); differ != 0 {
			return n + bits.LeadingZeros64(differ)/8
		}
	}
	return n
}

// count reads the number of elements that follow, each of which takes a byte or more.
func (c *Cursor) count() int {
	n := c.Varint()
	if n > uint64(len(c.Data)-c.At) {
		c.fail(errCount)
		return 0
	}
	return int(n)
}

// bytes reads n bytes.
func (c *Cursor) bytes(n int) []byte {
	if n > len(c.Data)-c.At {
		c.fail(errTruncated)
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
	if c.At >= len(c.Data) {
		c.fail(errTruncated)
		return textNull, nil
	}
	encoding = c.Data[c.At]
	c.At++
	switch encoding {
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
		c.SkipVarints(n)
		if encoding == textUTF16 && c.At-from == n { // all are ASCII
			encoding = textUTF8
		}
		return encoding, c.Data[from:c.At]
	default:
		c.fail(errEncoding)
		return textNull, nil
	}
}

// appendText appends a text of textLatin1 or textUTF16, in UTF-8.
func appendText(dst []byte, encoding byte, content []byte) []byte {
	if encoding == textLatin1 {
		for _, b := range content {
			dst = utf8.AppendRune(dst, rune(b))
		}
		return dst
	}
	units := make([]uint16, 0, len(content))
	for c := (Cursor{Data: content}); c.At < len(content); {
		units = append(units, uint16(c.Varint()))
	}
	return append(dst, string(utf16.Decode(units))...)
}

// surrogateLead is the first byte of each half of a surrogate pair. The JVM writes characters beyond
// U+FFFF as such pairs, which UTF-8 forbids.
const surrogateLead = 0xed

// appendJoined appends text with its surrogate pairs as UTF-8.
func appendJoined(dst, text []byte) []byte {
	const size = 3 // bytes of a half
	half := func(at int) rune { return 0xd000 | rune(text[at+1]&0x3f)<<6 | rune(text[at+2]&0x3f) }
	for i := 0; i < len(text); i++ {
		if text[i] == surrogateLead && i+2*size <= len(text) && text[i+size] == surrogateLead {
			if pair := utf16.DecodeRune(half(i), half(i+size)); pair != utf8.RuneError {
				dst = utf8.AppendRune(dst, pair)
				i += 2*size - 1
				continue
			}
		}
		dst = append(dst, text[i])
	}
	return dst
}
