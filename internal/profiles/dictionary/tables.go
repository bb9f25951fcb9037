// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"errors"
	"slices"
	"unicode/utf8"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Tables are the seven tables of a dictionary under construction. They hold keys; Write writes all of
// them, and a Writer some. They are not safe for concurrent use.
//
// A method that interns an entry returns its index. If a table is full the method
// returns 0, and Err returns ErrFull until Reset. Callers add all of a payload and look once.
type Tables struct {
	perTable[table]
	images     []image // by mapping, as far as there are images
	outputSize int
	repaired   int
	full       bool

	key     []byte  // of the entry that is being interned
	indices []int32 // of the set that is being interned
}

// perTable has something for each table of Tables: the seven of the format and, beyond it, the
// attribute sets of samples. The entries of stacks and sets are indices.
type perTable[T any] struct {
	strings, attributes, mappings, functions, locations, links, stacks, sets T
}

// all has each table after those that it refers to.
func (p *perTable[T]) all() [8]*T {
	return [...]*T{&p.strings, &p.attributes, &p.mappings, &p.functions, &p.locations, &p.links, &p.stacks, &p.sets}
}

// ErrFull says that a table has no room for another entry.
var ErrFull = errors.New("a dictionary has no room: its tables have at most 2^31 entries and 4 GiB of content each")

// New returns tables that hold the zero values alone.
func New() *Tables {
	t := &Tables{}
	t.addZeroValues()
	return t
}

func (t *Tables) addZeroValues() {
	t.String("")
	t.Mapping(Mapping{})
	t.Location(&Location{})
	t.Function(Function{})
	t.Link([16]byte{}, [8]byte{})
	t.Attribute(0, 0, nil)
	t.Stack(nil)
	t.AttributeSet(nil)
	t.outputSize = 0
}

// Reset removes all entries but the zero values and keeps the memory.
func (t *Tables) Reset() {
	for _, table := range t.all() {
		table.reset()
	}
	t.images = t.images[:0]
	t.full, t.repaired = false, 0
	t.addZeroValues()
}

// Room is how many entries to make room for.
type Room struct{ Strings, StringBytes, Functions, Locations, Lines, Stacks, Frames int }

// OutputSize is about the memory that the entries take in pdata if they are distinct, in
// bytes, as Tables.OutputSize is.
func (n Room) OutputSize() int {
	return functionSize*n.Functions + locationSize*n.Locations + lineSize*n.Lines + stackSize*n.Stacks + frameSize*n.Frames
}

// Grow makes room at once, which takes less than growing on the way.
func (t *Tables) Grow(n Room) {
	t.strings.grow(n.Strings, n.StringBytes)
	t.functions.grow(n.Functions, functionKey*n.Functions)
	t.locations.grow(n.Locations, locationKey*n.Locations+lineKey*n.Lines)
	t.stacks.grow(n.Stacks, frameSize*n.Frames)
}

// Err returns ErrFull if an entry could not be added.
func (t *Tables) Err() error {
	if t.full {
		return ErrFull
	}
	return nil
}

// Repaired is the number of strings so far in which bytes that were not UTF-8 were
// replaced.
func (t *Tables) Repaired() int { return t.repaired }

// Retained is the memory that the tables hold on to, in bytes.
func (t *Tables) Retained() int {
	const imageSize = 16
	size := cap(t.key) + 4*cap(t.indices) + imageSize*cap(t.images)
	for _, table := range t.all() {
		size += table.retained()
	}
	return size
}

// Approximate memory of an entry in pdata, with the pointer to it, in bytes.
const (
	functionSize  = 40
	mappingSize   = 80
	locationSize  = 72
	lineSize      = 40
	stackSize     = 32
	frameSize     = 4
	attributeSize = 88
	stringSize    = 16
	linkSize      = 40
)

// Usual lengths of keys, in bytes; those with small indices and addresses are shorter.
const (
	functionKey = 8
	locationKey = 8
	lineKey     = 6
)

// OutputSize is about the memory, in bytes, that the entries beyond the strings, links
// and zero values take in pdata.
func (t *Tables) OutputSize() int { return t.outputSize }

// StringsOutputSize is about the memory, in bytes, that the strings and links take in
// pdata.
func (t *Tables) StringsOutputSize() int {
	return t.strings.size() + stringSize*t.strings.len() + linkSize*t.links.len()
}

// intern returns the index of an entry, whose size in pdata is given.
func (t *Tables) intern(table *table, entry []byte, size int) int32 {
	if i, ok := table.likely(entry); ok {
		return i
	}
	i, added := table.intern(entry)
	return t.index(i, added, size)
}

// index returns i, the number of an entry in a table, or 0 if the table is full.
func (t *Tables) index(i int32, added bool, size int) int32 {
	if added {
		t.outputSize += size
	}
	if i < 0 {
		t.full = true
		return 0
	}
	return i
}

// String interns s, repaired.
func (t *Tables) String(s string) int32 {
	return t.StringBytes(unsafe.Slice(unsafe.StringData(s), len(s))) //nolint:gosec // read only
}

// StringBytes is String for bytes.
func (t *Tables) StringBytes(s []byte) int32 {
	if i, ok := t.strings.likely(s); ok {
		return i
	}
	i, added := t.strings.intern(t.Valid(s))
	return t.index(i, added, 0)
}

// StringAt returns string i.
func (t *Tables) StringAt(i int32) string { return string(t.strings.at(i)) }

// Function interns f.
func (t *Tables) Function(f Function) int32 {
	t.key = f.AppendKey(t.key[:0])
	return t.intern(&t.functions, t.key, functionSize)
}

// Mapping interns m, whose attributes it takes as a set.
func (t *Tables) Mapping(m Mapping) int32 { return t.internMapping(keyOfMapping, &m) }

func (t *Tables) internMapping(kind byte, m *Mapping) int32 {
	m.Attributes = t.set(m.Attributes)
	t.key = m.AppendKey(append(t.key[:0], kind))
	return t.intern(&t.mappings, t.key, mappingSize)
}

// Location interns l, whose attributes it sorts: they are a set.
func (t *Tables) Location(l *Location) int32 {
	if len(l.Attributes) > 1 {
		l.Attributes = sortedSet(l.Attributes)
	}
	t.key = l.AppendKey(t.key[:0])
	return t.intern(&t.locations, t.key, locationSize+lineSize*len(l.Lines))
}

// Link interns a link. Both ids all zero is no link, index 0.
func (t *Tables) Link(traceID [16]byte, spanID [8]byte) int32 {
	t.key = appendLink(t.key[:0], traceID, spanID)
	return t.intern(&t.links, t.key, 0)
}

// Attribute interns an attribute; key and unit are indices into the string table. It
// keeps a copy of value.
func (t *Tables) Attribute(key, unit int32, value Value) int32 {
	a := Attribute{Key: key, Unit: unit, Value: value}
	t.key = a.AppendKey(t.key[:0])
	return t.intern(&t.attributes, t.key, attributeSize+len(value))
}

// Stack interns a stack: indices into the location table, leaf first.
func (t *Tables) Stack(locations []int32) int32 {
	return t.intern(&t.stacks, bytesOf(locations), stackSize+frameSize*len(locations))
}

// AttributeSet interns a set of indices into the attribute table and returns its
// number, which only this package knows; the empty set is 0.
func (t *Tables) AttributeSet(indices []int32) int32 {
	return t.intern(&t.sets, bytesOf(t.set(indices)), 0)
}

// AppendSet appends the attribute indices of a set to dst.
func (t *Tables) AppendSet(dst []int32, set int32) []int32 {
	return append(dst, t.sets.indicesAt(set)...)
}

// Set returns the attribute indices of a set, in memory of t.
func (t *Tables) Set(set int32) []int32 { return t.sets.indicesAt(set) }

// set returns the sorted set of indices, in memory of t that the next call overwrites;
// indices stay as they are.
func (t *Tables) set(indices []int32) []int32 {
	if n := len(indices); n < 2 || n == 2 && indices[0] < indices[1] {
		return indices
	}
	t.indices = sortedSet(append(t.indices[:0], indices...))
	return t.indices
}

// sortedSet returns indices in order and each once, in the same memory.
func sortedSet(indices []int32) []int32 {
	slices.Sort(indices)
	return slices.Compact(indices)
}

// Valid repairs s, and counts repairs. Of valid bytes it makes no copy.
func (t *Tables) Valid(s []byte) []byte {
	if isASCII(s) || utf8.Valid(s) {
		return s
	}
	t.repaired++
	return []byte(ValidUTF8(string(s)))
}

// Write fills dst, which must be empty, with all entries, in the order of their indices. Only a Writer can write
// tables with images.
func (t *Tables) Write(dst pprofile.ProfilesDictionary) {
	writeStrings(dst, t.strings.content, t.strings.ends)
	attributes := dst.AttributeTable()
	attributes.EnsureCapacity(t.attributes.len())
	var attribute Attribute
	for key := range t.attributes.keys() {
		attribute.Decode(key)
		attribute.Write(attributes.AppendEmpty())
	}
	mappings := dst.MappingTable()
	mappings.EnsureCapacity(t.mappings.len())
	var mapping Mapping
	for key := range t.mappings.keys() {
		mapping.Decode(key[1:])
		mapping.Write(mappings.AppendEmpty())
	}
	functions := dst.FunctionTable()
	functions.EnsureCapacity(t.functions.len())
	var function Function
	for key := range t.functions.keys() {
		function.Decode(key)
		function.Write(functions.AppendEmpty())
	}
	locations := dst.LocationTable()
	locations.EnsureCapacity(t.locations.len())
	var location Location
	for key := range t.locations.keys() {
		location.Decode(key)
		location.Write(locations.AppendEmpty())
	}
	links := dst.LinkTable()
	links.EnsureCapacity(t.links.len())
	for key := range t.links.keys() {
		writeLink(links.AppendEmpty(), key)
	}
	stacks := dst.StackTable()
	stacks.EnsureCapacity(t.stacks.len())
	for i := range int32(t.stacks.len()) {
		writeStack(stacks.AppendEmpty(), t.stacks.indicesAt(i))
	}
}
