// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// apply adds what read has interned.
func (im *importer) apply(w *Window, p *Payload) {
	// Whether the whole payload goes into one partition: then so do all its bases.
	one := len(w.options.SplitBy) == 0 || p.pd.ResourceProfiles().Len() == 1
	im.rows[0], im.rows[1] = im.rows[0][:0], im.rows[1][:0]
	next := 0
	for _, rp := range p.pd.ResourceProfiles().All() {
		first := next
		var to *resource
		for _, sp := range rp.ScopeProfiles().All() {
			profiles := im.profiles[next : next+sp.Profiles().Len()]
			next += len(profiles)
			if !slices.ContainsFunc(profiles, func(p incoming) bool { return !p.skip }) {
				continue
			}
			if to == nil {
				to = im.resource(w, rp)
				if one {
					w.addBases(to.partition, im.remap.Bases())
				}
			}
			im.applyScope(w, to, sp, p.sampleTypes(sp), profiles)
		}
		if to != nil && !one && w.options.Coarsening.RebaseMappings {
			im.applyBases(w, to.partition, im.profiles[first:next])
		}
	}
}

// applyBases adds the bases of the rebased mappings of profiles to a partition.
func (im *importer) applyBases(w *Window, partition string, profiles []incoming) {
	im.remap.BeginBases()
	im.bases = im.bases[:0]
	for _, p := range profiles {
		if p.skip {
			continue
		}
		samples := p.profile.Samples()
		for i, n := range im.samples[p.first : p.first+samples.Len()] {
			if n >= 0 {
				im.bases = im.remap.AppendBases(im.bases, samples.At(i).StackIndex())
			}
		}
	}
	w.addBases(partition, im.bases)
}

func (im *importer) applyScope(w *Window, to *resource, sp pprofile.ScopeProfiles, types []sampletypes.Type, profiles []incoming) {
	clear(im.scopes)
	var last [2]numberedScope // of intervals, and of snapshots
	for i := range profiles {
		p := &profiles[i]
		if p.skip {
			continue
		}
		kind := 0
		if p.snapshot {
			kind = 1
		}
		if len(im.rows[kind]) < len(im.identities) { // none of this kind before
			im.rows[kind] = slices.Grow(im.rows[kind], len(im.identities))[:len(im.identities)]
			clear(im.rows[kind])
		}
		if last[kind].scope == nil || last[kind].slot != p.slot {
			key := scopeKey{p.snapshot, p.slot}
			s, found := im.scopes[key]
			if !found {
				s = numberedScope{im.scope(w, to, sp, types, key), int32(len(im.scopes) + 1)}
				im.scopes[key] = s
			}
			last[kind] = s
		}
		im.applyProfile(w, w.partitions[to.partition], last[kind], p, i, im.rows[kind])
	}
}

func (im *importer) resource(w *Window, rp pprofile.ResourceProfiles) *resource {
	from, schemaURL := rp.Resource(), dictionary.ValidUTF8(rp.SchemaUrl())
	attributes := w.options.keptAttributes(from.Attributes())
	im.key = dictionary.AppendMap(im.key[:0], attributes)
	im.key = append(im.key, schemaURL...)
	if w.options.Snapshots == SnapshotsLatest {
		im.original = dictionary.AppendMap(im.original[:0], from.Attributes())
		im.original = append(im.original, schemaURL...)
	}
	r := w.resources[string(im.key)]
	if r == nil {
		r = &resource{
			resource: pcommon.NewResource(), schemaURL: schemaURL,
			partition: w.options.partition(attributes), scopes: map[string]*scope{},
		}
		attributes.CopyTo(r.resource.Attributes())
		w.resources[string(im.key)] = r
		w.size += entrySize + 4*len(im.key)
		if w.partitions[r.partition] == nil {
			w.partitions[r.partition] = &partition{}
			w.size += partitionSize + len(r.partition)
		}
	}
	w.addEntities(r, from)
	r.resource.SetDroppedAttributesCount(max(r.resource.DroppedAttributesCount(), from.DroppedAttributesCount()))
	if p := w.partitions[r.partition]; p.last != w.counts.Payloads {
		p.last, p.before = w.counts.Payloads, p.Counts
		p.Payloads++
	}
	return r
}

// What follows the content of a scope of snapshots in its key.
const (
	tagKept   byte = 1
	tagLatest byte = 2
)

func (im *importer) scope(w *Window, r *resource, sp pprofile.ScopeProfiles, types []sampletypes.Type, of scopeKey) *scope {
	attributes := withoutSampleTypes(sp.Scope().Attributes())
	im.key = dictionary.AppendMap(im.key[:0], attributes)
	for _, t := range types {
		im.key = im.key.AppendKey(t.Type).AppendKey(t.Unit)
	}
	im.key = im.key.AppendInt(int64(len(types)))
	name, version, schemaURL := dictionary.ValidUTF8(sp.Scope().Name()), dictionary.ValidUTF8(sp.Scope().Version()), dictionary.ValidUTF8(sp.SchemaUrl())
	im.key = im.key.AppendKey(name).AppendKey(version).AppendKey(schemaURL)
	im.key = im.key.AppendInt(int64(of.slot.length)).AppendInt(int64(of.slot.number))
	content := len(im.key)
	latest := of.snapshot && w.options.Snapshots == SnapshotsLatest
	kept := of.snapshot && w.options.Snapshots == SnapshotsKeep
	switch {
	case latest:
		im.key = append(append(im.key, tagLatest), im.original...)
	case kept:
		w.kept++
		im.key = append(im.key, tagKept).AppendInt(int64(w.kept))
	}
	s := r.scopes[string(im.key)]
	if s == nil {
		s = &scope{
			scope: pcommon.NewInstrumentationScope(), schemaURL: schemaURL, types: types, slot: of.slot,
			content: string(im.key[:content]), profiles: map[profileKey]*mergedProfile{},
		}
		if latest {
			s.latest = map[profileKey]latestSnapshot{}
		}
		attributes.CopyTo(s.scope.Attributes())
		s.scope.SetName(name)
		s.scope.SetVersion(version)
		r.scopes[string(im.key)] = s
		w.size += scopeSize(im.key)
	}
	if _, known := w.slots[of.slot]; !known && !kept {
		w.slots[of.slot] = struct{}{}
		w.size += slotSize
	}
	s.scope.SetDroppedAttributesCount(max(s.scope.DroppedAttributesCount(), sp.Scope().DroppedAttributesCount()))
	return s
}

func (im *importer) applyProfile(w *Window, of *partition, to numberedScope, p *incoming, place int, rows []row) {
	samples := p.profile.Samples()
	w.counts.Profiles++
	of.Profiles++
	w.counts.Samples += samples.Len()
	of.Samples += samples.Len()
	target := target{w: w, scope: to.scope, profile: p, place: place}
	if isVerbatim(p.profile) {
		p.key.original = w.counts.Profiles
		verbatim := &target.of(shapeValues).verbatim
		for i, n := range im.samples[p.first : p.first+samples.Len()] {
			verbatim.add(im.identities[n], samples.At(i))
		}
		target.done()
		return
	}
	if to.latest != nil && !w.supersede(to.scope, p, of) {
		return
	}
	w.size -= to.samples.Retained()
	for i, n := range im.samples[p.first : p.first+samples.Len()] {
		if n < 0 {
			continue
		}
		if rows[n].scope != to.number {
			identity := im.identities[n]
			rows[n] = row{to.number, to.samples.Number(identity.stack, identity.set, identity.link)}
		}
		at := rows[n].row
		s := samples.At(i)
		values, times := s.Values(), s.TimestampsUnixNano()
		switch {
		case times.Len() == 0 && values.Len() == 0: // it says nothing
		case im.subtract:
			target.of(shapeValues).subtractValues(at, values)
		case times.Len() == 0 || w.options.DropTimestamps && values.Len() > 0:
			target.of(shapeValues).addValues(at, values)
		case w.options.DropTimestamps:
			target.of(shapeValues).column.add(at, int64(times.Len()))
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
		to.include(t.profile.profile, t.place)
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
