// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize/symbols"
)

// content writes numbers with their sizes, bytes and strings after each other.
func content(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if s, ok := v.(string); ok {
			v = []byte(s)
		}
		_ = binary.Write(&b, binary.LittleEndian, v) // an error would be of the type
	}
	return b.Bytes()
}

func uvarint(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// section is a part of a file of elfFile.
type section struct {
	name    string
	kind    elf.SectionType
	link    uint32
	content []byte
}

// elfFile returns a program with 64 KiB of code at 0x1000 and sections.
func elfFile(sections ...section) []byte {
	names, data := "\x00.text\x00.names\x00", []byte(nil)
	headers := []any{make([]byte, 64), elf.Section64{Name: 1, Type: uint32(elf.SHT_NOBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Addr: 0x1000, Size: 1 << 16}}
	for _, s := range sections {
		headers = append(headers, elf.Section64{Name: uint32(len(names)), Type: uint32(s.kind), Link: s.link, Off: 64 + uint64(len(data)), Size: uint64(len(s.content))})
		names += s.name + "\x00"
		data = append(data, s.content...)
	}
	headers = append(headers, elf.Section64{Name: 7, Type: uint32(elf.SHT_STRTAB), Off: 64 + uint64(len(data)), Size: uint64(len(names))})
	data = append(data, names...)
	head := elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64,
		Shoff: 64 + uint64(len(data)), Shentsize: 64, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1)}
	return content(head, data, content(headers...))
}

// dwarfFile returns a program with sections of DWARF, whose names are before their contents.
func dwarfFile(named map[string][]byte) []byte {
	var all []section
	for name, data := range named {
		all = append(all, section{".debug_" + name, elf.SHT_PROGBITS, 0, data})
	}
	return elfFile(all...)
}

// info returns a unit of DWARF 5.
func info(abbreviations uint32, dies ...any) []byte {
	body := content(uint16(5), uint8(1), uint8(8), abbreviations, content(dies...))
	return content(uint32(len(body)), body)
}

// line returns a line table of DWARF 5 with directories and files, and a program of which each file has a row.
func line(directories, files []byte, program ...any) []byte {
	header := content("\x01\x01\x01\xfb\x0e\x0d", make([]byte, 12), directories, files)
	body := content(uint16(5), uint8(8), uint8(0), uint32(len(header)), header, content(program...))
	return content(uint32(len(body)), body)
}

func repeat(n int, data ...any) []byte { return bytes.Repeat(content(data...), n) }

// exhausting returns files that let a reader that trusts them allocate gigabytes or work for hours, by what they have.
func exhausting() map[string][]byte {
	const (
		root     = "\x01\x11\x01\x10\x17\x00\x00"                     // a unit with a line table
		function = "\x02\x2e\x00\x03\x0e\x11\x01\x12\x0b\x00\x00"     // with name, start, length
		ranged   = "\x03\x2e\x00\x55\x17\x00\x00"                     // with ranges
		nested   = "\x04\x0b\x01\x00\x00"                             // a block without attributes
		named    = "\x01\x11\x01\x03\x0e\x00\x00\x02\x2e\x00\x03\x0e" // and more fields to come
	)
	unit := info(0, uint8(1), uint32(0))
	long := repeat(1<<20, "a")
	many := content(uvarint(1 << 28))
	path := "\x01\x01\x1f" // one format: a path in .debug_line_str
	var rows []byte
	for i := range 10_000 { // the i-th file at the next address
		rows = append(rows, content("\x04", uint8(i%128|128), uint8(i/128), "\x1b")...)
	}
	symbol := content(uint32(0), uint8(elf.STT_FUNC), uint8(0), uint16(1), uint64(0x1000), uint64(1))
	return map[string][]byte{
		"directories without a format": dwarfFile(map[string][]byte{"abbrev": []byte(root + "\x00"), "info": unit, "line": line(content("\x00", many), []byte("\x00\x00"))}),
		"files without a format":       dwarfFile(map[string][]byte{"abbrev": []byte(root + "\x00"), "info": unit, "line": line([]byte("\x00\x00"), content("\x00", many))}),
		"files that take no bytes":     dwarfFile(map[string][]byte{"abbrev": []byte(root + "\x00"), "info": unit, "line": line([]byte("\x00\x00"), content("\x01\x01\x19", many))}),
		"more directories than bytes":  dwarfFile(map[string][]byte{"abbrev": []byte(root + "\x00"), "info": unit, "line": line(content(path, many), nil)}),
		"long names of directories": dwarfFile(map[string][]byte{
			"abbrev": []byte(root + "\x00"), "info": unit, "line_str": long,
			"line": line(content(path, uvarint(10_000), repeat(10_000, uint32(0))),
				content("\x02\x01\x1f\x02\x05", uvarint(10_000), repeat(10_000, uint32(0), uint16(1))),
				"\x00\x09\x02", uint64(0x1000), rows),
		}),
		"names in one DIE": dwarfFile(map[string][]byte{
			"abbrev": content(named, repeat(10_000, "\x03\x0e"), "\x00\x00\x00"), "str": long,
			"info": info(0, uint8(1), uint32(0), repeat(1000, uint8(2), repeat(10_001, uint32(0)))),
		}),
		"DIEs with one long name": dwarfFile(map[string][]byte{
			"abbrev": []byte(root + function + "\x00"), "str": long, "line": line([]byte("\x00\x00"), []byte("\x00\x00")),
			"info": info(0, uint8(1), uint32(0), repeat(100_000, uint8(2), uint32(0), uint64(0x1000), uint8(1))),
		}),
		"DIEs with one long list of ranges": dwarfFile(map[string][]byte{
			"abbrev": []byte(root + ranged + "\x00"), "line": line([]byte("\x00\x00"), []byte("\x00\x00")),
			"rnglists": content(repeat(1<<18, "\x07", uint64(0x5000), uint8(1)), "\x00"),
			"info":     info(0, uint8(1), uint32(0), repeat(100_000, uint8(3), uint32(0))),
		}),
		"DIEs in DIEs": dwarfFile(map[string][]byte{
			"abbrev": []byte(root + nested + "\x00"), "line": line([]byte("\x00\x00"), []byte("\x00\x00")), "info": info(0, uint8(1), uint32(0), repeat(20<<20, uint8(4))),
		}),
		"tables of abbreviations in each other": dwarfFile(map[string][]byte{
			"abbrev": content(root, repeat(1<<16, nested[:3], "\x01\x01\x00\x00")), "info": slices.Concat(unit, overlapping(1<<16)),
		}),
		"units without content":      dwarfFile(map[string][]byte{"abbrev": []byte("\x01\x41\x00\x00\x00\x00"), "info": bytes.Repeat(info(0, uint8(1)), 1<<20)}),
		"symbols with one long name": elfFile(section{".symtab", elf.SHT_SYMTAB, 3, bytes.Repeat(symbol, 200_000)}, section{".strtab", elf.SHT_STRTAB, 0, long}),
		"long names of sections":     elfFile(slices.Repeat([]section{{name: strings.Repeat("a", 100)}}, 2000)...),
	}
}

func TestFilesMadeToExhaustMemoryAreErrors(t *testing.T) {
	for name, file := range exhausting() {
		t.Run(name, func(t *testing.T) {
			const limit = 16 << 20
			o := symbols.Options{Directory: t.TempDir(), MaxMemory: limit, MaxFileSize: 256 << 20}
			allocated := profiletest.AllocatedBy(func() {
				require.Error(t, symbols.Build(t.Context(), symbols.Files{Program: bytes.NewReader(file)}, o, io.Discard))
			})
			assert.LessOrEqual(t, allocated, uint64(4*limit), "allocated in total, what was collected among it")
		})
	}
}

// overlapping returns units whose tables of abbreviations start one after the other, before the same end.
func overlapping(n int) (units []byte) {
	for i := range n {
		units = append(units, info(uint32(7*(i+1)), uint8(0))...)
	}
	return units
}
