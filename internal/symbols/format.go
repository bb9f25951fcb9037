// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A table is a header, parts and a trailer. All fixed-size integers are little-endian.
//
//	header   magic, then offset and size (uint64 each) of every part in the order of the constants below
//	segments of the file with executable code: 5 uint64 each, see Segment
//	text     executable sections: start and end (uint64 each), sorted
//	lines    blocks of ranges: for each range, as varints, its start minus that of the range before, and the
//	         differences of node, file and line to it; a range ends where the next starts, and without node and
//	         line it is a gap
//	symbols  blocks of symbols: for each symbol, as varints, its start minus that of the one before, its size,
//	         and the difference of its name to the one before
//	indexes  one for lines and one for symbols: first address (uint64), offset (uint32) and number (uint32) of
//	         ranges of each block
//	nodes    of the tree of inlined calls: name, parent, file and line of the call in the parent, uint32 each;
//	         the first is not used, and the parent of a function is 0
//	ends     the end of each string in strings, uint32 each; the first string is empty
//	strings  names of functions and files
//	trailer  CRC-32C of everything before
const magic = "otelsym2"

const (
	partSegments = iota
	partText
	partLines
	partSymbols
	partLineIndex
	partSymbolIndex
	partNodes
	partEnds
	partStrings
	parts
)

const (
	headerSize  = len(magic) + parts*16
	segmentSize = 40
	textSize    = 16
	indexSize   = 16
	nodeSize    = 16
	blockRanges = 16 // entries of a block
	columns     = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errDamaged = errors.New("the symbol table is damaged")

// node is one function, or one inlined call.
type node struct {
	name, parent, callFile, callLine uint32
}

func (n node) append(to []byte) []byte {
	for _, v := range [...]uint32{n.name, n.parent, n.callFile, n.callLine} {
		to = binary.LittleEndian.AppendUint32(to, v)
	}
	return to
}

func nodeOf(b []byte) node {
	u := binary.LittleEndian.Uint32
	return node{u(b), u(b[4:]), u(b[8:]), u(b[12:])}
}

// lineRange is a range of addresses with one line and one node.
type lineRange struct {
	start            uint64
	node, file, line uint32
}

// symbol is the code of one function according to a symbol table. Its size may be 0, which means unknown.
type symbol struct {
	start, size uint64
	name        uint32
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

// Frame is a call at an address. Line is 0 if it is unknown.
type Frame struct {
	Function, File string
	Line           int64
}
