// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Info is what an ELF file says of itself.
type Info struct {
	// BuildID is GNU's build ID in hex, empty if the file has none.
	BuildID string
	// HasDWARF and HasCode: debug information, and the code itself instead of debug information only.
	HasDWARF, HasCode bool
	// AltID is the build ID of the file that .gnu_debugaltlink names, empty if there is none.
	AltID string
}

// ReadInfo reads headers and notes of an ELF file.
func ReadInfo(r io.ReaderAt) (Info, error) {
	f, err := newFile(r)
	if err != nil {
		return Info{}, err
	}
	info := Info{BuildID: buildID(f), HasDWARF: hasDWARF(f), HasCode: true, AltID: altID(f)}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Filesz == 0 {
			info.HasCode = false
		}
	}
	return info, nil
}

// newFile reads the headers of an ELF file. It refuses a file of which debug/elf would keep headers and names of sections
// in more than about 64 MiB; those of linkers take some kilobytes.
func newFile(r io.ReaderAt) (*elf.File, error) {
	head := make([]byte, 64)
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	word := 4 // bytes
	if elf.Class(head[elf.EI_CLASS]) == elf.ELFCLASS64 {
		word = 8
	}
	c := cursor{data: head, order: binary.LittleEndian}
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		c.order = binary.BigEndian
	}
	c.skip(elf.EI_NIDENT + 8) // type, machine, version
	c.uint(word)              // entry
	c.uint(word)              // program headers
	at := c.uint(word)
	c.skip(6) // flags, size of this header
	programHeader := c.uint(2)
	c.skip(2)
	size, count, names := c.uint(2), c.uint(2), c.uint(2)
	section := make([]byte, 64)
	if _, err := r.ReadAt(section, int64(at+names*size)); at > 0 && err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	c = cursor{data: section, order: c.order}
	c.skip(8) // name, type
	flags := c.uint(word)
	c.uint(word) // address
	c.uint(word) // place
	const largest = 64 << 20
	if at > 0 && (count == 0 || flags&uint64(elf.SHF_COMPRESSED) != 0 || c.uint(word) > largest/count) || max(size, programHeader) > 64 {
		return nil, errors.New("the headers of the file, or the names of its sections, are larger than those of linkers")
	}
	return elf.NewFile(r)
}

func hasDWARF(f *elf.File) bool {
	return f.Section(".debug_info") != nil || f.Section(".zdebug_info") != nil
}

// altID returns the build ID in hex of .gnu_debugaltlink, which has a path before it.
func altID(f *elf.File) string {
	if s := f.Section(".gnu_debugaltlink"); s != nil {
		if data, err := small(s); err == nil {
			_, id, _ := bytes.Cut(data, []byte{0})
			return hex.EncodeToString(id)
		}
	}
	return ""
}

// small returns the content of a section that must be small.
func small(s *elf.Section) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS || s.Size > 64<<10 {
		return nil, fmt.Errorf("section %s has %d bytes; expected at most 64 KiB", s.Name, s.Size)
	}
	return s.Data()
}

// buildID returns GNU's build ID in hex.
func buildID(f *elf.File) string {
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NOTE {
			if data, err := small(s); err == nil {
				if id := gnuBuildID(data, f.ByteOrder); id != "" {
					return id
				}
			}
		}
	}
	return ""
}

// gnuBuildID finds the build ID in notes: sizes of name and content, type, name, content, each padded to 4 bytes.
func gnuBuildID(notes []byte, order binary.ByteOrder) string {
	const ntGNUBuildID = 3
	for len(notes) >= 12 {
		name, size, kind := uint64(order.Uint32(notes)), uint64(order.Uint32(notes[4:])), order.Uint32(notes[8:])
		start := 12 + (name+3)&^3
		end := start + size
		if end > uint64(len(notes)) {
			return ""
		}
		if kind == ntGNUBuildID && string(notes[12:12+name]) == "GNU\x00" {
			return hex.EncodeToString(notes[start:end])
		}
		notes = notes[min(uint64(len(notes)), (end+3)&^3):]
	}
	return ""
}

// span is a range of addresses.
type span struct{ start, end uint64 }

func compareSpans(a, b span) int { return cmp.Compare(a.start, b.start) }

// textOf returns the executable sections, sorted.
func textOf(f *elf.File) (text []span) {
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 && s.Addr+s.Size > s.Addr {
			text = append(text, span{s.Addr, s.Addr + s.Size})
		}
	}
	slices.SortFunc(text, compareSpans)
	return text
}

// inText reports whether an address lies in executable sections, which are sorted.
func inText(text []span, address uint64) bool {
	i, found := slices.BinarySearchFunc(text, span{start: address}, compareSpans)
	return found || i > 0 && address < text[i-1].end
}

// segmentsOf returns the executable segments. A file of debug information has lost their places in the program.
func segmentsOf(f *elf.File) (segments []Segment) {
	base, first := uint64(0), true // the address of the start of the file
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if first {
			base, first = p.Vaddr, false
		}
		if p.Flags&elf.PF_X == 0 || p.Memsz == 0 || p.Vaddr+p.Memsz < p.Vaddr {
			continue
		}
		s := Segment{Offset: p.Off, FileSize: p.Filesz, Address: p.Vaddr, Size: p.Memsz}
		if p.Filesz == 0 {
			if otherLinker(f) {
				continue
			}
			s.Offset, s.FileSize, s.Guessed = p.Vaddr-base, p.Memsz, true
		}
		segments = append(segments, s)
	}
	return segments
}

// otherLinker reports whether a linker made the file that does not place segments in the file as in memory.
func otherLinker(f *elf.File) bool {
	if f.Section(".note.gnu.gold-version") != nil {
		return true
	}
	s := f.Section(".comment")
	if s == nil {
		return false
	}
	comment, err := small(s)
	return err != nil || bytes.Contains(comment, []byte("LLD")) || bytes.Contains(comment, []byte("mold"))
}

// sections copies sections of a file to temporary files and maps these, so that they take no memory and nobody changes
// them.
type sections struct {
	directory string
	remaining int64 // bytes that may still be copied
	mapped    [][]byte
}

func (s *sections) close() {
	for _, data := range s.mapped {
		_ = unmapFile(data)
	}
}

// read returns the decompressed content of the section .NAME or, as it was called before SHF_COMPRESSED, .zNAME. It is
// empty if there is none.
func (s *sections) read(f *elf.File, name string) ([]byte, error) {
	section := f.Section("." + name)
	if section == nil {
		section = f.Section(".z" + name)
	}
	if section == nil || section.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	return s.copy(section)
}

func (s *sections) copy(section *elf.Section) ([]byte, error) {
	file, err := temporary(s.directory)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	n, err := io.Copy(file, io.LimitReader(section.Open(), s.remaining+1))
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", section.Name, err)
	}
	if s.remaining -= n; s.remaining < 0 {
		return nil, errors.New("the sections of the file, decompressed, are larger than the largest allowed file")
	}
	if n == 0 {
		return nil, nil
	}
	data, err := mapFile(file, int(n))
	if err != nil {
		return nil, err
	}
	s.mapped = append(s.mapped, data)
	return data, nil
}

// temporary creates a file without a name.
func temporary(directory string) (*os.File, error) {
	file, err := os.CreateTemp(directory, ".symbols-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
