// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Selection says which profiles and samples count. The zero value selects all.
type Selection struct {
	// Services are values of the resource attribute service.name, of which one must match.
	Services []string
	// Types are a profile type (heap), a sample type (alloc_space), both (mutex:delay) or a TypeID, of
	// which one must match.
	Types []string
	// From and To are the time range [From, To); a zero time is no bound.
	From, To time.Time
	// TraceIDs and SpanIDs, of each of which one must match, are those of a sample's link, or of its attributes.
	TraceIDs []pcommon.TraceID
	SpanIDs  []pcommon.SpanID
	// ProfileIDs, of which one must match, are those of Profiles. What merges them gives new ones.
	ProfileIDs []pprofile.ProfileID
	// Labels must all match: attributes, and those that KeyLabel knows.
	Labels []*labels.Matcher

	// overlaps: records count that have a Profile of which a part is in the range, not only those with a start or a timestamp in it.
	overlaps bool
}

const serviceName = "service.name"

// Attributes with the IDs of a span and a trace: those that pprof labels become if the other ID
// of a link is missing or the ID is that of a root span.
var (
	spanAttributes  = []string{"span_id", "span id", "local root span id", "profile_id"}
	traceAttributes = []string{"trace_id", "trace id", "otel_traceid", "otel.traceid"}
)

// SelectsSamples reports whether parts of a Profile may be selected for more than their time.
func (s *Selection) SelectsSamples() bool {
	return s.selectsIDs() || len(s.ProfileIDs) > 0 || slices.ContainsFunc(s.Labels, isAttribute)
}

func (s *Selection) selectsIDs() bool { return len(s.TraceIDs) > 0 || len(s.SpanIDs) > 0 }

// maxSearched is how many IDs are searched for in a record before it is decoded.
const maxSearched = 8

// excludes reports whether nothing of a record can be selected, before it is decoded: its link table
// and attributes do not have the trace, or no Profile of an OTLP record has the ID.
func (s *Selection) excludes(record []byte, isOTLP bool) bool {
	hasTrace := len(s.TraceIDs) == 0 || len(s.SpanIDs) > 0 || len(s.TraceIDs) > maxSearched
	for i := 0; i < len(s.TraceIDs) && !hasTrace; i++ {
		id := s.TraceIDs[i][:]
		hasTrace = bytes.Contains(record, id) || bytes.Contains(record, []byte(hex.EncodeToString(id)))
	}
	hasProfile := len(s.ProfileIDs) == 0 || !isOTLP || len(s.ProfileIDs) > maxSearched
	for i := 0; i < len(s.ProfileIDs) && !hasProfile; i++ {
		hasProfile = bytes.Contains(record, s.ProfileIDs[i][:])
	}
	return !hasTrace || !hasProfile
}

// filter removes from pd all that is not selected. Indices of pd that lead nowhere match nothing. When ctx ends, the rest of pd
// means nothing, and the error is that of ctx.
func (s *Selection) filter(ctx context.Context, pd pprofile.Profiles) error {
	return newFilter(ctx, s, pd).apply(pd)
}

func (f *filter) apply(pd pprofile.Profiles) error {
	pd.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		if !f.startResource(rp.Resource().Attributes()) {
			return true
		}
		rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
			f.filterScope(sp)
			return sp.Profiles().Len() == 0
		})
		return rp.ScopeProfiles().Len() == 0
	})
	return f.ctx.Err()
}

// contains reports whether the range contains a time in nanoseconds since the epoch.
func (s *Selection) contains(t uint64) bool {
	return (s.From.IsZero() || t >= nanosecondsOf(s.From)) && (s.To.IsZero() || t < nanosecondsOf(s.To))
}

// filter applies a Selection to one payload.
type filter struct {
	*Selection
	ctx          context.Context // of matching
	dict         pprofile.ProfilesDictionary
	requirements []*requirement
	profiles     map[pprofile.ProfileID]bool // nil for all
	service      string                      // of the resource

	// times: a Profile stays, without samples, if none of its samples is selected, but others of its process may be: it says when the process was
	// profiled.
	times bool
	// timeOnly says of each Profile that stays, in their order, whether it stays for its time only. It is nil unless times is set.
	timeOnly []bool
}

// requirement is met by the link, the attributes or the resource of a sample.
type requirement struct {
	label      *labels.Matcher // nil for the ID of a trace or span
	links      []bool          // by index: it meets the requirement
	attributes []verdict       // by index
	ofSamples  bool            // samples of one resource may differ
	ofResource bool            // the resource meets the requirement, for samples without such an attribute
	inResource bool            // the resource has the label
}

// verdict says whether an attribute meets a requirement.
type verdict int8

const (
	unrelated verdict = iota
	met
	unmet
)

func newFilter(ctx context.Context, s *Selection, pd pprofile.Profiles) *filter {
	f := &filter{Selection: s, ctx: ctx, dict: pd.Dictionary()}
	for _, m := range s.Labels {
		if isAttribute(m) {
			f.requirements = append(f.requirements, f.ofLabel(m))
		}
	}
	if s.selectsIDs() {
		f.requirements = append(f.requirements, f.ofIDs())
	}
	if len(s.ProfileIDs) > 0 {
		f.profiles = map[pprofile.ProfileID]bool{}
		for _, id := range s.ProfileIDs {
			f.profiles[id] = true
		}
	}
	return f
}

func (f *filter) ofLabel(m *labels.Matcher) *requirement {
	r := &requirement{label: m, attributes: make([]verdict, f.dict.AttributeTable().Len())}
	for i, a := range f.dict.AttributeTable().All() {
		text, ok := labels.Text(a.Value())
		switch {
		case i == 0 || !ok || !labels.Is(f.text(a.KeyStrindex()), m.Name):
			continue
		case m.Matches(f.ctx, text):
			r.attributes[i] = met
		default:
			r.attributes[i] = unmet
		}
		r.ofSamples = true
	}
	return r
}

func (f *filter) ofIDs() *requirement {
	r := &requirement{ofSamples: true}
	traces, spans := map[pcommon.TraceID]bool{}, map[pcommon.SpanID]bool{}
	keys, values := traceAttributes, map[string]bool{}
	for _, id := range f.TraceIDs {
		traces[id], values[hex.EncodeToString(id[:])] = true, true
	}
	if len(f.SpanIDs) > 0 {
		keys, values = spanAttributes, map[string]bool{}
	}
	for _, id := range f.SpanIDs {
		spans[id], values[hex.EncodeToString(id[:])] = true, true
		values[strconv.FormatUint(binary.BigEndian.Uint64(id[:]), 10)] = true
	}
	for _, l := range f.dict.LinkTable().All() {
		r.links = append(r.links, (len(traces) == 0 || traces[l.TraceID()]) && (len(spans) == 0 || spans[l.SpanID()]))
	}
	for _, a := range f.dict.AttributeTable().All() {
		is := unrelated
		if slices.Contains(keys, f.text(a.KeyStrindex())) && values[a.Value().AsString()] {
			is = met
		}
		r.attributes = append(r.attributes, is)
	}
	return r
}

// startResource reports whether something of a resource may be selected.
func (f *filter) startResource(attributes pcommon.Map) bool {
	f.service = dictionary.TextOf(attributes, serviceName)
	for _, r := range f.requirements {
		value := ""
		if r.label != nil {
			value = labels.Find(attributes, r.label.Name)
		}
		r.ofResource, r.inResource = r.label != nil && r.label.Matches(f.ctx, value), value != ""
		if !r.ofResource && !r.ofSamples && (r.inResource || !f.times) {
			return false
		}
	}
	return f.MatchesService(f.service)
}

func (f *filter) text(i int32) string { return dictionary.ValidString(f.dict.StringTable(), i) }

// filterScope removes the Profiles that are not selected. Of those that are, the scope states the
// profile type, if the sample types tell it.
func (f *filter) filterScope(sp pprofile.ScopeProfiles) {
	scope, profiles := sp.Scope().Attributes(), sampletypes.Of(sp, f.text)
	key := contents.Key{Service: f.service, Type: dictionary.ValidUTF8(sampletypes.ProfileType(scope, profiles))}
	if key.Type != "" {
		scope.PutStr(attrkey.ProfileType, key.Type)
	}
	all, order := sampletypes.Read(scope, profiles)
	i, kept := -1, make([]int, 0, len(order))
	sp.Profiles().RemoveIf(func(p pprofile.Profile) bool {
		i++
		key.SampleType, key.Unit = profiles[i].Type, profiles[i].Unit
		key.PeriodType, key.PeriodUnit = f.text(p.PeriodType().TypeStrindex()), f.text(p.PeriodType().UnitStrindex())
		matches := f.MatchesKey(f.ctx, &key)
		selected := matches && f.filterProfile(p)
		timeOnly := matches && !selected && f.times && f.isTimed(p)
		switch {
		case timeOnly:
			p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
		case !selected:
			return true
		}
		if f.times {
			f.timeOnly = append(f.timeOnly, timeOnly)
		}
		if all != nil {
			kept = append(kept, order[i])
		}
		return false
	})
	if all != nil && (f.selectsTypes() || len(kept) < len(order)) {
		f.writeTypes(scope, key, all, kept)
	}
}

// writeTypes describes the sample types of a scope again: those that are selected, and of the Profiles
// that are left their indices in all. key is that of a Profile of the scope.
func (f *filter) writeTypes(scope pcommon.Map, key contents.Key, all []sampletypes.Type, profiles []int) {
	var selected []sampletypes.Type
	index, hasDefault := make([]int, len(all)), false
	for i, t := range all {
		if key.SampleType, key.Unit = t.Type, t.Unit; f.MatchesKey(f.ctx, &key) {
			index[i] = len(selected)
			selected = append(selected, t)
			hasDefault = hasDefault || t.Type == dictionary.TextOf(scope, sampletypes.DefaultAttribute)
		}
	}
	for i := range profiles {
		profiles[i] = index[profiles[i]]
	}
	sampletypes.Write(scope, selected, profiles)
	if !hasDefault && f.selectsTypes() {
		scope.Remove(sampletypes.DefaultAttribute)
	}
}

// filterProfile removes the samples that are not selected, and reports whether p is.
func (f *filter) filterProfile(p pprofile.Profile) bool {
	if f.profiles != nil && !f.profiles[p.ProfileID()] {
		return false
	}
	if slices.ContainsFunc(f.requirements, func(r *requirement) bool { return r.ofSamples || !r.ofResource }) {
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
		start, duration := clip(p, f.From, f.To)
		p.SetTime(pcommon.Timestamp(start))
		p.SetDurationNano(duration)
		return p.Samples().Len() > 0
	}
	return inRange
}

// isTimed reports whether samples of the process of a Profile may be selected, none of whose own is: neither the Profile nor its resource says
// that they are not.
func (f *filter) isTimed(p pprofile.Profile) bool {
	return !f.selectsIDs() && len(f.ProfileIDs) == 0 && !slices.ContainsFunc(f.requirements, func(r *requirement) bool {
		if is := r.find(p.AttributeIndices()); is != unrelated {
			return is == unmet
		}
		return r.inResource && !r.ofResource
	})
}

func (f *filter) matchesSample(p pprofile.Profile, s pprofile.Sample) bool {
	return !slices.ContainsFunc(f.requirements, func(r *requirement) bool { return !r.isMet(p, s) })
}

// isMet looks at the link of a sample, its attributes, those of its Profile and its resource, in this order.
func (r *requirement) isMet(p pprofile.Profile, s pprofile.Sample) bool {
	if i := int(s.LinkIndex()); i > 0 && i < len(r.links) && r.links[i] {
		return true
	}
	for _, indices := range [...]pcommon.Int32Slice{s.AttributeIndices(), p.AttributeIndices()} {
		if is := r.find(indices); is != unrelated {
			return is == met
		}
	}
	return r.ofResource
}

// find returns the verdict of the first attribute that has one.
func (r *requirement) find(indices pcommon.Int32Slice) verdict {
	for k := range indices.Len() {
		i := int(indices.At(k))
		if i > 0 && i < len(r.attributes) && r.attributes[i] != unrelated {
			return r.attributes[i]
		}
	}
	return unrelated
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

// clip returns the time of a Profile with timestamps in a range. An interval stays one, wherever its timestamps are: without a duration it
// would be a snapshot.
func clip(p pprofile.Profile, from, to time.Time) (start, duration uint64) {
	start, duration = uint64(p.Time()), p.DurationNano()
	end := start + duration
	if start == 0 || end < start {
		return start, duration
	}
	if !from.IsZero() {
		start = max(start, nanosecondsOf(from))
	}
	if !to.IsZero() {
		end = min(end, nanosecondsOf(to))
	}
	if end <= start {
		return start, min(duration, 1)
	}
	return start, end - start
}
