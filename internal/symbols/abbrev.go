// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"encoding/binary"
	"errors"
	"math"
)

var errUnits = errors.New("a unit of .debug_info ends outside of the section")

// checkAbbreviations counts the steps that it takes to read the tables of abbreviations, which debug/dwarf reads
// once for each place at which a unit says that there is one. Tables of compilers do not overlap.
func (b *builder) checkAbbreviations(info, abbrev []byte, order binary.ByteOrder) error {
	seen := map[uint64]bool{}
	for len(info) > 0 && b.budget.err == nil {
		offset, rest, err := nextUnit(info, order)
		if err != nil {
			return err
		}
		info = rest
		b.budget.step(1)
		if seen[offset] {
			continue
		}
		seen[offset] = true
		if offset > uint64(len(abbrev)) {
			return errors.New("a unit of .debug_info has its abbreviations outside of .debug_abbrev")
		}
		n := tableLength(abbrev[offset:])
		b.budget.step(32 * n)
		b.budget.take(4 * int64(n))
	}
	return b.budget.err
}

// nextUnit returns where the first unit has its abbreviations, and what follows the unit.
func nextUnit(info []byte, order binary.ByteOrder) (abbreviations uint64, rest []byte, err error) {
	c := cursor{info, order}
	length, wide := uint64(c.uint32()), false
	if length == math.MaxUint32 {
		length, wide = c.uint64(), true
	}
	if length > uint64(len(c.data)) {
		return 0, nil, errUnits
	}
	rest = c.data[length:]
	c.data = c.data[:length]
	if version := c.uint16(); version >= 5 {
		c.skip(2) // type and size of addresses
	}
	if wide {
		return c.uint64(), rest, nil
	}
	return uint64(c.uint32()), rest, nil
}

// cursor reads integers. Beyond the end they are 0.
type cursor struct {
	data  []byte
	order binary.ByteOrder
}

func (c *cursor) skip(n int) []byte {
	if len(c.data) < n {
		c.data = nil
		return make([]byte, n)
	}
	skipped := c.data[:n]
	c.data = c.data[n:]
	return skipped
}

func (c *cursor) uint16() uint16 { return c.order.Uint16(c.skip(2)) }
func (c *cursor) uint32() uint32 { return c.order.Uint32(c.skip(4)) }
func (c *cursor) uint64() uint64 { return c.order.Uint64(c.skip(8)) }

// tableLength returns the length of the table of abbreviations at the start of data. Each has a code, a tag, whether there
// are children, and pairs of attribute and form that end with two zeros; the table ends with code 0.
func tableLength(data []byte) int {
	const implicitConst = 0x21 // a form whose value follows
	rest := data
	for uvarint(&rest) != 0 {
		uvarint(&rest)
		rest = rest[min(1, len(rest)):]
		for {
			attribute, form := uvarint(&rest), uvarint(&rest)
			if attribute == 0 && form == 0 {
				break
			}
			if form == implicitConst {
				uvarint(&rest)
			}
		}
	}
	return len(data) - len(rest)
}
