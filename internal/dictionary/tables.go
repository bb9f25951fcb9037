// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Tables are the seven tables of a dictionary under construction. They are not
// safe for concurrent use.
//
// A method that interns an entry returns its index. Where a table is full it
// returns 0 and Err tells so from then on, until Rollback; the same holds for a set
// of attributes with two of one key. Callers add all of a payload and look once.
type Tables struct {
	limit      int
	strings    table
	mappings   table
	locations  table
	functions  table
	links      table
	attributes table
	stacks     stackTable
	sets       table // beyond what the format has: the attribute sets of samples

	indices  []int32
	keys     []int32
	err      error
	repaired int
}

const tableCount = 8

// DuplicateKeyError says that one set of attributes has two attributes of one
// key.
type DuplicateKeyError struct{ Key string }

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("attribute_indices refer to two attributes with the key %q; keys must be unique", e.Key)
}

// OverflowError says that a table has no room for another entry.
type OverflowError struct {
	Table string
	Limit int
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("%s_table is full: it holds %d entries, and an index may not exceed int32", e.Table, e.Limit)
}

// New returns tables that hold the zero values alone. limit is how many entries
// a table may have, 0 for as many as an int32 can number.
func New(limit int) *Tables {
	if limit <= 0 {
		limit = math.MaxInt32
	}
	t := &Tables{limit: limit}
	t.functions.part = functionPart
	t.locations.part = locationPart
	t.addZeroValues()
	return t
}

type anyTable interface {
	len() int
	truncate(int)
	reset()
	retained() int
}

func (t *Tables) all() [tableCount]anyTable {
	return [tableCount]anyTable{
		&t.strings, &t.mappings, &t.locations, &t.functions, &t.links, &t.attributes, &t.stacks, &t.sets,
	}
}

func (t *Tables) addZeroValues() {
	t.String(nil)
	t.Mapping(Mapping{})
	t.Location(Location{})
	t.Function(Function{})
	t.Link([16]byte{}, [8]byte{})
	t.Attribute(0, 0, nil)
	t.Stack(nil)
	t.sets.intern(nil, t.limit)
}

// Reset forgets all entries but the zero values and keeps the memory.
func (t *Tables) Reset() {
	for _, table := range t.all() {
		table.reset()
	}
	t.err, t.repaired = nil, 0
	t.addZeroValues()
}

// Err is the *OverflowError, or else the *DuplicateKeyError, of the first entry that
// could not be added, or nil.
func (t *Tables) Err() error { return t.err }

// TakeDuplicate returns what Err does if that is a *DuplicateKeyError, and forgets
// it; otherwise nil. A set is looked at again each time it is asked for.
func (t *Tables) TakeDuplicate() error {
	duplicate, ok := t.err.(*DuplicateKeyError) //nolint:errorlint // it is never wrapped
	if !ok {
		return nil
	}
	t.err = nil
	return duplicate
}

// Repaired is the number of strings so far in which bytes that were not UTF-8
// were replaced.
func (t *Tables) Repaired() int { return t.repaired }

// Mark is a state of the tables to go back to.
type Mark struct {
	lengths  [tableCount]int
	repaired int
}

// Mark returns the present state.
func (t *Tables) Mark() Mark {
	m := Mark{repaired: t.repaired}
	for i, table := range t.all() {
		m.lengths[i] = table.len()
	}
	return m
}

// Rollback forgets what was added since m was made, an error among it.
func (t *Tables) Rollback(m Mark) {
	for i, table := range t.all() {
		table.truncate(m.lengths[i])
	}
	t.err, t.repaired = nil, m.repaired
}

// Lengths are the numbers of entries of each table, zero values included.
func (t *Tables) Lengths() Lengths {
	return Lengths{
		Strings: t.strings.len(), Mappings: t.mappings.len(), Locations: t.locations.len(),
		Functions: t.functions.len(), Links: t.links.len(), Attributes: t.attributes.len(), Stacks: t.stacks.len(),
	}
}

// Lengths are numbers of entries by table.
type Lengths struct {
	Strings, Mappings, Locations, Functions, Links, Attributes, Stacks int
}

// Retained is the memory that the tables hold on to, in bytes.
func (t *Tables) Retained() int {
	size := 4*cap(t.indices) + 4*cap(t.keys)
	for _, table := range t.all() {
		size += table.retained()
	}
	return size
}

// intern returns the index of the key that has been appended to those of table.
// part is that of the key, or noPart.
func (t *Tables) intern(table *table, part int32, name string) int32 {
	i := table.internLast(part, t.limit)
	if i < 0 {
		t.overflow(name)
		return 0
	}
	return i
}

func (t *Tables) overflow(name string) {
	if _, duplicate := t.err.(*DuplicateKeyError); duplicate || t.err == nil { //nolint:errorlint // it is never wrapped
		t.err = &OverflowError{Table: name, Limit: t.limit}
	}
}

var replacement = []byte("\uFFFD")

// Valid returns s, or a copy in which each run of bytes that are not UTF-8 is one
// U+FFFD; that is counted.
func (t *Tables) Valid(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	t.repaired++
	return bytes.ToValidUTF8(s, replacement)
}

// String interns s, of which it keeps a copy. Each run of bytes that are not
// UTF-8 becomes one U+FFFD.
func (t *Tables) String(s []byte) int32 {
	i := t.strings.intern(t.Valid(s), t.limit)
	if i < 0 {
		t.overflow("string")
		return 0
	}
	return i
}

// StringOf is String for a string.
func (t *Tables) StringOf(s string) int32 {
	if !utf8.ValidString(s) {
		return t.String([]byte(s))
	}
	t.strings.keys = append(t.strings.keys, s...)
	return t.intern(&t.strings, noPart, "string")
}

// StringAt returns string i.
func (t *Tables) StringAt(i int32) string { return string(t.strings.key(i)) }

// Function interns f.
func (t *Tables) Function(f Function) int32 {
	t.functions.keys = f.appendKey(t.functions.keys)
	return t.intern(&t.functions, f.Name, "function")
}

// Mapping interns m, whose attributes it takes as a set.
func (t *Tables) Mapping(m Mapping) int32 {
	m.Attributes = t.set(m.Attributes)
	t.mappings.keys = m.appendKey(t.mappings.keys)
	return t.intern(&t.mappings, noPart, "mapping")
}

// Location interns l, whose attributes it takes as a set.
func (t *Tables) Location(l Location) int32 {
	l.Attributes = t.set(l.Attributes)
	t.locations.keys = l.appendKey(t.locations.keys)
	return t.intern(&t.locations, l.part(), "location")
}

// Link interns a link. Both ids all zero is no link, index 0.
func (t *Tables) Link(traceID [16]byte, spanID [8]byte) int32 {
	t.links.keys = append(append(t.links.keys, traceID[:]...), spanID[:]...)
	return t.intern(&t.links, noPart, "link")
}

// Attribute interns an attribute; key and unit are indices into the string
// table. It keeps a copy of value.
func (t *Tables) Attribute(key, unit int32, value Value) int32 {
	t.attributes.keys = append(appendIndex(appendIndex(t.attributes.keys, key), unit), value...)
	return t.intern(&t.attributes, noPart, "attribute")
}

// Stack interns a stack: indices into the location table, leaf first.
func (t *Tables) Stack(locations []int32) int32 {
	i := t.stacks.intern(locations, t.limit)
	if i < 0 {
		t.overflow("stack")
		return 0
	}
	return i
}

// AttributeSet interns a set of indices into the attribute table and returns its
// number, which only this package knows; the empty set is 0.
func (t *Tables) AttributeSet(indices []int32) int32 {
	if len(indices) == 0 {
		return 0
	}
	t.sets.keys = appendIndices(t.sets.keys, t.set(indices))
	return t.intern(&t.sets, noPart, "attribute set")
}

// AppendSet appends the attribute indices of a set to dst.
func (t *Tables) AppendSet(dst []int32, set int32) []int32 {
	r := reader{t.sets.key(set)}
	return r.indices(dst)
}

// SetString returns the value of the string attribute of a set that has the given
// key, or "".
func (t *Tables) SetString(set int32, key string) string {
	r := reader{t.sets.key(set)}
	for r.more() {
		var a attribute
		a.decode(t.attributes.key(r.index()))
		if string(t.strings.key(a.key)) == key && len(a.value) > 0 && a.value[0] == tagString {
			v := reader{a.value[1:]}
			return string(v.bytes(int(v.uint())))
		}
	}
	return ""
}

// set returns the sorted set of indices, in memory of t that the next call
// overwrites; indices stay as they are. Two attributes of one key are an error.
func (t *Tables) set(indices []int32) []int32 {
	if len(indices) < 2 {
		return indices
	}
	t.indices = set(append(t.indices[:0], indices...))
	t.keys = t.keys[:0]
	for _, i := range t.indices {
		r := reader{t.attributes.key(i)}
		t.keys = append(t.keys, r.index())
	}
	slices.Sort(t.keys)
	for i, key := range t.keys[1:] {
		if key == t.keys[i] && t.err == nil {
			t.err = &DuplicateKeyError{Key: string(t.strings.key(key))}
		}
	}
	return t.indices
}
