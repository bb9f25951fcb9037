// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Neighbors are the functions next to one in the stacks of a selection.
type Neighbors struct {
	FunctionValue

	// Callers and Callees are what calls the function and what it calls, the largest first. Of a stack, each counts once, so that those of
	// a function that calls itself may add up to more than its total.
	Callers, Callees []Neighbor
}

// Neighbor is a function next to another one.
type Neighbor struct {
	Function string  `json:"function"`
	Value    float64 `json:"value"`
}

// Neighbors returns what calls a function of the selection and what it calls, in what is compared of a type: rates per second, levels or
// values. ok is false if no stack has the function.
func (c *Comparison) Neighbors(t *ComparedType, function string) (of Neighbors, ok bool) {
	if t.New.column < 0 {
		return of, false
	}
	callers, callees := map[string]float64{}, map[string]float64{}
	edges := map[[2]string]bool{}
	for _, s := range c.New.Pprof.Sample {
		v := float64(s.Value[t.New.column]) * t.New.Scale
		clear(edges)
		found, callee, isLeaf := false, "", true
		for _, l := range s.Location {
			for _, name := range namesOf(l) {
				if name == function {
					found = true
				}
				if edge := [2]string{name, callee}; isLeaf {
					if name == function {
						of.Self += v
					}
				} else if !edges[edge] {
					edges[edge] = true
					if name == function {
						callees[callee] += v
					}
					if callee == function {
						callers[name] += v
					}
				}
				callee, isLeaf = name, false
			}
		}
		if found {
			of.Total += v
			ok = true
		}
	}
	of.Callers, of.Callees = largest(callers), largest(callees)
	return of, ok
}

func largest(values map[string]float64) []Neighbor {
	all := make([]Neighbor, 0, len(values))
	for name, v := range maps.All(values) {
		all = append(all, Neighbor{name, v})
	}
	slices.SortFunc(all, func(a, b Neighbor) int {
		return cmp.Or(cmp.Compare(max(b.Value, -b.Value), max(a.Value, -a.Value)), strings.Compare(a.Function, b.Function))
	})
	return all
}
