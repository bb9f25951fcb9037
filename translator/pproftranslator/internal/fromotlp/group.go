// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"fmt"
	"math"
	"slices"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// group is the Profiles of a scope that become one pprof, or a Profile that cannot.
type group struct {
	err     error
	header  *profile.Profile   // without sample types and samples
	types   []sampletypes.Type // of the scope
	listed  bool               // the pprof has all of them, also those without a Profile
	members []member           // in the order of the scope
	indices []int              // of the Profiles in the scope, those of members
}

// member is a Profile, which has values for one sample type.
type member struct {
	profile pprofile.Profile
	number  int // of its sample type in the scope
}

// columns returns the numbers of the sample types of the pprof, only of those with samples if omitEmpty.
func (g *group) columns(omitEmpty bool) (numbers []int) {
	for _, m := range g.members {
		if !omitEmpty || m.profile.Samples().Len() > 0 {
			numbers = append(numbers, m.number)
		}
	}
	for number := range g.types {
		if g.listed && !omitEmpty {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// group sorts the Profiles of a scope into groups: the n-th Profile of a header, sample
// type and shape belongs to the n-th group of that header.
func (c *converter) group(sp pprofile.ScopeProfiles) (groups []*group) {
	type shapeKey struct {
		header     string
		typeNumber int
		timed      bool
	}
	types, order, listed := c.sampleTypes(sp)
	counts, byHeader := map[shapeKey]int{}, map[string][]*group{}
	for i, p := range sp.Profiles().All() {
		header, err := c.header(p)
		if err != nil {
			groups = append(groups, &group{err: fmt.Errorf("profiles[%d]: %w", i, err), indices: []int{i}})
			continue
		}
		key, number, shapes := headerKey(header), 0, shapesOf(p)
		for _, timed := range shapes {
			number = max(number, counts[shapeKey{key, order[i], timed}])
		}
		for _, timed := range shapes {
			counts[shapeKey{key, order[i], timed}] = number + 1
		}
		if number == len(byHeader[key]) {
			g := &group{header: header, types: types, listed: listed}
			g.header.DefaultSampleType = dictionary.TextOf(sp.Scope().Attributes(), sampletypes.DefaultAttribute)
			byHeader[key] = append(byHeader[key], g)
			groups = append(groups, g)
		}
		g := byHeader[key][number]
		g.members, g.indices = append(g.members, member{p, order[i]}), append(g.indices, i)
	}
	return groups
}

// sampleTypes returns the sample types of a scope, and for each Profile the number of
// its own. They are those of the pprof, if listed, or else those of the Profiles, each
// once, in order of appearance.
func (c *converter) sampleTypes(sp pprofile.ScopeProfiles) (types []sampletypes.Type, order []int, listed bool) {
	own := sampletypes.Of(sp, c.text)
	if types, order = sampletypes.Read(sp.Scope().Attributes(), own); types != nil {
		return types, order, true
	}
	numbers := map[sampletypes.Type]int{}
	for _, t := range own {
		number, known := numbers[t]
		if !known {
			number = len(types)
			numbers[t] = number
			types = append(types, t)
		}
		order = append(order, number)
	}
	return types, order, false
}

// shapesOf reports for the samples of p whether they have timestamps: false, true or
// both. A Profile without samples counts as one without timestamps.
func shapesOf(p pprofile.Profile) []bool {
	var shapes []bool
	for _, s := range p.Samples().All() {
		if timed := s.TimestampsUnixNano().Len() > 0; !slices.Contains(shapes, timed) {
			shapes = append(shapes, timed)
		}
	}
	if len(shapes) == 0 {
		return []bool{false}
	}
	return shapes
}

// header returns a pprof with everything of p that the sample types of a pprof share.
func (c *converter) header(p pprofile.Profile) (*profile.Profile, error) {
	h := &profile.Profile{
		TimeNanos:     clampToInt64(uint64(p.Time())),
		DurationNanos: clampToInt64(p.DurationNano()),
		PeriodType:    &profile.ValueType{Type: c.text(p.PeriodType().TypeStrindex()), Unit: c.text(p.PeriodType().UnitStrindex())},
		Period:        p.Period(),
	}
	err := c.attributes(p.AttributeIndices(), func(key string, v pcommon.Value) {
		switch key {
		case ProfileComment:
			h.Comments = textsOf(v)
		case ProfileDropFrames:
			h.DropFrames = textOf(v)
		case ProfileKeepFrames:
			h.KeepFrames = textOf(v)
		case ProfileDocURL:
			h.DocURL = textOf(v)
		}
	})
	return h, err
}

// headerKey is equal for equal headers.
func headerKey(h *profile.Profile) string {
	return fmt.Sprintf("%d %d %d %q %q %q %q %q %q", h.TimeNanos, h.DurationNanos, h.Period,
		h.PeriodType.Type, h.PeriodType.Unit, h.Comments, h.DropFrames, h.KeepFrames, h.DocURL)
}

// textsOf returns the elements of an array, or v itself if it is none.
func textsOf(v pcommon.Value) []string {
	if v.Type() != pcommon.ValueTypeSlice {
		return []string{textOf(v)}
	}
	texts := make([]string, 0, v.Slice().Len())
	for _, e := range v.Slice().All() {
		texts = append(texts, textOf(e))
	}
	return texts
}

func clampToInt64(v uint64) int64 { return int64(min(v, math.MaxInt64)) }
