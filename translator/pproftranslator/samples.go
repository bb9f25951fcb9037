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

func (d *decoder) readSamples() error {
	types := len(d.header.sampleTypes)
	return d.each(profileSample, func(c *wire.Cursor) error { return d.readSample(c, types) })
}

func (d *decoder) readSample(c *wire.Cursor, types int) error {
	d.ids = d.ids[:0]
	values := d.values[:0]
	var labels position // from the start of the first to the end of the last
	for start := c.At; c.Next(); start = c.At {
		switch c.Field {
		case sampleLocation:
			d.ids = c.AppendRepeated(d.ids, d.limits.StackDepth)
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
	s := sample{stack: d.readStack()}
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
	} else if err := d.addValues(&s, values); err != nil {
		return err
	}
	return d.checkSize()
}

// maxMatrices limits how often the values of one identity may overflow int64.
const maxMatrices = 64

func (d *decoder) addValues(s *sample, values []uint64) error {
	for i := 0; ; i++ {
		switch {
		case i == maxMatrices:
			return &LimitError{What: "sum of equal samples, in multiples of int64", Limit: maxMatrices}
		case i < len(d.matrices):
		case i < cap(d.matrices):
			d.matrices = d.matrices[:i+1]
		default:
			d.matrices = append(d.matrices, valueMatrix{})
		}
		if d.matrices[i].add(s, values) {
			return nil
		}
	}
}

// markLocations marks the locations that samples reach, and checks their ids.
func (d *decoder) markLocations() error {
	return d.each(profileSample, func(c *wire.Cursor) error {
		d.ids = d.ids[:0]
		for c.NextOf(sampleLocation) {
			d.ids = c.AppendRepeated(d.ids, d.limits.StackDepth)
		}
		if c.Err != nil {
			return fmt.Errorf("byte %d: %w", c.At, c.Err)
		}
		if len(d.ids) > d.limits.StackDepth {
			return &LimitError{What: "locations", Limit: int64(d.limits.StackDepth)}
		}
		indices := d.locations.indices
		for frame, id := range d.ids {
			number := d.locations.find(id)
			if number == 0 {
				return fmt.Errorf("location_id[%d]: no location with id %d", frame, id)
			}
			indices[number] = reached
		}
		return nil
	})
}

// readStack returns the stack of the locations with d.ids, which markLocations has checked.
func (d *decoder) readStack() int32 {
	d.stack = emptied(d.stack, len(d.ids))[:len(d.ids)]
	indices, stack := d.locations.indices, d.stack
	for i, id := range d.ids[:len(stack)] {
		stack[i] = indices[d.locations.find(id)] - 1
	}
	return d.tables.Stack(stack)
}
