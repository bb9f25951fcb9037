// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/fromotlp"
)

// decoder translates one payload at a time and keeps its memory for the next.
//
// An entry of the payload has an id, which the payload gives it; a number, which is its
// position among its kind; and, if a sample reaches it, an index in the OTLP dictionary.
// Slices named indices hold the index plus one, by number; 0 means that no sample reaches
// the entry so far, and reached that one does.
type decoder struct {
	limits Limits
	// positional: a function without an ID has the position of its location. Without Unmarshaler.FunctionsOfLocations,
	// or if the first function has an ID, it is false.
	positional bool
	names      fromotlp.Labels
	data       []byte

	header        header
	strings       []position
	stringIndices []int32
	mappings      entries[mapping]
	functions     entries[dictionary.Function]
	functionTypes []frameType // by number
	locations     entries[location]
	lines         []dictionary.Line // of all locations, one after the other
	stacks        blocks            // of all samples: numbers of locations plus one
	samples       []sampleMessage
	frameTypes    [len(frameTypeNames)]int32 // by frameType: the index of its attribute plus one

	tables   *dictionary.Tables
	matrix   valueMatrix // of samples without a timestamp
	events   eventList   // of samples with one
	allowed  allowance
	zeros    int // bytes that values may take before zeros are left out
	indices  int // of attributes, of all rows of matrix and events
	negative int // times and durations below 0
	invalid  int // texts of labels that are not UTF-8
	texts    int // bytes of text that were read for attribute values

	ids       []uint64 // of the locations of the current sample
	labels    labelReader
	value     dictionary.Value
	attribute []int32
}

const reached = -1

// repaired is the index of a string that only values of labels have so far, and that is not UTF-8.
const repaired = -2

// position is the place of a message in the payload.
type position struct{ start, stop uint32 }

func (d *decoder) reset(data []byte) {
	d.data = data
	d.allowed = allowance{bytes: int(min(d.limits.Memory, math.MaxInt))}
	d.zeros, d.indices = zerosLimit(data), 0
	d.matrix.reset()
	d.events.reset()
	d.labels.keyNumbers, d.labels.keys = d.labels.keyNumbers[:0], d.labels.keys[:0]
	clear(d.frameTypes[:])
	d.negative, d.invalid, d.texts = 0, 0, 0
}

// The entries that samples reach are converted kind by kind, in the order of the payload:
// a loop over one kind takes four fifths of the time of going from each sample to its
// locations, their functions and their strings.
var steps = [...]func(d *decoder) error{
	(*decoder).readHeader, (*decoder).readStrings, (*decoder).checkHeader,
	(*decoder).readMappings, (*decoder).readFunctions, (*decoder).readLocations,
	(*decoder).readSamples, (*decoder).grow,
	(*decoder).convertStrings, (*decoder).convertFunctions, (*decoder).convertLocations,
	(*decoder).convertSamples,
}

// decode reads the payload. The entries that its samples reach go into the tables.
func (d *decoder) decode() error {
	if len(d.data) == 0 {
		return errors.New("the payload is empty")
	}
	d.tables.Reset()
	for _, step := range steps {
		if err := step(d); err != nil {
			return err
		}
	}
	return nil
}

// grow makes room for the entries that samples reach, and for as many samples as an
// ordinary payload of this size holds, but not for as many as fit if each takes two bytes.
func (d *decoder) grow() error {
	const (
		minSample     = 24 // bytes
		headerStrings = 32 // about: without room for those of sample types and attributes, the table doubles
	)
	room := d.markFunctions()
	room.Strings += headerStrings
	samples := min(d.header.entries[profileSample].Count, len(d.data)/minSample)
	room.Stacks = samples
	d.tables.Grow(room)
	d.matrix.identities.Grow(samples)
	return nil
}

// cursors returns a Cursor over the entries of a field of the Profile message, and one to enter them with.
func (d *decoder) cursors(field int) (c, m wire.Cursor) {
	r := d.header.entries[field]
	return wire.Cursor{Data: d.data, At: r.Start, End: r.Stop}, wire.Cursor{Data: d.data}
}

// each calls read with each entry of a field of the Profile message.
func (d *decoder) each(field int, read func(c *wire.Cursor) error) error {
	c, m := d.cursors(field)
	for n := 0; c.NextOf(field, &m); n++ {
		if err := read(&m); err != nil {
			return fmt.Errorf("%s[%d]: %w", profileFields[field], n, err)
		}
	}
	return nil
}

// stringIndex returns the index of string i of the payload.
func (d *decoder) stringIndex(i uint64) int32 {
	if n := d.stringIndices[i]; n > 0 {
		return n - 1
	}
	n := d.tables.StringBytes(d.bytes(i))
	d.stringIndices[i] = n + 1
	return n
}

// labelText returns string i as valid UTF-8, for the value of a label. It counts a repaired string once:
// how often labels are read depends on their caches.
func (d *decoder) labelText(i uint64) []byte {
	text := d.bytes(i)
	if utf8.Valid(text) {
		return text
	}
	if d.stringIndices[i] == 0 {
		d.stringIndices[i] = repaired
		d.invalid++
	}
	return []byte(dictionary.ValidUTF8(string(text)))
}

func (d *decoder) bytes(i uint64) []byte {
	p := d.strings[i]
	return d.data[p.start:p.stop]
}

// textSize is the length of string i as valid UTF-8.
func (d *decoder) textSize(i uint64) int { return dictionary.ValidSize(d.bytes(i)) }

// checkStrings fails if one of the strings does not exist.
func (d *decoder) checkStrings(indices ...uint64) error {
	for _, i := range indices {
		if i >= uint64(len(d.strings)) {
			return fmt.Errorf("string index %d is not in string_table, which has %d entries: the profile is malformed, or its end is missing", int64(i), len(d.strings))
		}
	}
	return nil
}

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

// blocks holds slices in a few large ones: it grows without copies, and takes an eighth more memory than they do at most.
type blocks struct {
	all   [][]int32
	next  int     // block after the present one
	block []int32 // the present one
	used  int     // of it
	size  int     // of all
}

// rewind lets take return the same slices again, if it is asked for the same lengths.
func (b *blocks) rewind() { b.next, b.block, b.used = 0, nil, 0 }

// take returns the next slice of n elements, as they are.
func (b *blocks) take(n int) []int32 {
	if n > len(b.block)-b.used {
		b.advance(n)
	}
	b.used += n
	return b.block[b.used-n : b.used]
}

// advance goes to the next block with room for n elements.
func (b *blocks) advance(n int) {
	for b.block, b.used = nil, 0; len(b.block) < n; b.next++ {
		if b.next == len(b.all) {
			block := make([]int32, max(n, b.size/8, 64))
			b.all, b.size = append(b.all, block), b.size+len(block)
		}
		b.block = b.all[b.next]
	}
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
