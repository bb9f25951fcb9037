// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Writer makes the dictionary of one payload. An entry goes where Reset said at the
// moment it is interned, in that order; of most of it the Writer keeps no copy. Full
// tables and sets with a key twice are told by Err, as those of Tables are. A Writer
// is not safe for concurrent use.
type Writer struct {
	// tables hold what is small: all but functions, locations and stacks.
	tables *Tables

	dst                          pprofile.ProfilesDictionary
	functions, locations, stacks numbers
	written                      int
}

// About what an entry takes in pdata, with the pointer to it, in bytes.
const (
	functionSize  = 40
	mappingSize   = 80
	locationSize  = 72
	lineSize      = 40
	stackSize     = 32
	attributeSize = 88
)

// NewWriter returns a Writer that needs a Reset.
func NewWriter() *Writer { return &Writer{tables: New(0)} }

// Reset makes w write into dst, which must be empty: the zero values now. It keeps
// the memory of what w was before.
func (w *Writer) Reset(dst pprofile.ProfilesDictionary) {
	w.Release()
	w.dst = dst
	w.Function(Function{})
	w.Location(Location{})
	w.Stack(nil)
	(&Mapping{}).write(dst.MappingTable().AppendEmpty())
	dst.LinkTable().AppendEmpty()
	dst.AttributeTable().AppendEmpty()
	w.written = 0
}

// Release forgets what Reset gave.
func (w *Writer) Release() {
	w.dst = pprofile.ProfilesDictionary{}
	w.tables.Reset()
	w.functions.reset()
	w.locations.reset()
	w.stacks.reset()
}

// Room is what to make room for: entries by table, and the bytes of all strings.
type Room struct{ Strings, StringBytes, Functions, Locations, Stacks int }

// Grow makes room at once, which takes less than growing on the way.
func (w *Writer) Grow(n Room) {
	w.tables.strings.grow(n.Strings, n.StringBytes)
	w.functions.grow(n.Functions, true)
	w.locations.grow(n.Locations, true)
	w.stacks.grow(n.Stacks, false)
	w.dst.FunctionTable().EnsureCapacity(n.Functions + 1)
	w.dst.LocationTable().EnsureCapacity(n.Locations + 1)
	w.dst.StackTable().EnsureCapacity(n.Stacks + 1)
}

// Written is about the memory, in bytes, of what was written beyond the strings.
func (w *Writer) Written() int { return w.written }

// Retained is the memory that w holds on to, in bytes.
func (w *Writer) Retained() int {
	return w.tables.Retained() + w.functions.retained() + w.locations.retained() + w.stacks.retained()
}

// Err is as that of Tables.
func (w *Writer) Err() error { return w.tables.Err() }

// Repaired is as that of Tables.
func (w *Writer) Repaired() int { return w.tables.Repaired() }

// Valid is as that of Tables.
func (w *Writer) Valid(s []byte) []byte { return w.tables.Valid(s) }

// String interns s, as Tables does. The strings are written by WriteStrings.
func (w *Writer) String(s []byte) int32 { return w.tables.String(s) }

// StringOf is String for a string.
func (w *Writer) StringOf(s string) int32 { return w.tables.StringOf(s) }

// AttributeSet interns a set of attribute indices, as Tables does.
func (w *Writer) AttributeSet(indices []int32) int32 { return w.tables.AttributeSet(indices) }

// AppendSet appends the attribute indices of a set to dst.
func (w *Writer) AppendSet(dst []int32, set int32) []int32 { return w.tables.AppendSet(dst, set) }

// WriteStrings writes the string table, once, at the end.
func (w *Writer) WriteStrings() {
	writeStrings(w.dst, w.tables.strings.keys, w.tables.strings.ends)
}

// Attribute interns an attribute, as Tables does.
func (w *Writer) Attribute(key, unit int32, value Value) int32 {
	n := w.tables.attributes.len()
	i := w.tables.Attribute(key, unit, value)
	if int(i) == n {
		attribute{key, unit, value}.write(w.dst.AttributeTable().AppendEmpty())
		w.written += attributeSize + len(value)
	}
	return i
}

// Link interns a link, as Tables does.
func (w *Writer) Link(traceID [16]byte, spanID [8]byte) int32 {
	n := w.tables.links.len()
	i := w.tables.Link(traceID, spanID)
	if int(i) == n {
		writeLink(w.dst.LinkTable().AppendEmpty(), w.tables.links.key(i))
	}
	return i
}

// Mapping interns m, as Tables does.
func (w *Writer) Mapping(m Mapping) int32 {
	n := w.tables.mappings.len()
	i := w.tables.Mapping(m)
	if int(i) == n {
		m.Attributes = w.tables.set(m.Attributes)
		m.write(w.dst.MappingTable().AppendEmpty())
		w.written += mappingSize
	}
	return i
}

// Function interns f.
func (w *Writer) Function(f Function) int32 {
	table := w.dst.FunctionTable()
	i, added := w.functions.number(f.Name, w.tables.limit, f.hash, func(n int32) bool {
		return f.equals(table.At(int(n)))
	})
	if added {
		f.write(table.AppendEmpty())
		w.written += functionSize
	}
	return w.index(i, "function")
}

// Location interns l, whose attributes it takes as a set.
func (w *Writer) Location(l Location) int32 {
	l.Attributes = w.tables.set(l.Attributes)
	table := w.dst.LocationTable()
	i, added := w.locations.number(l.part(), w.tables.limit, l.hash, func(n int32) bool {
		return l.equals(table.At(int(n)))
	})
	if added {
		l.write(table.AppendEmpty())
		w.written += locationSize + lineSize*len(l.Lines)
	}
	return w.index(i, "location")
}

// Stack interns a stack: indices into the location table, leaf first.
func (w *Writer) Stack(locations []int32) int32 {
	table := w.dst.StackTable()
	i, added := w.stacks.number(noPart, w.tables.limit,
		func() uint32 { return hashStack(locations) },
		func(n int32) bool { return equalIndices(table.At(int(n)).LocationIndices(), locations) })
	if added {
		writeStack(table.AppendEmpty(), locations)
		w.written += stackSize + 4*len(locations)
	}
	return w.index(i, "stack")
}

// index is i, or 0 where a table was full.
func (w *Writer) index(i int32, table string) int32 {
	if i < 0 {
		w.tables.overflow(table)
		return 0
	}
	return i
}

// fold mixes a and b into h by a 128-bit multiplication.
func fold(h, a, b uint64) uint64 {
	hi, lo := bits.Mul64(h^a, b^stackSecret)
	return hi ^ lo
}

func (f *Function) hash() uint32 {
	h := fold(lengthSecret, uint64(uint32(f.Name))<<32|uint64(uint32(f.SystemName)), uint64(uint32(f.Filename)))
	return uint32(fold(h, uint64(f.StartLine), 0))
}

func (f *Function) equals(other pprofile.Function) bool {
	return f.Name == other.NameStrindex() && f.SystemName == other.SystemNameStrindex() &&
		f.Filename == other.FilenameStrindex() && f.StartLine == other.StartLine()
}

func (l *Location) hash() uint32 {
	h := fold(lengthSecret, l.Address, uint64(uint32(l.Mapping)))
	for _, line := range l.Lines {
		h = fold(h, uint64(line.Line), uint64(uint32(line.Function)))
		if line.Column != 0 {
			h = fold(h, uint64(line.Column), 0)
		}
	}
	for _, a := range l.Attributes {
		h = fold(h, uint64(uint32(a)), 1)
	}
	return uint32(fold(h, 0, 0))
}

func (l *Location) equals(other pprofile.Location) bool {
	lines := other.Lines()
	if l.Address != other.Address() || l.Mapping != other.MappingIndex() || len(l.Lines) != lines.Len() {
		return false
	}
	for i, line := range l.Lines {
		to := lines.At(i)
		if line.Function != to.FunctionIndex() || line.Line != to.Line() || line.Column != to.Column() {
			return false
		}
	}
	return equalIndices(other.AttributeIndices(), l.Attributes)
}
