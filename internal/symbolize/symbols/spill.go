// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bufio"
	"encoding/binary"
	"hash/maphash"
	"io"
	"os"
)

// spill is a part of a table in a temporary file. An error of a write stays, and reader returns it.
type spill struct {
	file *os.File
	w    *bufio.Writer
	size int64
}

func newSpill(directory string) (*spill, error) {
	file, err := temporary(directory)
	if err != nil {
		return nil, err
	}
	return &spill{file: file, w: bufio.NewWriterSize(file, 32<<10)}, nil
}

func (s *spill) write(data []byte) {
	n, _ := s.w.Write(data) // Flush returns the error again
	s.size += int64(n)
}

// put writes a structure of integers.
func (s *spill) put(v any) {
	data, _ := binary.Append(s.w.AvailableBuffer(), binary.LittleEndian, v) // an error would be of its type
	s.write(data)
}

// reader returns what was written. Nothing can be written after it.
func (s *spill) reader() (*io.SectionReader, error) {
	return io.NewSectionReader(s.file, 0, s.size), s.w.Flush()
}

// stringTable writes each distinct string once. The number of a string is its place in it; that of the empty string
// is 0.
type stringTable struct {
	seed    maphash.Seed
	numbers map[uint64]uint32 // by hash
	budget  *budget
	ends    *spill
	data    *spill
}

func (t *stringTable) intern(s []byte) uint32 {
	if len(s) == 0 {
		return 0
	}
	hash := maphash.Bytes(t.seed, s) // of 64 bits and random: no two strings have the same
	if n, ok := t.numbers[hash]; ok {
		return n
	}
	const entry = 40 // bytes of a map's entry, with the room that it leaves
	t.budget.take(entry)
	n := uint32(len(t.numbers)) + 1
	t.numbers[hash] = n
	t.data.write(s)
	t.ends.put(uint32(t.data.size))
	return n
}
