// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/fromotlp"
)

// entries are the mappings, functions or locations of the payload, each with its content
// as a C. Ids usually are the numbers plus one. Others that are small have an array, and the rest is in a map.
type entries[C any] struct {
	contents []C              // by number
	indices  []int32          // by number plus one
	ordered  int32            // the first so many entries have their number plus one as id
	dense    []int32          // by id up to the number of entries, of the others: the number plus one
	sparse   map[uint64]int32 // likewise; nil until needed
}

// readEntries reads all entries of a field, including those that no sample reaches. read
// returns the id and the content of an entry.
func readEntries[C any](d *decoder, field int, e *entries[C], read func(c *wire.Cursor) (id uint64, content C, err error)) error {
	count := d.header.entries[field].Count
	e.contents, e.indices = emptied(e.contents, count), zeroed(e.indices, count+1)
	e.ordered, e.dense = 0, e.dense[:0]
	c, m := d.cursors(field)
	for c.NextOf(field, &m) { // without d.each, whose calls take 6 % of the time
		id, content, err := read(&m)
		if err == nil {
			err = e.add(id, count)
		}
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", profileFields[field], len(e.contents), err)
		}
		e.contents = append(e.contents, content)
	}
	return nil
}

// add adds the id of the next of count entries.
func (e *entries[C]) add(id uint64, count int) error {
	switch number := int32(len(e.contents) + 1); {
	case number == e.ordered+1 && id == uint64(number):
		e.ordered = number
	case id == 0:
		return errReservedID
	case e.find(id) != 0:
		return fmt.Errorf("duplicate id %d", id)
	case id <= uint64(count):
		if len(e.dense) == 0 {
			e.dense = zeroed(e.dense, count+1)
		}
		e.dense[id] = number
	default:
		if e.sparse == nil {
			e.sparse = make(map[uint64]int32, count-int(number)+1)
		}
		e.sparse[id] = number
	}
	return nil
}

var errReservedID = errors.New("id 0 is reserved")

// find returns the number of the entry with the given id plus one, or 0.
func (e *entries[C]) find(id uint64) int32 {
	if id <= uint64(e.ordered) {
		return int32(id)
	}
	if id < uint64(len(e.dense)) {
		return e.dense[id]
	}
	return e.sparse[id]
}

// reach marks the entries with these ids, and stores their numbers plus one. It returns how many of the ids there are, before
// the first that no entry has.
func (e *entries[C]) reach(ids []uint64, numbers []int32) int {
	indices := e.indices
	for i, id := range ids[:len(numbers)] {
		number := e.find(id)
		if number == 0 {
			return i
		}
		indices[number], numbers[i] = reached, number
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

// mapping is small, as mappings are few, except in a malicious profile.
type mapping struct {
	position                     // a sample that reaches it reads it again
	frameTypes mappingFrameTypes // once it is in the dictionary
}

// mappingMessage holds the fields of a mapping, by number.
type mappingMessage [mappingHasInlineFrames + 1]uint64

func (d *decoder) readMappings() error {
	return readEntries(d, profileMapping, &d.mappings, func(c *wire.Cursor) (id uint64, content mapping, err error) {
		content.position = position{uint32(c.At), uint32(c.End)}
		var m mappingMessage
		if readVarints(c, m[:]); c.Err != nil {
			return 0, content, c.Err
		}
		return m[mappingID], content, d.checkStrings(m[mappingFilename], m[mappingBuildID])
	})
}

func (d *decoder) mapping(at position) (m mappingMessage) {
	readVarints(&wire.Cursor{Data: d.data, At: int(at.start), End: int(at.stop)}, m[:])
	return m
}

// convertMapping returns the index plus one of the mapping with a number plus one.
func (d *decoder) convertMapping(number uint32) int32 {
	content := &d.mappings.contents[number-1]
	m := d.mapping(content.position)
	content.frameTypes = frameTypesOfMapping(d.bytes(m[mappingFilename]), d.bytes(m[mappingBuildID]))
	to := dictionary.Mapping{
		MemoryStart: m[mappingMemoryStart], MemoryLimit: m[mappingMemoryLimit], FileOffset: m[mappingFileOffset],
		Filename: d.stringIndex(m[mappingFilename]),
	}
	if id := d.tables.Valid(d.bytes(m[mappingBuildID])); len(id) > 0 {
		key := fromotlp.BuildIDGNU
		if fromotlp.IsGoBuildID(id) {
			key = fromotlp.BuildIDGo
		}
		d.texts += len(id)
		to.Attributes = append(to.Attributes, d.stringAttribute(key, id))
	}
	for i, key := range sampletypes.MappingFlags {
		if m[mappingHasFunctions+i] != 0 {
			to.Attributes = append(to.Attributes, d.flag(key))
		}
	}
	d.mappings.indices[number] = d.tables.Mapping(to) + 1
	return d.mappings.indices[number]
}

// readFunctions keeps functions whose strings are string indices of the payload.
func (d *decoder) readFunctions() error {
	d.functionTypes = emptied(d.functionTypes, d.header.entries[profileFunction].Count)
	return readEntries(d, profileFunction, &d.functions, func(c *wire.Cursor) (id uint64, content dictionary.Function, err error) {
		var f [functionStartLine + 1]uint64
		if readVarints(c, f[:]); c.Err != nil {
			return 0, content, c.Err
		}
		if err := d.checkStrings(f[functionName], f[functionSystemName], f[functionFilename]); err != nil {
			return 0, content, err
		}
		if len(d.functions.contents) == 0 && f[functionID] != 0 {
			d.positional = false
		}
		if d.positional && f[functionID] == 0 {
			f[functionID] = uint64(len(d.functions.contents) + 1)
		}
		d.functionTypes = append(d.functionTypes, frameTypeOfFunction(d.bytes(f[functionName]), d.bytes(f[functionFilename])))
		return f[functionID], dictionary.Function{
			Name: int32(f[functionName]), SystemName: int32(f[functionSystemName]), Filename: int32(f[functionFilename]),
			StartLine: int64(f[functionStartLine]),
		}, nil
	})
}

// location takes 16 bytes, as a small payload may have many.
type location struct {
	address uint64
	mapping uint32 // twice (number + 1), or 0 for none, and 1 more if it is folded
	lines   uint32 // where its lines end in decoder.lines
}

// readLocations comes after the mappings and functions have been read. An unknown mapping
// id means no mapping, as in google/pprof.
func (d *decoder) readLocations() error {
	d.lines = d.lines[:0]
	line := wire.Cursor{Data: d.data}
	return readEntries(d, profileLocation, &d.locations, func(c *wire.Cursor) (id uint64, l location, err error) {
		var f [locationIsFolded + 1]uint64
		first := len(d.lines)
		for c.Scalars(f[:locationLine]); c.Next(); {
			switch c.Field {
			case locationID, locationMapping, locationAddress, locationIsFolded:
				f[c.Field] = c.Uint()
			case locationLine:
				line.Enter(c)
				if err := d.readLine(&line); err != nil {
					return 0, l, fmt.Errorf("line[%d]: %w", len(d.lines)-first, err)
				}
			}
		}
		l = location{f[locationAddress], uint32(d.mappings.find(f[locationMapping])) << 1, uint32(len(d.lines))}
		if f[locationIsFolded] != 0 {
			l.mapping |= 1
		}
		return f[locationID], l, c.Err
	})
}

// readLine appends a line to d.lines, with the number of its function.
func (d *decoder) readLine(c *wire.Cursor) error {
	var f [lineColumn + 1]uint64
	if readVarints(c, f[:]); c.Err != nil {
		return c.Err
	}
	if d.positional && f[lineFunction] == 0 {
		f[lineFunction] = uint64(len(d.locations.contents) + 1)
	}
	function := d.functions.find(f[lineFunction]) - 1
	if function < 0 {
		return fmt.Errorf("no function with id %d", f[lineFunction])
	}
	if len(d.lines) == cap(d.lines) { // growing step by step takes several times as much memory
		d.lines = append(make([]dictionary.Line, 0, max(d.countLines(), len(d.lines)+1)), d.lines...)
	}
	d.lines = append(d.lines, dictionary.Line{Function: function, Line: int64(f[lineLine]), Column: int64(f[lineColumn])})
	return nil
}

func (d *decoder) countLines() (n int) {
	var line wire.Cursor
	_ = d.each(profileLocation, func(c *wire.Cursor) error {
		for c.NextOf(locationLine, &line) {
			n++
		}
		return nil
	})
	return n
}

// markFunctions marks the functions and strings of the marked locations. It returns how
// many entries of each kind are marked.
func (d *decoder) markFunctions() (room dictionary.Room) {
	first := uint32(0)
	for i, l := range d.locations.contents {
		if d.locations.indices[i+1] == reached {
			room.Locations++
			room.Lines += int(l.lines - first)
			for _, line := range d.lines[first:l.lines] {
				d.functions.indices[line.Function+1] = reached
			}
		}
		first = l.lines
	}
	for i, f := range d.functions.contents {
		if d.functions.indices[i+1] == reached {
			room.Functions++
			d.stringIndices[f.Name], d.stringIndices[f.SystemName], d.stringIndices[f.Filename] = reached, reached, reached
		}
	}
	for i, n := range d.stringIndices {
		if n == reached {
			room.Strings++
			room.StringBytes += len(d.bytes(uint64(i)))
		}
	}
	return room
}

func (d *decoder) convertStrings() error {
	for i, n := range d.stringIndices {
		if n == reached {
			d.stringIndices[i] = d.tables.StringBytes(d.bytes(uint64(i))) + 1
		}
	}
	return d.tables.Err()
}

func (d *decoder) convertFunctions() error {
	for i, f := range d.functions.contents {
		if d.functions.indices[i+1] == reached {
			f.Name, f.SystemName, f.Filename = d.stringIndices[f.Name]-1, d.stringIndices[f.SystemName]-1, d.stringIndices[f.Filename]-1
			d.functions.indices[i+1] = d.tables.Function(f) + 1
			if err := d.checkResult(d.tables.OutputSize()); err != nil {
				return err
			}
		}
	}
	return d.tables.Err()
}

func (d *decoder) convertLocations() error {
	d.mappings.indices[0] = 1 // no mapping
	first := uint32(0)
	d.attribute = slices.Grow(d.attribute[:0], 2)
	for i, from := range d.locations.contents {
		lines := d.lines[first:from.lines]
		first = from.lines
		if d.locations.indices[i+1] != reached {
			continue
		}
		mapping := d.mappings.indices[from.mapping>>1]
		if mapping == 0 {
			mapping = d.convertMapping(from.mapping >> 1)
		}
		to := dictionary.Location{Address: from.address, Mapping: mapping - 1, Lines: lines}
		to.Attributes = d.appendFrameType(d.attribute, d.frameTypeOf(from.mapping>>1, lines, to.Mapping != 0 && to.Address != 0))
		for j := range lines { // each location comes here once
			lines[j].Function = d.functions.indices[lines[j].Function+1] - 1
		}
		if from.mapping&1 != 0 {
			to.Attributes = append(to.Attributes, d.flag(fromotlp.LocationIsFolded))
		}
		d.locations.indices[i+1] = d.tables.Location(&to) + 1
		if err := d.checkResult(d.tables.OutputSize()); err != nil {
			return err
		}
	}
	return d.tables.Err()
}

// frameTypeOf returns the type of a location: mapping is the number of its mapping plus one, lines
// have numbers of functions, and compiled means that it has an address in a mapping.
func (d *decoder) frameTypeOf(mapping uint32, lines []dictionary.Line, compiled bool) frameType {
	var inMapping mappingFrameTypes
	if mapping > 0 {
		inMapping = d.mappings.contents[mapping-1].frameTypes
	}
	all := inMapping.NoLine
	for i := range lines {
		t := frameTypeOfLine(d.functionTypes[lines[i].Function], compiled)
		if t == frameNoFile {
			t = inMapping.NoFile
		}
		if i > 0 && t != all || t == frameUnknown {
			return frameUnknown
		}
		all = t
	}
	return all
}

// appendFrameType appends the attribute of a location.
func (d *decoder) appendFrameType(attributes []int32, t frameType) []int32 {
	if t == frameUnknown {
		return attributes
	}
	if d.frameTypes[t] == 0 {
		d.frameTypes[t] = d.stringAttribute(fromotlp.LocationFrameType, []byte(frameTypeNames[t])) + 1
	}
	return append(attributes, d.frameTypes[t]-1)
}
