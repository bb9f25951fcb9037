// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/semconv"
)

// locations are the locations of the payload.
type locations struct {
	entries []locationEntry
	lines   []lineEntry // of all locations, one after the other
	ids     idTable
	indices []int32
	entry   dictionary.Location
}

type locationEntry struct {
	address uint64
	mapping uint32 // twice (number + 1), or 0 for none, and 1 more if it is folded
	lines   uint32 // where its lines end in locations.lines
}

type lineEntry struct {
	function     int32 // number
	line, column int64
}

// readLocations reads all locations, including those that no sample reaches, after the
// mappings and functions. An unknown mapping id means no mapping, as in google/pprof.
func (d *decoder) readLocations() error {
	ls := &d.locations
	count := d.header.entries[profileLocation].count
	ls.entries = emptied(ls.entries, count)
	ls.lines = ls.lines[:0]
	ls.ids.reset(count)
	line := wire.Cursor{Data: d.data}
	err := d.each(profileLocation, func(c *wire.Cursor) error {
		var f [8]uint64
		first := len(ls.lines)
		for c.Scalars(f[:locationLine]); c.Next(); {
			switch c.Field {
			case locationID, locationMapping, locationAddress, locationIsFolded:
				f[c.Field] = c.Uint()
			case locationLine:
				line.Enter(c)
				l, err := d.readLine(&line)
				if err != nil {
					return fmt.Errorf("line[%d]: %w", len(ls.lines)-first, err)
				}
				if len(ls.lines) == cap(ls.lines) { // growing step by step takes several times as much memory
					ls.lines = append(make([]lineEntry, 0, max(d.countLines(), len(ls.lines)+1)), ls.lines...)
				}
				ls.lines = append(ls.lines, l)
			}
		}
		if c.Err != nil {
			return c.Err
		}
		mapping := uint32(d.mappings.ids.number(f[locationMapping])+1) << 1
		if f[locationIsFolded] != 0 {
			mapping |= 1
		}
		ls.entries = append(ls.entries, locationEntry{f[locationAddress], mapping, uint32(len(ls.lines))})
		return ls.ids.add(f[locationID])
	})
	ls.indices = zeroed(ls.indices, len(ls.entries))
	return err
}

func (d *decoder) countLines() (n int) {
	_ = d.each(profileLocation, func(c *wire.Cursor) error {
		for c.Next() {
			if c.Field == locationLine {
				n++
			}
		}
		return nil
	})
	return n
}

func (d *decoder) readLine(c *wire.Cursor) (l lineEntry, err error) {
	var f [8]uint64
	c.Scalars(f[:])
	for c.Next() {
		switch c.Field {
		case lineFunction, lineLine, lineColumn:
			f[c.Field] = c.Uint()
		}
	}
	if c.Err != nil {
		return l, c.Err
	}
	function := f[lineFunction]
	l.line, l.column = int64(f[lineLine]), int64(f[lineColumn])
	l.function = d.functions.ids.number(function)
	if l.function < 0 {
		return l, fmt.Errorf("no function with id %d", function)
	}
	return l, nil
}

// locationIndex returns the index of the location with the given number.
func (d *decoder) locationIndex(number int32) int32 {
	ls := &d.locations
	if n := ls.indices[number]; n != 0 {
		return n - 1
	}
	from, to := &ls.entries[number], &ls.entry
	to.Address, to.Lines, to.Attributes = from.address, to.Lines[:0], to.Attributes[:0]
	to.Mapping = d.mappingIndex(int32(from.mapping>>1) - 1)
	first := uint32(0)
	if number > 0 {
		first = ls.entries[number-1].lines
	}
	for _, line := range ls.lines[first:from.lines] {
		to.Lines = append(to.Lines, dictionary.Line{
			Function: d.functionIndex(line.function), Line: line.line, Column: line.column,
		})
	}
	if from.mapping&1 != 0 {
		to.Attributes = append(to.Attributes, d.flag(semconv.LocationIsFolded))
	}
	n := d.tables.Location(*to)
	ls.indices[number] = n + 1
	return n
}
