// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
)

// A DIE is an entry of .debug_info.

// dwarfReader reads the units of one file.
type dwarfReader struct {
	*builder
	data   *dwarf.Data
	origin *dwarf.Reader           // for DIEs that others refer to
	names  map[dwarf.Offset]uint32 // of functions
	str    []byte                  // .debug_str
	alt    *dwarfReader            // of the file with the DIEs and strings that several files share, or nil
}

// openDWARF reads the sections of a file. It returns nil if the file has no DWARF.
func (b *builder) openDWARF(f *elf.File) (*dwarfReader, error) {
	content := map[string][]byte{}
	total := 0
	for _, name := range []string{"abbrev", "info", "str", "line", "ranges", "addr", "line_str", "str_offsets", "rnglists"} {
		data, err := b.sections.read(f, "debug_"+name)
		if err != nil {
			return nil, err
		}
		content[name] = data
		total += len(data)
	}
	if len(content["info"]) == 0 {
		return nil, nil
	}
	// An entry of .debug_info has up to about 30 attributes, of which some take no bytes.
	b.budget.steps += 32*int64(total) + 1<<20
	if err := b.checkAbbreviations(content["info"], content["abbrev"], f.ByteOrder); err != nil {
		return nil, err
	}
	data, err := dwarf.New(content["abbrev"], nil, nil, content["info"], content["line"], nil, content["ranges"], content["str"])
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"addr", "line_str", "str_offsets", "rnglists"} {
		if err := data.AddSection(".debug_"+name, content[name]); err != nil {
			return nil, err
		}
	}
	return &dwarfReader{builder: b, data: data, origin: data.Reader(), names: map[dwarf.Offset]uint32{}, str: content["str"]}, nil
}

// readDWARF adds the ranges of all units of a file, unless the file that .gnu_debugaltlink names is missing.
func (b *builder) readDWARF(f *elf.File, alt io.ReaderAt) error {
	if altID(f) != "" && alt == nil {
		return nil
	}
	r, err := b.openDWARF(f)
	if err != nil || r == nil {
		return err
	}
	if altID(f) != "" {
		shared, err := elf.NewFile(alt)
		if err == nil {
			r.alt, err = b.openDWARF(shared)
		}
		if err != nil {
			return fmt.Errorf("the file of .gnu_debugaltlink: %w", err)
		}
	}
	units := r.data.Reader()
	for {
		unit, err := units.Next()
		if err != nil || unit == nil {
			return err
		}
		if unit.Tag == dwarf.TagCompileUnit || unit.Tag == dwarf.TagSkeletonUnit {
			err = r.readUnit(units, unit)
		} else {
			units.SkipChildren()
		}
		if err != nil {
			return fmt.Errorf("the unit at offset %#x of .debug_info: %w", unit.Offset, err)
		}
	}
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

// unit is what is known of one compilation unit.
type unit struct {
	*dwarfReader
	name   string // of the main file
	files  []*dwarf.LineFile
	known  map[*dwarf.LineFile]uint32
	scopes []scope
	rows   []row
	taken  int64 // of the budget
}

func (u *unit) take(bytes int64) {
	u.taken += bytes
	u.budget.take(bytes)
}

func (r *dwarfReader) readUnit(dies *dwarf.Reader, entry *dwarf.Entry) error {
	u := &unit{dwarfReader: r, known: map[*dwarf.LineFile]uint32{}}
	r.resolveStrings(entry)
	u.name, _ = entry.Val(dwarf.AttrName).(string)
	defer func() { r.budget.give(u.taken) }()
	lines, err := r.data.LineReader(entry)
	if err != nil {
		return err
	}
	if lines != nil {
		if err := u.readRows(lines); err != nil {
			return err
		}
		u.files = lines.Files()
	}
	if entry.Children {
		if err := u.readScopes(dies); err != nil {
			return err
		}
	}
	if r.budget.err == nil {
		r.addRanges(overlay(u.scopes, u.rows))
	}
	return r.budget.err
}

// resolveStrings puts the strings that another file has in the place of their offsets.
func (r *dwarfReader) resolveStrings(e *dwarf.Entry) {
	for i, f := range e.Field {
		offset, ok := f.Val.(int64)
		if !ok || f.Class != dwarf.ClassStringAlt || r.alt == nil || offset < 0 || offset > int64(len(r.alt.str)) || r.budget.err != nil {
			continue
		}
		text := textAt(r.alt.str, uint64(offset))
		r.budget.step(1 + len(text)/8)
		e.Field[i].Val = text
	}
}

// readRows reads the line table.
func (u *unit) readRows(lines *dwarf.LineReader) error {
	var entry, before dwarf.LineEntry
	open := false
	for u.budget.err == nil {
		if err := lines.Next(&entry); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return err
		}
		u.budget.step(1)
		if open && entry.Address > before.Address && inText(u.text, before.Address) {
			u.take(2 * rowSize)
			u.rows = append(u.rows, row{span{before.Address, entry.Address}, u.file(before.File), uint32(before.Line)})
		}
		before, open = entry, !entry.EndSequence
	}
	slices.SortStableFunc(u.rows, func(a, b row) int { return compareSpans(a.span, b.span) })
	return nil
}

// file returns the number of the path of a file.
func (u *unit) file(f *dwarf.LineFile) uint32 {
	if f == nil {
		return 0
	}
	if n, ok := u.known[f]; ok {
		return n
	}
	name := path.Clean(f.Name)
	if path.IsAbs(u.name) && strings.HasSuffix(name, u.name) {
		name = u.name // debug/dwarf puts the directory of the unit before it, in DWARF 5
	}
	u.known[f] = u.strings.intern(name)
	return u.known[f]
}

// readScopes reads the DIEs below that of the unit.
func (u *unit) readScopes(dies *dwarf.Reader) error {
	parents := []uint32{0} // the node of each DIE that is open
	for len(parents) > 0 && u.budget.err == nil {
		e, err := dies.Next()
		if err != nil {
			return err
		}
		if e == nil {
			return nil
		}
		u.budget.step(1 + len(e.Field))
		node := parents[len(parents)-1]
		switch e.Tag {
		case 0:
			parents = parents[:len(parents)-1]
			continue
		case dwarf.TagSubprogram:
			node, err = u.addScopes(e, 0, len(parents))
		case dwarf.TagInlinedSubroutine:
			node, err = u.addScopes(e, node, len(parents))
		case dwarf.TagEnumerationType, dwarf.TagSubroutineType:
			dies.SkipChildren()
			continue
		}
		if err != nil {
			return err
		}
		if e.Children {
			u.take(4)
			parents = append(parents, node)
		}
	}
	return nil
}

// addScopes adds the ranges of a function or of an inlined call. If it has some, it also adds its node and returns its
// number, otherwise that of the parent.
func (u *unit) addScopes(e *dwarf.Entry, parent uint32, depth int) (number uint32, err error) {
	ranges, err := u.data.Ranges(e)
	if err != nil {
		return 0, err
	}
	u.budget.step(len(ranges))
	for _, r := range ranges {
		if r[0] >= r[1] || !inText(u.text, r[0]) {
			continue
		}
		if number == 0 {
			number = u.addNode(u.newNode(e, parent))
		}
		if u.take(2 * scopeSize); u.budget.err != nil {
			return 0, u.budget.err
		}
		u.scopes = append(u.scopes, scope{span{r[0], r[1]}, number, uint32(depth)})
	}
	return cmp.Or(number, parent), nil
}

// newNode returns the node of a function, or of an inlined call, which has a place in its parent.
func (u *unit) newNode(e *dwarf.Entry, parent uint32) node {
	n := node{parent: parent}
	if line, ok := e.Val(dwarf.AttrCallLine).(int64); ok {
		n.callLine = uint32(line)
	}
	if i, ok := e.Val(dwarf.AttrCallFile).(int64); ok && i >= 0 && i < int64(len(u.files)) {
		n.callFile = u.file(u.files[i])
	}
	n.name = u.nameOf(e, 0)
	return n
}

const (
	attrMIPSLinkageName = dwarf.Attr(0x2007) // DW_AT_linkage_name before DWARF 4
	maxReferences       = 16                 // from a DIE to the one with its name
)

// nameOf returns the number of the name of a function: the linkage name of a DIE or of one that it refers to, or else the
// plain name.
func (r *dwarfReader) nameOf(e *dwarf.Entry, references int) uint32 {
	r.resolveStrings(e)
	for _, attr := range [...]dwarf.Attr{dwarf.AttrLinkageName, attrMIPSLinkageName} {
		if s, ok := e.Val(attr).(string); ok {
			return r.strings.intern(s)
		}
	}
	for _, attr := range [...]dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		from, at := r.reference(e, attr)
		if from == nil || references == maxReferences {
			continue
		}
		if n := from.nameAt(at, references+1); n != 0 || r.budget.err != nil {
			return n
		}
	}
	plain, _ := e.Val(dwarf.AttrName).(string)
	return r.strings.intern(plain)
}

// reference returns the place of the DIE that an attribute refers to, and the reader of its file, which is nil if there is none.
func (r *dwarfReader) reference(e *dwarf.Entry, attr dwarf.Attr) (from *dwarfReader, at dwarf.Offset) {
	field := e.AttrField(attr)
	if field == nil {
		return nil, 0
	}
	switch v := field.Val.(type) {
	case dwarf.Offset:
		return r, v
	case int64:
		if field.Class == dwarf.ClassReferenceAlt && v >= 0 && v <= math.MaxUint32 {
			return r.alt, dwarf.Offset(v)
		}
	}
	return nil, 0
}

// nameAt returns the number of the name of the function whose DIE is at an offset.
func (r *dwarfReader) nameAt(at dwarf.Offset, references int) uint32 {
	if n, ok := r.names[at]; ok {
		return n
	}
	r.origin.Seek(at)
	e, err := r.origin.Next()
	if err != nil || e == nil {
		r.budget.fail(err)
		return 0
	}
	r.budget.step(1 + len(e.Field))
	r.budget.take(40)
	r.names[at] = r.nameOf(e, references)
	return r.names[at]
}

// overlay returns ranges with the node of the innermost scope and the line of a row, the last of which is a gap. What
// reaches beyond the scope around it is cut. Rows are sorted; of those that overlap, the first counts.
func overlay(scopes []scope, rows []row) (all []lineRange) {
	slices.SortStableFunc(scopes, func(a, b scope) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.depth, b.depth), cmp.Compare(b.end, a.end))
	})
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
		all = append(all, r)
	}
	return all
}
