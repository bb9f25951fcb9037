// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gunzip

import (
	"math/bits"
	"slices"
)

const (
	maxCode    = 15 // bits of the longest code
	endOfBlock = 256
)

// entry is what a code means. Its parts, from the lowest bit:
//
//	4 bits: length of the code in bits, or of its rest in a second table
//	4 bits: kind
//	8 bits: number of extra bits that follow the code
//	16 bits: literal, base of a length or distance, or start of a second table
//
// One load of 32 bits gives all of them.
type entry uint32

const (
	kindInvalid entry = iota << 4 // no code has these bits
	kindLiteral
	kindMatch // a length or a distance
	kindEnd
	kindLong       // the code is longer than the index of the first table
	kindMask entry = 15 << 4
)

func (e entry) length() uint { return uint(e & 15) }
func (e entry) extra() uint  { return uint(e >> 8 & 15) }
func (e entry) value() int   { return int(e >> 16) }

// table finds the entry of a code by the next bits of the input: directly if the code is at most
// first bits long, otherwise by a second table for each of its beginnings.
type table struct {
	entries []entry // the first table, then the second ones
	second  uint    // bits that index a second table
}

// build makes the table of canonical Huffman codes with these lengths, which index symbols. It
// returns false if there are no such codes. As in compress/flate, no code at all and one of one bit
// are allowed.
func (t *table) build(lengths []uint8, symbols []entry, first uint) bool {
	var count [maxCode + 1]int
	for _, length := range lengths {
		count[length]++
	}
	count[0] = 0
	longest, codes := uint(0), uint(0) // codes is the number of codes of length, complete if all are used
	var start [maxCode + 1]int         // of the symbols of each length
	for length := uint(1); length <= maxCode; length++ {
		start[length] = start[length-1] + count[length-1]
		if count[length] > 0 {
			codes = codes<<(length-longest) + uint(count[length])
			longest = length
		}
	}
	if cap(t.entries) < 1<<first {
		t.entries = make([]entry, 1<<first)
	}
	t.entries = t.entries[:1<<first]
	if codes != 1<<longest || longest == 0 {
		clear(t.entries)
		if longest == 0 {
			return true
		}
		if longest != 1 || codes != 1 {
			return false
		}
		symbol := symbols[slices.Index(lengths, 1)]
		for i := 0; i < len(t.entries); i += 2 {
			t.entries[i] = symbol | 1
		}
		return true
	}
	var sorted [288]uint16 // symbols by length
	for symbol, length := range lengths {
		if length > 0 {
			sorted[start[length]] = uint16(symbol)
			start[length]++
		}
	}
	t.fill(sorted[:], &count, symbols, first, longest)
	return true
}

// fill enters complete codes, the shortest first. The table of codes of one more bit begins as the
// table of the codes so far, twice.
func (t *table) fill(sorted []uint16, count *[maxCode + 1]int, symbols []entry, first, longest uint) {
	t.second = max(longest, first) - first
	code, beginning := uint(0), uint(1)<<first // no code has that beginning
	for length := uint(1); length <= max(longest, first); length++ {
		for _, symbol := range sorted[:count[length]] {
			// Codes are in the input from their highest bit.
			reversed := uint(bits.Reverse16(uint16(code)) >> (16 - length))
			code++
			if length <= first {
				t.entries[reversed] = symbols[symbol] | entry(length)
				continue
			}
			if reversed&(1<<first-1) != beginning {
				beginning = reversed & (1<<first - 1)
				t.entries[beginning] = kindLong | entry(first) | entry(len(t.entries))<<16
				t.entries = append(t.entries, make([]entry, 1<<t.second)...)
			}
			second := t.entries[len(t.entries)-1<<t.second:]
			for i := reversed >> first; i < 1<<t.second; i += 1 << (length - first) {
				second[i] = symbols[symbol] | entry(length-first)
			}
		}
		sorted = sorted[count[length]:]
		code <<= 1
		if length < first {
			copy(t.entries[1<<length:2<<length], t.entries[:1<<length])
		}
	}
}

// Symbols of the three alphabets. Those that have no meaning are invalid.
var litlenSymbols, distanceSymbols, lengthSymbols = symbols()

func symbols() (litlen [288]entry, distance [32]entry, lengths [19]entry) {
	for i := range 256 {
		litlen[i] = kindLiteral | entry(i)<<16
	}
	litlen[endOfBlock] = kindEnd
	matches := func(symbols []entry, base, sameExtra int) {
		for i := range symbols {
			extra := max(0, i/sameExtra-1)
			symbols[i] = kindMatch | entry(extra)<<8 | entry(base)<<16
			base += 1 << extra
		}
	}
	matches(litlen[257:285], 3, 4)
	litlen[285] = kindMatch | maxMatch<<16
	matches(distance[:30], 1, 2)
	for i := range lengths {
		lengths[i] = kindLiteral | entry(i)<<16
	}
	return litlen, distance, lengths
}
