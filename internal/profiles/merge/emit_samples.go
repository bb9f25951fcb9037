// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// sample is a sample to be written: its row and, for shapeValues, its position in the column.
type sample struct{ row, position int32 }

// samplesOf returns the samples of p without those that are dropped for being zero, in memory that
// the next call overwrites.
func (e *emitter) samplesOf(p *mergedProfile) []sample {
	e.samples = e.samples[:0]
	if p.key.shape == shapeValues {
		for i := range int32(p.column.Len()) {
			if !e.w.options.DropZeroSamples || p.column.Sum(i) != 0 {
				e.samples = append(e.samples, sample{p.column.Row(i), i})
			}
		}
		return e.samples
	}
	for _, event := range p.events {
		e.samples = append(e.samples, sample{row: event.row})
	}
	slices.SortFunc(e.samples, func(a, b sample) int { return cmp.Compare(a.row, b.row) })
	e.samples = slices.Compact(e.samples)
	return e.samples
}

// order is the place of a row in the output: by attribute set, sum, stack and link. The sum is that
// of the first Profile of the scope that has the row, the others are ranks.
type order struct {
	sum                   int64
	set, stack, link, row int32
}

func (a order) compare(b order) int {
	return cmp.Or(cmp.Compare(a.set, b.set), cmp.Compare(a.sum, b.sum), cmp.Compare(a.stack, b.stack), cmp.Compare(a.link, b.link))
}

// rankSamples ranks the samples of all profiles of s, which list equal identities in one order:
// some consumers pair the samples of siblings by their index. Of the orders tried this one
// compressed best: gzip finds equal neighbours, also in siblings whose values are multiples.
func (e *emitter) rankSamples(s sortedScope) {
	e.orders = e.orders[:0]
	e.ranks = slices.Grow(e.ranks[:0], s.samples.Len())[:s.samples.Len()]
	clear(e.ranks)
	for _, p := range s.profiles {
		for _, k := range e.samplesOf(p) {
			if e.ranks[k.row] != 0 {
				continue
			}
			e.ranks[k.row] = 1 // not yet its rank
			o := order{row: k.row}
			o.stack, o.set, o.link = e.canonical.Ranks(s.samples.Identity(k.row))
			if p.key.shape == shapeValues {
				o.sum = p.column.Sum(k.position)
			}
			e.orders = append(e.orders, o)
		}
	}
	slices.SortFunc(e.orders, order.compare)
	for rank, o := range e.orders {
		e.ranks[o.row] = int32(rank)
	}
}

// emitSample appends a sample with the identity of a row of s.
func (e *emitter) emitSample(dst pprofile.SampleSlice, s *scope, row int32) pprofile.Sample {
	to := dst.AppendEmpty()
	stack, set, link := s.samples.Identity(row)
	to.SetStackIndex(e.canonical.Stack(stack))
	to.SetLinkIndex(e.canonical.Link(link))
	if set != 0 {
		e.attribute = e.canonical.AppendSet(e.attribute[:0], set)
		to.AttributeIndices().FromRaw(e.attribute)
	}
	return to
}

// emitValues writes the sums of p, in the order of the ranks.
func (e *emitter) emitValues(to pprofile.Profile, s *scope, p *mergedProfile) {
	samples := e.samplesOf(p)
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(e.ranks[a.row], e.ranks[b.row]) })
	to.Samples().EnsureCapacity(len(samples))
	for _, from := range samples {
		e.emitSample(to.Samples(), s, from.row).Values().Append(p.column.Sum(from.position))
	}
}

// emitEvents writes the samples with timestamps, each in the order of time.
func (e *emitter) emitEvents(to pprofile.Profile, s *scope, p *mergedProfile) {
	events := slices.Clone(p.events)
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(
			cmp.Compare(e.ranks[a.row], e.ranks[b.row]),
			cmp.Compare(a.time, b.time),
			cmp.Compare(a.value, b.value),
		)
	})
	for start := 0; start < len(events); {
		row, stop := events[start].row, start+1
		for stop < len(events) && events[stop].row == row {
			stop++
		}
		sample := e.emitSample(to.Samples(), s, row)
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
