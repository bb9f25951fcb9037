// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// FunctionValue is the value of a function.
type FunctionValue struct {
	Self  float64 `json:"self"`
	Total float64 `json:"total"` // with all that it calls; once in a stack
}

// FunctionChange is what a comparison says of a function.
type FunctionChange struct {
	Function string        `json:"function"`
	Base     FunctionValue `json:"base"`
	New      FunctionValue `json:"new"`
	// SelfError and TotalError are the standard errors of the changes, by the number of samples.
	SelfError  float64 `json:"self_error"`
	TotalError float64 `json:"total_error"`
	// Noise: the change of the total may be chance, and SelfNoise that of the function alone.
	Noise     bool `json:"noise"`
	SelfNoise bool `json:"self_noise"`
}

// SelfChange is the change of the value of the function alone.
func (f *FunctionChange) SelfChange() float64 { return difference(f.New.Self, f.Base.Self) }

// TotalChange is the change of its value with all that it calls.
func (f *FunctionChange) TotalChange() float64 { return difference(f.New.Total, f.Base.Total) }

// difference is a - b, without what scaling both has rounded.
func difference(a, b float64) float64 {
	const precision = 1e-12
	if math.Abs(a-b) <= precision*max(math.Abs(a), math.Abs(b)) {
		return 0
	}
	return a - b
}

// Functions returns the functions of both sides with what is compared of them: rates per second, levels or values. Those whose totals changed
// most come first, and those that may be chance after the others.
func (c *Comparison) Functions(t *ComparedType) []FunctionChange {
	base, after := functionsOf(c.Base, &t.Base), functionsOf(c.New, &t.New)
	changes := make([]FunctionChange, 0, max(len(base), len(after)))
	add := func(name string) {
		f := FunctionChange{Function: name}
		for _, side := range [...]struct {
			*Measure
			of FunctionValue
			to *FunctionValue
		}{{&t.Base, base[name], &f.Base}, {&t.New, after[name], &f.New}} {
			side.to.Self, side.to.Total = side.of.Self*side.Scale, side.of.Total*side.Scale
			f.SelfError, f.TotalError = math.Hypot(f.SelfError, side.errorOf(side.of.Self)), math.Hypot(f.TotalError, side.errorOf(side.of.Total))
		}
		f.Noise, f.SelfNoise = isNoise(f.TotalChange(), f.TotalError), isNoise(f.SelfChange(), f.SelfError)
		changes = append(changes, f)
	}
	for name := range base {
		add(name)
	}
	for name := range after {
		if _, known := base[name]; !known {
			add(name)
		}
	}
	slices.SortFunc(changes, func(a, b FunctionChange) int {
		size := func(f *FunctionChange) float64 { return math.Abs(f.TotalChange()) }
		return cmp.Or(compareBools(a.Noise, b.Noise), cmp.Compare(size(&b), size(&a)), strings.Compare(a.Function, b.Function))
	})
	return changes
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// errorOf returns the standard error of what is compared of a part of the total. The number of samples that a profiler takes of it has the
// distribution of Poisson; one sample more is the doubt about what it has never seen.
func (m *Measure) errorOf(part float64) float64 {
	if m.Total == 0 || m.Samples == 0 {
		return 0
	}
	perSample := m.Value() / m.Samples
	return math.Abs(perSample) * math.Sqrt(m.Samples*math.Abs(part/m.Total)+1)
}

// functionsOf returns the values of a side by function, in those of its pprof.
func functionsOf(s *Side, m *Measure) map[string]FunctionValue {
	if s == nil || m.column < 0 {
		return nil
	}
	return SumFunctions(s.Pprof, m.column)
}

// SumFunctions sums the values of one sample type by function, as pprof's top does: by name, and each once in a stack.
func SumFunctions(p *profile.Profile, column int) map[string]FunctionValue {
	type function struct {
		FunctionValue
		last int // sample that it was seen in, from 1
	}
	functions := map[string]*function{}
	for i, s := range p.Sample {
		v := float64(s.Value[column])
		leaf := true
		for _, l := range s.Location {
			for _, name := range namesOf(l) {
				f := functions[name]
				if f == nil {
					f = &function{}
					functions[name] = f
				}
				if leaf {
					f.Self += v
					leaf = false
				}
				if f.last != i+1 {
					f.last = i + 1
					f.Total += v
				}
			}
		}
	}
	sums := make(map[string]FunctionValue, len(functions))
	for name, f := range functions {
		sums[name] = f.FunctionValue
	}
	return sums
}

// namesOf returns the functions of a location, the innermost first. Without any, it is the file of its mapping.
func namesOf(l *profile.Location) []string {
	names := make([]string, 0, 1)
	for _, line := range l.Line {
		if line.Function != nil {
			names = append(names, cmp.Or(sampletypes.FunctionName(line.Function.Name, line.Function.SystemName), "<unknown>"))
		}
	}
	if len(names) > 0 {
		return names
	}
	if l.Mapping != nil && l.Mapping.File != "" {
		return append(names, "["+path.Base(l.Mapping.File)+"]")
	}
	return append(names, "<unknown>")
}

// SamplesOf returns the number of samples that the values of a sample type stand for. A profiler takes one in each period:
// of CPU time, or of bytes, by which it also selects objects. If nothing tells, it is the number of stacks, each of which it has seen.
func SamplesOf(p *profile.Profile, column int) float64 {
	of := p.SampleType[column]
	total := func(i int) (sum float64) {
		for _, s := range p.Sample {
			sum += float64(s.Value[i])
		}
		return sum
	}
	if of.Unit == "count" && of.Type == "samples" {
		return total(column)
	}
	if i := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == "samples" && t.Unit == "count" }); i >= 0 {
		return total(i)
	}
	if period := p.PeriodType; period != nil && p.Period > 0 {
		family, _, _ := strings.Cut(of.Type, "_") // alloc of alloc_objects
		i := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool {
			return t.Unit == period.Unit && (t.Type == period.Type || t.Type == family+"_"+period.Type)
		})
		if i >= 0 {
			return total(i) / float64(p.Period)
		}
	}
	if of.Unit == "count" {
		return total(column)
	}
	return float64(len(p.Sample))
}

// NegativeError is that of a sample with a negative value, where there may be none.
func NegativeError(value int64) error {
	return fmt.Errorf("a sample has the value %d: must not be negative, as in a difference of profiles", value)
}

// SampleTypes writes the sample types of a pprof: "samples/count, cpu/nanoseconds".
func SampleTypes(p *profile.Profile) string {
	types := make([]string, len(p.SampleType))
	for i, t := range p.SampleType {
		types[i] = t.Type + "/" + t.Unit
	}
	return strings.Join(types, ", ")
}
