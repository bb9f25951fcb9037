// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"iter"
)

// The entries of a list in .debug_rnglists. See the standard, chapter 7.25.
const (
	rangeEnd = iota
	rangeBaseIndex
	rangeStartEndIndex
	rangeStartLengthIndex
	rangeOffsets
	rangeBase
	rangeStartEnd
	rangeStartLength
)

var errRanges = errors.New("a list of ranges leads outside of its section")

// rangesOf returns the addresses of a DIE. An error ends the build.
func (u *unit) rangesOf(e *die) iter.Seq[span] {
	return func(yield func(span) bool) {
		low, ok := u.address(e.values[attrLow])
		if high := e.values[attrHigh]; ok && high.form != 0 {
			end, isAddress := u.address(high)
			if !isAddress {
				end = low + high.number
			}
			if !yield(span{low, end}) {
				return
			}
		}
		list := e.values[attrRanges]
		if list.form == 0 {
			return
		}
		section, at, read := u.ranges, list.number, u.readRange
		if u.version >= 5 {
			section, read = u.rangeLists, u.readListEntry
			if list.form == formRnglistx {
				offsets := u.entryOf(section, attrRangeLists, at, u.offsetSize)
				at = u.root.values[attrRangeLists].number + offsets.uint(u.offsetSize)
			}
		}
		c := cursor{data: section, order: u.order}
		c.skip(at)
		base, _ := u.address(u.root.values[attrLow])
		for u.budget.err == nil {
			u.budget.step(1)
			r, more := read(&c, &base)
			if c.short {
				u.budget.fail(errRanges)
			}
			if !more || c.short || !yield(r) {
				return
			}
		}
	}
}

// readRange reads an entry of .debug_ranges: a start and an end, which are relative to a base, or all bits and a new base.
// Two zeros end the list.
func (u *unit) readRange(c *cursor, base *uint64) (r span, more bool) {
	r = span{c.uint(u.addressSize), c.uint(u.addressSize)}
	switch {
	case r == span{}:
		return r, false
	case r.start == 1<<(8*u.addressSize)-1:
		*base = r.end
		return span{}, true
	}
	return span{*base + r.start, *base + r.end}, true
}

// readListEntry reads an entry of .debug_rnglists.
func (u *unit) readListEntry(c *cursor, base *uint64) (r span, more bool) {
	indexed := func() uint64 {
		address, _ := u.address(value{formAddrx, c.uvarint()})
		return address
	}
	switch c.uint(1) {
	case rangeBaseIndex:
		*base = indexed()
	case rangeStartEndIndex:
		r = span{indexed(), indexed()}
	case rangeStartLengthIndex:
		r.start = indexed()
		r.end = r.start + c.uvarint()
	case rangeOffsets:
		r = span{*base + c.uvarint(), *base + c.uvarint()}
	case rangeBase:
		*base = c.uint(u.addressSize)
	case rangeStartEnd:
		r = span{c.uint(u.addressSize), c.uint(u.addressSize)}
	case rangeStartLength:
		r.start = c.uint(u.addressSize)
		r.end = r.start + c.uvarint()
	case rangeEnd:
		return r, false
	default:
		u.budget.fail(errors.New("a list of ranges has an entry of an unknown kind"))
	}
	return r, true
}
