// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
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
	data, err := b.sections.copy(section.Open())
	if err != nil {
		return fmt.Errorf("section %s: %w", section.Name, err)
	}
	b.budget.steps = 32*int64(len(data)) + 1<<20
	t, err := newPclntab(f, data)
	if t == nil || err != nil {
		return err
	}
	addSymbols := len(b.symbols) == 0
	for i := range t.functions {
		if err := cmp.Or(b.readFunction(t, i, addSymbols), b.budget.err); err != nil {
			return err
		}
	}
	b.sortSymbols()
	return nil
}

// newPclntab returns nil if the table is of an older version, or if it is not known where the code is.
func newPclntab(f *elf.File, data []byte) (*pclntab, error) {
	t := &pclntab{order: f.ByteOrder}
	c := cursor{data, f.ByteOrder}
	if m := c.uint32(); m != magicGo118 && m != magicGo120 {
		return nil, nil
	}
	c.skip(2)
	sizes := c.skip(2)
	t.quantum = uint64(sizes[0])
	pointer := func(c *cursor) uint64 {
		if sizes[1] == 4 {
			return uint64(c.uint32())
		}
		return c.uint64()
	}
	t.functions = pointer(&c)
	pointer(&c) // number of files
	t.text = pointer(&c)
	for _, part := range []*[]byte{&t.names, &t.units, &t.files, &t.values, &t.data} {
		offset := pointer(&c)
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
		c := cursor{module, f.ByteOrder}
		for range moduleText + 1 {
			t.text = pointer(&c)
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
	c := cursor{t.data[8*i:], t.order}
	entry, place, end := uint64(c.uint32())+t.text, c.uint32(), uint64(c.uint32())+t.text
	if uint64(place) >= uint64(len(t.data)) || end < entry {
		return errPclntab
	}
	c.data = t.data[place:]
	c.uint32() // entry
	name := textAt(t.names, uint64(c.uint32()))
	c.skip(12) // arguments, deferreturn, pcsp
	files, lines := c.uint32(), c.uint32()
	c.uint32() // number of other tables
	unit := c.uint32()
	number := b.strings.intern(name)
	if addSymbol {
		b.addSymbol(symbol{entry, end - entry, number})
	}
	node := b.addNode(node{name: number})
	var ranges []lineRange
	fileAt, lineAt := t.table(files, entry), t.table(lines, entry)
	for at := entry; at < end && b.budget.err == nil; {
		b.budget.step(1)
		file, line := fileAt.at(at), lineAt.at(at)
		r := lineRange{start: at, node: node, line: uint32(max(0, line))}
		if offset := 4 * (uint64(unit) + uint64(uint32(file))); file >= 0 && offset+4 <= uint64(len(t.units)) {
			r.file = b.strings.intern(textAt(t.files, uint64(t.order.Uint32(t.units[offset:]))))
		}
		ranges = append(ranges, r)
		at = min(end, fileAt.end, lineAt.end)
		if at <= r.start {
			return errPclntab
		}
	}
	b.addRanges(append(ranges, lineRange{start: end}))
	return nil
}

// textAt returns the text at an offset that ends with 0, "" beyond the end.
func textAt(data []byte, offset uint64) string {
	if offset >= uint64(len(data)) {
		return ""
	}
	data = data[offset:]
	name, _, _ := bytes.Cut(data[:min(len(data), maxString)], []byte{0})
	return string(name)
}

// valueTable has one value for each range of a function's code: pairs of varints, the change of the value and the length
// of its range.
type valueTable struct {
	data    []byte
	quantum uint64
	value   int32
	end     uint64 // of the range with value
	first   bool
}

func (t *pclntab) table(offset uint32, entry uint64) *valueTable {
	return &valueTable{t.values[min(uint64(offset), uint64(len(t.values))):], t.quantum, -1, entry, true}
}

// at returns the value at an address, which grows from call to call. Beyond the end of the table it is -1.
func (t *valueTable) at(address uint64) int32 {
	for t.end <= address {
		change := uint32(uvarint(&t.data))
		if change == 0 && !t.first || len(t.data) == 0 {
			t.value, t.end = -1, 1<<64-1
			break
		}
		t.first = false
		if change&1 != 0 {
			t.value += int32(^(change >> 1))
		} else {
			t.value += int32(change >> 1)
		}
		t.end += uvarint(&t.data) * t.quantum
	}
	return t.value
}

// uvarint reads an integer. If it is malformed, it is 0, and so are those after it.
func uvarint(data *[]byte) uint64 {
	v, n := binary.Uvarint(*data)
	if n <= 0 {
		*data = nil
		return 0
	}
	*data = (*data)[n:]
	return v
}
