// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// Summary describes the Profiles of a record that differ in nothing but time: of one series.
type Summary struct {
	// Series is a hash of the resource, the scope and all fields of the Profile but time, duration
	// and ID: a snapshot replaces an earlier one of its series.
	Series     string `json:"series"`
	Service    string `json:"service,omitempty"`
	Type       string `json:"type,omitempty"` // the scope attribute profile.type
	SampleType string `json:"sample_type,omitempty"`
	Unit       string `json:"unit,omitempty"`
	// Snapshot: see the function Snapshot.
	Snapshot bool `json:"snapshot,omitempty"`
	// Timestamps: samples have timestamps.
	Timestamps bool `json:"timestamps,omitempty"`
	// Start is the earliest start or timestamp, and End the latest end, in nanoseconds since the
	// epoch.
	Start uint64 `json:"start,omitempty"`
	End   uint64 `json:"end,omitempty"`

	Profiles int   `json:"profiles"`
	Samples  int   `json:"samples"`
	Sum      int64 `json:"sum"`
}

// Add adds another summary of the series. Of snapshots the later counts.
func (s *Summary) Add(other *Summary) {
	if s.Snapshot && s.Profiles > 0 {
		s.Profiles += other.Profiles
		if other.Start >= s.Start {
			s.Start, s.End, s.Samples, s.Sum = other.Start, other.End, other.Samples, other.Sum
		}
		return
	}
	if s.Profiles == 0 || other.Start < s.Start {
		s.Start = other.Start
	}
	s.End = max(s.End, other.End)
	s.Timestamps = s.Timestamps || other.Timestamps
	s.Profiles += other.Profiles
	s.Samples += other.Samples
	s.Sum = AddSaturating(s.Sum, other.Sum)
}

// AddSaturating returns a + b, or the nearest int64.
func AddSaturating(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// Summarize returns the summaries of a payload, in the order of its Profiles. Indices that lead
// nowhere are taken for 0.
func Summarize(pd pprofile.Profiles) []Summary {
	var summaries []Summary
	places := map[string]int{}
	dict := pd.Dictionary()
	for _, rp := range pd.ResourceProfiles().All() {
		resource := dictionary.AppendMap(nil, rp.Resource().Attributes())
		service := text(rp.Resource().Attributes(), "service.name")
		for _, sp := range rp.ScopeProfiles().All() {
			attributes := pcommon.NewMap()
			sp.Scope().Attributes().CopyTo(attributes)
			attributes.Remove(sampletypes.OrderAttribute) // these depend on the values
			attributes.Remove(sampletypes.ListAttribute)
			scope := dictionary.AppendMap(resource[:len(resource):len(resource)], attributes)
			scope = scope.AppendKey(sp.Scope().Name()).AppendKey(sp.Scope().Version())
			typ := sampletypes.ProfileType(sp.Scope().Attributes(), sampletypes.Of(sp, func(i int32) string { return textAt(dict, i) }))
			for _, p := range sp.Profiles().All() {
				s := Summary{Service: service, Type: typ, Snapshot: Snapshot(dict, p), Profiles: 1}
				s.SampleType, s.Unit = textAt(dict, p.SampleType().TypeStrindex()), textAt(dict, p.SampleType().UnitStrindex())
				s.Series = seriesOf(scope, dict, p, &s)
				s.measure(p)
				place, known := places[s.Series]
				if !known {
					places[s.Series] = len(summaries)
					summaries = append(summaries, s)
				} else if held := &summaries[place]; held.Snapshot && held.Start == s.Start {
					held.Profiles, held.Samples, held.Sum = held.Profiles+1, held.Samples+s.Samples, AddSaturating(held.Sum, s.Sum)
				} else {
					held.Add(&s)
				}
			}
		}
	}
	return summaries
}

func text(attributes pcommon.Map, key string) string {
	if value, ok := attributes.Get(key); ok {
		return value.AsString()
	}
	return ""
}

func seriesOf(scope dictionary.Value, dict pprofile.ProfilesDictionary, p pprofile.Profile, s *Summary) string {
	content := scope[:len(scope):len(scope)].AppendKey(s.SampleType).AppendKey(s.Unit).
		AppendKey(textAt(dict, p.PeriodType().TypeStrindex())).AppendKey(textAt(dict, p.PeriodType().UnitStrindex())).AppendInt(p.Period())
	own := pcommon.NewMap()
	for _, i := range p.AttributeIndices().All() {
		if i > 0 && int(i) < dict.AttributeTable().Len() {
			a := dict.AttributeTable().At(int(i))
			a.Value().CopyTo(own.PutEmpty(textAt(dict, a.KeyStrindex())))
		}
	}
	sum := sha256.Sum256(dictionary.AppendMap(content, own))
	return hex.EncodeToString(sum[:8])
}

// measure sets time, samples and sum.
func (s *Summary) measure(p pprofile.Profile) {
	s.Start, s.End = uint64(p.Time()), uint64(p.Time())+p.DurationNano()
	s.Samples = p.Samples().Len()
	for _, sample := range p.Samples().All() {
		timestamps := sample.TimestampsUnixNano()
		if sample.Values().Len() == 0 {
			s.Sum = AddSaturating(s.Sum, int64(timestamps.Len()))
		}
		for _, v := range sample.Values().All() {
			s.Sum = AddSaturating(s.Sum, v)
		}
		for _, t := range timestamps.All() {
			s.Timestamps = true
			if t < s.Start || s.Start == 0 {
				s.Start = t
			}
			s.End = max(s.End, t)
		}
	}
}
