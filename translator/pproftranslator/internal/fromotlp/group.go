// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/semconv"
)

// group is the Profiles of a scope that become one pprof.
type group struct {
	header  *profile.Profile // without sample types and samples
	columns []*column        // in the order of the pprof's sample types
	members []member         // in the order of the scope
}

// column is a sample type of a group.
type column struct {
	sampleType profile.ValueType
	typeNumber int // of its {type, unit} in the scope, in order of appearance
	rank       int
	index      int // in group.columns
}

// member is a Profile, which has values for one column of its group.
type member struct {
	profile pprofile.Profile
	index   int // in the scope
	column  *column
}

// group sorts the Profiles of a scope into groups: the n-th Profile of a header,
// {type, unit} and shape belongs to the n-th group of that header. It returns an error
// for each Profile that belongs to none.
func (c *Converter) group(sp pprofile.ScopeProfiles) (groups []*group, failed []error) {
	type groupKey struct {
		header string
		number int
	}
	type shapeKey struct {
		header     string
		typeNumber int
		timed      bool
	}
	type columnKey struct {
		group      *group
		typeNumber int
	}
	var columns []*column // of all groups
	types, headers, counts := map[[2]int32]int{}, map[string]bool{}, map[shapeKey]int{}
	byKey, columnOf := map[groupKey]*group{}, map[columnKey]*column{}
	for i, p := range sp.Profiles().All() {
		header, err := c.header(p)
		if err != nil {
			failed = append(failed, fmt.Errorf("profiles[%d]: %w", i, err))
			continue
		}
		key := headerKey(header)
		headers[key] = true
		sampleType := [2]int32{c.remap.String(p.SampleType().TypeStrindex()), c.remap.String(p.SampleType().UnitStrindex())}
		typeNumber, ok := types[sampleType]
		if !ok {
			typeNumber = len(types)
			types[sampleType] = typeNumber
		}

		number, shapes := 0, shapesOf(p)
		for _, timed := range shapes {
			number = max(number, counts[shapeKey{key, typeNumber, timed}])
		}
		for _, timed := range shapes {
			counts[shapeKey{key, typeNumber, timed}] = number + 1
		}
		g := byKey[groupKey{key, number}]
		if g == nil {
			g = &group{header: header}
			g.header.DefaultSampleType = TextOf(sp.Scope().Attributes(), semconv.ScopeDefaultSampleType)
			byKey[groupKey{key, number}] = g
			groups = append(groups, g)
		}
		col := columnOf[columnKey{g, typeNumber}]
		if col == nil {
			col = &column{typeNumber: typeNumber, sampleType: profile.ValueType{
				Type: c.text(p.SampleType().TypeStrindex()), Unit: c.text(p.SampleType().UnitStrindex()),
			}}
			columnOf[columnKey{g, typeNumber}] = col
			g.columns = append(g.columns, col)
			columns = append(columns, col)
		}
		g.members = append(g.members, member{profile: p, index: i, column: col})
	}

	// An order of as many numbers as there are different types applies to each group.
	// One of as many as there are columns means that all are of one pprof, whose types
	// repeat. Any other is ignored.
	switch order := sampleTypeOrder(sp.Scope().Attributes()); {
	case len(order) == len(types):
		for _, column := range columns {
			column.rank = order[column.typeNumber]
		}
	case len(order) == len(columns) && len(headers) == 1:
		for i, column := range columns {
			column.rank = order[i]
		}
		groups = []*group{joinGroups(groups, columns)}
	}
	for _, g := range groups {
		slices.SortStableFunc(g.columns, func(a, b *column) int { return cmp.Compare(a.rank, b.rank) })
		for i, column := range g.columns {
			column.index = i
		}
	}
	return groups, failed
}

func joinGroups(groups []*group, columns []*column) *group {
	all := &group{header: groups[0].header, columns: columns}
	for _, g := range groups {
		all.members = append(all.members, g.members...)
	}
	slices.SortFunc(all.members, func(a, b member) int { return cmp.Compare(a.index, b.index) })
	return all
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
func (c *Converter) header(p pprofile.Profile) (*profile.Profile, error) {
	h := &profile.Profile{
		TimeNanos:     clampToInt64(uint64(p.Time())),
		DurationNanos: clampToInt64(p.DurationNano()),
		PeriodType:    &profile.ValueType{Type: c.text(p.PeriodType().TypeStrindex()), Unit: c.text(p.PeriodType().UnitStrindex())},
		Period:        p.Period(),
	}
	err := c.attributes(p.AttributeIndices(), func(key string, v pcommon.Value) {
		switch key {
		case semconv.ProfileComment:
			h.Comments = textsOf(v)
		case semconv.ProfileDropFrames:
			h.DropFrames = dictionary.ValidUTF8(v.AsString())
		case semconv.ProfileKeepFrames:
			h.KeepFrames = dictionary.ValidUTF8(v.AsString())
		case semconv.ProfileDocURL:
			h.DocURL = dictionary.ValidUTF8(v.AsString())
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
		return []string{dictionary.ValidUTF8(v.AsString())}
	}
	texts := make([]string, 0, v.Slice().Len())
	for _, e := range v.Slice().All() {
		texts = append(texts, dictionary.ValidUTF8(e.AsString()))
	}
	return texts
}

func clampToInt64(v uint64) int64 { return int64(min(v, math.MaxInt64)) }

// sampleTypeOrder reads pprof.scope.sample_type_order; nil if it is missing or not a
// permutation.
func sampleTypeOrder(scope pcommon.Map) []int {
	v, ok := scope.Get(semconv.ScopeSampleTypeOrder)
	if !ok || v.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	n := v.Slice().Len()
	order, seen := make([]int, n), make([]bool, n)
	for i, e := range v.Slice().All() {
		at := e.Int()
		if e.Type() != pcommon.ValueTypeInt || at < 0 || at >= int64(n) || seen[at] {
			return nil
		}
		order[i], seen[at] = int(at), true
	}
	return order
}
