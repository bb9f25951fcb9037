// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/stringref"
	"github.com/otelcol-profiles/otelcol-profiles/internal/fileindex"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// Summarize returns the summaries of a payload, each of another Key or minute unless its dictionary repeats strings, in
// the order of its Profiles. Indices that lead nowhere are taken for 0. An error says why resources or
// scopes cannot be read; the summaries lack their attributes.
func Summarize(pd pprofile.Profiles) ([]fileindex.Summary, error) {
	s := summarizers.Get().(*summarizer)
	defer s.release()
	s.dict = pd.Dictionary()
	s.strings = s.dict.StringTable()
	resources := pd.ResourceProfiles()
	for r := range resources.Len() {
		s.addResource(resources.At(r))
	}
	return slices.Clone(s.summaries), s.err
}

func (s *summarizer) addResource(rp pprofile.ResourceProfiles) {
	s.resource = attributesOf{Map: s.readable(rp.Resource().Attributes()), schema: rp.SchemaUrl()}
	s.service = text(s.resource.Map, "service.name")
	scopes := rp.ScopeProfiles()
	for i := range scopes.Len() {
		sp := scopes.At(i)
		s.scope = attributesOf{
			Map:    s.readable(sp.Scope().Attributes()),
			schema: sp.SchemaUrl(), name: sp.Scope().Name(), version: sp.Scope().Version(),
		}
		profiles := sp.Profiles()
		s.profileType = s.typeOf(profiles)
		for k := range profiles.Len() {
			s.add(profiles.At(k))
		}
	}
}

// readable returns m itself or, if there may be string references in it (a payload that was marshaled has them), a
// copy without references. If there is an error, it returns no attributes.
func (s *summarizer) readable(m pcommon.Map) pcommon.Map {
	if visible(m) {
		return m
	}
	for _, v := range m.All() {
		if !dictionary.Bounded(v) {
			s.err = errDepth
			return pcommon.NewMap()
		}
	}
	resolved, err := stringref.Attributes(m, s.dict.StringTable())
	if err != nil {
		s.err = err
		return pcommon.NewMap()
	}
	return resolved
}

var errDepth = errors.New("an attribute nests too deep or has too many keys")

// visible reports whether all attributes are scalars, or lists of scalars, that are no string references.
func visible(m pcommon.Map) bool {
	for key, v := range m.All() {
		if key == "" || !visibleValue(v, true) {
			return false
		}
	}
	return true
}

func visibleValue(v pcommon.Value, lists bool) bool {
	switch v.Type() {
	case pcommon.ValueTypeEmpty, pcommon.ValueTypeMap:
		return false
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			if !lists || !visibleValue(e, false) {
				return false
			}
		}
	}
	return true
}

func text(attributes pcommon.Map, key string) string {
	if value, ok := attributes.Get(key); ok {
		return dictionary.ValidUTF8(value.AsString())
	}
	return ""
}

func (s *summarizer) text(i int32) string { return dictionary.Text(s.strings, i) }

// summarizer adds up the Profiles of a payload.
type summarizer struct {
	dict      pprofile.ProfilesDictionary
	strings   pcommon.StringSlice
	summaries []fileindex.Summary
	keys      []localKey       // of summaries
	places    map[localKey]int // in summaries, but for the last nearby ones
	err       error

	resource    attributesOf
	service     string
	scope       attributesOf
	profileType string
	sampleTypes []int32 // of the scope

	types      []typesOf        // the last nearby ones
	ofProfiles map[int32]uint64 // hashes of attributes
	buffer     dictionary.Value
	own        []uint64
	identity   []byte
}

// summarizers keeps what a payload needs for the next one: maps and slices take half the time otherwise.
var summarizers = sync.Pool{New: func() any {
	return &summarizer{places: map[localKey]int{}, ofProfiles: map[int32]uint64{}}
}}

// maxKept is how many summaries or hashes the next payload finds room for: more would take memory, and
// time to clear.
const maxKept = 4096

// release makes s ready for another payload.
func (s *summarizer) release() {
	if len(s.summaries) > maxKept || len(s.sampleTypes) > maxKept || len(s.ofProfiles) > maxKept || len(s.own) > maxKept || cap(s.buffer) > 1<<16 {
		return
	}
	clear(s.summaries)
	clear(s.keys)
	clear(s.places)
	clear(s.ofProfiles)
	*s = summarizer{
		summaries: s.summaries[:0], keys: s.keys[:0], places: s.places, sampleTypes: s.sampleTypes[:0],
		types: s.types[:0], ofProfiles: s.ofProfiles, buffer: s.buffer, own: s.own, identity: s.identity,
	}
	summarizers.Put(s)
}

// nearby is how many of the last elements are compared one by one: payloads repeat few keys.
const nearby = 8

// localKey is a fileindex.Key with indices for the strings of the dictionary.
// Profiles of other minutes have a summary of their own, so that those of a record that holds an hour are
// found where they are.
type localKey struct {
	service, profileType string
	sampleType, unit     int32
	snapshot, minute     uint64
}

// valueTypes are the fields of a Profile that state its types.
type valueTypes struct {
	sampleType, unit, periodType, periodUnit int32
	period                                   int64
}

// typesOf says what follows from valueTypes.
type typesOf struct {
	valueTypes
	hash uint64
	// Profiles with a duration, and those without one, are snapshots, unless an attribute says otherwise.
	withDuration, without bool
}

// attributesOf are those of a resource or scope.
type attributesOf struct {
	pcommon.Map
	schema, name, version string
	hash                  uint64 // 0 until it is needed
}

// typeOf returns the profile type of the scope.
func (s *summarizer) typeOf(profiles pprofile.ProfilesSlice) string {
	if v, found := s.scope.Get(sampletypes.ProfileTypeAttribute); found {
		return dictionary.ValidUTF8(v.AsString())
	}
	s.sampleTypes = s.sampleTypes[:0]
	for i := range profiles.Len() {
		t := profiles.At(i).SampleType().TypeStrindex()
		if last := s.sampleTypes[max(0, len(s.sampleTypes)-nearby):]; !slices.Contains(last, t) {
			s.sampleTypes = append(s.sampleTypes, t)
		}
	}
	return sampletypes.TypeOf(func(name string) bool {
		return slices.ContainsFunc(s.sampleTypes, func(t int32) bool { return s.text(t) == name })
	})
}

func (s *summarizer) add(p pprofile.Profile) {
	sampleType := p.SampleType()
	key := localKey{
		service: s.service, profileType: s.profileType, sampleType: sampleType.TypeStrindex(), unit: sampleType.UnitStrindex(),
		minute: uint64(p.Time()) / uint64(time.Minute),
	}
	if types := s.typesOf(p); s.isSnapshot(p, types) {
		key.snapshot = s.snapshot(p, types)
	}
	place, known := s.find(&key)
	if known {
		var of fileindex.Summary
		measure(&of, p)
		s.summaries[place].AddSibling(&of)
		return
	}
	if n := len(s.keys); n >= nearby {
		s.places[s.keys[n-nearby]] = n - nearby
	}
	s.keys = append(s.keys, key)
	s.summaries = append(s.summaries, fileindex.Summary{Key: fileindex.Key{
		Service: s.service, Type: s.profileType,
		SampleType: s.text(key.sampleType), Unit: s.text(key.unit), Snapshot: key.snapshot,
	}})
	measure(&s.summaries[len(s.summaries)-1], p)
}

// find returns the place in summaries of a key.
func (s *summarizer) find(key *localKey) (place int, known bool) {
	first := max(0, len(s.keys)-nearby)
	for i := len(s.keys) - 1; i >= first; i-- {
		if s.keys[i] == *key {
			return i, true
		}
	}
	if first == 0 {
		return 0, false
	}
	place, known = s.places[*key]
	return place, known
}

// typesOf returns what follows from the types of p. It is valid until the next call.
func (s *summarizer) typesOf(p pprofile.Profile) *typesOf {
	sampleType, periodType := p.SampleType(), p.PeriodType()
	t := valueTypes{
		sampleType.TypeStrindex(), sampleType.UnitStrindex(), periodType.TypeStrindex(), periodType.UnitStrindex(), p.Period(),
	}
	for i := range s.types {
		if s.types[i].valueTypes == t {
			return &s.types[i]
		}
	}
	if len(s.types) == nearby {
		s.types = s.types[:0]
	}
	typ, period := s.text(t.sampleType), s.text(t.periodType)
	s.buffer = s.buffer[:0].AppendKey(typ).AppendKey(s.text(t.unit)).
		AppendKey(period).AppendKey(s.text(t.periodUnit)).AppendInt(t.period)
	s.types = append(s.types, typesOf{
		valueTypes: t, hash: xxhash.Sum64(s.buffer),
		withDuration: merge.IsSnapshot("", typ, period, 1, SnapshotSampleTypes),
		without:      merge.IsSnapshot("", typ, period, 0, SnapshotSampleTypes),
	})
	return &s.types[len(s.types)-1]
}

// isSnapshot is Snapshot.
func (s *summarizer) isSnapshot(p pprofile.Profile, types *typesOf) bool {
	if p.AttributeIndices().Len() > 0 {
		return Snapshot(s.dict, p)
	}
	if p.DurationNano() == 0 {
		return types.without
	}
	return types.withDuration
}

// snapshot returns Key.Snapshot of p.
func (s *summarizer) snapshot(p pprofile.Profile, types *typesOf) uint64 {
	b := binary.BigEndian.AppendUint64(s.identity[:0], s.hashOf(&s.resource))
	b = binary.BigEndian.AppendUint64(b, s.hashOf(&s.scope)) // without its profile type, which may be derived
	b = dictionary.Value(b).AppendKey(s.profileType)
	b = binary.BigEndian.AppendUint64(b, types.hash)
	for _, sum := range s.hashAttributes(p) {
		b = binary.BigEndian.AppendUint64(b, sum)
	}
	s.identity = b
	return max(1, xxhash.Sum64(b))
}

// hashOf returns the same hash for equal attributes in any order. Those of scopes that are derived from the
// Profiles do not count.
func (s *summarizer) hashOf(of *attributesOf) uint64 {
	if of.hash != 0 {
		return of.hash
	}
	s.buffer = s.buffer[:0].AppendKey(dictionary.ValidUTF8(of.schema)).AppendKey(dictionary.ValidUTF8(of.name)).AppendKey(dictionary.ValidUTF8(of.version))
	of.hash = xxhash.Sum64(s.buffer)
	for key, v := range of.All() {
		switch key {
		case sampletypes.ProfileTypeAttribute, sampletypes.OrderAttribute, sampletypes.ListAttribute:
		default:
			of.hash += s.hashAttribute(key, v)
		}
	}
	return of.hash
}

func (s *summarizer) hashAttribute(key string, v pcommon.Value) uint64 {
	s.buffer = dictionary.AppendPdata(s.buffer[:0].AppendKey(dictionary.ValidUTF8(key)), v)
	return xxhash.Sum64(s.buffer)
}

// hashAttributes returns the hashes of the attributes of p, sorted and each once. The result is valid until
// the next call.
func (s *summarizer) hashAttributes(p pprofile.Profile) []uint64 {
	s.own = s.own[:0]
	for _, i := range p.AttributeIndices().All() {
		if i <= 0 || int(i) >= s.dict.AttributeTable().Len() {
			continue
		}
		sum, known := s.ofProfiles[i]
		if !known {
			a := s.dict.AttributeTable().At(int(i))
			if !dictionary.Bounded(a.Value()) {
				continue
			}
			sum = s.hashAttribute(s.text(a.KeyStrindex()), a.Value())
			s.ofProfiles[i] = sum
		}
		s.own = append(s.own, sum)
	}
	slices.Sort(s.own)
	s.own = slices.Compact(s.own)
	return s.own
}

// measure sets times and counts. It takes most of the time of a payload.
func measure(s *fileindex.Summary, p pprofile.Profile) {
	samples := p.Samples()
	s.Profiles, s.Samples, s.Timestamps = 1, samples.Len(), false
	start := uint64(p.Time())
	latest, sum := start, int64(0)
	end := max(start, start+p.DurationNano()) // it may overflow
	for i := range samples.Len() {            // without the iterators, which take twice as long
		sample := samples.At(i)
		values, timestamps := sample.Values(), sample.TimestampsUnixNano()
		for v := range values.Len() {
			sum = fileindex.AddSaturating(sum, values.At(v))
		}
		n := timestamps.Len()
		if n == 0 {
			continue
		}
		s.Timestamps = true
		if values.Len() == 0 {
			sum = fileindex.AddSaturating(sum, int64(n))
		}
		for k := range n {
			t := timestamps.At(k)
			if t < start || start == 0 {
				start = t
			}
			latest = max(latest, t)
		}
	}
	s.Sum, s.Start, s.Latest, s.End = sum, start, latest, max(end, latest)
}
