// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// Emit returns the merged Profiles of a partition as a payload with a dictionary of its
// own, in canonical order. Without Options.SplitBy there is one partition, "". Emit may be
// called again and returns the same.
func (w *Window) Emit(partition string) pprofile.Profiles {
	if w.partitions[partition] == nil {
		return pprofile.NewProfiles()
	}
	e := w.emitter
	if e == nil {
		e = newEmitter(w)
	}
	w.emitter = nil
	pd := e.emit(e.resources[partition])
	if len(w.partitions) > 1 { // otherwise its memory is not needed while the payload is passed on
		w.emitter = e
	}
	return pd
}

// emitter writes the result of a window. It keeps its memory from partition to partition.
type emitter struct {
	w         *Window
	resources map[string][]*resource // by partition, in the order of their keys
	canonical *dictionary.Writer
	sorted    []sortedResource
	attribute []int32
	samples   []sample
	orders    []order
	ranks     []int32 // by row of the scope: its place in the order of samples
	ids       idHasher
	table     tableWriter
}

// sortedResource is a resource with its scopes in the order of the output.
type sortedResource struct {
	*resource
	scopes []sortedScope
}

// sortedScope is a scope with the Profiles that are written. They are in the order of the output
// once the dictionary is ranked.
type sortedScope struct {
	*scope
	profiles []*mergedProfile
}

func newEmitter(w *Window) *emitter {
	e := &emitter{w: w, resources: map[string][]*resource{}}
	for _, key := range slices.Sorted(maps.Keys(w.resources)) {
		r := w.resources[key]
		e.resources[r.partition] = append(e.resources[r.partition], r)
	}
	return e
}

func (e *emitter) emit(resources []*resource) (pd pprofile.Profiles) {
	if e.canonical == nil {
		e.canonical = dictionary.NewWriter(e.w.tables)
	} else {
		e.canonical.Reset()
	}
	e.sorted = e.sorted[:0]
	for _, r := range resources {
		to := sortedResource{resource: r}
		for _, s := range scopesOf(r) {
			if profiles := e.use(s); len(profiles) > 0 {
				to.scopes = append(to.scopes, sortedScope{s, profiles})
			}
		}
		slices.SortStableFunc(to.scopes, sortedScope.compare)
		if len(to.scopes) > 0 {
			e.sorted = append(e.sorted, to)
		}
	}
	e.canonical.Rank()
	pd = pprofile.NewProfiles()
	for _, r := range e.sorted {
		rp := pd.ResourceProfiles().AppendEmpty()
		rp.Resource().SetDroppedAttributesCount(r.pdata.DroppedAttributesCount())
		r.entities.CopyTo(rp.Resource())
		dictionary.CopyMap(rp.Resource().Attributes(), r.pdata.Attributes())
		rp.SetSchemaUrl(r.schemaURL)
		for _, s := range r.scopes {
			e.emitScope(rp.ScopeProfiles().AppendEmpty(), s)
		}
	}
	tables := sha256.New()
	e.canonical.Write(pd.Dictionary(), tables)
	e.ids.SetIDs(pd, tables.Sum(nil))
	e.writeAside(pd)
	return pd
}

// scopesOf orders the scopes of a resource by content. The latest snapshots of resources that
// have become equal are summed.
func scopesOf(r *resource) []*scope {
	var scopes []*scope
	latest := map[string][]*scope{} // by content
	for _, key := range slices.Sorted(maps.Keys(r.scopes)) {
		s := r.scopes[key]
		if s.latest == nil {
			scopes = append(scopes, s)
		} else {
			latest[s.content] = append(latest[s.content], s)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(latest)) {
		scopes = append(scopes, sumOf(latest[key]))
	}
	return scopes
}

// compare orders by the lowest place of the profiles, then by time.
func (s sortedScope) compare(other sortedScope) int {
	return cmp.Or(cmp.Compare(s.place(), other.place()), cmp.Compare(s.time(), other.time()))
}

// place is the lowest place of a profile in s.
func (s sortedScope) place() int {
	least := math.MaxInt
	for _, p := range s.profiles {
		least = min(least, p.place)
	}
	return least
}

// time is the start of the slot of s or, without one, the earliest time of the snapshots in s.
func (s sortedScope) time() uint64 {
	time := s.slot.start()
	for _, p := range s.profiles {
		if p.key.time != 0 && (time == 0 || p.key.time < time) {
			time = p.key.time
		}
	}
	return time
}

// use marks everything in the tables that the output of s refers to. It returns the profiles of
// s that are written.
func (e *emitter) use(s *scope) (profiles []*mergedProfile) {
	c := e.canonical
	for key, p := range s.profiles {
		profiles = append(profiles, p)
		for _, k := range e.samplesOf(p) {
			c.UseSample(s.samples.Identity(k.row))
		}
		c.UseString(key.sampleType)
		c.UseString(key.sampleUnit)
		c.UseString(key.periodType)
		c.UseString(key.periodUnit)
		c.UseSet(key.attributes)
	}
	return profiles
}

func (e *emitter) emitScope(sp pprofile.ScopeProfiles, s sortedScope) {
	sp.Scope().SetName(s.pdata.Name())
	sp.Scope().SetVersion(s.pdata.Version())
	sp.Scope().SetDroppedAttributesCount(s.pdata.DroppedAttributesCount())
	sp.SetSchemaUrl(s.schemaURL)

	slices.SortFunc(s.profiles, e.compareProfiles)
	e.rankSamples(s)
	var order []int // by Profile: the number of its sample type
	for _, p := range s.profiles {
		to := sp.Profiles().AppendEmpty()
		e.emitHeader(to, p)
		if p.sources == 1 {
			to.SetProfileID(p.id)
		}
		if p.key.shape == shapeValues {
			e.emitValues(to, s.scope, p)
		} else {
			e.emitEvents(to, s.scope, p)
		}
		order = append(order, s.number(e.w.tables, p))
	}
	dictionary.CopyMap(sp.Scope().Attributes(), s.attributes(order))
}

// compareProfiles orders by place, which keeps the default sample type first, then by content.
func (e *emitter) compareProfiles(a, b *mergedProfile) int {
	c := e.canonical
	x, y := a.key, b.key
	return cmp.Or(
		cmp.Compare(a.place, b.place),
		c.CompareStrings(x.sampleType, y.sampleType),
		c.CompareStrings(x.sampleUnit, y.sampleUnit),
		c.CompareStrings(x.periodType, y.periodType),
		c.CompareStrings(x.periodUnit, y.periodUnit),
		cmp.Compare(x.period, y.period),
		c.CompareSets(x.attributes, y.attributes),
		cmp.Compare(x.shape, y.shape),
		cmp.Compare(x.time, y.time),
		cmp.Compare(x.duration, y.duration),
		bytes.Compare(a.id[:], b.id[:]),
		cmp.Compare(a.start, b.start),
		cmp.Compare(a.duration, b.duration),
		cmp.Compare(a.dropped, b.dropped),
	)
}

func (e *emitter) emitHeader(to pprofile.Profile, p *mergedProfile) {
	c := e.canonical
	to.SampleType().SetTypeStrindex(c.String(p.key.sampleType))
	to.SampleType().SetUnitStrindex(c.String(p.key.sampleUnit))
	to.PeriodType().SetTypeStrindex(c.String(p.key.periodType))
	to.PeriodType().SetUnitStrindex(c.String(p.key.periodUnit))
	to.SetPeriod(p.key.period)
	to.SetTime(pcommon.Timestamp(p.start))
	to.SetDurationNano(p.length())
	to.SetDroppedAttributesCount(p.dropped)
	if p.key.attributes != 0 {
		to.AttributeIndices().FromRaw(c.AppendSet(e.attribute[:0], p.key.attributes))
	}
}
