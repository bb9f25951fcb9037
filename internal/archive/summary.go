// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/stringref"
	"github.com/otelcol-profiles/otelcol-profiles/internal/fileindex"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// Summarize returns the summaries of a payload, each of another Key or minute unless its dictionary repeats strings, in
// the order of its Profiles. Indices that lead nowhere are taken for 0. An error says why resources or
// scopes cannot be read; the summaries lack their attributes.
func Summarize(pd pprofile.Profiles) ([]fileindex.Summary, error) {
	n := min(pd.ProfileCount(), maxExpected)
	s := summarizer{
		dict: pd.Dictionary(), names: map[string]int32{}, ofTypes: map[valueTypes]uint64{}, ofProfiles: map[int32]uint64{},
		places: make(map[localKey]int, n), summaries: make([]fileindex.Summary, 0, n),
	}
	for _, rp := range pd.ResourceProfiles().All() {
		s.resource = attributesOf{Map: s.readable(rp.Resource().Attributes()), schema: rp.SchemaUrl()}
		s.service = s.number(text(s.resource.Map, "service.name"))
		for _, sp := range rp.ScopeProfiles().All() {
			s.scope = attributesOf{
				Map:    s.readable(sp.Scope().Attributes()),
				schema: sp.SchemaUrl(), name: sp.Scope().Name(), version: sp.Scope().Version(),
			}
			s.profileType = s.typeOf(sp)
			s.typ = s.number(s.profileType)
			for _, p := range sp.Profiles().All() {
				s.add(p)
			}
		}
	}
	return s.summaries, s.err
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

func (s *summarizer) text(i int32) string { return dictionary.Text(s.dict.StringTable(), i) }

// summarizer adds up the Profiles of a payload.
type summarizer struct {
	dict      pprofile.ProfilesDictionary
	summaries []fileindex.Summary
	places    map[localKey]int // in summaries
	names     map[string]int32 // numbers of services and profile types

	resource attributesOf
	service  int32
	scope    attributesOf
	typ      int32 // of profileType

	profileType string

	ofTypes    map[valueTypes]uint64 // hashes
	ofProfiles map[int32]uint64      // hashes of attributes
	buffer     dictionary.Value
	own        []uint64
	err        error
}

// maxExpected bounds the memory that is taken before it is known how many summaries there are.
const maxExpected = 256

// localKey is a fileindex.Key with numbers for its strings, whose hashes would take most of the time.
// Profiles of other minutes have a summary of their own, so that those of a record that holds an hour are
// found where they are.
type localKey struct {
	service, typ, sampleType, unit int32
	snapshot, minute               uint64
}

// valueTypes are the fields of a Profile that state its types.
type valueTypes struct {
	sampleType, unit, periodType, periodUnit int32
	period                                   int64
}

// attributesOf are those of a resource or scope.
type attributesOf struct {
	pcommon.Map
	schema, name, version string
	hash                  uint64 // 0 until it is needed
}

func (s *summarizer) number(name string) int32 {
	n, known := s.names[name]
	if !known {
		n = int32(len(s.names))
		s.names[name] = n
	}
	return n
}

// typeOf returns the profile type of a scope.
func (s *summarizer) typeOf(sp pprofile.ScopeProfiles) string {
	if v, found := s.scope.Get(sampletypes.ProfileTypeAttribute); found {
		return dictionary.ValidUTF8(v.AsString())
	}
	return sampletypes.ProfileType(s.scope.Map, sampletypes.Of(sp, s.text))
}

func (s *summarizer) add(p pprofile.Profile) {
	key := localKey{
		service: s.service, typ: s.typ, sampleType: p.SampleType().TypeStrindex(), unit: p.SampleType().UnitStrindex(),
		minute: uint64(p.Time()) / uint64(time.Minute),
	}
	if Snapshot(s.dict, p) {
		key.snapshot = s.snapshot(p)
	}
	place, known := s.places[key]
	if known {
		var of fileindex.Summary
		measure(&of, p)
		s.summaries[place].AddSibling(&of)
		return
	}
	s.places[key] = len(s.summaries)
	s.summaries = append(s.summaries, fileindex.Summary{Key: fileindex.Key{
		Service: text(s.resource.Map, "service.name"), Type: s.profileType,
		SampleType: s.text(key.sampleType), Unit: s.text(key.unit), Snapshot: key.snapshot,
	}})
	measure(&s.summaries[len(s.summaries)-1], p)
}

// snapshot returns Key.Snapshot of p.
func (s *summarizer) snapshot(p pprofile.Profile) uint64 {
	b := binary.BigEndian.AppendUint64(nil, s.hashOf(&s.resource))
	b = binary.BigEndian.AppendUint64(b, s.hashOf(&s.scope)) // without its profile type, which may be derived
	b = dictionary.Value(b).AppendKey(s.profileType)
	b = binary.BigEndian.AppendUint64(b, s.hashTypes(p))
	for _, sum := range s.hashAttributes(p) {
		b = binary.BigEndian.AppendUint64(b, sum)
	}
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

func (s *summarizer) hashTypes(p pprofile.Profile) uint64 {
	t := valueTypes{
		p.SampleType().TypeStrindex(), p.SampleType().UnitStrindex(), p.PeriodType().TypeStrindex(), p.PeriodType().UnitStrindex(), p.Period(),
	}
	sum, known := s.ofTypes[t]
	if !known {
		s.buffer = s.buffer[:0].AppendKey(s.text(t.sampleType)).AppendKey(s.text(t.unit)).
			AppendKey(s.text(t.periodType)).AppendKey(s.text(t.periodUnit)).AppendInt(t.period)
		sum = xxhash.Sum64(s.buffer)
		s.ofTypes[t] = sum
	}
	return sum
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

// measure sets times and counts.
func measure(s *fileindex.Summary, p pprofile.Profile) {
	samples := p.Samples()
	s.Profiles, s.Samples, s.Sum, s.Timestamps = 1, samples.Len(), 0, false
	s.Start = uint64(p.Time())
	s.Latest, s.End = s.Start, max(s.Start, s.Start+p.DurationNano()) // it may overflow
	for i := range samples.Len() {                                    // without the iterators, which take twice as long
		sample := samples.At(i)
		values, timestamps := sample.Values(), sample.TimestampsUnixNano()
		n := timestamps.Len()
		if values.Len() == 0 {
			s.Sum = fileindex.AddSaturating(s.Sum, int64(n))
		}
		for v := range values.Len() {
			s.Sum = fileindex.AddSaturating(s.Sum, values.At(v))
		}
		for k := range n {
			t := timestamps.At(k)
			if t < s.Start || s.Start == 0 {
				s.Start = t
			}
			s.Latest = max(s.Latest, t)
		}
		s.Timestamps = s.Timestamps || n > 0
	}
	s.End = max(s.End, s.Latest)
}
