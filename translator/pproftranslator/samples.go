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
	d.stack = d.stack[:0]
	values := d.values[:0]
	var labels position // from the start of the first to the end of the last
	for start := c.At; c.Next(); start = c.At {
		switch c.Field {
		case sampleLocation:
			d.readStack(c)
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
	s := sample{stack: d.tables.Stack(d.stack)}
	if labels.stop != 0 {
		if err := d.readLabels(labels, &s); err != nil {
			return err
		}
	}
	identity := d.identities.Number(s.stack, s.set, s.link)
	if err := d.tables.Err(); err != nil {
		return err
	}
	if s.timed {
		d.events.add(identity, s.time, values)
	} else if err := d.addValues(identity, values); err != nil {
		return err
	}
	return d.checkSize()
}

// maxMatrices limits how often the values of one identity may overflow int64.
const maxMatrices = 64

func (d *decoder) addValues(identity int32, values []uint64) error {
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
		if d.matrices[i].add(identity, values) {
			return nil
		}
	}
}

// markLocations marks the locations that samples reach, and checks their ids.
func (d *decoder) markLocations() error {
	return d.each(profileSample, func(c *wire.Cursor) error {
		depth := 0
		for c.NextOf(sampleLocation) {
			n, err := d.markStack(c, depth)
			if err != nil {
				return err
			}
			depth = n
		}
		if c.Err != nil {
			return fmt.Errorf("byte %d: %w", c.At, c.Err)
		}
		return nil
	})
}

// markStack marks the locations of the current field, and returns how many there are with
// those of the fields before.
func (d *decoder) markStack(c *wire.Cursor, depth int) (int, error) {
	if c.Type != wire.BytesType {
		id := c.Uint()
		if c.Err != nil {
			return depth, c.Err
		}
		return depth + 1, d.mark(id, depth)
	}
	dense, indices := d.locations.dense, d.locations.indices
	data := c.Data[:c.Stop]
	for at := c.Start; at < len(data); depth++ {
		id := uint64(data[at])
		switch {
		case id < 0x80:
			at++
		case at+1 < len(data) && data[at+1] < 0x80:
			id = id&0x7F | uint64(data[at+1])<<7
			at += 2
		default:
			packed := wire.Cursor{Data: data, At: at, End: len(data)}
			if id = packed.Varint(); packed.Err != nil {
				return depth, packed.Err
			}
			at = packed.At
		}
		if id < uint64(len(dense)) && depth < d.limits.StackDepth {
			if number := dense[id]; number != 0 {
				indices[number] = reached
				continue
			}
		}
		if err := d.mark(id, depth); err != nil {
			return depth, err
		}
	}
	return depth, nil
}

// mark marks the location with the given id, which is that of a frame.
func (d *decoder) mark(id uint64, frame int) error {
	if frame >= d.limits.StackDepth {
		return &LimitError{What: "locations", Limit: int64(d.limits.StackDepth)}
	}
	number := d.locations.find(id)
	if number == 0 {
		return fmt.Errorf("location_id[%d]: no location with id %d", frame, id)
	}
	d.locations.indices[number] = reached
	return nil
}

// readStack appends the locations of the current field, which markStack has checked, to
// d.stack.
func (d *decoder) readStack(c *wire.Cursor) {
	if c.Type != wire.BytesType {
		d.stack = append(d.stack, d.locations.indices[d.locations.find(c.Value)]-1)
		return
	}
	dense, indices, stack := d.locations.dense, d.locations.indices, d.stack
	data := c.Data[:c.Stop]
	for at := c.Start; at < len(data); {
		id := uint64(data[at])
		switch {
		case id < 0x80:
			at++
		case at+1 < len(data) && data[at+1] < 0x80:
			id = id&0x7F | uint64(data[at+1])<<7
			at += 2
		default:
			packed := wire.Cursor{Data: data, At: at, End: len(data)}
			id = packed.Varint()
			at = packed.At
		}
		if id < uint64(len(dense)) {
			stack = append(stack, indices[dense[id]]-1)
		} else {
			stack = append(stack, indices[d.locations.find(id)]-1)
		}
	}
	d.stack = stack
}

// Sizes in pdata, in bytes: of a Profile without samples, of a sample with its only
// value and the pointer to it, and of an event. A value takes valueSize before that.
const (
	profileSize = 384
	sampleSize  = 112
	eventSize   = 16
	valueSize   = 16
)

// size returns about the memory that the result takes if it has so many samples without
// a timestamp.
func (d *decoder) size(samples int) int {
	types := len(d.header.sampleTypes)
	return d.tables.OutputSize() + types*(eventSize*len(d.events.events)+sampleSize*len(d.events.identities)) + sampleSize*samples
}

func (d *decoder) expansionLimit() int { return d.limits.Expansion*len(d.data) + 1<<20 }

// checkSize rejects a payload that takes too much memory as OTLP even if zeros are
// omitted, and reserves this memory from time to time.
func (d *decoder) checkSize() error {
	kept, values := 0, 0
	for i := range d.matrices {
		kept += d.matrices[i].kept
		values += len(d.matrices[i].values)
	}
	size := d.size(kept)
	if limit := d.expansionLimit(); size+valueSize*values > limit {
		return d.expansionError(limit)
	}
	if size < d.memory.checkAt {
		return nil
	}
	return d.reserveSamples(size)
}

func (d *decoder) expansionError(limit int) error {
	return &LimitError{What: fmt.Sprintf("bytes as OTLP of %d bytes of pprof", len(d.data)), Limit: int64(limit)}
}

// zerosAllowance is how many times over the limit a payload may be because of zeros: a
// Go heap has four types, of which half are 0 in most samples.
const zerosAllowance = 2

// omitsZeros reports whether zeros take so much memory that they must be omitted.
func (d *decoder) omitsZeros() bool {
	return d.memory.omitZeros || d.size(d.valueCount()) > zerosAllowance*d.expansionLimit()
}

// valueCount is the number of values without a timestamp.
func (d *decoder) valueCount() (n int) {
	for i := range d.matrices {
		n += len(d.matrices[i].values)
	}
	return n
}
