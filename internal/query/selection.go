// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// Selection says which profiles and samples count. The zero value selects all.
type Selection struct {
	// Services are values of the resource attribute service.name, of which one must match.
	Services []string
	// Types are a profile type (heap), a sample type (alloc_space) or both (mutex:delay), of
	// which one must match.
	Types []string
	// From and To are the time range [From, To); a zero time is no bound.
	From, To time.Time
	// TraceID and SpanID are those of a sample's link, or of its attributes.
	TraceID pcommon.TraceID
	SpanID  pcommon.SpanID
	// Resource are attributes of the resource, Attributes those of a sample or its Profile.
	Resource, Attributes map[string]string
}

const serviceName = "service.name"

// Attributes with the IDs of a span and a trace: those that pprof labels become if the other ID
// of a link is missing or the ID is that of a root span.
var (
	spanAttributes  = []string{"span_id", "span id", "local root span id", "profile_id"}
	traceAttributes = []string{"trace_id", "trace id", "otel_traceid", "otel.traceid"}
)

// selectsSamples reports whether parts of a Profile may be selected for more than their time.
func (s *Selection) selectsSamples() bool {
	return !s.TraceID.IsEmpty() || !s.SpanID.IsEmpty() || len(s.Attributes) > 0
}

// excludes reports whether nothing of a record can be selected, before it is decoded: its link table
// and attributes do not have the trace.
func (s *Selection) excludes(record []byte) bool {
	return !s.TraceID.IsEmpty() && s.SpanID.IsEmpty() &&
		!bytes.Contains(record, s.TraceID[:]) && !bytes.Contains(record, []byte(hex.EncodeToString(s.TraceID[:])))
}

// Filter removes from pd all that is not selected. Indices of pd that lead nowhere match nothing.
func (s *Selection) Filter(pd pprofile.Profiles) {
	f := newFilter(s, pd)
	pd.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		if !s.matchesResource(rp.Resource().Attributes()) {
			return true
		}
		rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
			f.filterScope(sp)
			return sp.Profiles().Len() == 0
		})
		return rp.ScopeProfiles().Len() == 0
	})
}

// MatchesService reports whether a service is selected.
func (s *Selection) MatchesService(name string) bool {
	return len(s.Services) == 0 || slices.Contains(s.Services, name)
}

func (s *Selection) matchesResource(attributes pcommon.Map) bool {
	if !s.MatchesService(textOf(attributes, serviceName)) {
		return false
	}
	for key, want := range s.Resource {
		if value, ok := attributes.Get(key); !ok || value.AsString() != want {
			return false
		}
	}
	return true
}

// matchesType reports whether Profiles with these types are selected.
func (s *Selection) matchesType(profile, sample string) bool {
	return len(s.Types) == 0 || slices.ContainsFunc(s.Types, func(want string) bool {
		return want == profile || want == sample || want == profile+":"+sample
	})
}

// contains reports whether the range contains a time in nanoseconds since the epoch.
func (s *Selection) contains(t uint64) bool {
	return (s.From.IsZero() || t >= nanosecondsOf(s.From)) && (s.To.IsZero() || t < nanosecondsOf(s.To))
}

func textOf(attributes pcommon.Map, key string) string {
	if value, ok := attributes.Get(key); ok {
		return value.AsString()
	}
	return ""
}

// filter applies a Selection to one payload.
type filter struct {
	*Selection
	dict         pprofile.ProfilesDictionary
	requirements []requirement // of samples: all must be met
}

// requirement is that a sample has one of these links or attributes, by index.
type requirement struct{ links, attributes []bool }

func newFilter(s *Selection, pd pprofile.Profiles) *filter {
	f := &filter{Selection: s, dict: pd.Dictionary()}
	for key, value := range s.Attributes {
		f.requirements = append(f.requirements, requirement{attributes: f.attributesWith([]string{key}, value)})
	}
	if s.TraceID.IsEmpty() && s.SpanID.IsEmpty() {
		return f
	}
	var ids requirement
	for _, l := range f.dict.LinkTable().All() {
		ids.links = append(ids.links, (s.TraceID.IsEmpty() || l.TraceID() == s.TraceID) && (s.SpanID.IsEmpty() || l.SpanID() == s.SpanID))
	}
	if s.SpanID.IsEmpty() {
		ids.attributes = f.attributesWith(traceAttributes, hex.EncodeToString(s.TraceID[:]))
	} else {
		ids.attributes = f.attributesWith(spanAttributes, hex.EncodeToString(s.SpanID[:]), strconv.FormatUint(binary.BigEndian.Uint64(s.SpanID[:]), 10))
	}
	f.requirements = append(f.requirements, ids)
	return f
}

// attributesWith returns the attributes with one of the keys and values, by index.
func (f *filter) attributesWith(keys []string, values ...string) (found []bool) {
	for _, a := range f.dict.AttributeTable().All() {
		found = append(found, slices.Contains(keys, f.text(a.KeyStrindex())) && slices.Contains(values, a.Value().AsString()))
	}
	return found
}

func (f *filter) text(i int32) string { return dictionary.ValidString(f.dict.StringTable(), i) }

// filterScope removes the Profiles that are not selected. Of those that are, the scope states the
// profile type, if the sample types tell it.
func (f *filter) filterScope(sp pprofile.ScopeProfiles) {
	scope, profiles := sp.Scope().Attributes(), sampletypes.Of(sp, f.text)
	ofScope := sampletypes.ProfileType(scope, profiles)
	if ofScope != "" {
		scope.PutStr(sampletypes.ProfileTypeAttribute, ofScope)
	}
	all, order := sampletypes.Read(scope, profiles)
	i, kept := -1, make([]int, 0, len(order))
	sp.Profiles().RemoveIf(func(p pprofile.Profile) bool {
		i++
		if !f.matchesType(ofScope, profiles[i].Type) || !f.filterProfile(p) {
			return true
		}
		if all != nil {
			kept = append(kept, order[i])
		}
		return false
	})
	if all != nil && (len(f.Types) > 0 || len(kept) < len(order)) {
		f.writeTypes(scope, ofScope, all, kept)
	}
}

// writeTypes describes the sample types of a scope again: those that are selected, and of the Profiles
// that are left their indices in all.
func (f *filter) writeTypes(scope pcommon.Map, ofScope string, all []sampletypes.Type, profiles []int) {
	var selected []sampletypes.Type
	index, hasDefault := make([]int, len(all)), false
	for i, t := range all {
		if f.matchesType(ofScope, t.Type) {
			index[i] = len(selected)
			selected = append(selected, t)
			hasDefault = hasDefault || t.Type == textOf(scope, sampletypes.DefaultAttribute)
		}
	}
	for i := range profiles {
		profiles[i] = index[profiles[i]]
	}
	sampletypes.Write(scope, selected, profiles)
	if !hasDefault && len(f.Types) > 0 {
		scope.Remove(sampletypes.DefaultAttribute)
	}
}

// filterProfile removes the samples that are not selected, and reports whether p is.
func (f *filter) filterProfile(p pprofile.Profile) bool {
	if f.selectsSamples() {
		p.Samples().RemoveIf(func(s pprofile.Sample) bool { return !f.matchesSample(p, s) })
		if p.Samples().Len() == 0 {
			return false
		}
	}
	if f.From.IsZero() && f.To.IsZero() {
		return true
	}
	inRange, timestamps := f.contains(uint64(p.Time())), false
	p.Samples().RemoveIf(func(s pprofile.Sample) bool {
		if s.TimestampsUnixNano().Len() == 0 {
			return !inRange
		}
		timestamps = true
		return !f.filterTimestamps(s)
	})
	if timestamps {
		f.clip(p)
		return p.Samples().Len() > 0
	}
	return inRange
}

func (f *filter) matchesSample(p pprofile.Profile, s pprofile.Sample) bool {
	for _, r := range f.requirements {
		i := int(s.LinkIndex())
		hasLink := i > 0 && i < len(r.links) && r.links[i]
		if !hasLink && !containsAny(r.attributes, s.AttributeIndices()) && !containsAny(r.attributes, p.AttributeIndices()) {
			return false
		}
	}
	return true
}

func containsAny(found []bool, indices pcommon.Int32Slice) bool {
	for _, i := range indices.All() {
		if i > 0 && int(i) < len(found) && found[i] {
			return true
		}
	}
	return false
}

// filterTimestamps removes the timestamps out of range, with their values, and reports
// whether any is left.
func (f *filter) filterTimestamps(s pprofile.Sample) bool {
	timestamps, values, kept := s.TimestampsUnixNano(), s.Values(), 0
	hasValues := values.Len() == timestamps.Len()
	for i := range timestamps.Len() {
		if !f.contains(timestamps.At(i)) {
			continue
		}
		timestamps.SetAt(kept, timestamps.At(i))
		if hasValues {
			values.SetAt(kept, values.At(i))
		}
		kept++
	}
	if kept < timestamps.Len() {
		timestamps.FromRaw(timestamps.AsRaw()[:kept])
		if hasValues {
			values.FromRaw(values.AsRaw()[:kept])
		}
	}
	return kept > 0
}

// clip limits the time of a Profile with timestamps to the range.
func (f *filter) clip(p pprofile.Profile) {
	start, end := uint64(p.Time()), uint64(p.Time())+p.DurationNano()
	if start == 0 || end < start {
		return
	}
	if !f.From.IsZero() {
		start = max(start, nanosecondsOf(f.From))
	}
	if !f.To.IsZero() {
		end = min(end, nanosecondsOf(f.To))
	}
	p.SetTime(pcommon.Timestamp(start))
	p.SetDurationNano(max(end, start) - start)
}
