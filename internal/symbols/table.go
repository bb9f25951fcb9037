// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Table answers look-ups. It takes memory for its indexes, which Memory returns, and is not safe for concurrent use.
type Table struct {
	r       io.ReaderAt
	starts  [parts]int64
	sizes   [parts]int64
	text    []span
	lines   []block
	symbols []block

	// Segments are those of the file with code.
	Segments []Segment

	buffer      [maxBlock]byte
	pages       [pages]page
	strings     map[uint32]string // emptied if they get large
	stringBytes int
}

const (
	pages      = 64
	pageSize   = 4 << 10
	maxStrings = 512 << 10 // bytes of the strings that are kept
	maxString  = 64 << 10  // bytes of a name that are read
	stringSize = 64        // bytes of a kept string without its text
)

// page is a part of the table that was read.
type page struct {
	number int64 // plus 1
	data   []byte
}

// Open opens a table of the given size. Its error says that the table is damaged, or is that of the reader.
func Open(r io.ReaderAt, size int64) (*Table, error) {
	sum := crc32.New(castagnoli)
	if size < int64(headerSize)+4 {
		return nil, errDamaged
	}
	if _, err := io.Copy(sum, io.NewSectionReader(r, 0, size-4)); err != nil {
		return nil, err
	}
	trailer, header := make([]byte, 4), make([]byte, headerSize)
	if _, err := r.ReadAt(trailer, size-4); err != nil {
		return nil, err
	}
	if _, err := r.ReadAt(header, 0); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(trailer) != sum.Sum32() || string(header[:len(magic)]) != magic {
		return nil, errDamaged
	}
	t := &Table{r: r, strings: map[uint32]string{}}
	for i := range parts {
		at := header[len(magic)+16*i:]
		start, n := binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])
		if start > uint64(size) || n > uint64(size)-start {
			return nil, errDamaged
		}
		t.starts[i], t.sizes[i] = int64(start), int64(n)
	}
	return t, t.readIndexes()
}

func (t *Table) readIndexes() error {
	segments, err := t.part(partSegments)
	if err != nil {
		return err
	}
	u := binary.LittleEndian.Uint64
	for ; len(segments) >= segmentSize; segments = segments[segmentSize:] {
		t.Segments = append(t.Segments, Segment{u(segments), u(segments[8:]), u(segments[16:]), u(segments[24:]), u(segments[32:]) != 0})
	}
	text, err := t.part(partText)
	if err != nil {
		return err
	}
	for ; len(text) >= textSize; text = text[textSize:] {
		t.text = append(t.text, span{u(text), u(text[8:])})
	}
	for part, index := range map[int]*[]block{partLineIndex: &t.lines, partSymbolIndex: &t.symbols} {
		data, err := t.part(part)
		if err != nil {
			return err
		}
		*index = make([]block, 0, len(data)/indexSize)
		for ; len(data) >= indexSize; data = data[indexSize:] {
			*index = append(*index, block{u(data), binary.LittleEndian.Uint32(data[8:]), binary.LittleEndian.Uint32(data[12:])})
		}
	}
	return nil
}

func (t *Table) part(part int) ([]byte, error) {
	data := make([]byte, t.sizes[part])
	_, err := t.r.ReadAt(data, t.starts[part])
	return data, ignoreEOF(err)
}

func ignoreEOF(err error) error {
	if err == io.EOF { //nolint:errorlint // a ReaderAt returns it as it is, and may do so at the end
		return nil
	}
	return err
}

// Memory returns the bytes that the table takes, with the most that look-ups keep.
func (t *Table) Memory() int64 {
	return int64(len(t.lines)+len(t.symbols))*indexSize + int64(len(t.text))*textSize + pages*pageSize + maxStrings + maxBlock
}

// Address returns the address in the file of one in the memory of a process, with the mapping that contains it. ok is
// false if the mapping does not lead into executable sections. An address outside of its mapping, or in an empty one,
// has no place in the file.
func (t *Table) Address(m Mapping, address uint64) (inFile uint64, ok bool) {
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
func (t *Table) Frames(frames []Frame, address uint64) ([]Frame, error) {
	if !inText(t.text, address) {
		return frames, nil
	}
	line, err := t.find(partLines, t.lines, address)
	if err != nil {
		return frames, err
	}
	name, err := t.symbol(address)
	if err != nil {
		return frames, err
	}
	at, f := uint32(line[1]), Frame{Line: int64(line[3])}
	if f.File, err = t.string(uint32(line[2])); err != nil {
		return frames, err
	}
	if at == 0 && name == 0 {
		return frames, nil
	}
	const deepest = 1000
	for range deepest {
		var n node
		if at != 0 {
			if n, err = t.node(at); err != nil {
				return frames, err
			}
		}
		if n.parent == 0 && name != 0 {
			n.name = name
		}
		if f.Function, err = t.string(n.name); err != nil {
			return frames, err
		}
		frames = append(frames, f)
		if n.parent == 0 {
			return frames, nil
		}
		if f.File, err = t.string(n.callFile); err != nil {
			return frames, err
		}
		f.Line, at = int64(n.callLine), n.parent
	}
	return frames, nil
}

// symbol returns the name of the symbol at an address, 0 if there is none.
func (t *Table) symbol(address uint64) (uint32, error) {
	at, err := t.find(partSymbols, t.symbols, address)
	if size := at[1]; size != 0 && address-at[0] >= size {
		return 0, err
	}
	return uint32(at[2]), err
}

func (t *Table) node(number uint32) (node, error) {
	var data [nodeSize]byte
	if err := t.read(partNodes, int64(number)*nodeSize, data[:]); err != nil {
		return node{}, err
	}
	return nodeOf(data[:]), nil
}

// string returns a string by its number.
func (t *Table) string(number uint32) (string, error) {
	if number == 0 {
		return "", nil
	}
	if s, ok := t.strings[number]; ok {
		return s, nil
	}
	var ends [8]byte
	if err := t.read(partEnds, int64(number-1)*4, ends[:]); err != nil {
		return "", err
	}
	start, end := binary.LittleEndian.Uint32(ends[:]), binary.LittleEndian.Uint32(ends[4:])
	if end < start {
		return "", errDamaged
	}
	data := make([]byte, min(end-start, maxString))
	if err := t.read(partStrings, int64(start), data); err != nil {
		return "", err
	}
	s := string(data)
	if t.stringBytes += len(s) + stringSize; t.stringBytes > maxStrings {
		clear(t.strings)
		t.stringBytes = len(s) + stringSize
	}
	t.strings[number] = s
	return s, nil
}

// read reads from a part, by pages that are kept.
func (t *Table) read(part int, offset int64, data []byte) error {
	if offset > t.sizes[part]-int64(len(data)) {
		return errDamaged
	}
	for offset += t.starts[part]; len(data) > 0; {
		number := offset / pageSize
		p := &t.pages[number%pages]
		if p.number != number+1 {
			p.number = 0
			if p.data == nil {
				p.data = make([]byte, pageSize)
			}
			n, err := t.r.ReadAt(p.data[:pageSize], number*pageSize)
			if err := ignoreEOF(err); err != nil {
				return err
			}
			clear(p.data[n:])
			p.number = number + 1
		}
		n := copy(data, p.data[offset%pageSize:])
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}
