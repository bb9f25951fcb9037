// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// entry is a row of a block: a start, and for a range of addresses its node, file and line, or for a symbol its size and
// name.
type entry [columns]uint64

// blocks writes entries, sorted by start, into blocks of blockRanges, and makes their index. A block has its columns one
// after the other. Each is the width of a value in bytes, the least value, and the differences to that, so that a look-up
// reads one value of each column. Starts are relative to that of the block, which is in the index.
type blocks struct {
	to      *spill
	index   []byte
	entries []entry
}

func (b *blocks) add(e entry) {
	if b.entries = append(b.entries, e); len(b.entries) == blockRanges {
		b.flush()
	}
}

// flush writes the last block. It is called in the end.
func (b *blocks) flush() {
	if len(b.entries) == 0 {
		return
	}
	b.index = binary.LittleEndian.AppendUint64(b.index, b.entries[0][0])
	b.index = binary.LittleEndian.AppendUint32(b.index, uint32(b.to.size))
	b.index = binary.LittleEndian.AppendUint32(b.index, uint32(len(b.entries)))
	var data []byte
	for i := range slices.Backward(b.entries) {
		b.entries[i][0] -= b.entries[0][0]
	}
	for column := range columns {
		least, most := b.entries[0][column], uint64(0)
		for _, e := range b.entries {
			least, most = min(least, e[column]), max(most, e[column])
		}
		width := (bits.Len64(most-least) + 7) / 8
		data = binary.AppendUvarint(append(data, byte(width)), least)
		for _, e := range b.entries {
			var value [8]byte
			binary.LittleEndian.PutUint64(value[:], e[column]-least)
			data = append(data, value[:width]...)
		}
	}
	b.to.write(data)
	b.entries = b.entries[:0]
}

// column is one of a block.
type column struct {
	least uint64
	width int
	data  []byte
}

// cut returns the next column of count values, and what follows it. Data that is too short gives zeros.
func cut(data []byte, count int) (c column, rest []byte) {
	if len(data) == 0 {
		return column{}, nil
	}
	c.width = int(min(data[0], 8))
	least, n := binary.Uvarint(data[1:])
	c.least, data = least, data[1+max(0, n):]
	if len(data) < c.width*count {
		return column{}, nil
	}
	c.data = data[:c.width*count]
	return c, data[c.width*count:]
}

func (c *column) at(i int) uint64 {
	switch c.width {
	case 0:
		return c.least
	case 1:
		return c.least + uint64(c.data[i])
	case 2:
		return c.least + uint64(binary.LittleEndian.Uint16(c.data[2*i:]))
	}
	value := uint64(0)
	for k, b := range c.data[i*c.width : (i+1)*c.width] {
		value |= uint64(b) << (8 * k)
	}
	return c.least + value
}

// find returns the last entry that starts at or before an address, zero if there is none.
func (t *Table) find(part, indexPart int, address uint64) (e entry, err error) {
	index := t.parts[indexPart]
	start := func(i int) uint64 { return binary.LittleEndian.Uint64(index[i*indexSize:]) }
	i := last(len(index)/indexSize, func(i int) bool { return start(i) <= address })
	if i < 0 {
		return e, nil
	}
	data, count, err := block(t.parts[part], index[i*indexSize:])
	if err != nil {
		return e, err
	}
	starts, data := cut(data, count)
	row := max(0, last(count, func(row int) bool { return starts.at(row) <= address-start(i) }))
	e[0] = start(i) + starts.at(row)
	for k := 1; k < columns; k++ {
		var c column
		c, data = cut(data, count)
		e[k] = c.at(row)
	}
	return e, nil
}

// last returns the last of n numbers from 0 for which ok is true, as it is for all before, or -1 if there is none.
func last(n int, ok func(int) bool) int {
	low, high := 0, n
	for low < high {
		if middle := int(uint(low+high) / 2); ok(middle) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1
}

// block returns the block of the first entry of an index, and the number of its entries.
func block(part, index []byte) (data []byte, count int, err error) {
	u := binary.LittleEndian.Uint32
	start, end, entries := u(index[8:]), uint32(len(part)), u(index[12:])
	if len(index) > indexSize {
		end = u(index[indexSize+8:])
	}
	if start > end || int(end) > len(part) || entries == 0 || entries > blockRanges {
		return nil, 0, errDamaged
	}
	return part[start:end], int(entries), nil
}
