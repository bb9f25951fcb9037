// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"slices"
)

// debugFile is the DWARF of one file. Its sections are mapped.
type debugFile struct {
	*builder
	order                                                                  binary.ByteOrder
	info, abbrev, str, line, ranges, addr, lineStr, strOffsets, rangeLists []byte

	units  []header                           // in the order of .debug_info
	tables map[uint64]map[uint64]abbreviation // by offset in .debug_abbrev
	names  map[uint64]uint32                  // of the functions whose DIEs are at offsets that others refer to
	last   *unit                              // in which such a DIE was
	alt    *debugFile                         // with the DIEs and strings that several files share, or nil
}

// openDWARF reads the sections of a file and the headers of its units.
func (b *builder) openDWARF(f *elf.File) (*debugFile, error) {
	d := &debugFile{builder: b, order: f.ByteOrder, tables: map[uint64]map[uint64]abbreviation{}, names: map[uint64]uint32{}}
	total := 0
	for name, section := range map[string]*[]byte{
		"info": &d.info, "abbrev": &d.abbrev, "str": &d.str, "line": &d.line, "ranges": &d.ranges, "addr": &d.addr,
		"line_str": &d.lineStr, "str_offsets": &d.strOffsets, "rnglists": &d.rangeLists,
	} {
		data, err := b.sections.read(f, "debug_"+name)
		if err != nil {
			return nil, err
		}
		*section = data
		total += len(data)
	}
	// A DIE has up to about 30 attributes, of which some take no bytes.
	b.budget.steps += 32*int64(total) + 1<<20
	return d, d.readHeaders()
}

// header is that of a unit, with the offsets in .debug_info of the unit, its first DIE and what follows it.
type header struct {
	start, first, end uint64
	abbreviations     uint64 // offset in .debug_abbrev
	version, kind     uint64 // the kind is 0 before DWARF 5
	addressSize       int
	offsetSize        int
}

// The kinds of units that can have code.
const (
	unitCompile  = 1
	unitSkeleton = 4
)

func (d *debugFile) readHeaders() error {
	c := cursor{data: d.info, order: d.order}
	for c.at < uint64(len(d.info)) && d.budget.err == nil {
		h := header{start: c.at}
		length, offsetSize := c.length()
		if length > uint64(len(d.info))-c.at {
			return fmt.Errorf("the unit at offset %#x of .debug_info ends outside of the section", h.start)
		}
		h.offsetSize, h.end = offsetSize, c.at+length
		if h.version = c.uint(2); h.version >= 5 {
			h.kind, h.addressSize, h.abbreviations = c.uint(1), int(c.uint(1)), c.uint(offsetSize)
		} else {
			h.abbreviations, h.addressSize = c.uint(offsetSize), int(c.uint(1))
		}
		if h.kind == unitSkeleton {
			c.skip(8)
		}
		if h.version < 2 || h.version > 5 || h.addressSize != 4 && h.addressSize != 8 || c.at > h.end {
			return fmt.Errorf("the unit at offset %#x of .debug_info has version %d and addresses of %d bytes; expected 2 to 5, and 4 or 8",
				h.start, h.version, h.addressSize)
		}
		h.first, c.at = c.at, h.end
		d.budget.step(1)
		d.budget.take(2 * 64) // a slice that grows
		d.units = append(d.units, h)
	}
	return d.budget.err
}

// unit is a unit of .debug_info. Of a compilation unit, it is also what is known of its code.
type unit struct {
	*debugFile
	header
	table map[uint64]abbreviation
	root  die

	directories []sourceFile
	files       []sourceFile
	scopes      []scope
	rows        []row
	taken       int64 // of the budget
}

func (u *unit) take(bytes int64) {
	u.taken += bytes
	u.budget.take(bytes)
}

// open reads the first DIE of a unit. The cursor is after it.
func (d *debugFile) open(h header) (u *unit, c *cursor, err error) {
	u = &unit{debugFile: d, header: h}
	if u.table, err = d.abbreviationsAt(h.abbreviations); err != nil {
		return nil, nil, err
	}
	c = u.cursorAt(h.first)
	u.root, err = u.next(c)
	return u, c, err
}

func (u *unit) cursorAt(offset uint64) *cursor {
	return &cursor{data: u.info[:u.end], at: offset, order: u.order}
}

// readDWARF adds the ranges of all units of a file, unless the file that .gnu_debugaltlink names is missing.
func (b *builder) readDWARF(f *elf.File, alt io.ReaderAt) error {
	if altID(f) != "" && alt == nil {
		return nil
	}
	d, err := b.openDWARF(f)
	if err != nil {
		return err
	}
	if altID(f) != "" {
		shared, err := newFile(alt)
		if err == nil {
			d.alt, err = b.openDWARF(shared)
		}
		if err != nil {
			return fmt.Errorf("the file of .gnu_debugaltlink: %w", err)
		}
	}
	for _, h := range d.units {
		if err := d.readUnit(h); err != nil {
			return fmt.Errorf("the unit at offset %#x of .debug_info: %w", h.start, err)
		}
	}
	return nil
}

// readUnit adds the ranges of a compilation unit.
func (d *debugFile) readUnit(h header) error {
	if h.kind != 0 && h.kind != unitCompile && h.kind != unitSkeleton {
		return nil
	}
	u, dies, err := d.open(h)
	if err != nil || u.root.tag != dwarf.TagCompileUnit && u.root.tag != dwarf.TagSkeletonUnit {
		return err
	}
	defer func() { d.budget.give(u.taken) }()
	if u.root.values[attrLines].form != 0 {
		if err := u.readLines(u.root.values[attrLines].number); err != nil {
			return fmt.Errorf("its line table: %w", err)
		}
	}
	if u.root.children {
		if err := u.readScopes(dies); err != nil {
			return err
		}
	}
	if d.budget.err == nil {
		d.addRanges(overlay(u.scopes, u.rows))
	}
	return d.budget.err
}

// scope is a range of addresses with the code of a function or an inlined call. Those with a larger depth are inside.
type scope struct {
	span
	node, depth uint32
}

// row is a range of addresses with one line.
type row struct {
	span
	file, line uint32
}

const (
	scopeSize = 24
	rowSize   = 24
)

// readScopes reads the DIEs below that of the unit.
func (u *unit) readScopes(dies *cursor) error {
	parents := []uint32{0} // the node of each DIE that is open
	for len(parents) > 0 && dies.at < u.end {
		e, err := u.next(dies)
		if err != nil {
			return err
		}
		node := parents[len(parents)-1]
		switch e.tag {
		case 0:
			parents = parents[:len(parents)-1]
			continue
		case dwarf.TagSubprogram:
			node = u.addScopes(&e, 0, len(parents))
		case dwarf.TagInlinedSubroutine:
			node = u.addScopes(&e, node, len(parents))
		}
		if e.children {
			u.take(2 * 4) // a slice that grows
			parents = append(parents, node)
		}
	}
	return u.budget.err
}

// addScopes adds the ranges of a function or of an inlined call. If it has some, it also adds its node and returns its
// number, otherwise that of the parent.
func (u *unit) addScopes(e *die, parent uint32, depth int) (number uint32) {
	for r := range u.rangesOf(e) {
		if r.start >= r.end || !inText(u.text, r.start) {
			continue
		}
		if number == 0 {
			number = u.addNode(u.newNode(e, parent))
		}
		u.take(4 * scopeSize) // a slice that grows, here and in overlay
		u.scopes = append(u.scopes, scope{r, number, uint32(depth)})
	}
	return cmp.Or(number, parent)
}

// newNode returns the node of a function, or of an inlined call, which has a place in its parent.
func (u *unit) newNode(e *die, parent uint32) node {
	n := node{parent: parent, callLine: uint32(e.values[attrCallLine].number)}
	if e.values[attrCallFile].form != 0 {
		n.callFile = u.file(e.values[attrCallFile].number)
	}
	n.name = u.nameOf(e, 0)
	return n
}

const maxReferences = 16 // from a DIE to the one with its name

// nameOf returns the number of the name of a function: the linkage name of a DIE or of one that it refers to, or else the
// plain name.
func (u *unit) nameOf(e *die, references int) uint32 {
	if e.values[attrLinkageName].form != 0 {
		return u.strings.intern(u.stringOf(e.values[attrLinkageName]))
	}
	for _, place := range [...]int{attrOrigin, attrSpecification} {
		in, at := u.reference(e.values[place])
		if in == nil || references == maxReferences {
			continue
		}
		if n := in.nameAt(at, references+1); n != 0 || u.budget.err != nil {
			return n
		}
	}
	return u.strings.intern(u.stringOf(e.values[attrName]))
}

// nameAt returns the number of the name of the function whose DIE is at an offset.
func (d *debugFile) nameAt(at uint64, references int) uint32 {
	if n, ok := d.names[at]; ok {
		return n
	}
	n, err := d.readName(at, references)
	d.budget.fail(err)
	d.budget.take(40)
	d.names[at] = n
	return n
}

func (d *debugFile) readName(at uint64, references int) (uint32, error) {
	i, found := slices.BinarySearchFunc(d.units, at, func(h header, at uint64) int { return cmp.Compare(h.end, at) })
	if found {
		i++ // it starts where the one before ends
	}
	if i == len(d.units) || at < d.units[i].first {
		return 0, fmt.Errorf("a DIE refers to offset %#x of .debug_info, where none is", at)
	}
	if d.last == nil || d.last.start != d.units[i].start {
		u, _, err := d.open(d.units[i])
		if err != nil {
			return 0, err
		}
		d.last = u
	}
	u := d.last
	e, err := u.next(u.cursorAt(at))
	if err != nil {
		return 0, err
	}
	return u.nameOf(&e, references), nil
}

// overlay returns ranges with the node of the innermost scope and the line of a row, the last of which is a gap. What
// reaches beyond the scope around it is cut. Rows are sorted; of those that overlap, the first counts.
func overlay(scopes []scope, rows []row) iter.Seq[lineRange] {
	slices.SortStableFunc(scopes, func(a, b scope) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.depth, b.depth), cmp.Compare(b.end, a.end))
	})
	return func(yield func(lineRange) bool) {
		const never = 1<<64 - 1
		var open []scope // the innermost one last
		for at, next := uint64(0), uint64(0); next != never; at = next {
			for len(open) > 0 && open[len(open)-1].end <= at {
				open = open[:len(open)-1]
			}
			for ; len(scopes) > 0 && scopes[0].start <= at; scopes = scopes[1:] {
				s := scopes[0]
				if len(open) > 0 {
					s.end = min(s.end, open[len(open)-1].end)
				}
				open = append(open, s)
			}
			for len(rows) > 0 && rows[0].end <= at {
				rows = rows[1:]
			}
			r := lineRange{start: at}
			next = never
			if len(scopes) > 0 {
				next = scopes[0].start
			}
			if len(open) > 0 {
				top := open[len(open)-1]
				r.node, next = top.node, min(next, top.end)
			}
			if len(rows) > 0 && rows[0].start > at {
				next = min(next, rows[0].start)
			} else if len(rows) > 0 {
				r.file, r.line, next = rows[0].file, rows[0].line, min(next, rows[0].end)
			}
			if !yield(r) {
				return
			}
		}
	}
}
