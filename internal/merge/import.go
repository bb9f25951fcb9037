// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Add merges p, without the Profiles that p says to skip. On an error, which wraps
// ErrInvalid, w is unchanged. If it also wraps a *dictionary.OverflowError, a table of w is
// full and an empty window may have room for p. If Add panics, w is only good for its counts, which
// are without p.
func (w *Window) Add(p *Payload) error {
	payloads, returned := w.counts.Payloads, false
	defer func() {
		if returned {
			return
		}
		for _, part := range w.partitions {
			if part.last > payloads {
				part.Counts = part.before
			}
		}
	}()
	err := w.add(p, false)
	returned = true
	return err
}

// add merges or subtracts p. It first interns everything that p refers to, which may fail and is then
// undone; then it adds, which cannot fail.
func (w *Window) add(p *Payload, subtract bool) error {
	w.emitter = nil
	mark := w.tables.Mark()
	p.into(w)
	if !slices.ContainsFunc(p.Profiles, func(p Profile) bool { return p.Skip }) { // all that is wanted is needed
		if p.remap.InternWanted(); w.tables.Err() != nil { // of which Profile?
			w.tables.Rollback(mark)
			p.forget()
			p.into(w)
		}
	}
	if err := p.intern(w); err != nil {
		w.tables.Rollback(mark)
		p.forget()
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	w.counts.Payloads++
	p.subtract = subtract
	p.apply(w)
	if w.tables.Mark() != mark {
		w.view.Store(w.tables.View())
	}
	return nil
}

// into makes p one for the tables of w. What Prepare has looked up there stays.
func (p *Payload) into(w *Window) {
	if p.window != nil && p.window != w {
		p.forget()
	}
	p.window = w
	p.remap.SetTables(w.tables)
}

// forget removes what is known of p in the tables of a window.
func (p *Payload) forget() {
	p.window = nil
	p.remap.Reset(p.pd.Dictionary(), nil)
	for n := range p.identities {
		p.identities[n] = identity{-1, -1, -1}
	}
}

// intern adds to the tables of w what Prepare has not found there. Only the tables change. The
// error is that of the tables, with the Profile that caused it.
func (p *Payload) intern(w *Window) error {
	missing := slices.ContainsFunc(p.identities, func(i identity) bool { return !i.isKnown() })
	n, scope := 0, 0
	for i, r := range p.resources {
		for j, s := range p.scopes[scope : scope+r.scopes] {
			for k := range s.profiles {
				from := &p.profiles[n]
				n++
				if p.Profiles[n-1].Skip {
					continue
				}
				p.internHeader(w, from)
				if missing {
					p.internSamples(from)
				}
				if err := w.tables.Err(); err != nil {
					return fmt.Errorf("resource_profiles[%d].scope_profiles[%d].profiles[%d]: %w", i, j, k, err)
				}
			}
		}
		scope += r.scopes
	}
	return nil
}

func (p *Payload) internHeader(w *Window, to *incoming) {
	r, from := &p.remap, to.from
	to.key = profileKey{
		sampleType: r.String(from.SampleType().TypeStrindex()),
		sampleUnit: r.String(from.SampleType().UnitStrindex()),
		periodType: r.String(from.PeriodType().TypeStrindex()),
		periodUnit: r.String(from.PeriodType().UnitStrindex()),
		period:     from.Period(),
		attributes: r.AttributeSet(from.AttributeIndices()),
	}
	to.snapshot = w.isSnapshot(from, to.key)
	if to.snapshot && w.options.Snapshots == SnapshotsKeep {
		to.key.time, to.key.duration, to.slot = uint64(from.Time()), from.DurationNano(), slot{}
	}
}

func (p *Payload) internSamples(from *incoming) {
	for _, n := range p.samples[from.first : from.first+from.from.Samples().Len()] {
		if n < 0 || p.identities[n].isKnown() {
			continue
		}
		s := p.sources[n]
		set := p.remap.AttributeSet
		if !from.verbatim && len(p.dropped) > 0 {
			set = p.keptSet
		}
		p.identities[n] = identity{p.remap.Stack(s.StackIndex()), set(s.AttributeIndices()), p.remap.Link(s.LinkIndex())}
	}
}

// keptSet returns the attribute set of a sample, without the attributes that samples lose.
func (p *Payload) keptSet(attributes pcommon.Int32Slice) int32 {
	p.indices = p.indices[:0]
	for i := range attributes.Len() {
		if a := attributes.At(i); !p.dropped[a] {
			p.indices = append(p.indices, p.remap.Attribute(a))
		}
	}
	return p.window.tables.AttributeSet(slices.DeleteFunc(p.indices, func(a int32) bool { return a == 0 }))
}
