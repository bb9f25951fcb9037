// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/dwarf"
	"errors"
	"fmt"
)

// A DIE is an entry of .debug_info: a tag and attributes, in the order and the forms of its abbreviation. See
// https://dwarfstd.org/dwarf5std.html, chapter 7.5. We do not read it by debug/dwarf, whose memory and time a file can
// make as large as it likes.
type die struct {
	tag      dwarf.Tag // 0 ends the children of a DIE
	children bool
	values   [attributes]value
}

// The attributes that are used.
const (
	attrName = iota
	attrLinkageName
	attrLow
	attrHigh
	attrRanges
	attrOrigin
	attrSpecification
	attrCallFile
	attrCallLine
	attrLines
	attrDirectory
	attrStringOffsets
	attrAddresses
	attrRangeLists
	attributes // number of them

	notUsed = -1
)

var places = map[dwarf.Attr]int{
	dwarf.AttrName:           attrName,
	dwarf.AttrLinkageName:    attrLinkageName,
	dwarf.Attr(0x2007):       attrLinkageName, // before DWARF 4
	dwarf.AttrLowpc:          attrLow,
	dwarf.AttrHighpc:         attrHigh,
	dwarf.AttrRanges:         attrRanges,
	dwarf.AttrAbstractOrigin: attrOrigin,
	dwarf.AttrSpecification:  attrSpecification,
	dwarf.AttrCallFile:       attrCallFile,
	dwarf.AttrCallLine:       attrCallLine,
	dwarf.AttrStmtList:       attrLines,
	dwarf.AttrCompDir:        attrDirectory,
	dwarf.AttrStrOffsetsBase: attrStringOffsets,
	dwarf.AttrAddrBase:       attrAddresses,
	dwarf.AttrRnglistsBase:   attrRangeLists,
}

// abbreviation is what DIEs with one code have in common.
type abbreviation struct {
	tag      dwarf.Tag
	children bool
	fields   []field
}

// field is an attribute of an abbreviation: its place in die.values, its form, and its value if the form has it here.
type field struct {
	place    int
	form     form
	constant uint64
}

// abbreviationsAt reads the table of abbreviations at an offset of .debug_abbrev: a code, a tag, whether there are
// children, and pairs of attribute and form that end with two zeros; code 0 ends the table.
func (d *debugFile) abbreviationsAt(offset uint64) (map[uint64]abbreviation, error) {
	if t, ok := d.tables[offset]; ok {
		return t, nil
	}
	if offset > uint64(len(d.abbrev)) {
		return nil, errors.New("its abbreviations are outside of .debug_abbrev")
	}
	c := cursor{data: d.abbrev, at: offset, order: d.order}
	table := map[uint64]abbreviation{}
	for d.budget.err == nil {
		code := c.uvarint()
		if code == 0 {
			break
		}
		a := abbreviation{tag: dwarf.Tag(c.uvarint()), children: c.uint(1) != 0}
		for d.budget.err == nil {
			d.budget.step(1)
			attribute, form := dwarf.Attr(c.uvarint()), form(c.uvarint())
			if attribute == 0 && form == 0 {
				break
			}
			place, ok := places[attribute]
			if !ok {
				place = notUsed
			}
			next := field{place: place, form: form}
			if form == formImplicitConst {
				next.constant = uint64(c.varint())
			}
			d.budget.take(2 * 24) // a slice that grows
			a.fields = append(a.fields, next)
		}
		d.budget.take(2 * 64) // a map that grows
		table[code] = a
	}
	if c.short {
		return nil, errors.New("its abbreviations end outside of .debug_abbrev")
	}
	d.tables[offset] = table
	return table, d.budget.err
}

// next reads a DIE.
func (u *unit) next(c *cursor) (d die, err error) {
	start := c.at
	code := c.uvarint()
	a, ok := u.table[code]
	if !ok && code != 0 {
		return d, fmt.Errorf("a DIE has abbreviation %d, which is not in .debug_abbrev", code)
	}
	if u.budget.step(1 + len(a.fields)); u.budget.err != nil {
		return d, u.budget.err
	}
	d.tag, d.children = a.tag, a.children
	for _, f := range a.fields {
		v, err := u.value(c, f)
		if err != nil {
			return d, err
		}
		if f.place != notUsed {
			d.values[f.place] = v
		}
	}
	if c.short {
		return d, errors.New("a DIE ends outside of it")
	}
	u.budget.step(int(c.at-start) / 16) // a string has been looked through
	return d, u.budget.err
}

// form says how a value is encoded. These are the forms whose values are used; Alt is another file.
type form uint64

const (
	formAddr          form = 0x01
	formString        form = 0x08
	formStrp          form = 0x0e
	formRefAddr       form = 0x10
	formRef1          form = 0x11
	formRef2          form = 0x12
	formRef4          form = 0x13
	formRef8          form = 0x14
	formRefUdata      form = 0x15
	formStrx          form = 0x1a
	formAddrx         form = 0x1b
	formRefSup4       form = 0x1c
	formStrpSup       form = 0x1d
	formLineStrp      form = 0x1f
	formImplicitConst form = 0x21
	formRnglistx      form = 0x23
	formRefSup8       form = 0x24
	formStrx1         form = 0x25
	formStrx4         form = 0x28
	formAddrx1        form = 0x29
	formAddrx4        form = 0x2c
	formGNURefAlt     form = 0x1f20
	formGNUStrpAlt    form = 0x1f21

	formLineString form = 1 << 32 // ours: formString in .debug_line
)

// value is a number, or where a string is. Its form is 0 if there is none.
type value struct {
	form   form
	number uint64
}

// value reads the value of a field.
func (h *header) value(c *cursor, f field) (value, error) {
	v := value{form: f.form}
	switch f.form {
	case formAddr:
		v.number = c.uint(h.addressSize)
	case 0x0b, 0x0c, formRef1, formStrx1, formAddrx1: // data1, flag
		v.number = c.uint(1)
	case 0x05, formRef2, 0x26, 0x2a: // data2, strx2, addrx2
		v.number = c.uint(2)
	case 0x27, 0x2b: // strx3, addrx3
		v.number = c.uint(3)
	case 0x06, formRef4, formRefSup4, formStrx4, formAddrx4: // data4
		v.number = c.uint(4)
	case 0x07, formRef8, 0x20, formRefSup8: // data8, ref_sig8
		v.number = c.uint(8)
	case 0x1e: // data16
		c.skip(16)
	case 0x0d: // sdata
		v.number = uint64(c.varint())
	case 0x0f, formRefUdata, formStrx, formAddrx, 0x22, formRnglistx: // udata, loclistx
		v.number = c.uvarint()
	case formStrp, formLineStrp, formStrpSup, formGNURefAlt, formGNUStrpAlt, 0x17: // sec_offset
		v.number = c.uint(h.offsetSize)
	case formRefAddr:
		if h.version > 2 {
			v.number = c.uint(h.offsetSize)
		} else {
			v.number = c.uint(h.addressSize)
		}
	case formString:
		v.number = c.at
		c.text()
	case 0x0a: // block1
		c.skip(c.uint(1))
	case 0x03: // block2
		c.skip(c.uint(2))
	case 0x04: // block4
		c.skip(c.uint(4))
	case 0x09, 0x18: // block, exprloc
		c.skip(c.uvarint())
	case 0x19: // flag_present
	case formImplicitConst:
		v.number = f.constant
	case 0x16: // indirect
		f.form = form(c.uvarint())
		if f.form == 0x16 {
			return v, errors.New("a value is indirect twice")
		}
		return h.value(c, f)
	default:
		return v, fmt.Errorf("a value has form %#x; expected one of DWARF 2 to 5", uint64(f.form))
	}
	return v, nil
}

// stringOf returns a string as it is in its section. It is empty if there is none.
func (u *unit) stringOf(v value) []byte {
	section, at := u.str, v.number
	switch {
	case v.form == formStrp:
	case v.form == formString:
		section = u.info
	case v.form == formLineString:
		section = u.line
	case v.form == formLineStrp:
		section = u.lineStr
	case (v.form == formStrpSup || v.form == formGNUStrpAlt) && u.alt != nil:
		section = u.alt.str
	case v.form == formStrx || v.form >= formStrx1 && v.form <= formStrx4:
		c := u.entryOf(u.strOffsets, attrStringOffsets, at, u.offsetSize)
		if at = c.uint(u.offsetSize); c.short {
			return nil
		}
	default:
		return nil
	}
	text := textAt(section, at)
	u.budget.step(1 + len(text)/8)
	return text
}

// entryOf returns a cursor at an entry of a table of which the unit has the part that starts at the value of an attribute.
func (u *unit) entryOf(section []byte, base int, i uint64, size int) cursor {
	c := cursor{data: section, order: u.order}
	c.skip(u.root.values[base].number)
	c.skip(min(i, uint64(len(section))) * uint64(size))
	return c
}

// address returns an address. ok is false if the value is none.
func (u *unit) address(v value) (address uint64, ok bool) {
	if v.form == formAddrx || v.form >= formAddrx1 && v.form <= formAddrx4 {
		c := u.entryOf(u.addr, attrAddresses, v.number, u.addressSize)
		return c.uint(u.addressSize), !c.short
	}
	return v.number, v.form == formAddr
}

// reference returns the place of the DIE that a value refers to, and its file, which is nil if there is none.
func (u *unit) reference(v value) (in *debugFile, at uint64) {
	switch v.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		return u.debugFile, u.start + v.number
	case formRefAddr:
		return u.debugFile, v.number
	case formRefSup4, formRefSup8, formGNURefAlt:
		return u.alt, v.number
	}
	return nil, 0
}
