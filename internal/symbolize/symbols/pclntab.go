// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
)

// pclntab is Go's table of functions and lines since Go 1.18. It starts with a magic number, two zeros, the size of
// the smallest instruction and that of a pointer, and then has eight pointers. See
// https://go.dev/src/debug/gosym/pclntab.go. It does not say which code was inlined: a line may be that of an inlined
// function.
type pclntab struct {
	order                             binary.ByteOrder
	quantum                           uint64
	functions                         uint64
	text                              uint64 // the address to which entries are relative
	names, units, files, values, data []byte
}

const (
	magicGo118 = 0xfffffff0
	magicGo120 = 0xfffffff1
	moduleText = 22 // the pointer to the text among those of runtime.moduledata
)

var errPclntab = errors.New(".gopclntab refers to a place outside of itself")

// readPclntab adds the functions and lines of a Go program, if the file is one.
func (b *builder) readPclntab(f *elf.File) error {
	section := f.Section(".gopclntab")
	if section == nil {
		section = f.Section(".data.rel.ro.gopclntab")
	}
	if section == nil || section.Type == elf.SHT_NOBITS {
		return nil
	}
	data, err := b.sections.copy(section)
	if err != nil {
		return err
	}
	b.budget.steps = 32*int64(len(data)) + 1<<20
	t, err := newPclntab(f, data)
	if t == nil || err != nil {
		return err
	}
	addSymbols := len(b.symbols) == 0
	for i := range t.functions {
		if err := b.readFunction(t, i, addSymbols); err != nil {
			return err
		}
	}
	b.sortSymbols()
	return nil
}

// newPclntab returns nil if the table is of an older version, or if it is not known where the code is.
func newPclntab(f *elf.File, data []byte) (*pclntab, error) {
	t := &pclntab{order: f.ByteOrder}
	c := cursor{data: data, order: f.ByteOrder}
	if m := c.uint(4); m != magicGo118 && m != magicGo120 {
		return nil, nil
	}
	c.skip(2)
	t.quantum = c.uint(1)
	pointer := int(c.uint(1))
	t.functions = c.uint(pointer)
	c.uint(pointer) // number of files
	t.text = c.uint(pointer)
	for _, part := range []*[]byte{&t.names, &t.units, &t.files, &t.values, &t.data} {
		offset := c.uint(pointer)
		if offset > uint64(len(data)) {
			return nil, errPclntab
		}
		*part = data[offset:]
	}
	if t.functions >= uint64(len(t.data))/8 {
		return nil, errPclntab
	}
	if t.text != 0 {
		return t, nil
	}
	// Go 1.26 leaves it 0. With C code, other code comes first in .text.
	if f.Section(".init") == nil {
		if text := f.Section(".text"); text != nil {
			t.text = text.Addr
		}
	} else if s := f.Section(".go.module"); s != nil {
		module, _ := small(s)
		c := cursor{data: module, order: f.ByteOrder}
		for range moduleText + 1 {
			t.text = c.uint(pointer)
		}
	}
	if t.text == 0 {
		return nil, nil
	}
	return t, nil
}

// readFunction adds the i-th function. The table of functions has entry and place of each, and then the end of the
// last.
func (b *builder) readFunction(t *pclntab, i uint64, addSymbol bool) error {
	c := cursor{data: t.data, at: 8 * i, order: t.order}
	entry, place, end := c.uint(4)+t.text, c.uint(4), c.uint(4)+t.text
	if place >= uint64(len(t.data)) || end < entry {
		return errPclntab
	}
	c.at = place
	c.skip(4) // entry
	number := b.strings.intern(textAt(t.names, c.uint(4)))
	c.skip(12) // arguments, deferreturn, pcsp
	files, lines := c.uint(4), c.uint(4)
	c.skip(4) // number of other tables
	unit := c.uint(4)
	if addSymbol {
		b.addSymbol(symbol{entry, end - entry, number})
	}
	node := b.addNode(node{name: number})
	fileAt, lineAt := t.table(files, entry), t.table(lines, entry)
	b.addRanges(func(yield func(lineRange) bool) {
		for at := entry; at < end && b.budget.err == nil; {
			b.budget.step(1)
			file, line := fileAt.at(at), lineAt.at(at)
			r := lineRange{start: at, node: node, line: uint32(max(0, line))}
			if offset := 4 * (unit + uint64(uint32(file))); file >= 0 && offset+4 <= uint64(len(t.units)) {
				path := textAt(t.files, uint64(t.order.Uint32(t.units[offset:])))
				b.budget.step(len(path) / 8)
				r.file = b.strings.intern(path)
			}
			if !yield(r) {
				return
			}
			if at = min(end, fileAt.end, lineAt.end); at <= r.start {
				b.budget.fail(errPclntab)
			}
		}
		yield(lineRange{start: end})
	})
	return b.budget.err
}

// textAt returns the text at an offset that ends with 0, of a long one the start. It is empty beyond the end.
func textAt(data []byte, offset uint64) []byte {
	data = data[min(offset, uint64(len(data))):]
	text, _, _ := bytes.Cut(data[:min(len(data), maxString)], []byte{0})
	return text
}

// valueTable has one value for each range of a function's code: pairs of varints, the change of the value and the length
// of its range.
type valueTable struct {
	c       cursor
	quantum uint64
	value   int32
	end     uint64 // of the range with value
	first   bool
}

func (t *pclntab) table(offset, entry uint64) *valueTable {
	c := cursor{data: t.values, at: min(offset, uint64(len(t.values))), order: t.order}
	return &valueTable{c, t.quantum, -1, entry, true}
}

// at returns the value at an address, which grows from call to call. Beyond the end of the table it is -1.
func (t *valueTable) at(address uint64) int32 {
	for t.end <= address {
		change := uint32(t.c.uvarint())
		if change == 0 && !t.first || t.c.at == uint64(len(t.c.data)) {
			t.value, t.end = -1, 1<<64-1
			break
		}
		t.first = false
		if change&1 != 0 {
			t.value += int32(^(change >> 1))
		} else {
			t.value += int32(change >> 1)
		}
		t.end += t.c.uvarint() * t.quantum
	}
	return t.value
}
