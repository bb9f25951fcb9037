// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bufio"
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
	"math"
	"runtime/debug"
	"slices"
)

// ErrNoSymbols says that a file has neither debug information nor symbols of functions.
var ErrNoSymbols = errors.New("the file has neither debug information nor symbols")

// LimitError says which limit a file exceeds.
type LimitError struct{ text string }

func (e *LimitError) Error() string { return e.text }

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
// Errors are *LimitError, ErrNoSymbols, those of the operating system, or say what is wrong with a file.
func Build(ctx context.Context, from Files, o Options, w io.Writer) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a full disk shows on reading a mapped file
	defer func() {
		if r := recover(); r != nil { // debug/elf and debug/dwarf do not promise to stand damaged files
			err = fmt.Errorf("the file is damaged: %v", r)
		}
	}()
	b := &builder{options: o, budget: &budget{ctx: ctx, memory: o.MaxMemory}}
	b.sections = sections{directory: o.Directory, remaining: o.MaxFileSize}
	defer b.close()
	for _, part := range []**spill{&b.ranges, &b.nodes, &b.ends, &b.strings.data} {
		if *part, err = newSpill(o.Directory); err != nil {
			return err
		}
		b.spills = append(b.spills, *part)
	}
	b.strings.seed, b.strings.numbers, b.strings.budget, b.strings.ends = maphash.MakeSeed(), map[uint64]uint32{}, b.budget, b.ends
	b.ends.write(make([]byte, 4))
	b.nodes.write(make([]byte, nodeSize))
	if err := b.read(from); err != nil {
		return err
	}
	return b.write(w)
}

type builder struct {
	options  Options
	budget   *budget
	sections sections
	spills   []*spill

	segments []Segment
	text     []span
	symbols  []symbol
	pieces   []piece
	ranges   *spill // of all pieces, in the order in which they were found
	nodes    *spill
	ends     *spill
	strings  stringTable
}

// piece is a contiguous run of ranges in the temporary file.
type piece struct {
	start, end uint64
	offset     int64
	count      uint32
}

const (
	pieceSize = 32
	rangeSize = 20 // in the temporary file
)

func (b *builder) close() {
	b.sections.close()
	for _, s := range b.spills {
		s.file.Close()
	}
}

// read reads all files. The sections with code are those of the program, if there is one.
func (b *builder) read(from Files) error {
	var files []*elf.File
	for _, r := range []io.ReaderAt{from.Program, from.Debug} {
		if r == nil {
			continue
		}
		f, err := elf.NewFile(r)
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
	if err == nil && len(b.symbols) == 0 && len(b.pieces) == 0 {
		err = ErrNoSymbols
	}
	return err
}

// readSymbols reads the functions of .symtab, or else of .dynsym.
func (b *builder) readSymbols(f *elf.File) error {
	read := f.Symbols
	table := f.SectionByType(elf.SHT_SYMTAB)
	if table == nil || table.Size == 0 {
		read, table = f.DynamicSymbols, f.SectionByType(elf.SHT_DYNSYM)
	}
	if table == nil {
		return nil
	}
	size := table.Size
	if int(table.Link) < len(f.Sections) {
		size += f.Sections[table.Link].Size
	}
	if size > math.MaxInt64/8 {
		return fmt.Errorf("section %s is larger than the file", table.Name)
	}
	taken := int64(size) * 6 // for the tables and the entries of debug/elf
	if err := b.budget.take(taken); err != nil {
		return err
	}
	defer b.budget.give(taken)
	all, err := read()
	if err != nil {
		if errors.Is(err, elf.ErrNoSymbols) {
			return nil
		}
		return fmt.Errorf("section %s: %w", table.Name, err)
	}
	for _, s := range all {
		kind := elf.ST_TYPE(s.Info)
		if kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC || s.Section == elf.SHN_UNDEF || s.Name == "" || !inText(b.text, s.Value) {
			continue
		}
		name, err := b.strings.intern(s.Name)
		if err != nil {
			return err
		}
		if err := b.addSymbol(symbol{s.Value, s.Size, name}); err != nil {
			return err
		}
	}
	b.sortSymbols()
	return nil
}

func (b *builder) addSymbol(s symbol) error {
	if err := b.budget.take(2 * 24); err != nil { // a slice that grows
		return err
	}
	b.symbols = append(b.symbols, s)
	return nil
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
func (b *builder) addRanges(ranges []lineRange) error {
	open := false
	for i, r := range ranges {
		gap := r.node == 0 && r.file == 0 && r.line == 0 || !inText(b.text, r.start)
		switch {
		case gap && open:
			b.pieces[len(b.pieces)-1].end, open = r.start, false
			continue
		case gap:
			continue
		case !open:
			if err := b.budget.take(2 * pieceSize); err != nil {
				return err
			}
			b.pieces = append(b.pieces, piece{start: r.start, offset: b.ranges.size})
			open = true
		case i > 0 && sameLine(ranges[i-1], r):
			continue
		}
		var entry [rangeSize]byte
		binary.LittleEndian.PutUint64(entry[:], r.start)
		binary.LittleEndian.PutUint32(entry[8:], r.node)
		binary.LittleEndian.PutUint32(entry[12:], r.file)
		binary.LittleEndian.PutUint32(entry[16:], r.line)
		b.ranges.write(entry[:])
		b.pieces[len(b.pieces)-1].count++
	}
	return nil
}

func sameLine(a, b lineRange) bool { return a.node == b.node && a.file == b.file && a.line == b.line }

// addNode returns the number of a node.
func (b *builder) addNode(n node) uint32 {
	number := uint32(b.nodes.size / nodeSize)
	b.nodes.write(n.append(nil))
	return number
}

// write writes the table.
func (b *builder) write(w io.Writer) error {
	var lines, symbols *spill
	for _, part := range []**spill{&lines, &symbols} {
		var err error
		if *part, err = newSpill(b.options.Directory); err != nil {
			return err
		}
		b.spills = append(b.spills, *part)
	}
	lineIndex, err := b.encodeLines(lines)
	if err != nil {
		return err
	}
	all := [parts]io.Reader{}
	sizes := [parts]int64{}
	memory := func(part int, data []byte) {
		all[part], sizes[part] = bytes.NewReader(data), int64(len(data))
	}
	memory(partSymbolIndex, b.encodeSymbols(symbols))
	memory(partLineIndex, lineIndex)
	var segments, text []byte
	for _, s := range b.segments {
		guessed := uint64(0)
		if s.Guessed {
			guessed = 1
		}
		for _, v := range [...]uint64{s.Offset, s.FileSize, s.Address, s.Size, guessed} {
			segments = binary.LittleEndian.AppendUint64(segments, v)
		}
	}
	for _, s := range b.text {
		text = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(text, s.start), s.end)
	}
	memory(partSegments, segments)
	memory(partText, text)
	for part, s := range map[int]*spill{partLines: lines, partSymbols: symbols, partNodes: b.nodes, partEnds: b.ends, partStrings: b.strings.data} {
		r, err := s.reader()
		if err != nil {
			return err
		}
		if s.size > math.MaxUint32 {
			return &LimitError{"the table of the file is larger than 4 GiB"}
		}
		all[part], sizes[part] = io.NewSectionReader(r, 0, s.size), s.size
	}
	return copyParts(w, all, sizes)
}

func copyParts(w io.Writer, all [parts]io.Reader, sizes [parts]int64) error {
	sum := crc32.New(castagnoli)
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)
	header, offset := []byte(magic), int64(headerSize)
	for _, size := range sizes {
		header = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(header, uint64(offset)), uint64(size))
		offset += size
	}
	if _, err := out.Write(header); err != nil {
		return err
	}
	for _, part := range all {
		if _, err := io.Copy(out, part); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := w.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

// encodeLines sorts the pieces. Of pieces that overlap, the first counts where both are.
func (b *builder) encodeLines(to *spill) (index []byte, err error) {
	slices.SortStableFunc(b.pieces, func(a, b piece) int { return cmp.Compare(a.start, b.start) })
	file, err := b.ranges.reader()
	if err != nil {
		return nil, err
	}
	out := blocks{to: to}
	var end uint64 // of what is written
	buffer := make([]byte, 0, blockRanges*rangeSize)
	for i, p := range b.pieces {
		if p.end <= end {
			continue
		}
		if i > 0 && end < p.start {
			out.add(entry{end})
		}
		at := max(end, p.start)
		emit := func(r lineRange, rangeEnd uint64) {
			if rangeEnd > at {
				r.start = max(r.start, at)
				out.add(entry{r.start, uint64(r.node), uint64(r.file), uint64(r.line)})
			}
		}
		var current lineRange
		for done := uint32(0); done < p.count; {
			n := min(p.count-done, blockRanges)
			buffer = buffer[:n*rangeSize]
			if _, err := file.ReadAt(buffer, p.offset+int64(done)*rangeSize); err != nil {
				return nil, err
			}
			for row := range slices.Chunk(buffer, rangeSize) {
				u := binary.LittleEndian.Uint32
				r := lineRange{binary.LittleEndian.Uint64(row), u(row[8:]), u(row[12:]), u(row[16:])}
				if r.start > current.start && current.start >= p.start {
					emit(current, r.start)
				}
				current = r
			}
			done += n
		}
		emit(current, p.end)
		end = p.end
	}
	if len(b.pieces) > 0 {
		out.add(entry{end})
	}
	out.flush()
	return out.index, nil
}

func (b *builder) encodeSymbols(to *spill) (index []byte) {
	out := blocks{to: to}
	for _, s := range b.symbols {
		out.add(entry{s.start, s.size, uint64(s.name)})
	}
	out.flush()
	return out.index
}

// budget limits memory and steps.
type budget struct {
	ctx    context.Context
	memory int64 // bytes that may still be taken
	steps  int64 // that may still be made
	count  uint
}

func (b *budget) take(bytes int64) error {
	if b.memory < bytes {
		return &LimitError{"the debug information needs more memory than max_memory allows"}
	}
	b.memory -= bytes
	return nil
}

func (b *budget) give(bytes int64) { b.memory += bytes }

// step counts n steps, and looks at the context now and then.
func (b *budget) step(n int) error {
	if b.steps -= int64(n); b.steps < 0 {
		return errors.New("the debug information refers to its parts more often than a compiler does")
	}
	if b.count++; b.count%1024 == 0 {
		return b.ctx.Err()
	}
	return nil
}
