// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// sample is a sample without its values: its identity and its timestamp.
type sample struct {
	stack, set, link int32
	time             uint64
	timed            bool
}

// readStacks reads the stacks of all samples, and marks the locations that they reach.
func (d *decoder) readStacks() error {
	d.depths = emptied(d.depths, d.header.entries[profileSample].Count)
	d.stacks.rewind()
	return d.each(profileSample, d.readStack)
}

func (d *decoder) readStack(c *wire.Cursor) error {
	if c.At == c.End { // early: it takes two bytes of the payload, but more in the tables
		return fmt.Errorf("0 values for %d sample types", len(d.header.sampleTypes))
	}
	d.ids = d.ids[:0]
	for c.NextOf(sampleLocation) {
		d.ids = c.AppendRepeated(d.ids, d.limits.StackDepth)
	}
	switch {
	case c.Err != nil:
		return fmt.Errorf("byte %d: %w", c.At, c.Err)
	case len(d.ids) > d.limits.StackDepth:
		return &LimitError{What: "locations", Limit: int64(d.limits.StackDepth)}
	}
	locations, stack := d.locations, d.stacks.take(len(d.ids)) // a copy, so that its slices stay in registers
	for i, id := range d.ids[:len(stack)] {
		number := locations.find(id)
		if number == 0 {
			return fmt.Errorf("location_id[%d]: no location with id %d", i, id)
		}
		locations.indices[number], stack[i] = reached, number
	}
	d.depths = append(d.depths, uint32(len(stack)))
	return nil
}

// readSamples comes after the locations have been converted.
func (d *decoder) readSamples() error {
	types, n := len(d.header.sampleTypes), 0
	d.stacks.rewind()
	return d.each(profileSample, func(c *wire.Cursor) error {
		n++
		return d.readSample(c, d.stacks.take(int(d.depths[n-1])), types)
	})
}

// readSample reads the values and labels of a sample. stack has numbers of locations.
func (d *decoder) readSample(c *wire.Cursor, stack []int32, types int) error {
	values := d.values[:0]
	var labels position // from the start of the first to the end of the last
	for start := c.At; c.Next(); start = c.At {
		switch c.Field {
		case sampleValue:
			values = c.AppendRepeated(values, types)
		case sampleLabel:
			if labels.stop == 0 {
				labels.start = uint32(start)
			}
			labels.stop = uint32(c.At)
		}
	}
	d.values = values
	switch {
	case c.Err != nil:
		return fmt.Errorf("byte %d: %w", c.At, c.Err)
	case len(values) > types:
		return fmt.Errorf("more values than the %d sample types", types)
	case len(values) < types:
		return fmt.Errorf("%d values for %d sample types", len(values), types)
	}
	for i, number := range stack { // each stack comes here once
		stack[i] = d.locations.indices[number] - 1
	}
	s := sample{stack: d.tables.Stack(stack)}
	if labels.stop != 0 {
		if err := d.readLabels(labels, &s); err != nil {
			return err
		}
	}
	if err := d.tables.Err(); err != nil {
		return err
	}
	if s.timed {
		d.events.add(&s, values)
	} else {
		d.matrix.add(&s, values)
	}
	return d.checkSize()
}
