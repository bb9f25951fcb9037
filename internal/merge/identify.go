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

// read numbers the identities of samples, and looks up in the tables of the window the entries that they and the
// Profiles refer to. It returns false if dictionary.Check rejects the payload.
func (p *Payload) read(options *Options) bool {
	p.remap.Coarsening = options.Coarsening
	d := p.pd.Dictionary()
	var view *dictionary.View
	if p.window != nil {
		view = p.window.view.Load()
	}
	p.remap.Find(d, view)
	p.dropped = p.dropped[:0]
	if len(options.DropSampleAttributes) > 0 {
		for _, a := range d.AttributeTable().All() {
			key := dictionary.ValidString(d.StringTable(), a.KeyStrindex())
			p.dropped = append(p.dropped, slices.Contains(options.DropSampleAttributes, key))
		}
	}
	p.profiles, p.samples, p.sources = p.profiles[:0], p.samples[:0], p.sources[:0]
	resources := p.pd.ResourceProfiles()
	for i := range resources.Len() {
		if !dictionary.BoundedMap(resources.At(i).Resource().Attributes()) {
			return false
		}
		scopes := resources.At(i).ScopeProfiles()
		for j := range scopes.Len() {
			if !dictionary.BoundedMap(scopes.At(j).Scope().Attributes()) || !p.readScope(scopes.At(j), options) {
				return false
			}
		}
	}
	if 2*len(p.sources) >= d.StackTable().Len() { // otherwise most entries are only of samples that are dropped
		p.remap.FindAll()
	}
	p.find()
	return p.remap.IsValid()
}

// find looks up the identities and the keys of Profiles.
func (p *Payload) find() {
	p.identities, p.missing = p.identities[:0], false
	for i := range p.profiles {
		to := &p.profiles[i]
		p.setKey(to)
		p.missing = p.missing || !to.key.isKnown()
		for _, s := range p.sources[len(p.identities):to.identities] {
			identity := p.identify(s, to.verbatim)
			p.identities = append(p.identities, identity)
			p.missing = p.missing || !identity.isKnown()
		}
	}
}

func (p *Payload) readScope(sp pprofile.ScopeProfiles, options *Options) bool {
	// The Profile before, which usually has the same identities in the same order.
	sibling := -1
	profiles := sp.Profiles()
	for k := range profiles.Len() {
		from := profiles.At(k)
		n := len(p.profiles)
		p.profiles = append(p.profiles, incoming{
			from: from, slot: slotOf(from, uint64(options.SlotLength)), first: len(p.samples), verbatim: isVerbatim(from),
			snapshot: sampletypes.IsSnapshot(p.pd.Dictionary(), from, options.SnapshotSampleTypes),
		})
		to := &p.profiles[n]
		if to.snapshot && options.Snapshots == SnapshotsKeep {
			to.key.time, to.key.duration, to.slot = uint64(from.Time()), from.DurationNano(), slot{}
		}
		if !p.readSamples(to, sibling, options.DropZeroSamples) {
			return false
		}
		to.identities = len(p.sources)
		if !to.verbatim {
			sibling = n
		}
	}
	return true
}

// setKey sets the numbers of the tables in the key of a Profile.
func (p *Payload) setKey(to *incoming) {
	r, from, key := &p.remap, to.from, &to.key
	key.sampleType, key.sampleUnit = r.String(from.SampleType().TypeStrindex()), r.String(from.SampleType().UnitStrindex())
	key.periodType, key.periodUnit = r.String(from.PeriodType().TypeStrindex()), r.String(from.PeriodType().UnitStrindex())
	key.attributes, key.period = r.AttributeSet(from.AttributeIndices()), from.Period()
}

// readSamples returns false if dictionary.Check rejects a sample.
func (p *Payload) readSamples(to *incoming, sibling int, dropZero bool) bool {
	samples := to.from.Samples()
	var old pprofile.SampleSlice
	known, first := 0, 0
	if sibling >= 0 && !to.verbatim {
		old, first = p.profiles[sibling].from.Samples(), p.profiles[sibling].first
		known = old.Len()
	}
	for i := range samples.Len() {
		s := samples.At(i)
		values, times := s.Values(), s.TimestampsUnixNano()
		if values.Len() != times.Len() && values.Len() > 0 && times.Len() > 0 {
			return false
		}
		if dropZero && !to.verbatim && isZeroSample(values, times) {
			p.remap.Check(s)
			p.samples = append(p.samples, leftOut)
			continue
		}
		to.kept++
		if i < known && p.samples[first+i] != leftOut && sameIdentity(s, old.At(i)) {
			p.samples = append(p.samples, p.samples[first+i])
			continue
		}
		p.samples = append(p.samples, int32(len(p.sources)))
		p.sources = append(p.sources, s)
	}
	return true
}

// identify returns the identity of s in the tables.
func (p *Payload) identify(s pprofile.Sample, verbatim bool) identity {
	dropped := p.dropped
	if verbatim {
		dropped = nil
	}
	stack, set, link := p.remap.Sample(s, dropped)
	return identity{stack, set, link}
}

// sameIdentity returns whether two samples of one payload have the same identity there.
func sameIdentity(a, b pprofile.Sample) bool {
	if a.StackIndex() != b.StackIndex() || a.LinkIndex() != b.LinkIndex() {
		return false
	}
	x, y := a.AttributeIndices(), b.AttributeIndices()
	return x.Len() == y.Len() && (x.Len() == 0 || x.At(0) == y.At(0) && (x.Len() == 1 || x.Equal(y)))
}

// isZeroSample reports whether the values of a sample are all 0 and it has no timestamps.
func isZeroSample(values pcommon.Int64Slice, times pcommon.UInt64Slice) bool {
	if values.Len() == 0 || times.Len() > 0 {
		return false
	}
	for i := range values.Len() {
		if values.At(i) != 0 {
			return false
		}
	}
	return true
}
