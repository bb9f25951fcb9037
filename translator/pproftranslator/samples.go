// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// sampleMessage is what is kept of a sample that was read, besides its values and its stack.
type sampleMessage struct {
	depth  uint32   // of the stack
	labels position // from the start of the first to the end of the last; empty without labels
}

// sample is a sample without its values: its identity and its timestamp.
type sample struct {
	stack, set, link int32
	time             uint64
	timed            bool
}

// readSamples reads all samples, and marks the locations that they reach.
func (d *decoder) readSamples() error {
	const minSample = 4 // bytes
	count := min(d.header.entries[profileSample].Count, len(d.data)/minSample)
	d.samples = emptied(d.samples, count)
	d.matrix.values = emptied(d.matrix.values, min(count*len(d.header.sampleTypes), len(d.data)))
	d.stacks.rewind()
	ids, values := d.ids, d.matrix.values // whose fields would have a write barrier for each sample
	depth := d.limits.scaled(maxStackDepth)
	c, m := d.cursors(profileSample)
	for n := 0; c.NextOf(profileSample, &m); n++ {
		first, labels := len(values), position{}
		ids = ids[:0]
		for start := m.At; m.Next(); start = m.At {
			switch m.Field {
			case sampleLocation:
				ids = m.AppendRepeated(ids, depth)
			case sampleValue:
				values = m.AppendRepeated(values, first+len(d.header.sampleTypes))
			case sampleLabel:
				if labels.stop == 0 {
					labels.start = uint32(start)
				}
				labels.stop = uint32(m.At)
			}
		}
		if err := d.addSample(&m, ids, len(values)-first, labels); err != nil {
			return fmt.Errorf("%s[%d]: %w", profileFields[profileSample], n, err)
		}
	}
	d.ids, d.matrix.values = ids, values
	return nil
}

// addSample appends the numbers of the locations plus one to d.stacks, after c has read a sample with n values.
func (d *decoder) addSample(c *wire.Cursor, ids []uint64, n int, labels position) error {
	switch types, depth := len(d.header.sampleTypes), d.limits.scaled(maxStackDepth); {
	case c.Err != nil:
		return fmt.Errorf("byte %d: %w", c.At, c.Err)
	case len(ids) > depth:
		return &LimitError{What: "locations", Limit: int64(depth)}
	case n > types:
		return fmt.Errorf("more values than the %d sample types", types)
	case n < types:
		return fmt.Errorf("%d values for %d sample types", n, types)
	}
	stack := d.stacks.take(len(ids))
	if n := d.locations.reach(ids, stack); n < len(ids) {
		return fmt.Errorf("location_id[%d]: no location with id %d", n, ids[n])
	}
	d.samples = append(d.samples, sampleMessage{uint32(len(stack)), labels})
	return nil
}

// convertSamples comes after the locations have been converted. The rows of the matrix take the place of the values that
// were read, of which they are no more.
func (d *decoder) convertSamples() error {
	types, values := len(d.header.sampleTypes), d.matrix.values
	d.matrix.values = values[:0]
	d.stacks.rewind()
	for n := range d.samples {
		if err := d.convertSample(&d.samples[n], values[n*types:][:types]); err != nil {
			return fmt.Errorf("%s[%d]: %w", profileFields[profileSample], n, err)
		}
	}
	return nil
}

func (d *decoder) convertSample(from *sampleMessage, values []uint64) error {
	stack := d.stacks.take(int(from.depth))
	indices := d.locations.indices
	for i, number := range stack { // each stack comes here once
		stack[i] = indices[number] - 1
	}
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
