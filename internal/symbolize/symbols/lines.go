// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"fmt"
	"path"
	"slices"
)

// sourceFile is a file or a directory that a line table names. The number of a file is that of its path, 0 if that is not
// known yet.
type sourceFile struct {
	name      value
	directory uint64
	number    uint32
}

const fileSize = 32

// file returns the number of the path of a file: as in LLVM, that of the directory of the file comes before its name if the
// name is relative, and that of the compilation before a relative directory that is another one.
func (u *unit) file(i uint64) uint32 {
	if i >= uint64(len(u.files)) || u.budget.err != nil {
		return 0
	}
	f := &u.files[i]
	if f.number != 0 {
		return f.number
	}
	name := string(u.stringOf(f.name))
	if name == "" {
		return 0
	}
	if !path.IsAbs(name) && f.directory < uint64(len(u.directories)) {
		name = path.Join(string(u.stringOf(u.directories[f.directory].name)), name)
	}
	if !path.IsAbs(name) && f.directory != 0 {
		name = path.Join(string(u.stringOf(u.root.values[attrDirectory])), name)
	}
	u.budget.step(4 * len(name)) // a path is allocated some times
	f.number = u.strings.intern([]byte(path.Clean(name)))
	return f.number
}

// lineTable is a program that makes the rows of a unit. See the standard, chapter 6.2.
type lineTable struct {
	c                     cursor
	version               uint64
	lineBase              int64
	instruction           uint64 // bytes of the smallest one
	lineRange, opcodeBase uint64
	operands              []byte // numbers of the operands of the opcodes from 1
}

var errLinesEnd = errors.New("it ends outside of .debug_line")

// readLines reads the line table at an offset of .debug_line.
func (u *unit) readLines(offset uint64) error {
	t, err := u.readLineHeader(offset)
	if err != nil {
		return err
	}
	u.runLines(t)
	if t.c.short {
		return errLinesEnd
	}
	slices.SortStableFunc(u.rows, func(a, b row) int { return compareSpans(a.span, b.span) })
	return u.budget.err
}

func (u *unit) readLineHeader(offset uint64) (*lineTable, error) {
	t := &lineTable{c: cursor{data: u.line, order: u.order}}
	c := &t.c
	c.skip(offset)
	length, offsetSize := c.length()
	if length > uint64(len(c.data))-c.at {
		return nil, errLinesEnd
	}
	c.data = c.data[:c.at+length]
	if t.version = c.uint(2); t.version < 2 || t.version > 5 {
		return nil, fmt.Errorf("it has version %d; expected 2 to 5", t.version)
	}
	if t.version >= 5 {
		c.skip(2) // size of addresses and of segments
	}
	length = c.uint(offsetSize)
	program := c.at + length
	if length > uint64(len(c.data))-c.at {
		return nil, errLinesEnd
	}
	t.instruction = c.uint(1)
	if t.version >= 4 {
		c.skip(1) // operations of an instruction, which is 1 for processors in use
	}
	c.skip(1) // whether a row is a statement
	t.lineBase, t.lineRange, t.opcodeBase = int64(int8(c.uint(1))), c.uint(1), c.uint(1)
	if t.lineRange == 0 || t.opcodeBase == 0 {
		return nil, errors.New("it has no range of lines, or no opcodes")
	}
	t.operands = c.skip(t.opcodeBase - 1)
	var err error
	if t.version >= 5 {
		if u.directories, err = u.readEntries(c, offsetSize); err == nil {
			u.files, err = u.readEntries(c, offsetSize)
		}
	} else {
		u.readFiles(c)
	}
	if c.short {
		err = errLinesEnd
	}
	c.at = program
	return t, err
}

// readFiles reads directories and files of DWARF 2 to 4: lists that end with an empty string. The first of each has number
// 1; directory 0 is that of the compilation.
func (u *unit) readFiles(c *cursor) {
	u.directories = []sourceFile{{name: u.root.values[attrDirectory]}}
	for name := u.lineString(c); name.form != 0; name = u.lineString(c) {
		u.directories = append(u.directories, sourceFile{name: name})
	}
	u.files = []sourceFile{{}}
	for u.addFile(c) {
	}
}

// lineString reads a string of DWARF 2 to 4. An empty one is no value.
func (u *unit) lineString(c *cursor) (v value) {
	at := c.at
	if text := c.text(); len(text) > 0 && u.budget.err == nil {
		v = value{formLineString, at}
		u.budget.step(1)
		u.take(2 * fileSize)
	}
	return v
}

// addFile adds a file of DWARF 2 to 4, unless its name is empty.
func (u *unit) addFile(c *cursor) bool {
	name := u.lineString(c)
	if name.form == 0 {
		return false
	}
	u.files = append(u.files, sourceFile{name: name, directory: c.uvarint()})
	c.uvarint() // time
	c.uvarint() // size
	return true
}

// readEntries reads directories or files of DWARF 5: the types and forms of what each entry has, the number of entries, and
// these.
func (u *unit) readEntries(c *cursor, offsetSize int) (entries []sourceFile, err error) {
	const typeOfPath, typeOfDirectory = 1, 2
	var formats []field
	for range c.uint(1) {
		formats = append(formats, field{place: int(c.uvarint()), form: form(c.uvarint())})
	}
	encoding := u.header
	encoding.offsetSize = offsetSize
	for range c.uvarint() {
		start := c.at
		var f sourceFile
		for _, format := range formats {
			v, err := encoding.value(c, format)
			if err != nil {
				return nil, err
			}
			switch format.place {
			case typeOfPath:
				if f.name = v; v.form == formString {
					f.name.form = formLineString
				}
			case typeOfDirectory:
				f.directory = v.number
			}
		}
		if c.at == start {
			return nil, errors.New("it has directories or files that take no bytes")
		}
		u.budget.step(1 + len(formats))
		if u.take(2 * fileSize); u.budget.err != nil {
			return nil, u.budget.err
		}
		entries = append(entries, f)
	}
	return entries, nil
}

// The opcodes of a line table.
const (
	lineExtended       = 0
	lineCopy           = 1
	lineAdvanceAddress = 2
	lineAdvanceLine    = 3
	lineSetFile        = 4
	lineAddConstant    = 8
	lineAddFixed       = 9

	// After lineExtended and a length.
	lineEndSequence = 1
	lineSetAddress  = 2
)

// runLines adds the rows of a line table.
func (u *unit) runLines(t *lineTable) {
	type state struct {
		address, file uint64
		line          int64
	}
	start := state{file: 1, line: 1}
	at, before, open := start, start, false
	// emit ends the range of the row before, and starts that of this one.
	emit := func() {
		if open && at.address > before.address && inText(u.text, before.address) {
			u.take(2 * rowSize)
			u.rows = append(u.rows, row{span{before.address, at.address}, u.file(before.file), uint32(before.line)})
		}
		before, open = at, true
	}
	c := &t.c
	for c.at < uint64(len(c.data)) && u.budget.err == nil {
		u.budget.step(1)
		switch opcode := c.uint(1); {
		case opcode >= t.opcodeBase:
			opcode -= t.opcodeBase
			at.address += opcode / t.lineRange * t.instruction
			at.line += t.lineBase + int64(opcode%t.lineRange)
			emit()
		case opcode == lineExtended:
			length := c.uvarint()
			operation := *c
			c.skip(length)
			operation.data = c.data[:c.at]
			switch operation.uint(1) {
			case lineEndSequence:
				emit()
				at, open = start, false
			case lineSetAddress:
				at.address = operation.uint(int(length) - 1)
			}
		case opcode == lineCopy:
			emit()
		case opcode == lineAdvanceAddress:
			at.address += c.uvarint() * t.instruction
		case opcode == lineAdvanceLine:
			at.line += c.varint()
		case opcode == lineSetFile:
			at.file = c.uvarint()
		case opcode == lineAddConstant:
			at.address += (255 - t.opcodeBase) / t.lineRange * t.instruction
		case opcode == lineAddFixed:
			at.address += c.uint(2)
		default:
			for range t.operands[opcode-1] {
				c.uvarint()
			}
		}
	}
}
