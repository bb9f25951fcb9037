// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// adding is the memory of an addition.
type adding struct {
	subtract bool                       // values are subtracted
	rows     []row                      // by identity: its row in the last scope that had it
	numbered map[scopeKey]numberedScope // of the ScopeProfiles that is being added
	bases    []dictionary.Base
	key      dictionary.Value
}

// row is the row of an identity in a numberedScope.
type row struct{ scope, row int32 }

// scopeKey tells apart the scopes that the Profiles of one ScopeProfiles go into.
type scopeKey struct {
	snapshot bool
	slot     slot
}

// numberedScope is one of these scopes. The first has number 1.
type numberedScope struct {
	*scope
	number int32
}

// apply adds the entries that intern has interned.
func (p *Payload) apply(w *Window) {
	// Whether the whole payload goes into one partition: then so do all its bases.
	one := len(w.options.SplitBy) == 0 || len(p.resources) == 1
	p.rows = slices.Grow(p.rows[:0], len(p.identities))[:len(p.identities)]
	clear(p.rows)
	next, scope := 0, 0
	for i := range p.resources {
		from := &p.resources[i]
		first := next
		var to *resource
		for j := range p.scopes[scope : scope+from.scopes] {
			s := &p.scopes[scope+j]
			start := next
			next += s.profiles
			if !slices.ContainsFunc(p.Profiles[start:next], func(p Profile) bool { return !p.Skip }) {
				continue
			}
			if to == nil {
				to = w.resource(p, from)
				if one {
					w.addBases(to.partition, p.remap.Bases())
				}
			}
			p.applyScope(w, to, from, s, start)
		}
		scope += from.scopes
		if to != nil && !one && w.options.Coarsening.RebaseMappings {
			p.applyBases(w, to.partition, first, next)
		}
	}
}

// applyBases adds the bases of the rebased mappings of Profiles to a partition.
func (p *Payload) applyBases(w *Window, partition string, first, end int) {
	p.remap.BeginBases()
	p.bases = p.bases[:0]
	for i := first; i < end; i++ {
		if p.Profiles[i].Skip {
			continue
		}
		from := &p.profiles[i]
		samples := from.from.Samples()
		for i, n := range p.samples[from.first : from.first+samples.Len()] {
			if n != leftOut {
				p.bases = p.remap.AppendBases(p.bases, samples.At(i).StackIndex())
			}
		}
	}
	w.addBases(partition, p.bases)
}

// applyScope adds the Profiles of from, of which the first has the given number.
func (p *Payload) applyScope(w *Window, to *resource, of *incomingResource, from *incomingScope, first int) {
	clear(p.numbered)
	var last scopeKey
	var into numberedScope
	for i := range from.profiles {
		if p.Profiles[first+i].Skip {
			continue
		}
		profile := &p.profiles[first+i]
		if key := (scopeKey{profile.snapshot, profile.slot}); into.scope == nil || key != last {
			var found bool
			if into, found = p.numbered[key]; !found {
				if p.numbered == nil {
					p.numbered = map[scopeKey]numberedScope{}
				}
				into = numberedScope{w.scope(p, to, of, from, key), int32(len(p.numbered) + 1)}
				p.numbered[key] = into
			}
			last = key
		}
		p.applyProfile(w, w.partitions[to.partition], into, profile, i)
	}
}

func (w *Window) resource(p *Payload, of *incomingResource) *resource {
	key, from := p.keys[of.key.start:of.key.end], of.from.Resource()
	r := w.resources[string(key)]
	if r == nil {
		r = &resource{
			resource: pcommon.NewResource(), schemaURL: dictionary.ValidUTF8(of.from.SchemaUrl()),
			partition: of.partition, scopes: map[string]*scope{},
		}
		copyWithout(r.resource.Attributes(), from.Attributes(), w.options.DropResourceAttributes)
		w.resources[string(key)] = r
		w.size += entrySize + 4*len(key)
		if w.partitions[r.partition] == nil {
			w.partitions[r.partition] = &partition{}
			w.size += partitionSize + len(r.partition)
		}
	}
	w.size += r.entities.Add(from, w.options.DropResourceAttributes)
	r.resource.SetDroppedAttributesCount(max(r.resource.DroppedAttributesCount(), from.DroppedAttributesCount()))
	if p := w.partitions[r.partition]; p.last != w.counts.Payloads {
		p.last, p.before = w.counts.Payloads, p.Counts
		p.Payloads++
	}
	return r
}

// copyWithout copies the attributes of from without some keys.
func copyWithout(to, from pcommon.Map, keys []string) {
	from.CopyTo(to)
	to.RemoveIf(func(key string, _ pcommon.Value) bool { return slices.Contains(keys, key) })
}

// Suffixes of the content of a scope of snapshots in its key.
const (
	tagKept   byte = 1
	tagLatest byte = 2
)

func (w *Window) scope(p *Payload, r *resource, of *incomingResource, from *incomingScope, key scopeKey) *scope {
	p.key = append(p.key[:0], p.keys[from.key.start:from.key.end]...)
	p.key = p.key.AppendInt(int64(key.slot.length)).AppendInt(int64(key.slot.number))
	content := len(p.key)
	latest := key.snapshot && w.options.Snapshots == SnapshotsLatest
	kept := key.snapshot && w.options.Snapshots == SnapshotsKeep
	switch {
	case latest:
		p.key = append(append(p.key, tagLatest), p.keys[of.original.start:of.original.end]...)
	case kept:
		w.kept++
		p.key = append(p.key, tagKept).AppendInt(int64(w.kept))
	}
	s, scoped := r.scopes[string(p.key)], from.from.Scope()
	if s == nil {
		s = &scope{
			scope: pcommon.NewInstrumentationScope(), schemaURL: dictionary.ValidUTF8(from.from.SchemaUrl()),
			types: slices.Clone(from.types), slot: key.slot,
			content: string(p.key[:content]), profiles: map[profileKey]*mergedProfile{},
		}
		if latest {
			s.latest = map[profileKey]latestSnapshot{}
		}
		copyWithout(s.scope.Attributes(), scoped.Attributes(), sampleTypeAttributes)
		s.scope.SetName(dictionary.ValidUTF8(scoped.Name()))
		s.scope.SetVersion(dictionary.ValidUTF8(scoped.Version()))
		r.scopes[string(p.key)] = s
		w.size += scopeSize(len(p.key))
	}
	if _, known := w.slots[key.slot]; !known && !kept {
		w.slots[key.slot] = struct{}{}
		w.size += slotSize
	}
	s.scope.SetDroppedAttributesCount(max(s.scope.DroppedAttributesCount(), scoped.DroppedAttributesCount()))
	return s
}

func (p *Payload) applyProfile(w *Window, of *partition, to numberedScope, from *incoming, place int) {
	samples := from.from.Samples()
	w.counts.Profiles++
	of.Profiles++
	w.counts.Samples += samples.Len()
	of.Samples += samples.Len()
	target := target{w: w, scope: to.scope, profile: from, place: place}
	if from.verbatim {
		from.key.original = w.counts.Profiles
		verbatim := verbatimOf(from.from)
		target.of(shapeValues).verbatim = verbatim
		for i, n := range p.samples[from.first : from.first+samples.Len()] {
			verbatim.add(p.identities[n], samples.At(i))
		}
		target.done()
		return
	}
	if to.latest != nil && !w.supersede(to.scope, from, of) {
		return
	}
	w.size -= to.samples.Retained()
	if to.samples.Len() == 0 {
		to.samples.Grow(from.kept)
	}
	var plain *column // of samples with values alone
	for i, n := range p.samples[from.first : from.first+samples.Len()] {
		if n == leftOut {
			continue
		}
		if p.rows[n].scope != to.number {
			identity := p.identities[n]
			p.rows[n] = row{to.number, to.samples.Number(identity.stack, identity.set, identity.link)}
		}
		at := p.rows[n].row
		s := samples.At(i)
		values, times := s.Values(), s.TimestampsUnixNano()
		switch {
		case times.Len() == 0 && values.Len() == 0: // it says nothing
		case p.subtract:
			target.of(shapeValues).subtractValues(at, values)
		case times.Len() == 0 || w.options.DropTimestamps && values.Len() > 0:
			if plain == nil {
				plain = &target.of(shapeValues).column
				if plain.Len() == 0 {
					plain.Grow(from.kept)
				}
			}
			for i := range values.Len() {
				plain.Add(at, values.At(i))
			}
		case w.options.DropTimestamps:
			target.of(shapeValues).column.Add(at, int64(times.Len()))
		case values.Len() == 0:
			target.of(shapeTimes).addTimes(at, values, times)
		default:
			target.of(shapeBoth).addTimes(at, values, times)
		}
	}
	if target.found == [shapes]*mergedProfile{} {
		target.of(shapeValues) // a Profile without samples is kept
	}
	w.size += to.samples.Retained()
	target.done()
}

// target finds the merged profiles, by shape, that an incoming Profile goes into.
type target struct {
	w       *Window
	scope   *scope
	profile *incoming
	place   int
	found   [shapes]*mergedProfile
}

func (t *target) of(s shape) *mergedProfile {
	if t.found[s] == nil {
		key := t.profile.key
		key.shape = s
		to := t.scope.profiles[key]
		if to == nil {
			to = &mergedProfile{key: key, place: t.place}
			t.scope.profiles[key] = to
			t.w.size += entrySize
		}
		t.w.size -= to.retained()
		to.include(t.profile.from, t.place)
		t.found[s] = to
	}
	return t.found[s]
}

// done ends the addition of a Profile. If it went into several, none of them has its id.
func (t *target) done() {
	parts := 0
	for _, p := range t.found {
		if p != nil {
			t.w.size += p.retained()
			parts++
		}
	}
	for _, p := range t.found {
		if p != nil && parts > 1 {
			p.id = pprofile.ProfileID{}
		}
	}
}
