// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
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
	if p.window != nil && p.window != w {
		p.forget()
	}
	p.window = w
	if p.missing {
		mark := w.tables.Mark()
		skips := slices.ContainsFunc(p.Profiles, func(p Profile) bool { return p.Skip })
		p.remap.Intern(w.tables, !skips)
		if err := p.intern(); err != nil {
			w.tables.Rollback(mark)
			p.forget()
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if w.tables.Mark() != mark {
			w.view.Store(w.tables.View())
		}
	}
	w.counts.Payloads++
	p.subtract = subtract
	p.apply(w)
	return nil
}

// forget removes the numbers of p in the tables of a window.
func (p *Payload) forget() {
	p.window, p.missing = nil, true
	p.remap.Reset(p.pd.Dictionary(), nil)
	for n := range p.identities {
		p.identities[n] = identity{-1, -1, -1}
	}
	for n := range p.profiles {
		p.profiles[n].key.attributes = -1
	}
}

// intern adds to the tables the entries that Prepare has not found there, except for Profiles to skip. Only the
// tables change. The error is that of the tables, with the Profile that caused it.
func (p *Payload) intern() error {
	n, scope := 0, 0
	for i, r := range p.resources {
		for j, s := range p.scopes[scope : scope+r.scopes] {
			for k := range s.profiles {
				if !p.Profiles[n].Skip {
					p.internProfile(&p.profiles[n])
				}
				n++
				if err := p.window.tables.Err(); err != nil {
					return fmt.Errorf("resource_profiles[%d].scope_profiles[%d].profiles[%d]: %w", i, j, k, err)
				}
			}
		}
		scope += r.scopes
	}
	return nil
}

func (p *Payload) internProfile(to *incoming) {
	if !to.key.isKnown() {
		p.setKey(to)
	}
	for _, n := range p.samples[to.first : to.first+to.from.Samples().Len()] {
		if n != leftOut && !p.identities[n].isKnown() {
			p.identities[n] = p.identify(p.sources[n], to.verbatim)
		}
	}
}
