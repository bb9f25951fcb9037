// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package regression tells changes of functions between two sides of runs from noise.
//
// The quantity is the rate of a function: the cumulative value of all runs of a side, divided by their seconds. Where there is no rate, a run
// counts as a second. Of a function with the share p of the total of a run, the number of samples varies as Poisson's distribution says if
// samples are independent. They are not: samples of one run have its memory layout, its order of threads and its neighbors on the machine in
// common. And the total varies from run to run, with the load and with what the machine gives. The model is a quasi-likelihood:
//
//	Var(value in a run) = φ p(1 + κp) total² (1/samples + ρ)
//
// ρ is the correlation of two samples of one run, and κρ the variance of the totals, relative to them; both are constants. φ is estimated for
// each function from the differences between the runs of each side, with a degree of freedom less than a side has runs, and moderated by
// a prior of 1 that is worth priorDF degrees, as limma and edgeR do for genes. The prior only raises φ, and the variance is
// never taken to be below that of independent samples. The difference of both rates, divided by its standard error, has Student's t distribution
// with the degrees of both. Without a second run on a side there is the prior only, and only large changes are significant.
//
// All functions are tested that have at least a given share of the total on a side. The method of Benjamini and Hochberg adjusts their
// p-values to the false discovery rate [Level]: a comparison of equal sides has any significant change with at most
// that probability.
package regression

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// Level is the false discovery rate.
	Level = 0.005

	// correlation (ρ), ofTotals (κ) and priorDF describe runs of Go programs with a fixed workload. TestFalsePositivesOfRealRuns checks them.
	correlation = 4e-4
	ofTotals    = 3
	priorDF     = 4
)

// Run is one profile.
type Run struct {
	Total     float64 // value of all samples
	Samples   float64 // number of samples that the values stand for
	Seconds   float64 // that the values were counted in; 1 without a rate
	Functions map[string]Value
}

// Value is the value of a function, or its rate.
type Value struct {
	Cumulative float64 `json:"cumulative"`
	Flat       float64 `json:"flat"`
}

// Side sums runs. It has the sums that the test needs, so that its size is that of one run.
type Side struct {
	Runs    int     `json:"runs"`
	Samples float64 `json:"samples"` // that the values stand for
	Total   float64 `json:"total"`   // of the values
	Seconds float64 `json:"seconds"` // that they were counted in

	functions map[string]*sums
	size      int64
	// Sums over the runs, where v is 1/samples + correlation.
	poisson  float64 // of total²/samples
	squares  float64 // of seconds²
	variance float64 // of total² v
	products float64 // of total² v seconds
	fourths  float64 // of (total² v)²
}

// sums are those of a function over the runs of a side.
type sums struct {
	value    Value
	squares  float64 // of cumulative²
	products float64 // of cumulative seconds
}

// Add adds a run, whose number of samples and seconds must be positive.
func (s *Side) Add(run *Run) {
	if s.functions == nil {
		s.functions = map[string]*sums{}
	}
	s.Runs++
	s.Total += run.Total
	s.Samples += run.Samples
	s.Seconds += run.Seconds
	square := run.Total * run.Total
	weighted := square * (1/run.Samples + correlation)
	s.poisson += square / run.Samples
	s.squares += run.Seconds * run.Seconds
	s.variance += weighted
	s.products += weighted * run.Seconds
	s.fourths += weighted * weighted
	for name, value := range run.Functions {
		of := s.functions[name]
		if of == nil {
			of = &sums{}
			s.functions[name] = of
			s.size += int64(len(name)) + sizeOfSums
		}
		of.value.Flat += value.Flat
		of.value.Cumulative += value.Cumulative
		of.squares += value.Cumulative * value.Cumulative
		of.products += value.Cumulative * run.Seconds
	}
}

// sizeOfSums estimates the memory of an entry of functions.
const sizeOfSums = 128

// Size returns the memory of a run in bytes.
func (r *Run) Size() (size int64) {
	for name := range r.Functions {
		size += int64(len(name)) + sizeOfSums
	}
	return size
}

// Size returns the memory of a side in bytes.
func (s *Side) Size() int64 { return s.size }

// Rate is the value of all functions per second.
func (s *Side) Rate() float64 { return s.Total / s.Seconds }

// rate returns the rates of a function.
func (s *Side) rate(name string) Value {
	of := s.functions[name]
	if of == nil {
		return Value{}
	}
	return Value{of.value.Cumulative / s.Seconds, of.value.Flat / s.Seconds}
}

// perSecond returns a variance of values as one of rates.
func (s *Side) perSecond(variance float64) float64 { return variance / (s.Seconds * s.Seconds) }

// measured returns the variance of the rate of a function as the runs show it, and its degrees of freedom: the sum of
// (value of the run - rate of the side × seconds)², divided by the part of the variance that the residuals
// have. With runs of equal size, that part is 1 - 1/runs, and the degrees are runs - 1.
func (s *Side) measured(name string) (variance, degrees float64) {
	degrees = s.variance*s.variance/s.fourths - 1
	part := 1 - 2*s.products/(s.variance*s.Seconds) + s.squares/(s.Seconds*s.Seconds)
	if s.Runs < 2 || !(degrees >= 1e-6) || !(part >= 1e-6) { // one run has nearly all of the side
		return 0, 0
	}
	if of := s.functions[name]; of != nil {
		rate := of.value.Cumulative / s.Seconds
		variance = max(0, of.squares-2*rate*of.products+rate*rate*s.squares) / part
	}
	return s.perSecond(variance), degrees
}

// Change is what a comparison says of a function.
type Change struct {
	Function string `json:"function"`
	Base     Value  `json:"base"` // rates
	New      Value  `json:"new"`
	// Difference is that of the cumulative rates, and Margin half of its 95 % confidence interval.
	Difference float64 `json:"change"`
	Margin     float64 `json:"margin"`
	// P is the p-value, adjusted for the number of functions.
	P           float64 `json:"p"`
	Significant bool    `json:"significant"` // the difference is beyond noise
}

// Compare returns the changes of all functions with at least minShare of the total of a side, the greatest differences first. The totals of
// both sides are positive.
func Compare(base, after *Side, minShare float64) []Change {
	var changes []Change
	add := func(name string) {
		c := Change{Function: name, Base: base.rate(name), New: after.rate(name)}
		if max(c.Base.Cumulative/base.Rate(), c.New.Cumulative/after.Rate()) >= minShare {
			c.test(base, after)
			changes = append(changes, c)
		}
	}
	for name := range base.functions {
		add(name)
	}
	for name := range after.functions {
		if base.functions[name] == nil {
			add(name)
		}
	}
	adjust(changes)
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Difference), math.Abs(a.Difference)), strings.Compare(a.Function, b.Function))
	})
	return changes
}

// test sets the difference and its p-value, not adjusted.
func (c *Change) test(base, after *Side) {
	c.Difference = c.New.Cumulative - c.Base.Cumulative
	common := (c.Base.Cumulative*base.Samples + c.New.Cumulative*after.Samples) / (base.Samples + after.Samples)
	if common <= 0 {
		c.P = 1
		return
	}
	expected, independent := 0.0, 0.0
	degrees, dispersions := 0.0, 0.0 // and the sum of φ, weighted by degrees
	for _, side := range []*Side{base, after} {
		share := min(1, common/side.Rate())
		ofSide := side.perSecond(share * (1 + ofTotals*share) * side.variance)
		variance, of := side.measured(c.Function)
		degrees += of
		dispersions += of * variance / ofSide
		expected += ofSide
		independent += side.perSecond(share * side.poisson)
	}
	dispersion := (priorDF + dispersions) / (priorDF + degrees)
	if dispersions > degrees { // the prior does not lower it
		dispersion = dispersions / degrees
	}
	deviation, t := math.Sqrt(max(dispersion*expected, independent)), distuv.StudentsT{Sigma: 1, Nu: priorDF + degrees}
	c.P = 2 * t.Survival(math.Abs(c.Difference)/deviation)
	c.Margin = t.Quantile(0.975) * deviation
}

// adjust makes the p-values of single functions those of all functions together, by the method of Benjamini and Hochberg.
func adjust(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(b.P, a.P) })
	atMost := 1.0
	for i := range changes {
		atMost = min(atMost, changes[i].P*float64(len(changes))/float64(len(changes)-i))
		changes[i].P, changes[i].Significant = atMost, atMost < Level
	}
}
