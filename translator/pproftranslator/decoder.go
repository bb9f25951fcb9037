// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// decoder translates one payload at a time; it keeps its memory.
type decoder struct {
	limits Limits
	labels labelNames
	data   []byte

	header        header
	strings       []position
	stringIndices []int32 // by pprof string: the index in the tables plus one
	mappings      mappings
	functions     functions
	locations     locations

	tables  *dictionary.Writer
	samples dictionary.Samples
	sheets  []sheet // without timestamps
	timed   timeline
	clamped int

	ids       []uint64 // of locations, or values: what a repeated field holds
	stack     []int32
	label     labelSet
	value     dictionary.Value
	attribute []int32
}

// position is where a field begins and ends in the payload.
type position struct{ start, stop uint32 }

func (d *decoder) reset(data []byte) {
	d.data = data
	d.samples.Reset()
	for i := range d.sheets {
		d.sheets[i].reset()
	}
	d.sheets = d.sheets[:0]
	d.timed.reset()
	d.clamped = 0
}

// retained is the memory that d holds on to, in bytes, but for what is small.
func (d *decoder) retained() int {
	size := d.tables.Retained() + d.samples.Retained() + 8*cap(d.strings) + 4*cap(d.stringIndices) +
		d.mappings.retained() + d.functions.retained() + d.locations.retained() + d.label.retained() +
		8*cap(d.ids) + 4*cap(d.stack) + d.timed.retained()
	for _, s := range d.sheets[:cap(d.sheets)] {
		size += s.retained()
	}
	return size
}

var errEmpty = errors.New("pprof: the payload is empty")

// decode reads the payload. The entries that its samples reach go into dst.
func (d *decoder) decode(dst pprofile.ProfilesDictionary) error {
	if len(d.data) == 0 {
		return errEmpty
	}
	for _, step := range []func() error{d.readTop, d.checkHeader, d.readMappings, d.readFunctions, d.readLocations} {
		if err := step(); err != nil {
			return fmt.Errorf("pprof: %w", err)
		}
	}
	d.tables.Reset(dst)
	d.grow()
	if err := d.readSamples(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return nil
}

// grow makes room for what an honest payload of this size holds at most: entries
// of two bytes are no reason to take more.
func (d *decoder) grow() {
	const (
		leastEntry  = 12 // bytes of a location or function
		leastSample = 24
	)
	h, size := &d.header, len(d.data)
	locations, functions := min(h.locations.count, size/leastEntry), min(h.functions.count, size/leastEntry)
	strings, samples := min(len(d.strings), size/leastEntry), min(h.samples.count, size/leastSample)
	d.tables.Grow(dictionary.Room{
		Strings: strings, StringBytes: h.stringBytes, Functions: functions, Locations: locations, Stacks: samples,
	})
	d.samples.Grow(samples)
	if cap(d.sheets) == 0 {
		d.sheets = make([]sheet, 0, 1)
	}
	d.sheets[:1][0].grow(samples, min(h.samples.count*len(h.sampleTypes), d.expansionLimit()/valueSize))
}

// each calls read for each field of the top level with the given number.
func (d *decoder) each(field uint64, where span, read func(c *wire.Cursor) error) error {
	c := wire.Cursor{Data: d.data, At: where.start, End: where.stop}
	m := wire.Cursor{Data: d.data}
	for n := 0; c.Next(); {
		if c.Field != field {
			continue
		}
		m.Enter(&c)
		if err := read(&m); err != nil {
			return fmt.Errorf("%s[%d]: %w", profileFields[field], n, err)
		}
		n++
	}
	return nil
}

// count is how many fields with the given number are at the top level.
func (d *decoder) count(field uint64) (n int) {
	c := wire.Cursor{Data: d.data, End: len(d.data)}
	for c.Next() {
		if c.Field == field {
			n++
		}
	}
	return n
}

// stringIndex is the index in the tables of string i of the payload.
func (d *decoder) stringIndex(i int64) int32 {
	if n := d.stringIndices[i]; n != 0 {
		return n - 1
	}
	n := d.tables.String(d.bytes(i))
	d.stringIndices[i] = n + 1
	return n
}

func (d *decoder) bytes(i int64) []byte {
	p := d.strings[i]
	return d.data[p.start:p.stop]
}

// checkString tells whether string i is there.
func (d *decoder) checkString(i int64) error {
	if i < 0 || i >= int64(len(d.strings)) {
		return fmt.Errorf("string index %d is not in string_table, which has %d entries", i, len(d.strings))
	}
	return nil
}

// flag is the index of an attribute with the value true.
func (d *decoder) flag(key string) int32 {
	d.value = d.value[:0].AppendBool(true)
	return d.tables.Attribute(d.tables.StringOf(key), 0, d.value)
}
