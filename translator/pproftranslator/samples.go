// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// sampleMessage is what is kept of a sample that was read, besides its values and its stack.
type sampleMessage struct {
	depth  uint32   // of the stack
	labels position // from the start of the first to the end of the last; empty without labels
}

// readSamples reads all samples, and marks the locations that they reach.
func (p *payload) readSamples() error {
	const minSample = 4 // bytes
	count := min(p.header.entries[profileSample].Count, len(p.data)/minSample)
	p.samples = emptied(p.samples, count)
	p.stacks.rewind()
	ids := p.ids // fields would have a write barrier for each sample
	values := emptied(p.values, min(count*len(p.header.sampleTypes), len(p.data)))
	depth := p.limits.scaled(maxStackDepth)
	c, m := p.cursors(profileSample)
	for n := 0; c.NextOf(profileSample, &m); n++ {
		first, labels := len(values), position{}
		ids = ids[:0]
		for start := m.At; m.Next(); start = m.At {
			switch m.Field {
			case sampleLocation:
				ids = m.AppendRepeated(ids, depth)
			case sampleValue:
				values = m.AppendRepeated(values, first+len(p.header.sampleTypes))
			case sampleLabel:
				if labels.stop == 0 {
					labels.start = uint32(start)
				}
				labels.stop = uint32(m.At)
			}
		}
		if err := p.addSample(&m, ids, len(values)-first, labels); err != nil {
			return fmt.Errorf("%s[%d]: %w", profileFields[profileSample], n, err)
		}
	}
	p.ids, p.values = ids, values
	return nil
}

// addSample adds a sample after c has read its n values and the ids of its locations.
func (p *payload) addSample(c *wire.Cursor, ids []uint64, n int, labels position) error {
	switch types, depth := len(p.header.sampleTypes), p.limits.scaled(maxStackDepth); {
	case c.Err != nil:
		return fmt.Errorf("byte %d: %w", c.At, c.Err)
	case len(ids) > depth:
		return &LimitError{What: "locations", Limit: int64(depth)}
	case n > types:
		return fmt.Errorf("more values than the %d sample types", types)
	case n < types:
		return fmt.Errorf("%d values for %d sample types", n, types)
	}
	stack := p.stacks.take(len(ids))
	if n := p.locations.reach(ids, stack); n < len(ids) {
		return fmt.Errorf("location_id[%d]: no location with id %d", n, ids[n])
	}
	p.samples = append(p.samples, sampleMessage{uint32(len(stack)), labels})
	return nil
}

// blocks holds stacks of locations in a few large slices: it grows without copies, and takes an eighth more memory
// than they do at most.
type blocks struct {
	all    [][]entryNumber
	next   int           // block after the present one
	block  []entryNumber // the present one
	used   int           // of it
	size   int           // of all
	length int           // of the slices that were taken
}

// rewind lets take return the same slices again, if it is asked for the same lengths.
func (b *blocks) rewind() { b.next, b.block, b.used, b.length = 0, nil, 0, 0 }

// take returns the next slice of n elements, as they are.
func (b *blocks) take(n int) []entryNumber {
	if n > len(b.block)-b.used {
		b.advance(n)
	}
	b.used += n
	b.length += n
	return b.block[b.used-n : b.used]
}

// advance goes to the next block with room for n elements.
func (b *blocks) advance(n int) {
	for b.block, b.used = nil, 0; len(b.block) < n; b.next++ {
		if b.next == len(b.all) {
			block := make([]entryNumber, max(n, b.size/8, 64))
			b.all, b.size = append(b.all, block), b.size+len(block)
		}
		b.block = b.all[b.next]
	}
}
