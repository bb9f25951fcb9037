// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// identity is what tells the samples of a Profile apart, and the timestamp.
type identity struct {
	stack, set, link int32
	time             uint64
	timed            bool
}

func (d *decoder) readSamples() error {
	types := len(d.header.sampleTypes)
	return d.each(profileSample, d.header.samples, func(c *wire.Cursor) error { return d.readSample(c, types) })
}

func (d *decoder) readSample(c *wire.Cursor, types int) error {
	d.stack = d.stack[:0]
	values := d.ids[:0]
	var labels position // from the first to behind the last
	for start := c.At; c.Next(); start = c.At {
		switch c.Field {
		case sampleLocation:
			if err := d.readStack(c); err != nil {
				return err
			}
		case sampleValue:
			values = c.AppendRepeated(values, types)
		case sampleLabel:
			if labels.stop == 0 {
				labels.start = uint32(start)
			}
			labels.stop = uint32(c.At)
		}
	}
	d.ids = values
	switch {
	case c.Err != nil:
		return fmt.Errorf("byte %d: %w", c.At, c.Err)
	case len(values) > types:
		return fmt.Errorf("it has more values than the %d sample types", types)
	case len(values) < types:
		return fmt.Errorf("it has %d values for %d sample types", len(values), types)
	}
	identity := identity{stack: d.tables.Stack(d.stack)}
	if labels.stop != 0 {
		if err := d.readLabels(labels, &identity); err != nil {
			return err
		}
	}
	sample := d.samples.Number(identity.stack, identity.set, identity.link)
	if err := d.tables.Err(); err != nil {
		return err
	}
	if identity.timed {
		d.timed.add(sample, identity.time, values)
	} else if err := d.addValues(sample, values); err != nil {
		return err
	}
	return d.checkExpansion()
}

// What a sample, with its only value and the pointer to it, and an event take in
// pdata, and what a value takes before that, in bytes.
const (
	sampleSize = 112
	eventSize  = 16
	valueSize  = 16
)

// checkExpansion refuses a payload that takes too much as OTLP even without the
// zeros that may be left out.
func (d *decoder) checkExpansion() error {
	types := len(d.header.sampleTypes)
	size := d.tables.Written() + types*(eventSize*len(d.timed.events)+sampleSize*len(d.timed.samples))
	for i := range d.sheets {
		size += sampleSize*d.sheets[i].kept + valueSize*len(d.sheets[i].values)
	}
	if limit := d.expansionLimit(); size > limit {
		return &LimitError{What: fmt.Sprintf("bytes as OTLP of %d bytes of pprof", len(d.data)), Limit: int64(limit)}
	}
	return nil
}

// profileSize is what a Profile without samples takes in pdata, in bytes.
const profileSize = 384

// written is about what pd takes in memory, in bytes.
func (d *decoder) written(pd pprofile.Profiles) int {
	return d.tables.Written() + profileSize*pd.ProfileCount() + sampleSize*pd.SampleCount() + eventSize*len(d.timed.events)*len(d.header.sampleTypes)
}

func (d *decoder) expansionLimit() int { return d.limits.Expansion*len(d.data) + 1<<20 }

// zerosAllowance is how many times over the limit a payload may be because of
// zeros: a Go heap has four types, of which half are 0 in most samples.
const zerosAllowance = 2

// omitsZeros tells whether zeros take so much that they have to be left out.
func (d *decoder) omitsZeros() bool {
	types := len(d.header.sampleTypes)
	size := d.tables.Written() + types*(eventSize*len(d.timed.events)+sampleSize*len(d.timed.samples))
	for i := range d.sheets {
		size += sampleSize * types * len(d.sheets[i].samples)
	}
	return size > zerosAllowance*d.expansionLimit()
}

// readStack appends to d.stack the locations of the present field: an id, or a
// packed run of them.
func (d *decoder) readStack(c *wire.Cursor) error {
	if c.Type != wire.BytesType {
		id := c.Uint()
		if c.Err != nil {
			return c.Err
		}
		return d.pushLocation(id)
	}
	data, at := c.Data[:c.Stop], c.Start
	byID, stack, most := d.locations.byID, d.stack, d.limits.StackDepth
	for at < len(data) {
		id := uint64(data[at])
		switch {
		case id < 0x80:
			at++
		case at+1 < len(data) && data[at+1] < 0x80:
			id = id&0x7F | uint64(data[at+1])<<7
			at += 2
		case at+2 < len(data) && data[at+2] < 0x80:
			id = id&0x7F | uint64(data[at+1]&0x7F)<<7 | uint64(data[at+2])<<14
			at += 3
		default:
			long := wire.Cursor{Data: data, At: at, End: len(data)}
			if id = long.Varint(); long.Err != nil {
				return long.Err
			}
			at = long.At
		}
		if id < uint64(len(byID)) && len(stack) < most {
			if n := byID[id]; n != 0 {
				stack = append(stack, n-1)
				continue
			}
		}
		d.stack = stack
		if err := d.pushLocation(id); err != nil {
			return err
		}
		stack = d.stack
	}
	d.stack = stack
	return nil
}

func (d *decoder) pushLocation(id uint64) error {
	if len(d.stack) >= d.limits.StackDepth {
		return &LimitError{What: "locations", Limit: int64(d.limits.StackDepth)}
	}
	number := d.locations.ids.number(id)
	if number < 0 {
		return fmt.Errorf("location_id[%d] is %d, which no location has", len(d.stack), id)
	}
	n := d.locationIndex(number)
	if id < uint64(len(d.locations.byID)) {
		d.locations.byID[id] = n + 1
	}
	d.stack = append(d.stack, n)
	return nil
}

// maxSheets bounds how often the values of one identity may overflow int64.
const maxSheets = 64

func (d *decoder) addValues(sample int32, values []uint64) error {
	for i := 0; ; i++ {
		if i == len(d.sheets) {
			if i == maxSheets {
				return &LimitError{What: "sum of equal samples, in multiples of int64", Limit: maxSheets}
			}
			if i < cap(d.sheets) {
				d.sheets = d.sheets[:i+1]
			} else {
				d.sheets = append(d.sheets, sheet{})
			}
		}
		if d.sheets[i].add(sample, values) {
			return nil
		}
	}
}
