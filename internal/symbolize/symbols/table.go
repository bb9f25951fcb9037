// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
)

// Table answers look-ups from a file that it maps. It is not safe for concurrent use.
type Table struct {
	data  []byte // of the file
	parts [parts][]byte
	text  []span

	// Segments are those of the file with code.
	Segments []Segment

	strings     map[uint32]string // emptied if they get large
	stringBytes int
}

const (
	maxStrings = 512 << 10 // bytes of the strings that are kept
	maxString  = 64 << 10  // bytes of a name that are read
	stringSize = 64        // bytes of a kept string without its text
)

// Check reads all of the table in a file. Its error says that the table is damaged, or is that of the operating system.
func Check(path string) (err error) {
	data, err := mapTable(path)
	if err != nil {
		return err
	}
	defer func() { _ = unmapFile(data) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverDamage(&err)
	end := len(data) - 4
	if binary.LittleEndian.Uint32(data[end:]) != crc32.Checksum(data[:end], castagnoli) || string(data[:len(magic)]) != magic {
		return errDamaged
	}
	return nil
}

// Open opens the table in a file that Build wrote or Check accepted, and that stays as it is until Close. Its error is
// that of Check.
func Open(path string) (*Table, error) {
	data, err := mapTable(path)
	if err != nil {
		return nil, err
	}
	t := &Table{data: data, strings: map[uint32]string{}}
	if err := t.open(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func mapTable(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < int64(headerSize)+4 {
		return nil, errDamaged
	}
	return mapFile(file, int(info.Size()))
}

// Close ends the use of the file.
func (t *Table) Close() { _ = unmapFile(t.data) }

func (t *Table) open() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverDamage(&err)
	u := binary.LittleEndian.Uint64
	for i := range parts {
		at := t.data[len(magic)+16*i:]
		t.parts[i] = t.data[u(at):][:u(at[8:])]
	}
	for s := t.parts[partSegments]; len(s) >= segmentSize; s = s[segmentSize:] {
		t.Segments = append(t.Segments, Segment{u(s), u(s[8:]), u(s[16:]), u(s[24:]), s[32] != 0})
	}
	for s := t.parts[partText]; len(s) >= textSize; s = s[textSize:] {
		t.text = append(t.text, span{u(s), u(s[8:])})
	}
	return nil
}

// recoverDamage makes an error of a part of the file that cannot be read, and of a number that leads out of its part.
func recoverDamage(err *error) {
	switch r := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }:
		*err = errors.New("the symbol table cannot be read: it was cut, or the disk has an error")
	case runtime.Error:
		*err = errDamaged
	default:
		panic(r)
	}
}

// Address returns the address in the file of one in the memory of a process, with the mapping that contains it. ok is
// false if the mapping does not lead into executable sections. An address outside of its mapping has no place in the file.
func (t *Table) Address(m Mapping, address uint64) (inFile uint64, ok bool) {
	if m.isWholeMemory() {
		if !inText(t.text, address) {
			return 0, false
		}
		return address, true
	}
	if address < m.Start || address >= m.Limit {
		return 0, false
	}
	offset := address - m.Start + m.Offset
	for _, s := range t.Segments {
		if offset >= s.Offset && offset-s.Offset < s.FileSize {
			inFile = offset - s.Offset + s.Address
			return inFile, inText(t.text, inFile)
		}
	}
	return 0, false
}

// Frames appends the frames of an address of the file: the innermost inlined call first, the function itself last. There
// are none if nothing is known. An error says that the table cannot be read.
func (t *Table) Frames(frames []Frame, address uint64) (_ []Frame, err error) {
	if !inText(t.text, address) {
		return frames, nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverDamage(&err)
	line, name := t.line(address), t.symbol(address)
	at, f := line.node, Frame{File: t.string(line.file), Line: int64(line.line)}
	if at == 0 && name == 0 {
		return frames, nil
	}
	const deepest = 250
	for range deepest {
		n := nodeOf(t.parts[partNodes][int(at)*nodeSize:])
		if n.parent == 0 && name != 0 {
			n.name = name
		}
		f.Function = t.string(n.name)
		frames = append(frames, f)
		if n.parent == 0 {
			return frames, nil
		}
		f.File, f.Line, at = t.string(n.callFile), int64(n.callLine), n.parent
	}
	return frames, nil
}

// find returns the last entry that starts at or before an address, zeros if there is none.
func find(entries []byte, size int, address uint64) []byte {
	n := sort.Search(len(entries)/size, func(i int) bool { return binary.LittleEndian.Uint64(entries[i*size:]) > address })
	if n == 0 {
		return make([]byte, size)
	}
	return entries[(n-1)*size:]
}

// line returns the range at an address, a gap if there is none.
func (t *Table) line(address uint64) lineRange {
	p := pieceOf(find(t.parts[partPieces], pieceSize, address))
	if address >= p.end {
		return lineRange{}
	}
	return rangeOf(find(t.parts[partLines][int(p.first)*entrySize:][:int(p.count)*entrySize], entrySize, address))
}

// symbol returns the name of the symbol at an address, 0 if there is none.
func (t *Table) symbol(address uint64) uint32 {
	s := symbolOf(find(t.parts[partSymbols], entrySize, address))
	if s.size != 0 && address-s.start >= s.size {
		return 0
	}
	return s.name
}

// string returns a string by its number.
func (t *Table) string(number uint32) string {
	if number == 0 {
		return ""
	}
	if s, ok := t.strings[number]; ok {
		return s
	}
	ends := t.parts[partEnds][int(number-1)*4:]
	start, end := binary.LittleEndian.Uint32(ends), binary.LittleEndian.Uint32(ends[4:])
	s := string(t.parts[partStrings][start:end][:min(end-start, maxString)])
	if t.stringBytes += len(s) + stringSize; t.stringBytes > maxStrings {
		clear(t.strings)
		t.stringBytes = len(s) + stringSize
	}
	t.strings[number] = s
	return s
}
