// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gunzip

import "math/bits"

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
	var count [maxCode + 1]uint
	longest := uint(0)
	for _, length := range lengths {
		count[length]++
		longest = max(longest, uint(length))
	}
	var next [maxCode + 1]uint // code of each length
	code := uint(0)
	for length := uint(1); length <= longest; length++ {
		code <<= 1
		next[length] = code
		code += count[length]
	}
	if complete := code == 1<<longest; !complete && longest > 0 && (code != 1 || longest != 1) {
		return false
	}
	if t.second = 0; longest > first {
		t.second = longest - first
	}
	if cap(t.entries) < 1<<first {
		t.entries = make([]entry, 1<<first)
	}
	t.entries = t.entries[:1<<first]
	clear(t.entries)
	for symbol, length := range lengths {
		if length == 0 {
			continue
		}
		// Codes are in the input from their highest bit.
		reversed := uint(bits.Reverse16(uint16(next[length]))) >> (16 - length)
		next[length]++
		t.set(reversed, uint(length), symbols[symbol], first)
	}
	return true
}

// set enters a code at all indexes that begin with its bits.
func (t *table) set(code, length uint, symbol entry, first uint) {
	if length <= first {
		for i := code; i < 1<<first; i += 1 << length {
			t.entries[i] = symbol | entry(length)
		}
		return
	}
	beginning := &t.entries[code&(1<<first-1)]
	if *beginning == kindInvalid {
		start := len(t.entries)
		*beginning = kindLong | entry(first) | entry(start)<<16
		t.entries = append(t.entries, make([]entry, 1<<t.second)...)
		beginning = &t.entries[code&(1<<first-1)]
	}
	second := t.entries[beginning.value():][:1<<t.second]
	for i := code >> first; i < 1<<t.second; i += 1 << (length - first) {
		second[i] = symbol | entry(length-first)
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
