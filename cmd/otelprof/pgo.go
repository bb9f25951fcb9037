// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

func (a *app) pgo() *cobra.Command {
	c := &cobra.Command{
		Use:   "pgo PATH... [-o FILE]",
		Short: "Write a small CPU profile for go build -pgo",
		Long: `Write the CPU profiles of a Go program as one for go build -pgo, which finds
default.pgo in the directory of the main package.

The file has what the compiler uses, which is the weight of each call: caller,
callee and line. The compiler decides the same as with the full profiles, and
the size of the file does not grow with the number of stacks.`,
		Example: `  otelprof pgo --service checkout -o default.pgo ./profiles
  otelprof pgo -o default.pgo cpu.pb.gz`,
		Args: paths,
	}
	sel := a.addSelection(c.Flags())
	output := c.Flags().StringP("output", "o", archive.Stdin, "`FILE` to write, - for standard output")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(sel.Types) == 0 {
			sel.Types = []string{"cpu"}
		}
		merged, err := a.compare(c.Context(), args, &comparison{Selection: sel})
		if err != nil {
			return err
		}
		calls, err := callsOf(merged.New.Pprof)
		if err != nil {
			return err
		}
		if share := calls.withoutStart(); share > 0 {
			a.note("%.2g %% of the calls are of functions without a start line, which the compiler ignores", share*100)
		}
		return a.writeTo(*output, func(w io.Writer) error { return query.WritePprof(w, calls.pprof()) })
	}
	return c
}

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
		return nil, fmt.Errorf("sample types are %s: must include samples/count or cpu/nanoseconds", typesOf(p))
	}
	c := &calls{p.SampleType[value], p.PeriodType, p.Period, map[call]int64{}, map[string]int64{}}
	for _, s := range p.Sample {
		switch weight := s.Value[value]; {
		case weight < 0:
			return nil, negativeError(weight)
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

func negativeError(value int64) error {
	return fmt.Errorf("a sample has the value %d: must not be negative, as in a difference of profiles", value)
}

func typesOf(p *profile.Profile) string {
	types := make([]string, len(p.SampleType))
	for i, t := range p.SampleType {
		types[i] = t.Type + "/" + t.Unit
	}
	return strings.Join(types, ", ")
}
