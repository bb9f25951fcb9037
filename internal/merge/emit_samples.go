// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// sample is a sample to be written: its identity, its row and, for shapeValues, its position
// in the column.
type sample struct{ row, position, stack, set, link int32 }

// keep returns the samples of p without those that are dropped for being zero, in memory that
// the next call overwrites.
func (e *emitter) keep(s *scope, p *mergedProfile) []sample {
	e.kept = e.kept[:0]
	add := func(row, position int32) {
		stack, set, link := s.samples.Identity(row)
		e.kept = append(e.kept, sample{row, position, stack, set, link})
	}
	if p.key.shape == shapeValues {
		for i, row := range p.column.rows {
			if !e.w.options.DropZeroSamples || !p.column.isZero(int32(i)) {
				add(row, int32(i))
			}
		}
		return e.kept
	}
	for _, event := range p.events {
		add(event.row, 0)
	}
	slices.SortFunc(e.kept, func(a, b sample) int { return cmp.Compare(a.row, b.row) })
	e.kept = slices.Compact(e.kept)
	return e.kept
}

// order is the place of a sample in the output: by attribute set, sum, stack and link, all but
// the sum by rank. at is its index among those kept.
type order struct {
	carry, sum           int64
	set, stack, link, at int32
}

func (a order) compare(b order) int {
	switch {
	case a.set != b.set:
		return cmp.Compare(a.set, b.set)
	case a.carry != b.carry:
		return cmp.Compare(a.carry, b.carry)
	case a.sum != b.sum:
		return cmp.Compare(a.sum, b.sum)
	case a.stack != b.stack:
		return cmp.Compare(a.stack, b.stack)
	}
	return cmp.Compare(a.link, b.link)
}

// samples returns the samples of p in the order that compressed best of those tried: by
// attribute set, then value, then stack. gzip finds equal neighbours, and sample types that
// are multiples of each other get the same order. The next call overwrites the memory.
func (e *emitter) samples(s *scope, p *mergedProfile) []sample {
	kept := e.keep(s, p)
	e.orders = e.orders[:0]
	for n, k := range kept {
		o := order{at: int32(n)}
		o.stack, o.set, o.link = e.canonical.Ranks(k.stack, k.set, k.link)
		if p.key.shape == shapeValues {
			o.carry, o.sum = p.column.sum(k.position)
		}
		e.orders = append(e.orders, o)
	}
	slices.SortFunc(e.orders, order.compare)
	e.ordered = slices.Grow(e.ordered[:0], len(kept))
	for _, o := range e.orders {
		e.ordered = append(e.ordered, kept[o.at])
	}
	return e.ordered
}

func (e *emitter) emitIdentity(to pprofile.Sample, from sample) {
	to.SetStackIndex(e.canonical.Stack(from.stack))
	to.SetLinkIndex(e.canonical.Link(from.link))
	if from.set != 0 {
		e.attribute = e.canonical.AppendSet(e.attribute[:0], from.set)
		to.AttributeIndices().FromRaw(e.attribute)
	}
}

// emitValues writes the sums of p into first and, if one is beyond int64, the rest of it into
// further Profiles with the same header.
func (e *emitter) emitValues(profiles pprofile.ProfilesSlice, first pprofile.Profile, p *mergedProfile, kept []sample) {
	var further []pprofile.Profile
	samples := first.Samples()
	samples.EnsureCapacity(len(kept))
	for _, from := range kept {
		e.parts = p.column.parts(from.position, e.parts[:0])
		for n, part := range e.parts {
			to := samples
			if n > 0 {
				if n > len(further) {
					more := profiles.AppendEmpty()
					e.emitHeader(more, p)
					further = append(further, more)
				}
				to = further[n-1].Samples()
			}
			sample := to.AppendEmpty()
			e.emitIdentity(sample, from)
			sample.Values().Append(part)
		}
	}
}

// emitEvents writes the samples with timestamps, each in the order of time.
func (e *emitter) emitEvents(to pprofile.Profile, s *scope, p *mergedProfile, kept []sample) {
	// By row. Only the rows of kept are written and read, so that many small profiles of a large
	// scope cost no more than their samples.
	e.positions = slices.Grow(e.positions[:0], s.samples.Len())
	position := e.positions[:s.samples.Len()]
	for n, from := range kept {
		position[from.row] = int32(n)
	}
	events := slices.Clone(p.events)
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(
			cmp.Compare(position[a.row], position[b.row]),
			cmp.Compare(a.time, b.time),
			cmp.Compare(a.value, b.value),
		)
	})
	for start := 0; start < len(events); {
		row, stop := events[start].row, start+1
		for stop < len(events) && events[stop].row == row {
			stop++
		}
		sample := to.Samples().AppendEmpty()
		e.emitIdentity(sample, kept[position[row]])
		sample.TimestampsUnixNano().EnsureCapacity(stop - start)
		for _, event := range events[start:stop] {
			sample.TimestampsUnixNano().Append(event.time)
			if p.key.shape == shapeBoth {
				sample.Values().Append(event.value)
			}
		}
		start = stop
	}
}
