// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"slices"

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
	d.stackEnds, d.stacks = emptied(d.stackEnds, d.header.entries[profileSample].Count), d.stacks[:0]
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
	first, end := len(d.stacks), len(d.stacks)+len(d.ids)
	if end > cap(d.stacks) { // as for lines
		d.stacks = slices.Grow(d.stacks, max(d.countFrames(), end)-first)
	}
	d.stacks = d.stacks[:end]
	locations, stack := d.locations, d.stacks[first:] // a copy, so that its slices stay in registers
	for i, id := range d.ids[:len(stack)] {
		number := locations.find(id)
		if number == 0 {
			return fmt.Errorf("location_id[%d]: no location with id %d", i, id)
		}
		locations.indices[number], stack[i] = reached, number
	}
	d.stackEnds = append(d.stackEnds, uint32(end))
	return nil
}

func (d *decoder) countFrames() (n int) {
	_ = d.each(profileSample, func(c *wire.Cursor) error {
		for c.NextOf(sampleLocation) {
			n += c.CountRepeated()
		}
		return nil
	})
	return n
}

// readSamples comes after the locations have been converted.
func (d *decoder) readSamples() error {
	types, n, first := len(d.header.sampleTypes), 0, uint32(0)
	return d.each(profileSample, func(c *wire.Cursor) error {
		stack := d.stacks[first:d.stackEnds[n]]
		n, first = n+1, d.stackEnds[n]
		return d.readSample(c, stack, types)
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
