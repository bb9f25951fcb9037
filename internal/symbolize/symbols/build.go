// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"io"
	"iter"
	"math"
	"runtime/debug"
	"slices"
)

// ErrNoSymbols says that a file has neither debug information nor symbols of functions.
var ErrNoSymbols = errors.New("the file has neither debug information nor symbols")

var errLargeTable = errors.New("the table of the file is larger than 4 GiB")

// Options of Build.
type Options struct {
	// Directory is for temporary files, which have no names.
	Directory string
	// MaxMemory and MaxFileSize, in bytes, limit the memory that Build takes, and the sum of the sections that it reads,
	// decompressed.
	MaxMemory, MaxFileSize int64
}

// Files are the ELF files of a program or library. Each may be nil.
type Files struct {
	Program, Debug io.ReaderAt // with the code, and with debug information; either may have both
	// Alt is the file that .gnu_debugaltlink names, into which dwz moved what several files share. If it is missing, the
	// functions are those of the symbol table, without lines.
	Alt io.ReaderAt
}

// Build writes the table of a program or library to w. It ends early with the error of ctx.
//
// Errors are ErrNoSymbols, those of the operating system, or say what is wrong with a file or which limit it exceeds.
func Build(ctx context.Context, from Files, o Options, w io.Writer) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a full disk shows on reading a mapped file
	defer func() {
		if r := recover(); r != nil { // a file that others cut while it is read, or what debug/elf does not stand
			err = fmt.Errorf("the file is damaged: %v", r)
		}
	}()
	b := &builder{budget: &budget{ctx: ctx, memory: o.MaxMemory}}
	b.sections = sections{directory: o.Directory, remaining: o.MaxFileSize}
	defer b.close()
	for i := range b.spills {
		if b.spills[i], err = newSpill(o.Directory); err != nil {
			return err
		}
	}
	b.strings = stringTable{seed: maphash.MakeSeed(), numbers: map[uint64]uint32{}, budget: b.budget, ends: b.spills[partEnds], data: b.spills[partStrings]}
	b.strings.ends.put(uint32(0))
	b.spills[partNodes].put(node{})
	if err := b.read(from); err != nil {
		return err
	}
	return b.write(w)
}

type builder struct {
	budget   *budget
	sections sections
	spills   [parts]*spill // of the parts of the table

	segments []Segment
	text     []span
	symbols  []symbol
	pieces   []piece
	strings  stringTable
}

func (b *builder) close() {
	b.sections.close()
	for _, s := range b.spills {
		if s != nil {
			s.file.Close()
		}
	}
}

// read reads all files. The sections with code are those of the program, if there is one.
func (b *builder) read(from Files) error {
	var files []*elf.File
	for _, r := range []io.ReaderAt{from.Program, from.Debug} {
		if r == nil {
			continue
		}
		f, err := newFile(r)
		if err != nil {
			return err
		}
		if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
			return fmt.Errorf("the type of the file is %v; expected ET_EXEC or ET_DYN", f.Type)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return ErrNoSymbols
	}
	b.segments, b.text = segmentsOf(files[0]), textOf(files[0])
	last := files[len(files)-1]
	if err := b.readSymbols(last); err != nil {
		return err
	}
	if len(b.symbols) == 0 && len(files) > 1 {
		if err := b.readSymbols(files[0]); err != nil {
			return err
		}
	}
	var err error
	if slices.ContainsFunc(files, hasDWARF) {
		if !hasDWARF(last) {
			last = files[0]
		}
		err = b.readDWARF(last, from.Alt)
	} else {
		err = b.readPclntab(files[0])
	}
	if err = cmp.Or(err, b.budget.err); err == nil && len(b.symbols) == 0 && len(b.pieces) == 0 {
		err = ErrNoSymbols
	}
	return err
}

// readSymbols reads the functions of .symtab, or else of .dynsym.
func (b *builder) readSymbols(f *elf.File) error {
	table := f.SectionByType(elf.SHT_SYMTAB)
	if table == nil || table.Size == 0 {
		table = f.SectionByType(elf.SHT_DYNSYM)
	}
	if table == nil || int(table.Link) >= len(f.Sections) {
		return nil
	}
	data, err := b.sections.copy(table)
	if err != nil {
		return err
	}
	names, err := b.sections.copy(f.Sections[table.Link])
	if err != nil {
		return err
	}
	b.budget.steps += int64(len(data)+len(names)) + 1<<20
	c := cursor{data: data, order: f.ByteOrder}
	for c.at < uint64(len(data)) && b.budget.err == nil {
		var s elf.Sym64
		if s.Name = uint32(c.uint(4)); f.Class == elf.ELFCLASS64 {
			s.Info, s.Other, s.Shndx, s.Value, s.Size = uint8(c.uint(1)), uint8(c.uint(1)), uint16(c.uint(2)), c.uint(8), c.uint(8)
		} else {
			s.Value, s.Size, s.Info, s.Other, s.Shndx = c.uint(4), c.uint(4), uint8(c.uint(1)), uint8(c.uint(1)), uint16(c.uint(2))
		}
		kind := elf.ST_TYPE(s.Info)
		if kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC || elf.SectionIndex(s.Shndx) == elf.SHN_UNDEF || !inText(b.text, s.Value) {
			continue
		}
		if name := textAt(names, uint64(s.Name)); len(name) > 0 {
			b.budget.step(1 + len(name)/8)
			b.addSymbol(symbol{s.Value, s.Size, b.strings.intern(name)})
		}
	}
	b.sortSymbols()
	return b.budget.err
}

func (b *builder) addSymbol(s symbol) {
	b.budget.take(2 * 24) // a slice that grows
	b.symbols = append(b.symbols, s)
}

// sortSymbols keeps the largest of the symbols with one address, and of these the last, as llvm-symbolizer does.
func (b *builder) sortSymbols() {
	slices.SortStableFunc(b.symbols, func(a, b symbol) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.size, b.size))
	})
	kept := b.symbols[:0]
	for i, s := range b.symbols {
		if i+1 == len(b.symbols) || b.symbols[i+1].start != s.start {
			kept = append(kept, s)
		}
	}
	b.symbols = kept
}

// addRanges adds sorted ranges, the last of which is a gap. What lies outside of the executable sections is left out.
func (b *builder) addRanges(ranges iter.Seq[lineRange]) {
	lines := b.spills[partLines]
	var p piece
	var last lineRange // of p
	for r := range ranges {
		switch gap := (r == lineRange{start: r.start}) || !inText(b.text, r.start); {
		case gap && p.count > 0:
			p.end = r.start
			if lines.size > math.MaxUint32 {
				b.budget.fail(errLargeTable)
			}
			if b.budget.take(2 * pieceSize); b.budget.err != nil {
				return
			}
			b.pieces = append(b.pieces, p)
			p = piece{}
			continue
		case gap:
			continue
		case p.count == 0:
			p.start, p.first = r.start, uint32(lines.size/entrySize)
		case r == lineRange{r.start, last.node, last.file, last.line}:
			continue
		}
		lines.put(r)
		last = r
		p.count++
	}
}

// addNode returns the number of a node.
func (b *builder) addNode(n node) uint32 {
	nodes := b.spills[partNodes]
	number := uint32(nodes.size / nodeSize)
	nodes.put(n)
	return number
}

// write writes the table.
func (b *builder) write(w io.Writer) error {
	for _, s := range b.segments {
		b.spills[partSegments].put(s)
	}
	for _, s := range b.text {
		b.spills[partText].put(s)
	}
	b.writePieces()
	for _, s := range b.symbols {
		b.spills[partSymbols].put(s)
	}
	header, offset := []byte(magic), int64(headerSize)
	var all []io.Reader
	for _, s := range b.spills {
		r, err := s.reader()
		if err != nil {
			return err
		}
		if s.size > math.MaxUint32 {
			return errLargeTable
		}
		header = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(header, uint64(offset)), uint64(s.size))
		offset += s.size
		all = append(all, r)
	}
	sum := crc32.New(castagnoli)
	content := io.MultiReader(bytes.NewReader(header), io.MultiReader(all...))
	if _, err := io.Copy(io.MultiWriter(w, sum), content); err != nil {
		return err
	}
	_, err := w.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

// writePieces writes the pieces, sorted. Of those that overlap, the first counts where both are.
func (b *builder) writePieces() {
	slices.SortStableFunc(b.pieces, func(a, b piece) int { return compareSpans(a.span, b.span) })
	var end uint64 // of what is written
	for _, p := range b.pieces {
		if p.start = max(p.start, end); p.start < p.end {
			b.spills[partPieces].put(p)
			end = p.end
		}
	}
}

// budget limits memory and steps. Its methods return no error: they set err, which ends each loop.
type budget struct {
	err    error // the first one
	ctx    context.Context
	memory int64 // bytes that may still be taken
	steps  int64 // that may still be made
	count  uint
}

func (b *budget) take(bytes int64) {
	if b.memory -= bytes; b.memory < 0 {
		b.fail(errors.New("the debug information needs more memory than max_memory allows"))
	}
}

func (b *budget) give(bytes int64) { b.memory += bytes }

// step counts n steps, and looks at the context now and then.
func (b *budget) step(n int) {
	if b.steps -= int64(n); b.steps < 0 {
		b.fail(errors.New("the debug information refers to its parts more often than a compiler does"))
	}
	if b.count++; b.count%1024 == 0 {
		b.fail(b.ctx.Err())
	}
}

func (b *budget) fail(err error) { b.err = cmp.Or(b.err, err) }
