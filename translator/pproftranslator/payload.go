// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// payload is a pprof message, read into plain values. It keeps its memory for the next.
//
// In the message, entries refer to each other by id, and to strings by number. Here all refer by number.
type payload struct {
	data   []byte
	limits Limits
	// positional: a function without an ID has the position of its location. Without Unmarshaler.FunctionsOfLocations,
	// or if the first function has an ID, it is false.
	positional bool

	header    header
	strings   []position // by number
	mappings  entries[mapping]
	functions entries[function]
	locations entries[location]
	lines     []line // of all locations, one after the other
	samples   []sampleMessage
	stacks    blocks   // of all samples
	values    []uint64 // of all samples, one after the other: int64 in truth
	ids       []uint64 // of the locations of the sample that is read
}

// entryNumber is the position of an entry among the strings, mappings, functions or locations of a payload, from 0. The
// indices of tables are int32, as in package dictionary.
type entryNumber int32

const noEntry entryNumber = -1

// position is the place of a message in the payload.
type position struct{ start, stop uint32 }

// read reads the whole message. Labels are checked later: samples usually repeat those of others.
func (p *payload) read() error {
	if len(p.data) == 0 {
		return errors.New("the payload is empty")
	}
	for _, read := range [...]func(p *payload) error{
		(*payload).readHeader, (*payload).readStrings, (*payload).checkHeader,
		(*payload).readMappings, (*payload).readFunctions, (*payload).readLocations, (*payload).readSamples,
	} {
		if err := read(p); err != nil {
			return err
		}
	}
	return nil
}

// cursors returns a Cursor over the entries of a field of the Profile message, and one to enter them with.
func (p *payload) cursors(field int) (c, m wire.Cursor) {
	r := p.header.entries[field]
	return wire.Cursor{Data: p.data, At: r.Start, End: r.Stop}, wire.Cursor{Data: p.data}
}

// each calls read with each entry of a field of the Profile message.
func (p *payload) each(field int, read func(c *wire.Cursor) error) error {
	c, m := p.cursors(field)
	for n := 0; c.NextOf(field, &m); n++ {
		if err := read(&m); err != nil {
			return fmt.Errorf("%s[%d]: %w", profileFields[field], n, err)
		}
	}
	return nil
}

// bytes returns string i.
func (p *payload) bytes(i uint64) []byte {
	at := p.strings[i]
	return p.data[at.start:at.stop]
}

// checkStrings fails if one of the strings does not exist.
func (p *payload) checkStrings(numbers ...uint64) error {
	for _, i := range numbers {
		if i >= uint64(len(p.strings)) {
			return fmt.Errorf("string index %d is not in string_table, which has %d entries: the profile is malformed, or its end is missing", int64(i), len(p.strings))
		}
	}
	return nil
}

// entries are the mappings, functions or locations of the payload, each with its content as a C.
type entries[C any] struct {
	ids      idNumbers
	contents []C    // by number
	reached  []bool // by number: whether a sample needs the entry, as far as is known
}

// readEntries reads all entries of a field, including those that no sample reaches. read
// returns the id and the content of an entry.
func readEntries[C any](
	p *payload, field int, e *entries[C], read func(c *wire.Cursor) (id uint64, content C, err error),
) error {
	count := p.header.entries[field].Count
	e.contents, e.reached = emptied(e.contents, count), zeroed(e.reached, count)
	e.ids.reset(count)
	c, m := p.cursors(field)
	for c.NextOf(field, &m) { // without p.each, whose calls take 6 % of the time
		number := entryNumber(len(e.contents))
		id, content, err := read(&m)
		if err == nil {
			err = e.ids.add(id, number)
		}
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", profileFields[field], number, err)
		}
		e.contents = append(e.contents, content)
	}
	return nil
}

// idNumbers finds entries by id. Ids usually are the numbers plus one. Others that are small have an array, and the
// rest is in a map.
type idNumbers struct {
	count   int           // of all entries
	ordered entryNumber   // the entries before this one have their number plus one as id
	dense   []entryNumber // of the others by id up to count, or noEntry; empty until needed
	sparse  map[uint64]entryNumber
}

func (n *idNumbers) reset(count int) { *n = idNumbers{count: count, dense: n.dense[:0]} }

// add adds the id of an entry, after those of all before.
func (n *idNumbers) add(id uint64, number entryNumber) error {
	switch {
	case number == n.ordered && id == uint64(number)+1:
		n.ordered++
	case id == 0:
		return errReservedID
	case n.find(id) != noEntry:
		return fmt.Errorf("duplicate id %d", id)
	case id <= uint64(n.count):
		if len(n.dense) == 0 {
			n.dense = emptied(n.dense, n.count+1)[:n.count+1]
			for i := range n.dense {
				n.dense[i] = noEntry
			}
		}
		n.dense[id] = number
	default:
		if n.sparse == nil {
			n.sparse = make(map[uint64]entryNumber, n.count-int(number))
		}
		n.sparse[id] = number
	}
	return nil
}

var errReservedID = errors.New("id 0 is reserved")

// find returns the entry with this id, or noEntry.
func (n *idNumbers) find(id uint64) entryNumber {
	if id-1 < uint64(n.ordered) { // not of id 0
		return entryNumber(id - 1)
	}
	return n.findOther(id)
}

func (n *idNumbers) findOther(id uint64) entryNumber {
	if id < uint64(len(n.dense)) {
		return n.dense[id]
	}
	if number, ok := n.sparse[id]; ok {
		return number
	}
	return noEntry
}

// reach marks the entries with these ids, and stores their numbers. It returns how many of the ids there are, before
// the first that no entry has.
func (e *entries[C]) reach(ids []uint64, numbers []entryNumber) int {
	reached := e.reached
	for i, id := range ids[:len(numbers)] {
		number := e.ids.find(id)
		if number == noEntry {
			return i
		}
		reached[number], numbers[i] = true, number
	}
	return len(ids)
}

// readVarints reads the message of c, whose fields are varints, into values, which are
// indexed by field number.
func readVarints(c *wire.Cursor, values []uint64) {
	for c.Scalars(values); c.Next(); {
		if c.Field > 0 && c.Field < uint64(len(values)) {
			values[c.Field] = c.Uint()
		}
	}
}

type mapping struct {
	start, limit, offset uint64
	file, buildID        entryNumber // of strings
	flags                [len(sampletypes.MappingFlags)]bool
}

func (p *payload) readMappings() error {
	return readEntries(p, profileMapping, &p.mappings, func(c *wire.Cursor) (id uint64, m mapping, err error) {
		var f [mappingHasInlineFrames + 1]uint64
		if readVarints(c, f[:]); c.Err != nil {
			return 0, m, c.Err
		}
		if err := p.checkStrings(f[mappingFilename], f[mappingBuildID]); err != nil {
			return 0, m, err
		}
		m = mapping{
			start: f[mappingMemoryStart], limit: f[mappingMemoryLimit], offset: f[mappingFileOffset],
			file: entryNumber(f[mappingFilename]), buildID: entryNumber(f[mappingBuildID]),
		}
		for i := range m.flags {
			m.flags[i] = f[mappingHasFunctions+i] != 0
		}
		return f[mappingID], m, nil
	})
}

type function struct {
	name, systemName, file entryNumber // of strings
	startLine              int64
}

func (p *payload) readFunctions() error {
	return readEntries(p, profileFunction, &p.functions, func(c *wire.Cursor) (id uint64, content function, err error) {
		var f [functionStartLine + 1]uint64
		if readVarints(c, f[:]); c.Err != nil {
			return 0, content, c.Err
		}
		if err := p.checkStrings(f[functionName], f[functionSystemName], f[functionFilename]); err != nil {
			return 0, content, err
		}
		number := len(p.functions.contents)
		if number == 0 && f[functionID] != 0 {
			p.positional = false
		}
		if p.positional && f[functionID] == 0 {
			f[functionID] = uint64(number + 1)
		}
		return f[functionID], function{
			name: entryNumber(f[functionName]), systemName: entryNumber(f[functionSystemName]),
			file: entryNumber(f[functionFilename]), startLine: int64(f[functionStartLine]),
		}, nil
	})
}

type location struct {
	address  uint64
	mapping  entryNumber // or noEntry
	linesEnd uint32      // where its lines end in payload.lines; they start where those of the location before end
	folded   bool
}

type line struct {
	function     entryNumber
	line, column int64
}

// readLocations comes after the mappings and functions have been read. An unknown mapping
// id means no mapping, as in google/pprof.
func (p *payload) readLocations() error {
	p.lines = p.lines[:0]
	line := wire.Cursor{Data: p.data}
	return readEntries(p, profileLocation, &p.locations, func(c *wire.Cursor) (id uint64, l location, err error) {
		var f [locationIsFolded + 1]uint64
		first := len(p.lines)
		for c.Scalars(f[:locationLine]); c.Next(); {
			switch c.Field {
			case locationID, locationMapping, locationAddress, locationIsFolded:
				f[c.Field] = c.Uint()
			case locationLine:
				line.Enter(c)
				if err := p.readLine(&line); err != nil {
					return 0, l, fmt.Errorf("line[%d]: %w", len(p.lines)-first, err)
				}
			}
		}
		return f[locationID], location{
			address: f[locationAddress], mapping: p.mappings.ids.find(f[locationMapping]),
			linesEnd: uint32(len(p.lines)), folded: f[locationIsFolded] != 0,
		}, c.Err
	})
}

// readLine appends a line to p.lines.
func (p *payload) readLine(c *wire.Cursor) error {
	var f [lineColumn + 1]uint64
	if readVarints(c, f[:]); c.Err != nil {
		return c.Err
	}
	if p.positional && f[lineFunction] == 0 {
		f[lineFunction] = uint64(len(p.locations.contents) + 1)
	}
	function := p.functions.ids.find(f[lineFunction])
	if function == noEntry {
		return fmt.Errorf("no function with id %d", f[lineFunction])
	}
	if len(p.lines) == cap(p.lines) { // growing step by step takes several times as much memory
		p.lines = append(make([]line, 0, max(p.countLines(), len(p.lines)+1)), p.lines...)
	}
	p.lines = append(p.lines, line{function, int64(f[lineLine]), int64(f[lineColumn])})
	return nil
}

func (p *payload) countLines() (n int) {
	var line wire.Cursor
	_ = p.each(profileLocation, func(c *wire.Cursor) error {
		for c.NextOf(locationLine, &line) {
			n++
		}
		return nil
	})
	return n
}

// zeroed returns n zero elements, in the memory of s if it is enough.
func zeroed[E any](s []E, n int) []E {
	s = emptied(s, n)[:n]
	clear(s)
	return s
}

// emptied returns no elements, and room for n of them, in the memory of s if it is
// enough.
func emptied[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, 0, n)
	}
	return s[:0]
}
