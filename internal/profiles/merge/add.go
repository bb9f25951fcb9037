// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// maxTables is the size of tables from which nothing is added: as much again fits into each. It is a variable for tests.
var maxTables = 2 << 30

// Add merges p. The error is dictionary.ErrFull, if the tables of w have no room for another payload, or ErrTypes. Then w is
// unchanged. If Add panics, w is only good for its counts, which are without p.
func (w *Window) Add(p *Payload) error { return w.add(p, false) }

// add merges or subtracts p. Each entry of its dictionary is interned when a sample or a Profile first refers to it.
func (w *Window) add(p *Payload, subtract bool) error {
	if w.tables.Retained() > maxTables {
		return dictionary.ErrFull
	}
	if err := w.addTypes(p); err != nil {
		return err
	}
	w.emitter = nil
	remap := remaps.Get().(*dictionary.Remap)
	remap.Granularity, remap.Relocate = w.options.Granularity, !w.options.keepAddresses
	remap.Reset(p.pd.Dictionary(), w.tables)
	a := addition{Window: w, payload: p, subtract: subtract, remap: remap}
	var before *Profile
	var of *resource // of before
	var into *scope
	for i := range p.Profiles {
		profile := &p.Profiles[i]
		if before == nil || before.scope != profile.scope {
			w.scopes++
		}
		if before == nil || before.scope.resource != profile.scope.resource || before.snapshot != profile.snapshot || before.timed != profile.timed {
			of = w.resource(profile)
		}
		if before == nil || before.scope != profile.scope || before.slot != profile.slot || before.snapshot != profile.snapshot || before.timed != profile.timed {
			into = w.scope(of, profile)
		}
		before = profile
		if profile.division != nil {
			a.divide(of, profile)
		} else {
			a.profile(into, profile)
		}
	}
	if err := w.tables.Err(); err != nil {
		panic(err) // the payload alone fills a table: what had no room has become the zero value
	}
	a.count()
	remap.Forget()
	remaps.Put(remap)
	return nil
}

// remaps has memory of additions to any window.
var remaps = sync.Pool{New: func() any { return &dictionary.Remap{} }}

// ErrTypes says that a service would have more than MaxTypes sample types.
var ErrTypes = errors.New("too many sample types")

// addTypes adds the types of p that w does not have, or none of them if there would be too many of a service.
func (w *Window) addTypes(p *Payload) error {
	if w.options.MaxTypes <= 0 {
		return nil
	}
	added, more := map[uint64]struct{}{}, map[string]int{} // hashes of new types, and how many each service has
	for i := range p.Profiles {
		profile := &p.Profiles[i]
		_, known := w.types[profile.typeHash]
		_, again := added[profile.typeHash]
		if known || again {
			continue
		}
		added[profile.typeHash] = struct{}{}
		service := profile.scope.resource.service
		if more[service]++; w.typesOf[service]+more[service] > w.options.MaxTypes {
			return fmt.Errorf("%w: the service %.100q would have more than %d in one window; one of them is %.100q",
				ErrTypes, service, w.options.MaxTypes, p.text(profile.from.SampleType().TypeStrindex()))
		}
	}
	maps.Copy(w.types, added)
	w.size += typeSize * len(added)
	for service, n := range more {
		if w.typesOf[service] == 0 {
			w.size += serviceSize + len(service)
		}
		w.typesOf[service] += n
	}
	return nil
}

// addition is the addition of one payload.
type addition struct {
	*Window
	payload    *Payload
	subtract   bool
	remap      *dictionary.Remap
	superseded []superseded
	saturated  int
}

// superseded Profiles of a partition were replaced by a later snapshot.
type superseded struct {
	partition         *partition
	profiles, samples int
}

// count counts the payload, at the end: a panic leaves the counts as they were.
func (a *addition) count() {
	a.counts.Payloads++
	a.counts.Saturated += a.saturated
	for i := range a.payload.Profiles {
		profile := &a.payload.Profiles[i]
		a.counts.Profiles++
		a.counts.Samples += profile.Samples
		in := a.partitions[profile.Partition]
		if in.last != a.counts.Payloads {
			in.last = a.counts.Payloads
			in.Payloads++
		}
		in.Profiles++
		in.Samples += profile.Samples
	}
	for _, s := range a.superseded {
		a.counts.Superseded += s.profiles
		s.partition.Superseded += s.profiles
		s.partition.Profiles -= s.profiles
		s.partition.Samples -= s.samples
	}
}

// resource returns the resource that a Profile goes into. It keeps all attributes for a Profile with timestamps and, with
// SnapshotsKeep, for a snapshot.
func (w *Window) resource(profile *Profile) *resource {
	from, drop := profile.scope.resource, w.options.DropResourceAttributes
	source, key, left := from.from.Resource(), from.key, from.left
	if profile.snapshot && w.options.Snapshots == SnapshotsKeep || profile.timed {
		key, drop, left = from.original, nil, 0
	}
	r := w.resources[string(key)]
	if r == nil {
		r = &resource{
			pdata: pcommon.NewResource(), schemaURL: dictionary.ValidUTF8(from.from.SchemaUrl()),
			partition: from.partition, scopes: map[string]*scope{},
		}
		copyWithout(r.pdata.Attributes(), source.Attributes(), drop)
		w.resources[string(key)] = r
		w.size += entrySize + 4*len(key)
		if w.partitions[r.partition] == nil {
			w.partitions[r.partition] = &partition{}
			w.size += partitionSize + len(r.partition)
		}
	}
	w.size += r.entities.Add(source, drop)
	left += min(source.DroppedAttributesCount(), math.MaxUint32-left)
	r.pdata.SetDroppedAttributesCount(max(r.pdata.DroppedAttributesCount(), left))
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

// scope returns the scope of r that a Profile goes into: there is one for each slot. Snapshots have scopes of their own,
// which with SnapshotsKeep only the Profiles of the same ScopeProfiles go into.
func (w *Window) scope(r *resource, profile *Profile) *scope {
	from := profile.scope
	key := append(w.key[:0], from.key...).AppendInt(int64(profile.slot.length)).AppendInt(int64(profile.slot.number))
	content := len(key)
	latest := profile.snapshot && w.options.Snapshots == SnapshotsLatest
	apart := profile.snapshot && w.options.Snapshots == SnapshotsKeep
	switch {
	case latest:
		key = append(append(key, tagLatest), from.resource.original...)
	case apart:
		key = append(key, tagKept).AppendInt(int64(w.scopes))
	}
	w.key = key
	s, scoped := r.scopes[string(key)], from.from.Scope()
	if s == nil {
		s = &scope{
			pdata: pcommon.NewInstrumentationScope(), schemaURL: dictionary.ValidUTF8(from.from.SchemaUrl()),
			types: from.types, slot: profile.slot,
			content: string(key[:content]), profiles: map[profileKey]*mergedProfile{},
		}
		if latest {
			s.latest = map[profileKey]latestSnapshot{}
		}
		copyWithout(s.pdata.Attributes(), scoped.Attributes(), sampleTypeAttributes)
		s.pdata.SetName(dictionary.ValidUTF8(scoped.Name()))
		s.pdata.SetVersion(dictionary.ValidUTF8(scoped.Version()))
		r.scopes[string(key)] = s
		w.size += scopeSize(len(key))
	}
	if _, known := w.slots[profile.slot]; !known && !apart {
		w.slots[profile.slot] = struct{}{}
		w.size += slotSize
	}
	s.pdata.SetDroppedAttributesCount(max(s.pdata.DroppedAttributesCount(), scoped.DroppedAttributesCount()))
	return s
}

// profile adds a Profile to its scope.
func (a *addition) profile(to *scope, from *Profile) {
	key := a.keyOf(from)
	if to.latest != nil && !a.supersede(to, key, from) {
		return
	}
	into := target{
		addition: a, scope: to, key: key, from: from, start: uint64(from.from.Time()), duration: from.from.DurationNano(),
	}
	a.size -= to.samples.Retained()
	samples := from.from.Samples()
	if to.samples.Len() == 0 {
		to.samples.Grow(a.countSamples(samples))
	}
	var plain *column // of samples with values alone
	sum := int64(0)   // of them
	for i := a.next(samples, 0); i < samples.Len(); i = a.next(samples, i+1) {
		s := samples.At(i)
		values, times := s.Values(), s.TimestampsUnixNano()
		row := to.samples.Number(a.remap.Sample(s, a.payload.dropped))
		switch {
		case times.Len() == 0 && values.Len() == 0: // it says nothing
		case times.Len() == 0 || a.options.DropTimestamps && values.Len() > 0 || a.subtract:
			if plain == nil {
				plain = &into.merged(shapeValues).column
				if plain.Len() == 0 {
					plain.Grow(a.countSamples(samples))
				}
			}
			into.untimed = into.untimed || times.Len() > 0
			for i := range values.Len() {
				v := values.At(i)
				sum = sampletypes.AddSaturated(sum, v)
				if !plain.Add(row, v, a.subtract) {
					a.saturated++
				}
			}
		case a.options.DropTimestamps:
			into.addCount(row, times.Len())
		default:
			into.addTimes(row, values, times)
		}
	}
	into.sums[shapeValues] = sampletypes.AddSaturated(into.sums[shapeValues], sum)
	if into.found == [shapes]*mergedProfile{} {
		into.merged(shapeValues) // a Profile without samples is kept
	}
	a.size += to.samples.Retained()
	a.rows = a.payload.appendRows(a.rows[:0], from)
	into.done(a.rows)
}

// countSamples is the number of samples that are not dropped for being zero.
func (a *addition) countSamples(samples pprofile.SampleSlice) (n int) {
	for i := a.next(samples, 0); i < samples.Len(); i = a.next(samples, i+1) {
		n++
	}
	return n
}

// next is the first index from i on of a sample that is not dropped for being zero: its values are all 0 and it has no
// timestamps. It is samples.Len() if there is none. A loop of its own takes half the instructions.
func (a *addition) next(samples pprofile.SampleSlice, i int) int {
	if !a.options.DropZeroSamples {
		return i
	}
	for ; i < samples.Len(); i++ {
		s := samples.At(i)
		values := s.Values()
		if values.Len() == 0 || s.TimestampsUnixNano().Len() > 0 {
			return i
		}
		for n := range values.Len() {
			if values.At(n) != 0 {
				return i
			}
		}
	}
	return i
}

func (a *addition) keyOf(profile *Profile) profileKey {
	from, r := profile.from, a.remap
	key := profileKey{
		sampleType: r.String(from.SampleType().TypeStrindex()), sampleUnit: r.String(from.SampleType().UnitStrindex()),
		periodType: r.String(from.PeriodType().TypeStrindex()), periodUnit: r.String(from.PeriodType().UnitStrindex()),
		period: from.Period(), attributes: r.AttributeSet(from.AttributeIndices(), a.payload.aside),
	}
	if profile.snapshot && a.options.Snapshots == SnapshotsKeep {
		key.time, key.duration = uint64(from.Time()), from.DurationNano()
	}
	return key
}

// target finds the merged profiles, by shape, that an incoming Profile, or a part of it, goes into.
type target struct {
	*addition
	scope           *scope
	key             profileKey
	from            *Profile
	start, duration uint64        // of the part
	sums            [shapes]int64 // of the values that went into each
	found           [shapes]*mergedProfile
	untimed         bool // timestamps of some samples were dropped
}

// merged returns the merged profile of a shape.
func (t *target) merged(s shape) *mergedProfile {
	if t.found[s] == nil {
		key := t.key
		key.shape = s
		to := t.scope.profiles[key]
		if to == nil {
			to = &mergedProfile{key: key, place: t.from.place}
			t.scope.profiles[key] = to
		}
		to.include(t)
		t.found[s] = to
	}
	return t.found[s]
}

// addTimes adds timestamps, with their values if there are any.
func (t *target) addTimes(row int32, values pcommon.Int64Slice, times pcommon.UInt64Slice) {
	s := shapeBoth
	if values.Len() == 0 {
		s = shapeTimes
		t.sums[s] = sampletypes.AddSaturated(t.sums[s], int64(times.Len()))
	}
	for i := range values.Len() {
		t.sums[s] = sampletypes.AddSaturated(t.sums[s], values.At(i))
	}
	t.merged(s).addTimes(row, values, times)
}

// addCount adds timestamps without values as their number.
func (t *target) addCount(row int32, count int) {
	t.untimed = true
	t.sums[shapeValues] = sampletypes.AddSaturated(t.sums[shapeValues], int64(count))
	if !t.merged(shapeValues).column.Add(row, int64(count), false) {
		t.saturated++
	}
}

// done ends the addition of a Profile of some processes. If it went into several, none of them has its id.
func (t *target) done(rows []processes.Row) {
	parts := 0
	for s, p := range t.found {
		if p == nil {
			continue
		}
		if !t.subtract {
			t.fitted = append(t.fitted[:0], rows...)
			processes.Fit(t.fitted, t.sums[s])
			p.of.add(t.fitted, t.counts.Payloads+1)
		}
		p.untimed = p.untimed || t.from.untimed || t.untimed && shape(s) == shapeValues
		t.account(p)
		parts++
	}
	for _, p := range t.found {
		if p != nil && parts > 1 {
			p.id = pprofile.ProfileID{}
		}
	}
}
