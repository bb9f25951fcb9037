// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire reads the protobuf wire format without generated code and without
// copies: a [Cursor] walks over the fields of a message.
//
// It accepts everything that google/pprof accepts, which is more than protowire does:
// field number 0, and a varint whose tenth byte has bits beyond the 64th. Like
// google/pprof it rejects groups.
//
// A [Meter] and a [JSONMeter] estimate the memory that a message of OTLP profiles takes in pdata, before pdata
// decodes it. A message of tiny entries takes over 60 times its size, and pdata decodes nested values by
// recursion without a bound.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Wire types, from https://protobuf.dev/programming-guides/encoding.
const (
	VarintType  = 0
	Fixed64Type = 1
	BytesType   = 2
	Fixed32Type = 5
)

// Errors that Cursor.Err may hold.
var (
	ErrTruncated = errors.New("the message ends inside a field")
	ErrOverflow  = errors.New("a varint is longer than 10 bytes")
)

// Cursor reads the fields of one message, Data[At:End], in their order. Positions are
// absolute in Data, so that a caller can store the place of a nested message and read
// it later.
//
// The fields are exported for speed. Set Data, At and End to make a Cursor; only read
// the others.
type Cursor struct {
	Data    []byte
	At, End int

	// The current field, which Next has read.
	Field uint64 // its number
	Type  uint8  // its wire type
	Value uint64 // its value, if it is a varint
	Start int    // its content is Data[Start:Stop], if it is not
	Stop  int

	Err error // the first error; Next returns false from then on, and End is where it is
}

// New returns a Cursor over all of data.
func New(data []byte) Cursor { return Cursor{Data: data, End: len(data)} }

// Next reads the next field. It returns false at the end of the message and on an
// error, which Err holds.
func (c *Cursor) Next() bool { return c.At < c.End && c.next() }

func (c *Cursor) next() bool {
	data, at := c.Data[:c.End], c.At
	if at+1 < len(data) && data[at] < 0x80 { // a tag of one byte, as most fields have
		tag, v := data[at], data[at+1]
		switch tag & 7 {
		case VarintType:
			if v < 0x80 {
				c.Field, c.Type, c.Value, c.At = uint64(tag>>3), VarintType, uint64(v), at+2
				return true
			}
			if v, end := upTo9(data, v, at+2); end > 0 {
				c.Field, c.Type, c.Value, c.At = uint64(tag>>3), VarintType, v, end
				return true
			}
		case BytesType:
			if start, stop := short(data, at); stop > 0 {
				c.Field, c.Type, c.Start, c.Stop, c.At = uint64(tag>>3), BytesType, start, stop, stop
				return true
			}
		}
	}
	if c.nextLong(); c.Err != nil {
		c.End = c.At // Next returns false from now on
	}
	return c.Err == nil
}

func (c *Cursor) nextLong() {
	tag := c.Varint()
	if c.Err != nil {
		return
	}
	c.Field, c.Type = tag>>3, uint8(tag&7)
	size := uint64(0)
	switch c.Type {
	case VarintType:
		c.Value = c.Varint()
	case BytesType:
		size = c.Varint()
	case Fixed64Type:
		size = 8
	case Fixed32Type:
		size = 4
	default:
		c.Err = fmt.Errorf("not protobuf: wire type %d", c.Type)
	}
	if c.Err == nil && size > uint64(c.End-c.At) {
		c.Err = ErrTruncated
	}
	if c.Err == nil {
		c.Start, c.Stop = c.At, c.At+int(size)
		c.At = c.Stop
	}
}

// short returns where the content of the length-delimited field at a position is, if its tag takes one byte, as
// must be known, and its length at most two. Otherwise stop is 0. Most messages of a pprof are such fields.
func short(data []byte, at int) (start, stop int) {
	size := int(data[at+1])
	if start = at + 2; size >= 0x80 && start < len(data) {
		size += (int(data[start]) - 1) << 7
		start++
	}
	if stop = start + size; size >= 1<<14 || stop > len(data) {
		stop = 0
	}
	return start, stop
}

// upTo9 returns the varint whose first byte, at least 0x80, comes before a position, and where it ends. end is 0 if
// the varint does not end within nine bytes.
func upTo9(data []byte, first byte, at int) (v uint64, end int) {
	v = uint64(first & 0x7F)
	for shift := 7; shift < 63 && at < len(data); shift += 7 {
		b := data[at]
		at++
		v |= uint64(b&0x7F) << shift
		if b < 0x80 {
			return v, at
		}
	}
	return 0, 0
}

// NextOf reads up to the next field with this number, and enters it: m is over the same data, and without an error. It
// returns false as Next does.
func (c *Cursor) NextOf(field int, m *Cursor) bool {
	data, at := c.Data[:c.End], c.At
	for at+1 < len(data) {
		tag, next := int(data[at]), 0
		switch tag & 0x87 {
		case BytesType:
			start, stop := short(data, at)
			if tag>>3 == field && stop > 0 {
				c.At, m.At, m.End = stop, start, stop
				return true
			}
			next = stop
		case VarintType:
			if tag>>3 != field {
				next = at + 2
				if first := data[at+1]; first >= 0x80 {
					_, next = upTo9(data, first, next)
				}
			}
		}
		if next == 0 {
			break
		}
		at = next
	}
	for c.At = at; c.Next(); {
		if c.Field == uint64(field) {
			m.Enter(c)
			return true
		}
	}
	return false
}

// Run is where the fields of one number are, from the start of the first to the end of the last, and how many
// there are. Other fields may be between them.
type Run struct{ Count, Start, Stop int }

// Add adds a field.
func (r *Run) Add(start, stop int) {
	if r.Count == 0 {
		r.Start = start
	}
	r.Count++
	r.Stop = stop
}

// SkipRuns skips fields whose numbers are bits of mask, and adds them to runs by number. It ends at any other
// field, and at one that is not length-delimited, or is long.
func (c *Cursor) SkipRuns(mask uint, runs *[16]Run) {
	data := c.Data[:c.End]
	for at := c.At; at+1 < len(data) && data[at]&0x87 == BytesType && mask>>(data[at]>>3)&1 != 0; at = c.At {
		_, stop := short(data, at)
		if stop == 0 {
			break
		}
		field := data[at] >> 3
		runs[field].Add(at, stop)
		c.Field, c.At = uint64(field), stop
	}
}

// Varint reads the varint at At: a tag, a length, or an element of a packed field.
func (c *Cursor) Varint() uint64 {
	v, n, err := varint(c.Data[c.At:c.End])
	if c.At += n; err != nil {
		c.Err = err
	}
	return v
}

// varint returns the varint at the start of data, and its length. encoding/binary's rejects bits
// beyond the 64th.
func varint(data []byte) (v uint64, n int, err error) {
	const most = 10
	for n, b := range data[:min(len(data), most)] {
		v |= uint64(b&0x7F) << (7 * n)
		if b < 0x80 {
			return v, n + 1, nil
		}
	}
	if len(data) < most {
		return 0, len(data), ErrTruncated
	}
	return 0, most, ErrOverflow
}

// Scalars reads the varint fields at the start of the message into values, indexed by
// field number, and stops at the first field of another wire type or whose number is not
// an index of values. len(values) must be at most 16, so that each tag is one byte. Next
// reads the rest. Most messages of a pprof hold
// little else, and this is several times as fast as Next.
func (c *Cursor) Scalars(values []uint64) {
	rest := c.Data[c.At:min(c.End+1, len(c.Data))] // the byte after the message may be read, and is masked
	for len(rest) > 2 {
		tag, first, second := rest[0], uint64(rest[1]), uint64(rest[2])
		if int(tag>>3) >= len(values) || tag&7 != VarintType {
			break
		}
		long := first >> 7 // 1 if it takes two bytes, which a processor cannot predict
		v, size := first&0x7F|second<<7&-long, 2+int(long)
		if first&second >= 0x80 {
			v, size = upTo9(rest, rest[1], 2)
		}
		if size == 0 || c.At+size > c.End {
			break
		}
		values[tag>>3] = v
		c.At += size
		rest = rest[size:]
	}
}

// Uint returns the value of the current field, which must be a varint.
func (c *Cursor) Uint() uint64 {
	if c.Type != VarintType {
		c.wrongType("varint")
	}
	return c.Value
}

// wrongType is the error of a field of another wire type, unless there is one already.
func (c *Cursor) wrongType(want string) {
	if c.Err == nil {
		c.Err, c.End = fmt.Errorf("wire type is %d, not %s", c.Type, want), c.At
	}
}

// Message returns a Cursor over the current field, which must be length-delimited.
func (c *Cursor) Message() Cursor {
	m := Cursor{Data: c.Data}
	m.Enter(c)
	return m
}

// Enter sets c to the current field of outer, as outer.Message does. It needs a Cursor
// over the same data without an error; reusing one is faster for many messages.
func (c *Cursor) Enter(outer *Cursor) {
	c.At, c.End = outer.Start, outer.Stop
	if outer.WantMessage(); outer.Type != BytesType {
		c.At, c.End = 0, 0
	}
}

// WantMessage checks that the current field is length-delimited.
func (c *Cursor) WantMessage() {
	if c.Type != BytesType {
		c.wrongType("length-delimited")
	}
}

// AppendRepeated appends the values of the current field, a varint or a packed run of
// varints, to dst. It stops once dst holds more than limit values: a value of one byte
// takes eight in memory, so the caller must bound them.
func (c *Cursor) AppendRepeated(dst []uint64, limit int) []uint64 {
	if c.Type != BytesType {
		if v := c.Uint(); len(dst) <= limit {
			dst = append(dst, v)
		}
		return dst
	}
	data, at := c.Data[:c.Stop], c.Start
	for at < len(data) && len(dst) <= limit {
		if at+1 < len(data) {
			if first, second := uint64(data[at]), uint64(data[at+1]); first&second < 0x80 {
				long := first >> 7 // 1 if it takes two bytes, which a processor cannot predict
				dst = append(dst, first&0x7F|second<<7&-long)
				at += 1 + int(long)
				continue
			}
		}
		v, end := upTo9(data, data[at], at+1)
		if end == 0 {
			long, n, err := varint(data[at:])
			if err != nil {
				c.Err, c.End = err, c.At
				break
			}
			v, end = long, at+n
		}
		dst, at = append(dst, v), end
	}
	return dst
}

// CountRepeated returns how many values AppendRepeated would append if the field is not malformed.
func (c *Cursor) CountRepeated() (n int) {
	if c.Type != BytesType {
		return 1
	}
	const more = 0x8080808080808080 // set in each byte of a varint but its last
	data := c.Data[c.Start:c.Stop]
	for ; len(data) >= 8; data = data[8:] {
		n += bits.OnesCount64(^binary.LittleEndian.Uint64(data) & more)
	}
	for _, b := range data {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// Bytes returns the content of the current field, which must be length-delimited. It
// shares the memory of Data.
func (c *Cursor) Bytes() []byte {
	m := c.Message()
	return m.Data[m.At:m.End:m.End]
}
