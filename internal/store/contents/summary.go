// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package contents

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Key says which Profiles are added up.
type Key struct {
	Service    string `json:"service,omitempty"`
	Type       string `json:"type,omitempty"` // the scope attribute otelcol_profiles.type
	SampleType string `json:"sample_type,omitempty"`
	Unit       string `json:"unit,omitempty"`
	PeriodType string `json:"period_type,omitempty"`
	PeriodUnit string `json:"period_unit,omitempty"`
	// Snapshot is 0 for Profiles of intervals, which are summed over time. Otherwise it identifies
	// snapshots (or cumulative Profiles) of the same thing, of which the latest counts: it is a hash of
	// the resource, the scope without its version and all fields of the Profile but time, duration and ID.
	Snapshot uint64 `json:"snapshot,omitempty"`
}

// texts are the strings of the key.
func (k *Key) texts() [6]*string {
	return [...]*string{&k.Service, &k.Type, &k.SampleType, &k.Unit, &k.PeriodType, &k.PeriodUnit}
}

// TextSize is the length of all strings of the key in bytes.
func (k *Key) TextSize() (size int64) {
	for _, text := range k.texts() {
		size += int64(len(*text))
	}
	return size
}

// Summary is a total of the Profiles of one Key.
type Summary struct {
	Key
	Total
}

// Total sums some Profiles.
type Total struct {
	// Timestamps: samples have timestamps.
	Timestamps bool `json:"timestamps,omitempty"`
	// Start is the earliest start of a Profile or timestamp of a sample, Latest the latest one, and
	// End the latest end. They are in nanoseconds since the epoch, 0 if no time is stated.
	Start  uint64 `json:"start,omitempty"`
	Latest uint64 `json:"latest,omitempty"`
	End    uint64 `json:"end,omitempty"`
	// Covered is for how long there was a Profile from Start to End, in nanoseconds. It is 0 in a sum of summaries.
	Covered uint64 `json:"covered,omitempty"`

	Profiles int `json:"profiles"`
	// Samples and Sum are those of the latest snapshot only.
	Samples int   `json:"samples"`
	Sum     int64 `json:"sum"` // saturated, as AddSaturated adds

	// Rows are the processes, in the order of their hashes: one of each for intervals, one of each snapshot for snapshots. A sum of
	// summaries has none.
	Rows []processes.Row `json:"-"`
}

// Add adds the summary of later Profiles of the same Key. Of snapshots that are equally late, the one added last
// counts. The sum has no Rows.
func (s *Summary) Add(other *Summary) {
	s.add(other, false)
	s.Rows = nil
}

// add adds other. Siblings are Profiles of one payload: equally late snapshots are parts of one.
func (s *Summary) add(other *Summary, siblings bool) {
	switch {
	case s.Snapshot == 0, siblings && s.Latest == other.Latest:
		s.Samples += other.Samples
		s.Sum = sampletypes.AddSaturated(s.Sum, other.Sum)
	case other.Latest >= s.Latest:
		s.Samples, s.Sum = other.Samples, other.Sum
	}
	s.Timestamps = s.Timestamps || other.Timestamps
	s.Start, s.Latest, s.End = min(s.Start, other.Start), max(s.Latest, other.Latest), max(s.End, other.End)
	s.Covered, s.Profiles = 0, s.Profiles+other.Profiles
	if len(other.Rows) == 0 {
		return
	}
	if s.Snapshot == 0 {
		s.Rows = processes.Join(s.Rows, other.Rows)
		return
	}
	s.Rows = append(slices.Clip(s.Rows), other.Rows...)
	slices.SortStableFunc(s.Rows, func(a, b processes.Row) int { return cmp.Compare(a.Hash, b.Hash) })
	s.Rows = s.Rows[:min(len(s.Rows), processes.MaxRows)]
}

// valid reports whether Profiles can have such a summary.
func (s *Summary) valid() bool {
	return s.Start <= s.Latest && s.Latest <= s.End && s.Covered <= s.End-s.Start && s.Profiles > 0 && s.Samples >= 0
}

// Summarize returns the summaries of a payload, each of another Key or minute, in the order of its Profiles. Indices that
// lead nowhere are taken for 0. The attributes of resources and scopes must show their strings, so that a payload is
// summarized before it is marshalled. An error says why readers reject the payload. The result may refer to pd.
func Summarize(pd pprofile.Profiles) ([]Summary, error) {
	if err := dictionary.CheckValues(pd); err != nil {
		return nil, err
	}
	whole := make([]Part, 1)
	summaries, _ := SummarizeParts(pd, math.MaxInt, func(_ pprofile.ResourceProfiles, p pprofile.Profile) []Part {
		whole[0].Time, whole[0].Whole = uint64(p.Time()), true
		whole[0].Total = Measure(p)
		return whole
	})
	return summaries, nil
}

// Part is what a part of a payload has of a Profile.
type Part struct {
	// Index is that of the part.
	Index int
	// Time is when the Profile starts in the part, 0 if that is not stated.
	Time uint64
	// Whole says that the part has all of the time of the Profile. Only then its summary has Rows.
	Whole bool
	Total
}

// SummarizeParts is Summarize for parts of a payload that has passed dictionary.CheckValues. It returns the summaries that each part has
// alone, in the order of the Profiles, and the part of each. divide returns what the parts have of a Profile, and may use the slice
// again. When there are more than most summaries, the rest is left out.
func SummarizeParts(pd pprofile.Profiles, most int, divide func(pprofile.ResourceProfiles, pprofile.Profile) []Part) (summaries []Summary, parts []int) {
	expected := min(pd.ProfileCount(), 4*pd.ResourceProfiles().Len()) // Profiles of a resource often have a Key in common
	s := summarizer{
		dict: pd.Dictionary(), strings: pd.Dictionary().StringTable(), divide: divide, most: most,
		summaries: make([]Summary, 0, expected), parts: make([]int, 0, expected),
		covered: map[int]*sampletypes.Spans{}, places: make(map[uint64]int, expected),
	}
	for _, rp := range pd.ResourceProfiles().All() {
		s.addResource(rp)
	}
	for i, covered := range s.covered {
		s.summaries[i].Covered = covered.Length()
	}
	return s.summaries, s.parts
}

// summarizer adds up the Profiles of a payload.
type summarizer struct {
	dict      pprofile.ProfilesDictionary
	strings   pcommon.StringSlice
	divide    func(pprofile.ResourceProfiles, pprofile.Profile) []Part
	most      int // summaries
	summaries []Summary
	parts     []int                      // of the summaries
	covered   map[int]*sampletypes.Spans // by the Profiles of summaries that have several
	places    map[uint64]int             // in summaries, by a hash of key, part and minute: a map of keys would take more memory than they do

	resource             uint64 // hash of the resource
	service, profileType string // of the scope
	origin               []byte // of the scope: what its snapshots have in common; nil until it is needed
	buffer               dictionary.Value
}

func (s *summarizer) text(i int32) string { return dictionary.ValidString(s.strings, i) }

func (s *summarizer) addResource(rp pprofile.ResourceProfiles) {
	s.service, s.resource = "", processes.HashResource(rp.Resource().Attributes())
	if name, found := rp.Resource().Attributes().Get("service.name"); found {
		s.service = dictionary.ValidUTF8(name.AsString())
	}
	for _, sp := range rp.ScopeProfiles().All() {
		types := sampletypes.Of(sp, s.text)
		s.profileType, s.origin = dictionary.ValidUTF8(sampletypes.ProfileType(sp.Scope().Attributes(), types)), nil
		for i, p := range sp.Profiles().All() {
			s.add(rp, sp, p, types[i])
		}
	}
}

func (s *summarizer) add(rp pprofile.ResourceProfiles, sp pprofile.ScopeProfiles, p pprofile.Profile, t sampletypes.Type) {
	key := Key{
		Service: s.service, Type: s.profileType, SampleType: t.Type, Unit: t.Unit,
		PeriodType: s.text(p.PeriodType().TypeStrindex()), PeriodUnit: s.text(p.PeriodType().UnitStrindex()),
	}
	if sampletypes.IsSnapshot(s.dict, p, sampletypes.SnapshotSampleTypes) {
		if s.origin == nil {
			s.origin = s.originOf(rp, sp)
		}
		key.Snapshot = s.snapshot(p)
	}
	for _, part := range s.divide(rp, p) {
		if len(s.summaries) > s.most {
			return
		}
		if part.Rows = nil; part.Whole {
			part.Rows, _ = processes.Of(s.dict, s.resource, p, part.Sum) // of a malformed table, the resource is the process
		}
		s.addPart(&Summary{key, part.Total}, part.Index, part.Time)
	}
}

func (s *summarizer) addPart(measured *Summary, part int, start uint64) {
	s.buffer = s.buffer[:0].AppendInt(int64(measured.Snapshot)).AppendInt(int64(part)).AppendInt(int64(start / uint64(time.Minute)))
	for _, text := range measured.texts() {
		s.buffer = s.buffer.AppendKey(*text)
	}
	hash := xxhash.Sum64(s.buffer)
	i, known := s.places[hash]
	if !known || s.summaries[i].Key != measured.Key || s.parts[i] != part {
		s.places[hash] = len(s.summaries)
		s.summaries, s.parts = append(s.summaries, *measured), append(s.parts, part)
		return
	}
	if s.covered[i] == nil {
		s.covered[i] = &sampletypes.Spans{}
		s.covered[i].Add(s.summaries[i].Start, s.summaries[i].End)
	}
	s.covered[i].Add(measured.Start, measured.End)
	s.summaries[i].add(measured, true)
}

// derived are the attributes of scopes that are derived from the Profiles.
var derived = []string{attrkey.ProfileType, sampletypes.OrderAttribute, attrkey.SampleTypes}

// originOf returns the same bytes for equal resources, scopes and profile types, whatever the version of the scope: an
// upgrade of the Collector changes that.
func (s *summarizer) originOf(rp pprofile.ResourceProfiles, sp pprofile.ScopeProfiles) []byte {
	origin := dictionary.AppendMap(dictionary.Value{}.AppendKey(dictionary.ValidUTF8(rp.SchemaUrl())), rp.Resource().Attributes())
	origin = origin.AppendKey(dictionary.ValidUTF8(sp.SchemaUrl())).AppendKey(dictionary.ValidUTF8(sp.Scope().Name())).AppendKey(s.profileType)
	return dictionary.AppendMapWithout(origin, sp.Scope().Attributes(), derived)
}

// snapshot returns the Snapshot of the Key of a Profile.
func (s *summarizer) snapshot(p pprofile.Profile) uint64 {
	id := append(s.buffer[:0], s.origin...)
	for _, t := range [...]pprofile.ValueType{p.SampleType(), p.PeriodType()} {
		id = id.AppendKey(s.text(t.TypeStrindex())).AppendKey(s.text(t.UnitStrindex()))
	}
	id = id.AppendInt(p.Period())
	s.buffer = id
	hash := xxhash.Sum64(id)
	table := s.dict.AttributeTable()
	var attributes []uint64
	for _, i := range p.AttributeIndices().All() {
		if i <= 0 || int(i) >= table.Len() {
			continue
		}
		a := table.At(int(i))
		name := s.text(a.KeyStrindex())
		if name == attrkey.Processes { // says of what it was made, not what it is
			continue
		}
		s.buffer = dictionary.AppendPdata(s.buffer[:0].AppendKey(name), a.Value())
		attributes = append(attributes, xxhash.Sum64(s.buffer))
	}
	slices.Sort(attributes)
	for _, a := range slices.Compact(attributes) {
		s.buffer = s.buffer[:0].AppendInt(int64(hash)).AppendInt(int64(a))
		hash = xxhash.Sum64(s.buffer)
	}
	return max(1, hash)
}

// Measure returns the times and counts of a Profile. It takes most of the time of a payload.
func Measure(p pprofile.Profile) (s Total) {
	samples := p.Samples()
	start := uint64(p.Time())
	latest, sum, stamped := start, int64(0), false
	end := max(start, start+p.DurationNano()) // it may overflow
	for i := range samples.Len() {            // without the iterators, which take twice as long
		sample := samples.At(i)
		sum = sampletypes.AddSaturated(sum, sampletypes.ValueOf(sample))
		timestamps := sample.TimestampsUnixNano()
		stamped = stamped || timestamps.Len() > 0
		for k := range timestamps.Len() {
			t := timestamps.At(k)
			if t < start || start == 0 {
				start = t
			}
			latest = max(latest, t)
		}
	}
	s.Profiles, s.Samples, s.Timestamps, s.Sum = 1, samples.Len(), stamped, sum
	s.Start, s.Latest, s.End = start, latest, max(end, latest)
	s.Covered = s.End - s.Start
	return s
}
