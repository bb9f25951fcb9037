// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
)

// A table is a header, parts and a trailer. All fixed-size integers are little-endian.
//
//	header   magic, then offset and size (uint64 each) of every part in the order of the constants below
//	segments of the file with executable code: 5 uint64 each, see Segment
//	text     executable sections: start and end (uint64 each), sorted
//	pieces   contiguous ranges, sorted: start and end (uint64 each), number of the first range, count (uint32 each)
//	lines    ranges of addresses, those of each piece sorted: start (uint64), node, file and line (uint32 each); a
//	         range ends where the next of its piece starts
//	symbols  sorted: start and size (uint64 each), name (uint32)
//	nodes    of the tree of inlined calls: name, parent, file and line of the call in the parent, uint32 each;
//	         the first is not used, and the parent of a function is 0
//	ends     the end of each string in strings, uint32 each; the first string is empty
//	strings  names of functions and files
//	trailer  CRC-32C of everything before
const magic = "otelsym4"

const (
	partSegments = iota
	partText
	partPieces
	partLines
	partSymbols
	partNodes
	partEnds
	partStrings
	parts
)

const (
	headerSize  = len(magic) + parts*16
	segmentSize = 33
	textSize    = 16
	pieceSize   = 24
	entrySize   = 20 // of a range or a symbol
	nodeSize    = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errDamaged = errors.New("the symbol table is damaged")

// node is one function, or one inlined call.
type node struct {
	name, parent, callFile, callLine uint32
}

func nodeOf(b []byte) node {
	u := binary.LittleEndian.Uint32
	return node{u(b), u(b[4:]), u(b[8:]), u(b[12:])}
}

// piece has ranges that follow each other. The last one ends where the piece does.
type piece struct {
	span
	first, count uint32
}

func pieceOf(b []byte) piece {
	u, v := binary.LittleEndian.Uint64, binary.LittleEndian.Uint32
	return piece{span{u(b), u(b[8:])}, v(b[16:]), v(b[20:])}
}

// lineRange is a range of addresses with one line and one node. Without both, it is a gap.
type lineRange struct {
	start            uint64
	node, file, line uint32
}

func rangeOf(b []byte) lineRange {
	u := binary.LittleEndian.Uint32
	return lineRange{binary.LittleEndian.Uint64(b), u(b[8:]), u(b[12:]), u(b[16:])}
}

// symbol is the code of one function according to a symbol table. Its size may be 0, which means unknown.
type symbol struct {
	start, size uint64
	name        uint32
}

func symbolOf(b []byte) symbol {
	return symbol{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:])}
}

// Segment is a part of a file with executable code that is loaded into memory.
type Segment struct {
	// Offset and FileSize say where it is in the file, Address and Size where it is in memory.
	Offset, FileSize, Address, Size uint64
	// Guessed: the file is one of debug information only, which does not have Offset and FileSize. They are those that
	// GNU ld and Go's linker would have given.
	Guessed bool
}

// Mapping is the place of a file in the memory of a process.
type Mapping struct {
	// Start and Limit are the first address and that after the last, Offset is the place of Start in the file.
	Start, Limit, Offset uint64
}

// isWholeMemory reports whether the mapping stands for no place in memory, but for a program whose addresses are those of its
// file: profilers such as jemalloc's write 0 to the last address, or zeros.
func (m Mapping) isWholeMemory() bool {
	return m.Start == 0 && m.Offset == 0 && (m.Limit == 0 || m.Limit == math.MaxUint64)
}

// Frame is a call at an address. Line is 0 if it is unknown.
type Frame struct {
	Function, File string
	Line           int64
}
