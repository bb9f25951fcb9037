// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package regression tells changes of functions between two sides of runs from noise.
//
// The quantity is the share of a function in the total: the cumulative value of all runs of a side, divided by their
// total. A sample hits a function or not, so that the variance of a share p of one run is p(1-p)/samples if samples
// are independent. They are not: samples of one run have its memory layout, its order of threads and its
// neighbors on the machine in common. The model therefore is that of a quasi-beta-binomial test:
//
//	Var(share of a run) = φ p(1-p) (1/samples + ρ)
//
// ρ is the correlation of two samples of one run, a constant. φ is estimated for each function from the differences
// between the runs of each side, with a degree of freedom less than a side has runs, and moderated by
// a prior of 1 that is worth priorDF degrees, as limma and edgeR do for genes. The prior only raises φ, and the variance is
// never taken to be below that of independent samples. The difference of both shares, divided by its standard error, has Student's t distribution
// with the degrees of both. Without a second run on a side there is the prior only, and only large changes are significant.
//
// All functions are tested that have at least a given share on a side. The method of Benjamini and Hochberg adjusts their
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

	// correlation and priorDF describe runs of Go programs with a fixed workload. TestFalsePositivesOfRealRuns checks them.
	correlation = 4e-4
	priorDF     = 4
)

// Run is one profile.
type Run struct {
	Total     float64 // value of all samples
	Samples   float64 // number of samples that the values stand for
	Functions map[string]Value
}

// Value is the value of a function, or its share in the total.
type Value struct {
	Cumulative float64 `json:"cumulative"`
	Flat       float64 `json:"flat"`
}

// Side sums runs. It has the sums that the test needs, so that its size is that of one run.
type Side struct {
	Runs    int     `json:"runs"`
	Samples float64 `json:"samples"` // that the values stand for
	Total   float64 `json:"total"`   // of the values

	functions map[string]*sums
	size      int64
	// Sums over the runs, where v is 1/samples + correlation.
	binomial float64 // of total²/samples
	squares  float64 // of total²
	variance float64 // of total² v
	cubes    float64 // of total³ v
	fourths  float64 // of (total² v)²
}

// sums are those of a function over the runs of a side.
type sums struct {
	value    Value
	squares  float64 // of cumulative²
	products float64 // of cumulative total
}

// Add adds a run, whose total and number of samples must be positive.
func (s *Side) Add(run *Run) {
	if s.functions == nil {
		s.functions = map[string]*sums{}
	}
	s.Runs++
	s.Total += run.Total
	s.Samples += run.Samples
	square := run.Total * run.Total
	weighted := square * (1/run.Samples + correlation)
	s.binomial += square / run.Samples
	s.squares += square
	s.variance += weighted
	s.cubes += weighted * run.Total
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
		of.products += value.Cumulative * run.Total
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

// share returns the shares of a function.
func (s *Side) share(name string) Value {
	of := s.functions[name]
	if of == nil {
		return Value{}
	}
	return Value{of.value.Cumulative / s.Total, of.value.Flat / s.Total}
}

// expected returns the variance of a share of the side, divided by φ p(1-p).
func (s *Side) expected() float64 { return s.variance / (s.Total * s.Total) }

// measured returns the variance of the share of a function as the runs show it, and its degrees of freedom: the sum of
// total² (share of the run - share of the side)² by that of all totals, divided by the part of the variance that the residuals
// have. With runs of equal size, that part is 1 - 1/runs, and the degrees are runs - 1.
func (s *Side) measured(name string) (variance, degrees float64) {
	degrees = s.variance*s.variance/s.fourths - 1
	part := 1 - 2*s.cubes/(s.variance*s.Total) + s.squares/(s.Total*s.Total)
	if s.Runs < 2 || degrees < 1e-6 || part < 1e-6 { // one run has nearly all of the side
		return 0, 0
	}
	if of := s.functions[name]; of != nil {
		share := of.value.Cumulative / s.Total
		variance = max(0, of.squares-2*share*of.products+share*share*s.squares) / (s.Total * s.Total * part)
	}
	return variance, degrees
}

// Change is what a comparison says of a function.
type Change struct {
	Function string `json:"function"`
	Base     Value  `json:"base"` // shares
	New      Value  `json:"new"`
	// Difference is that of the cumulative shares, and Margin half of its 95 % confidence interval.
	Difference float64 `json:"change"`
	Margin     float64 `json:"margin"`
	// P is the p-value, adjusted for the number of functions.
	P           float64 `json:"p"`
	Significant bool    `json:"significant"` // the difference is beyond noise
}

// Compare returns the changes of all functions with at least minShare on a side, the greatest differences first. Both sides
// have runs.
func Compare(base, after *Side, minShare float64) []Change {
	var changes []Change
	add := func(name string) {
		c := Change{Function: name, Base: base.share(name), New: after.share(name)}
		if max(c.Base.Cumulative, c.New.Cumulative) >= minShare {
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
	share := (base.share(c.Function).Cumulative*base.Samples + after.share(c.Function).Cumulative*after.Samples) / (base.Samples + after.Samples)
	ofSample := share * (1 - share)
	if ofSample < 1e-12 { // all or none of the samples, on both sides
		c.Difference, c.P = 0, 1
		return
	}
	degrees, dispersions := 0.0, 0.0 // and the sum of φ, weighted by degrees
	for _, side := range []*Side{base, after} {
		variance, of := side.measured(c.Function)
		degrees += of
		dispersions += of * variance / (ofSample * side.expected())
	}
	dispersion := (priorDF + dispersions) / (priorDF + degrees)
	if dispersions > degrees { // the prior does not lower it
		dispersion = dispersions / degrees
	}
	independent := base.binomial/(base.Total*base.Total) + after.binomial/(after.Total*after.Total)
	variance := ofSample * max(dispersion*(base.expected()+after.expected()), independent)
	deviation, t := math.Sqrt(variance), distuv.StudentsT{Sigma: 1, Nu: priorDF + degrees}
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
