// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/fromotlp"
)

// decoder reads one payload at a time, then converts what its samples reach. It keeps its memory for the next.
type decoder struct {
	payload
	names fromotlp.Labels

	tables *dictionary.Tables
	matrix valueMatrix // of samples without a timestamp
	events eventList   // of samples with one

	// By entryNumber: the index in the tables, once the entry has been converted. That of a string is 0 before.
	stringIndices   []int32
	mappingIndices  []int32
	functionIndices []int32
	locationIndices []int32

	// By entryNumber.
	stringReached  []bool // whether a function that samples reach needs it
	repairedLabels []bool // see labelText; empty until needed
	mappingTypes   []mappingFrameTypes
	functionTypes  []frameType

	frameTypes [len(frameTypeNames)]int32 // by frameType: the index of its attribute, or 0 before

	allowed  allowance
	zeros    int // bytes that values may take before zeros are left out
	indices  int // of attributes, of all rows of matrix and events
	negative int // times and durations below 0
	invalid  int // texts of labels that are not UTF-8
	texts    int // bytes of text that were read for attribute values

	// The entry that is being converted.
	stack     []int32 // indices of locations
	sources   []dictionary.Line
	labels    labelReader
	value     dictionary.Value
	attribute []int32
}

func (d *decoder) reset(data []byte) {
	d.data = data
	d.allowed = allowance{bytes: int(min(d.limits.Memory, math.MaxInt))}
	d.zeros, d.indices = zerosLimit(data), 0
	d.tables.Reset()
	d.matrix.reset()
	d.events.reset()
	d.labels.reset()
	clear(d.frameTypes[:])
	d.repairedLabels = d.repairedLabels[:0]
	d.negative, d.invalid, d.texts = 0, 0, 0
}

// decode reads the payload. The entries that its samples reach go into the tables.
func (d *decoder) decode() error {
	if err := d.read(); err != nil {
		return err
	}
	return d.convert()
}

// convert goes kind by kind, in the order of the payload: a loop over one kind takes four fifths of the time of going
// from each sample to its locations, their functions and their strings.
func (d *decoder) convert() error {
	if err := d.takeComments(); err != nil {
		return err
	}
	d.grow()
	d.convertStrings()
	if err := d.convertFunctions(); err != nil {
		return err
	}
	if err := d.convertLocations(); err != nil {
		return err
	}
	return d.convertSamples()
}

// takeComments reserves the memory of the comments, which are written last.
func (d *decoder) takeComments() error {
	size := 0
	for _, c := range d.header.comments {
		size += d.textSize(c)
	}
	if err := d.takeText(size); err != nil {
		return fmt.Errorf("comment: %w", err)
	}
	return nil
}

// grow makes room for the entries that samples reach, and for as many samples as an
// ordinary payload of this size holds, but not for as many as fit if each takes two bytes.
func (d *decoder) grow() {
	const (
		minSample     = 24 // bytes
		headerStrings = 32 // about: without room for those of sample types and attributes, the table doubles
	)
	room := d.reachFunctions()
	room.Strings += headerStrings
	samples := min(len(d.samples), len(d.data)/minSample)
	room.Stacks = samples
	room.Frames = d.stacks.length
	d.tables.Grow(room)
	d.matrix.identities.Grow(samples)
}

// reachFunctions marks the functions and strings of the locations that samples reach. It returns how
// many entries of each kind are reached.
func (d *decoder) reachFunctions() (room dictionary.Room) {
	first := uint32(0)
	for i, l := range d.locations.contents {
		if d.locations.reached[i] {
			room.Locations++
			room.Lines += int(l.linesEnd - first)
			for _, line := range d.lines[first:l.linesEnd] {
				d.functions.reached[line.function] = true
			}
		}
		first = l.linesEnd
	}
	d.stringReached = zeroed(d.stringReached, len(d.strings))
	for i, f := range d.functions.contents {
		if d.functions.reached[i] {
			room.Functions++
			d.stringReached[f.name], d.stringReached[f.systemName], d.stringReached[f.file] = true, true, true
		}
	}
	for i, reached := range d.stringReached {
		if reached {
			room.Strings++
			room.StringBytes += len(d.bytes(uint64(i)))
		}
	}
	return room
}

func (d *decoder) convertStrings() {
	d.stringIndices = zeroed(d.stringIndices, len(d.strings))
	for i, reached := range d.stringReached {
		if reached {
			d.stringIndices[i] = d.tables.StringBytes(d.bytes(uint64(i)))
		}
	}
}

func (d *decoder) convertFunctions() error {
	d.functionIndices = zeroed(d.functionIndices, len(d.functions.contents))
	d.functionTypes = zeroed(d.functionTypes, len(d.functions.contents))
	for i, f := range d.functions.contents {
		if d.functions.reached[i] {
			d.functionTypes[i] = frameTypeOfFunction(d.bytes(uint64(f.name)), d.bytes(uint64(f.file)))
			d.functionIndices[i] = d.tables.Function(dictionary.Function{
				Name: d.stringIndices[f.name], SystemName: d.stringIndices[f.systemName], Filename: d.stringIndices[f.file],
				StartLine: f.startLine,
			})
			if err := d.checkResult(d.tables.OutputSize()); err != nil {
				return err
			}
		}
	}
	return d.tables.Err()
}

func (d *decoder) convertLocations() error {
	d.mappingIndices = zeroed(d.mappingIndices, len(d.mappings.contents))
	d.mappingTypes = zeroed(d.mappingTypes, len(d.mappings.contents))
	d.locationIndices = zeroed(d.locationIndices, len(d.locations.contents))
	d.attribute = slices.Grow(d.attribute[:0], 2)
	first := uint32(0)
	for i := range d.locations.contents {
		from := &d.locations.contents[i]
		lines := d.lines[first:from.linesEnd]
		first = from.linesEnd
		if !d.locations.reached[i] {
			continue
		}
		d.locationIndices[i] = d.convertLocation(from, lines)
		if err := d.checkResult(d.tables.OutputSize()); err != nil {
			return err
		}
	}
	return d.tables.Err()
}

func (d *decoder) convertLocation(from *location, lines []line) int32 {
	to := dictionary.Location{Address: from.address, Lines: d.sources[:0], Attributes: d.attribute}
	var inMapping mappingFrameTypes
	if m := from.mapping; m != noEntry {
		if !d.mappings.reached[m] {
			d.mappings.reached[m] = true
			d.convertMapping(m)
		}
		to.Mapping, inMapping = d.mappingIndices[m], d.mappingTypes[m]
	}
	for _, l := range lines {
		to.Lines = append(to.Lines, dictionary.Line{Function: d.functionIndices[l.function], Line: l.line, Column: l.column})
	}
	d.sources = to.Lines
	if t := d.frameTypeOf(inMapping, lines, to.Mapping != 0 && to.Address != 0); t != frameUnknown {
		to.Attributes = append(to.Attributes, d.frameTypeAttribute(t))
	}
	if from.folded {
		to.Attributes = append(to.Attributes, d.flag(fromotlp.LocationIsFolded))
	}
	return d.tables.Location(&to)
}

func (d *decoder) convertMapping(number entryNumber) {
	from := &d.mappings.contents[number]
	file, buildID := d.bytes(uint64(from.file)), d.bytes(uint64(from.buildID))
	to := dictionary.Mapping{
		MemoryStart: from.start, MemoryLimit: from.limit, FileOffset: from.offset, Filename: d.stringIndex(uint64(from.file)),
	}
	if id := d.tables.Valid(buildID); len(id) > 0 {
		key := fromotlp.BuildIDGNU
		if fromotlp.IsGoBuildID(id) {
			key = fromotlp.BuildIDGo
		}
		d.texts += len(id)
		to.Attributes = append(to.Attributes, d.stringAttribute(key, id))
	}
	for i, key := range sampletypes.MappingFlags {
		if from.flags[i] {
			to.Attributes = append(to.Attributes, d.flag(key))
		}
	}
	d.mappingTypes[number] = frameTypesOfMapping(file, buildID)
	d.mappingIndices[number] = d.tables.Mapping(to)
}

// frameTypeOf returns the type of a location with these lines. compiled means that it has an address in a mapping.
func (d *decoder) frameTypeOf(inMapping mappingFrameTypes, lines []line, compiled bool) frameType {
	all := inMapping.NoLine
	for i := range lines {
		t := frameTypeOfLine(d.functionTypes[lines[i].function], compiled)
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

// frameTypeAttribute returns the index of the attribute of a type.
func (d *decoder) frameTypeAttribute(t frameType) int32 {
	if d.frameTypes[t] == 0 {
		d.frameTypes[t] = d.stringAttribute(fromotlp.LocationFrameType, []byte(frameTypeNames[t]))
	}
	return d.frameTypes[t]
}

// convertSamples comes after the locations have been converted. The rows of the matrix take the memory of the values
// that were read, of which they are no more.
func (d *decoder) convertSamples() error {
	types := len(d.header.sampleTypes)
	d.matrix.values = d.values[:0]
	d.stacks.rewind()
	for n := range d.samples {
		if err := d.convertSample(&d.samples[n], d.values[n*types:][:types]); err != nil {
			return fmt.Errorf("%s[%d]: %w", profileFields[profileSample], n, err)
		}
	}
	return nil
}

func (d *decoder) convertSample(from *sampleMessage, values []uint64) error {
	locations := d.stacks.take(int(from.depth))
	stack, indices := slices.Grow(d.stack[:0], len(locations))[:len(locations)], d.locationIndices
	for i, number := range locations {
		stack[i] = indices[number]
	}
	d.stack = stack
	s := sample{stack: d.tables.Stack(stack)}
	if from.labels.stop != 0 {
		if err := d.readLabels(from.labels, &s); err != nil {
			return err
		}
	}
	if err := d.tables.Err(); err != nil {
		return err
	}
	rows := d.rows()
	if s.timed {
		d.events.add(&s, values)
	} else {
		d.matrix.add(&s, values)
	}
	if s.set != 0 && d.rows() > rows {
		d.indices += len(d.tables.Set(s.set))
	}
	return d.checkSize()
}

func (d *decoder) rows() int { return d.matrix.identities.Len() + d.events.identities.Len() }

// stringIndex returns the index of string i of the payload.
func (d *decoder) stringIndex(i uint64) int32 {
	if d.stringIndices[i] == 0 {
		d.stringIndices[i] = d.tables.StringBytes(d.bytes(i))
	}
	return d.stringIndices[i]
}

// labelText returns string i as valid UTF-8, for the value of a label. It counts a repaired string once, and not if the
// tables have counted it: how often labels are read depends on their caches.
func (d *decoder) labelText(i uint64) []byte {
	text := d.bytes(i)
	if utf8.Valid(text) {
		return text
	}
	if len(d.repairedLabels) == 0 {
		d.repairedLabels = zeroed(d.repairedLabels, len(d.strings))
	}
	if d.stringIndices[i] == 0 && !d.repairedLabels[i] {
		d.repairedLabels[i] = true
		d.invalid++
	}
	return []byte(dictionary.ValidUTF8(string(text)))
}

// textSize is the length of string i as valid UTF-8.
func (d *decoder) textSize(i uint64) int { return dictionary.ValidSize(d.bytes(i)) }

// stringAttribute returns the index of an attribute with the value v.
func (d *decoder) stringAttribute(key string, v []byte) int32 {
	d.value = d.value[:0].AppendString(v)
	return d.tables.Attribute(d.tables.String(key), 0, d.value)
}

// flag returns the index of an attribute with the value true.
func (d *decoder) flag(key string) int32 {
	d.value = d.value[:0].AppendBool(true)
	return d.tables.Attribute(d.tables.String(key), 0, d.value)
}
