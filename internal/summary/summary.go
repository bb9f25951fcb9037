// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package summary describes the Profiles of a payload for the index of a file, by service, type and minute.
package summary

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/entry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/fileindex"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/temporality"
	"github.com/otelcol-profiles/otelcol-profiles/internal/validutf8"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// Of marshals a payload, which makes references of strings, and returns its summaries as Summarizer.Summarize
// does.
func Of(pd pprofile.Profiles) ([]fileindex.Summary, error) {
	if texts := pd.Dictionary().StringTable(); texts.Len() == 0 {
		texts.Append("") // a reference to index 0 is none
	}
	message, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	if err != nil {
		return nil, err
	}
	return new(Summarizer).Summarize(pd, message)
}

// Summarizer adds up the Profiles of a payload. It keeps memory for the next one.
type Summarizer struct {
	message   []byte
	dict      pprofile.ProfilesDictionary
	strings   pcommon.StringSlice
	summaries []fileindex.Summary
	minutes   []uint64         // of summaries
	places    map[uint64]int32 // in summaries, by a hash of key and minute
	err       error

	resource    attributes
	service     string
	scope       attributes
	profileType string
	hash        uint64 // of service and profileType

	sampleTypes, typesBefore []int32 // of the scope, and of the one before
	derivedType              string  // the profile type that sampleTypes tell

	recent []profile       // of the scope: the last nearby ones that differ
	types  []hashedTypes   // the last nearby ones
	lists  []attributeList // the last nearby ones
	hashes []uint64
	buffer dictionary.Value
}

// Summarize returns the summaries of a payload, each of another Key or minute unless its dictionary repeats
// strings, in the order of its Profiles. message is pd in protobuf. Indices that lead nowhere are taken for 0. An
// error says why resources or scopes cannot be read. The result may refer to pd, and is valid until the next call.
func (s *Summarizer) Summarize(pd pprofile.Profiles, message []byte) ([]fileindex.Summary, error) {
	if s.places == nil {
		s.places = map[uint64]int32{}
	}
	clear(s.places)
	s.message, s.dict, s.strings, s.err = message, pd.Dictionary(), pd.Dictionary().StringTable(), nil
	s.summaries, s.minutes = s.summaries[:0], s.minutes[:0]
	s.typesBefore, s.sampleTypes = s.typesBefore[:0], s.sampleTypes[:0]
	s.types, s.lists = s.types[:0], s.lists[:0]
	resources := pd.ResourceProfiles()
	fields := wire.New(message)
	for r := range resources.Len() {
		for s.next(&fields) && fields.Field != 1 {
		}
		s.addResource(resources.At(r), fields.Start, fields.Stop)
	}
	return s.summaries, s.err
}

// Release drops references to the payload, and much memory.
func (s *Summarizer) Release() {
	const most = 4096
	if len(s.summaries) > most || cap(s.sampleTypes) > most || cap(s.buffer) > 1<<16 {
		*s = Summarizer{}
		return
	}
	clear(s.summaries)
	clear(s.resource.pairs[:cap(s.resource.pairs)])
	clear(s.scope.pairs[:cap(s.scope.pairs)])
	clear(s.recent[:cap(s.recent)])
	clear(s.lists[:cap(s.lists)])
	s.message, s.dict, s.strings = nil, pprofile.ProfilesDictionary{}, pcommon.StringSlice{}
}

// next reads the next field, and keeps the error.
func (s *Summarizer) next(fields *wire.Cursor) bool {
	if fields.Next() {
		return true
	}
	if fields.Err != nil {
		s.err = fields.Err
	}
	return false
}

// nearby is how many of the last elements are compared one by one: payloads repeat few keys.
const nearby = 8

// valueTypes are the fields of a Profile that state its types.
type valueTypes struct {
	sampleType, unit, periodType, periodUnit int32
	period                                   int64
}

// hashedTypes are valueTypes with a hash of their strings.
type hashedTypes struct {
	valueTypes
	hash uint64
}

// attributeList has the data derived from the attributes of a Profile.
type attributeList struct {
	indices     pcommon.Int32Slice
	temporality string
	hash        uint64 // 0 until it is needed
}

// profile says which Key and minute a Profile has.
type profile struct {
	valueTypes
	minute    uint64
	instant   bool // it has no duration
	indices   pcommon.Int32Slice
	inSummary int32
}

// addResource adds the Profiles of a resource, whose message ResourceProfiles is from start to stop.
func (s *Summarizer) addResource(rp pprofile.ResourceProfiles, start, stop int) {
	s.resource.reset(rp.SchemaUrl())
	s.readAttributes(&s.resource, rp.Resource().Attributes().Len(), start, stop, resourceAttributes)
	s.service, _ = s.attribute(&s.resource, "service.name")
	ofService := hashText(s.service)
	fields := wire.Cursor{Data: s.message, At: start, End: stop}
	scopes := rp.ScopeProfiles()
	for i := range scopes.Len() {
		for s.next(&fields) && fields.Field != 2 {
		}
		sp := scopes.At(i)
		s.scope.reset(sp.SchemaUrl())
		s.scope.name = sp.Scope().Name()
		s.readAttributes(&s.scope, sp.Scope().Attributes().Len(), fields.Start, fields.Stop, scopeAttributes)
		profiles := sp.Profiles()
		s.profileType = s.typeOf(profiles)
		s.hash = mix(ofService, hashText(s.profileType))
		s.recent = s.recent[:0]
		for k := range profiles.Len() {
			s.add(profiles.At(k))
		}
	}
}

// hasText reports whether the string at index i is a text, which is valid UTF-8.
func hasText(strings pcommon.StringSlice, i int32, text string) bool {
	return i >= 0 && int(i) < strings.Len() && strings.At(int(i)) == text
}

func (s *Summarizer) text(i int32) string { return validutf8.At(s.strings, i) }

// typeOf returns the profile type of the scope.
func (s *Summarizer) typeOf(profiles pprofile.ProfilesSlice) string {
	if text, found := s.attribute(&s.scope, sampletypes.ProfileTypeAttribute); found {
		return text
	}
	before := s.sampleTypes
	s.sampleTypes = s.typesBefore[:0]
	for i := range profiles.Len() {
		t := profiles.At(i).SampleType().TypeStrindex()
		if last := s.sampleTypes[max(0, len(s.sampleTypes)-nearby):]; !slices.Contains(last, t) {
			s.sampleTypes = append(s.sampleTypes, t)
		}
	}
	s.typesBefore = before
	if len(before) == 0 || !slices.Equal(before, s.sampleTypes) {
		s.derivedType = sampletypes.TypeOf(func(name string) bool {
			return slices.ContainsFunc(s.sampleTypes, func(t int32) bool { return hasText(s.strings, t, name) })
		})
	}
	return s.derivedType
}

func (s *Summarizer) add(p pprofile.Profile) {
	place, known := s.find(p)
	if !known {
		measure(&s.summaries[place], p)
		return
	}
	var measured fileindex.Summary
	measure(&measured, p)
	s.summaries[place].AddSibling(&measured)
}

// find returns the place in summaries of a Profile.
func (s *Summarizer) find(p pprofile.Profile) (place int32, known bool) {
	sampleType, periodType := p.SampleType(), p.PeriodType()
	of := profile{
		valueTypes: valueTypes{sampleType.TypeStrindex(), sampleType.UnitStrindex(), periodType.TypeStrindex(), periodType.UnitStrindex(), p.Period()},
		minute:     uint64(p.Time()) / uint64(time.Minute), instant: p.DurationNano() == 0, indices: p.AttributeIndices(),
	}
	for i := range s.recent {
		r := &s.recent[i]
		if r.valueTypes == of.valueTypes && r.minute == of.minute && r.instant == of.instant && equal(r.indices, of.indices) {
			return r.inSummary, true
		}
	}
	of.inSummary, known = s.findKey(&of, p.DurationNano())
	if len(s.recent) == nearby {
		s.recent = s.recent[:0]
	}
	s.recent = append(s.recent, of)
	return of.inSummary, known
}

func equal(a, b pcommon.Int32Slice) bool {
	n := a.Len()
	if n != b.Len() {
		return false
	}
	for i := range n {
		if a.At(i) != b.At(i) {
			return false
		}
	}
	return true
}

// findKey returns the place in summaries of a Profile, for which it adds a summary unless there is one.
func (s *Summarizer) findKey(p *profile, duration uint64) (place int32, known bool) {
	key := fileindex.Key{Service: s.service, Type: s.profileType, SampleType: s.text(p.sampleType), Unit: s.text(p.unit)}
	list := s.listOf(p.indices)
	if temporality.IsSnapshot(list.temporality, key.SampleType, s.text(p.periodType), duration, temporality.SnapshotSampleTypes) {
		// Of the scope, without its profile type, which may be derived.
		id := mix(mix(s.hashOf(&s.resource), s.hashOf(&s.scope)), hashText(s.profileType))
		key.Snapshot = max(1, mix(id, mix(s.hashTypes(&p.valueTypes), s.hashList(list))))
	}
	hash := mix(mix(s.hash, uint64(p.sampleType)<<32|uint64(uint32(p.unit))), mix(key.Snapshot, p.minute))
	place, known = s.places[hash]
	if known && s.minutes[place] == p.minute && s.summaries[place].Key == key {
		return place, true
	}
	place = int32(len(s.summaries))
	s.places[hash] = place
	s.summaries = append(s.summaries, fileindex.Summary{Key: key})
	s.minutes = append(s.minutes, p.minute)
	return place, false
}

// hashTypes returns a hash of the types of a Profile.
func (s *Summarizer) hashTypes(t *valueTypes) uint64 {
	for i := range s.types {
		if s.types[i].valueTypes == *t {
			return s.types[i].hash
		}
	}
	if len(s.types) == nearby {
		s.types = s.types[:0]
	}
	s.buffer = s.buffer[:0].AppendKey(s.text(t.sampleType)).AppendKey(s.text(t.unit)).
		AppendKey(s.text(t.periodType)).AppendKey(s.text(t.periodUnit)).AppendInt(t.period)
	s.types = append(s.types, hashedTypes{*t, xxhash.Sum64(s.buffer)})
	return s.types[len(s.types)-1].hash
}

// listOf returns the data derived from the attributes of a Profile. It is valid until the next call.
func (s *Summarizer) listOf(indices pcommon.Int32Slice) *attributeList {
	for i := range s.lists {
		if equal(s.lists[i].indices, indices) {
			return &s.lists[i]
		}
	}
	if len(s.lists) == nearby {
		s.lists = s.lists[:0]
	}
	s.lists = append(s.lists, attributeList{indices: indices, temporality: temporality.Of(s.dict, indices)})
	return &s.lists[len(s.lists)-1]
}

// hashList returns the same hash for equal attributes in any order.
func (s *Summarizer) hashList(list *attributeList) uint64 {
	if list.hash != 0 {
		return list.hash
	}
	table := s.dict.AttributeTable()
	s.hashes = s.hashes[:0]
	for k := range list.indices.Len() {
		i := int(list.indices.At(k))
		if i <= 0 || i >= table.Len() {
			continue
		}
		if a := table.At(i); entry.Bounded(a.Value()) {
			s.buffer = entry.AppendPdata(s.buffer[:0].AppendKey(s.text(a.KeyStrindex())), a.Value())
			s.hashes = append(s.hashes, xxhash.Sum64(s.buffer))
		}
	}
	slices.Sort(s.hashes)
	for _, hash := range slices.Compact(s.hashes) {
		list.hash = mix(list.hash, hash)
	}
	return list.hash
}

// measure sets times and counts. It takes most of the time of a payload.
func measure(s *fileindex.Summary, p pprofile.Profile) {
	samples := p.Samples()
	start := uint64(p.Time())
	latest, sum, stamped := start, fileindex.Sum{}, false
	end := max(start, start+p.DurationNano()) // it may overflow
	for i := range samples.Len() {            // without the iterators, which take twice as long
		sample := samples.At(i)
		values, timestamps := sample.Values(), sample.TimestampsUnixNano()
		for v := range values.Len() {
			sum.AddValue(values.At(v))
		}
		n := timestamps.Len()
		if n == 0 {
			continue
		}
		stamped = true
		if values.Len() == 0 {
			sum.AddValue(int64(n))
		}
		for k := range n {
			t := timestamps.At(k)
			if t < start || start == 0 {
				start = t
			}
			latest = max(latest, t)
		}
	}
	s.Profiles, s.Samples, s.Timestamps, s.Sum = 1, samples.Len(), stamped, sum
	s.Start, s.Latest, s.End = start, latest, max(end, latest)
}
