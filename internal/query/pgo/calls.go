// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pgo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// call is a call as the compiler identifies it.
type call struct {
	caller, callee string
	offset         int64 // of its line from the start line of the caller
}

// calls are the calls of a CPU profile with their weights.
type calls struct {
	sampleType, periodType *profile.ValueType
	period                 int64
	weights                map[call]int64
	starts                 map[string]int64 // start lines by function: the last one, if several builds differ
}

// callsOf returns the calls that the compiler takes from a profile: those between the frames of the two innermost
// locations of each stack, which include inlined ones. See NewGraph of internal/profile and createNamedEdgeMap of
// cmd/internal/pgo in the source of Go.
func callsOf(p *profile.Profile) (*calls, error) {
	value := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool {
		return *t == profile.ValueType{Type: "samples", Unit: "count"} || *t == profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	})
	if value < 0 {
		return nil, fmt.Errorf("sample types are %s: must include samples/count or cpu/nanoseconds", query.SampleTypes(p))
	}
	c := &calls{p.SampleType[value], p.PeriodType, p.Period, map[call]int64{}, map[string]int64{}}
	for _, s := range p.Sample {
		switch weight := s.Value[value]; {
		case weight < 0:
			return nil, query.NegativeError(weight)
		case weight > 0:
			if err := c.add(s.Location[:min(2, len(s.Location))], weight); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case len(c.weights) == 0:
		return nil, errors.New("the profiles have no calls: must have CPU samples with stacks")
	case c.withoutStart() == 1:
		return nil, errors.New("no function has a start line: must be CPU profiles that a program built by Go 1.20 or later takes of itself")
	}
	return c, nil
}

// frame is a node of the compiler's graph.
type frame struct {
	function    string
	address     uint64
	start, line int64
}

func (c *calls) add(stack []*profile.Location, weight int64) error {
	frames := framesOf(stack)
	seen := map[[2]frame]bool{} // a stack counts once for a call
	for i := range len(frames) - 1 {
		pair := [2]frame{frames[i+1], frames[i]}
		if seen[pair] || pair[0] == pair[1] {
			continue
		}
		seen[pair] = true
		of := call{pair[0].function, pair[1].function, pair[0].line - pair[0].start}
		if c.weights[of] > math.MaxInt64-weight {
			return fmt.Errorf("the sum of %s does not fit into 64 bits: select less, by service or time", c.sampleType.Type)
		}
		c.weights[of] += weight
		for _, f := range pair {
			c.starts[f.function] = max(c.starts[f.function], f.start)
		}
	}
	return nil
}

// framesOf returns the frames of a stack, the innermost first.
func framesOf(stack []*profile.Location) (frames []frame) {
	for _, l := range stack {
		for _, line := range l.Line {
			f := frame{address: l.Address}
			if function := line.Function; function != nil {
				f = frame{function.Name, l.Address, function.StartLine, line.Line}
			}
			frames = append(frames, f)
		}
		if len(l.Line) == 0 {
			frames = append(frames, frame{address: l.Address})
		}
	}
	return frames
}

// withoutStart returns the share of calls whose caller has no start line.
func (c *calls) withoutStart() float64 {
	var without, total float64
	for of, weight := range c.weights {
		total += float64(weight)
		if c.starts[of.caller] == 0 {
			without += float64(weight)
		}
	}
	return without / total
}

// pprof returns a profile with a stack of two frames for each call, the heaviest first.
func (c *calls) pprof() *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{c.sampleType}, PeriodType: c.periodType, Period: c.period}
	functions := map[string]*profile.Function{}
	function := func(name string) *profile.Function {
		f := functions[name]
		if f == nil {
			f = &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, SystemName: name, StartLine: c.starts[name]}
			functions[name], p.Function = f, append(p.Function, f)
		}
		return f
	}
	type place struct {
		function string
		address  uint64
		line     int64
	}
	locations := map[place]*profile.Location{}
	location := func(at place) *profile.Location {
		l := locations[at]
		if l == nil {
			l = &profile.Location{ID: uint64(len(p.Location) + 1), Address: at.address, Line: []profile.Line{{Function: function(at.function), Line: at.line}}}
			locations[at], p.Location = l, append(p.Location, l)
		}
		return l
	}
	// The compiler drops a call from a place to itself. So that those of a recursive function differ, callees have an address.
	const calleeAddress = 1
	for _, of := range slices.SortedFunc(maps.Keys(c.weights), c.compare) {
		p.Sample = append(p.Sample, &profile.Sample{Value: []int64{c.weights[of]}, Location: []*profile.Location{
			location(place{of.callee, calleeAddress, c.starts[of.callee]}), location(place{of.caller, 0, c.starts[of.caller] + of.offset}),
		}})
	}
	return p
}

func (c *calls) compare(a, b call) int {
	return cmp.Or(cmp.Compare(c.weights[b], c.weights[a]), cmp.Compare(a.caller, b.caller), cmp.Compare(a.callee, b.callee), cmp.Compare(a.offset, b.offset))
}
