// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"cmp"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// pprofPlan says which Profiles of a scope make one pprof.
type pprofPlan struct {
	header      pprofHeader
	defaultType string
	types       []*plannedType   // the sample types, in their order
	profiles    []plannedProfile // in the order of the scope
}

// countValues is the number of values of all samples, where those without a
// timestamp count once a sample.
func (plan *pprofPlan) countValues() int {
	n := 0
	for _, p := range plan.profiles {
		samples := p.profile.Samples()
		for i := range samples.Len() {
			n += max(1, samples.At(i).TimestampsUnixNano().Len())
		}
	}
	return n
}

// plannedType is one sample type of a pprof: a column of values.
type plannedType struct {
	name, unit string
	kind       int // the number of its {type, unit} in the scope, in order of appearance
	number     int // its own number in the scope, in order of appearance
	rank       int // types are ordered by it
	column     int // its index in pprofPlan.types
}

// plannedProfile is a Profile and the sample type that it has the values of.
type plannedProfile struct {
	profile pprofile.Profile
	index   int // in the scope
	of      *plannedType
}

// The shapes of samples. A Profile that mixes them has both.
const (
	plainValues = 1 << iota
	timedValues
)

// shapesOf returns the shapes of the samples of p: plain values if there are none.
func shapesOf(p pprofile.Profile) int {
	shapes := 0
	samples := p.Samples()
	for i := 0; i < samples.Len() && shapes != plainValues|timedValues; i++ {
		if samples.At(i).TimestampsUnixNano().Len() > 0 {
			shapes |= timedValues
		} else {
			shapes |= plainValues
		}
	}
	if shapes == 0 {
		return plainValues
	}
	return shapes
}

// scopePlanner sorts the Profiles of a scope into pprofs: the n-th Profile of
// one header, {type, unit} and shape belongs to the n-th pprof of that header.
type scopePlanner struct {
	kinds   map[[2]int32]int // by indices of type and unit
	headers map[headerKey]int
	used    map[typeShape]int
	plans   map[planNumber]*pprofPlan
	types   map[typeOfPlan]*plannedType

	ordered []*pprofPlan
	columns []*plannedType
}

type typeShape struct{ header, kind, shape int }

type planNumber struct{ header, number int }

type typeOfPlan struct {
	plan *pprofPlan
	kind int
}

// planScope returns the plans of the pprofs of sp, in the order of the first
// Profile of each, and an error for each Profile that can be in none.
func (c *pprofConverter) planScope(sp pprofile.ScopeProfiles) (plans []*pprofPlan, refused []error) {
	s := scopePlanner{
		kinds:   map[[2]int32]int{},
		headers: map[headerKey]int{},
		used:    map[typeShape]int{},
		plans:   map[planNumber]*pprofPlan{},
		types:   map[typeOfPlan]*plannedType{},
	}
	for k, p := range sp.Profiles().All() {
		header, key, err := c.header(p)
		if err != nil {
			refused = append(refused, fmt.Errorf("profiles[%d]: %w", k, err))
			continue
		}
		kind := numberOf(s.kinds, [2]int32{
			c.remap.String(p.SampleType().TypeStrindex()), c.remap.String(p.SampleType().UnitStrindex()),
		})
		plan := s.planFor(numberOf(s.headers, key), kind, shapesOf(p), header)
		of := s.types[typeOfPlan{plan, kind}]
		if of == nil {
			of = &plannedType{
				name:   c.text(p.SampleType().TypeStrindex()),
				unit:   c.text(p.SampleType().UnitStrindex()),
				kind:   kind,
				number: len(s.columns),
			}
			s.types[typeOfPlan{plan, kind}] = of
			s.columns = append(s.columns, of)
			plan.types = append(plan.types, of)
		}
		plan.profiles = append(plan.profiles, plannedProfile{profile: p, index: k, of: of})
	}
	s.restoreOrder(sampleTypeOrder(sp.Scope().Attributes()))
	for _, plan := range s.ordered {
		plan.defaultType = textOf(sp.Scope().Attributes(), attrScopeDefaultSampleType)
	}
	return s.ordered, refused
}

// numberOf returns the number of key, which is the next one if key is new.
func numberOf[K comparable](numbers map[K]int, key K) int {
	n, ok := numbers[key]
	if !ok {
		n = len(numbers)
		numbers[key] = n
	}
	return n
}

func (s *scopePlanner) planFor(header, kind, shapes int, content pprofHeader) *pprofPlan {
	number := 0
	for _, shape := range []int{plainValues, timedValues} {
		if shapes&shape != 0 {
			number = max(number, s.used[typeShape{header, kind, shape}])
		}
	}
	for _, shape := range []int{plainValues, timedValues} {
		if shapes&shape != 0 {
			s.used[typeShape{header, kind, shape}] = number + 1
		}
	}
	plan := s.plans[planNumber{header, number}]
	if plan == nil {
		plan = &pprofPlan{header: content}
		s.plans[planNumber{header, number}] = plan
		s.ordered = append(s.ordered, plan)
	}
	return plan
}

// restoreOrder puts the sample types of each plan in the order that the scope
// tells. An order of as many numbers as there are different types is meant for
// each plan. One of as many as there are types with their repeats says that they
// were of one pprof, whose types repeated. Any other says nothing.
func (s *scopePlanner) restoreOrder(order []int) {
	switch {
	case len(order) == len(s.kinds):
		for _, t := range s.columns {
			t.rank = order[t.kind]
		}
	case len(order) == len(s.columns) && len(s.headers) == 1:
		for _, t := range s.columns {
			t.rank = order[t.number]
		}
		s.joinPlans()
	}
	for _, plan := range s.ordered {
		slices.SortStableFunc(plan.types, func(a, b *plannedType) int { return cmp.Compare(a.rank, b.rank) })
		for i, t := range plan.types {
			t.column = i
		}
	}
}

func (s *scopePlanner) joinPlans() {
	whole := &pprofPlan{header: s.ordered[0].header, types: slices.Clone(s.columns)}
	for _, plan := range s.ordered {
		whole.profiles = append(whole.profiles, plan.profiles...)
	}
	slices.SortFunc(whole.profiles, func(a, b plannedProfile) int { return cmp.Compare(a.index, b.index) })
	s.ordered = []*pprofPlan{whole}
}

// sampleTypeOrder reads pprof.scope.sample_type_order; nil if it is not there or
// not a permutation.
func sampleTypeOrder(scope pcommon.Map) []int {
	v, ok := scope.Get(attrScopeSampleTypeOrder)
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
