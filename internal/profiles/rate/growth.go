// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package rate

import (
	"math"
	"slices"
)

// Growth is the change of a series from the first third of a range to the last one.
type Growth struct {
	// Before and After are the rates of the thirds, or for snapshots the mean sums of the living processes. They are 0 without data.
	Before, After float64
	// IsNew: the first third has no data, and HasEnded: the last one has none.
	IsNew, HasEnded bool
	// Noise: the change may be chance, or too little is known.
	Noise bool
}

const (
	// mostSteps is how many steps tell growth from noise; leastSteps are the fewest that can.
	mostSteps, leastSteps = 24, 6
	// A change is beyond noise if the medians of the thirds differ by more than so many standard errors, and if so much of the pairs of a step
	// of each are in one order. Of simulated series, independent steps of several distributions are taken for growth in 0.5 % of cases at most
	// (with 15 steps and more in 0.1 %), correlated ones (0.5) in 4 %, sawtooths of 3 to 8 steps in none (24 steps); see TestNoiseIsNotGrowth_T3.
	deviations, ordered = 5, 0.85
	// leastDeviation is the standard deviation of steps as a part of their median, if they vary less.
	leastDeviation = 0.01
)

// Growth compares the first and the last third of the time from one nanosecond to another.
func (s *Series) Growth(from, to uint64) Growth {
	third := (to - from) / 3
	if third == 0 { // of a single moment
		value, _ := s.mean(from, to)
		return Growth{Before: value, After: value, Noise: true}
	}
	var g Growth
	before, hasBefore := s.mean(from, from+third)
	after, hasAfter := s.mean(to-third, to)
	g.Before, g.After, g.IsNew, g.HasEnded = before, after, !hasBefore, !hasAfter
	const precision = 1e-9
	switch {
	case hasBefore && hasAfter && math.Abs(after-before) <= precision*max(math.Abs(after), math.Abs(before)): // a rest of rounding
		g.After, g.Noise = before, true
	case hasBefore == hasAfter:
		n := min(mostSteps, s.perProcess(from, to)) // of more steps, neighbors would be of the same interval
		n -= n % 3
		g.Noise = n < leastSteps || isNoise(s.Steps(from, (to-from)/uint64(max(1, n)), n))
	}
	return g
}

// perProcess returns how many intervals or snapshots a process has on average.
func (s *Series) perProcess(from, to uint64) int {
	t, n := s.time(), 0
	for i := range t.lines {
		for _, stand := range t.lines[i].stands {
			if stand.overlaps(from, to) {
				n++
			}
		}
	}
	whole := t.sweep(from, to)
	return int(float64(n) * seconds(to-from) / max(1, whole.processes))
}

// mean returns the rate of a range, or the mean sum of snapshots.
func (s *Series) mean(from, to uint64) (value float64, ok bool) {
	if s.Snapshots {
		step := s.Steps(from, to-from, 1)[0]
		return step.Rate, step.Data > 0
	}
	summary := s.Summary(from, to)
	return summary.Rate, summary.Data > 0
}

// isNoise reports whether steps, of which there are three times as many as in a third, may have grown or shrunk by chance. How much they vary is
// told by their second differences, of which neither a trend nor a jump changes the median.
func isNoise(steps []Step) bool {
	third := len(steps) / 3
	first, last := valuesOf(steps[:third]), valuesOf(steps[len(steps)-third:])
	if len(first) == 0 || len(last) == 0 {
		return true
	}
	var differences []float64
	for i := 1; i+1 < len(steps); i++ {
		if steps[i-1].Data > 0 && steps[i].Data > 0 && steps[i+1].Data > 0 {
			differences = append(differences, math.Abs(steps[i+1].Rate-2*steps[i].Rate+steps[i-1].Rate))
		}
	}
	if len(differences) < leastSteps-2 {
		return true
	}
	const ofNormal = 0.6745 * 2.4495 // the median of a second difference of a normal distribution, in standard deviations
	change := medianOf(last) - medianOf(first)
	deviation := max(medianOf(differences)/ofNormal, leastDeviation*(math.Abs(medianOf(first))+math.Abs(medianOf(last)))/2)
	const ofMedian = 1.25 // its standard error is greater than that of a mean
	if math.Abs(change) <= deviations*ofMedian*deviation*math.Sqrt(1/float64(len(first))+1/float64(len(last))) {
		return true
	}
	inOrder := 0.0
	for _, a := range first {
		for _, b := range last {
			switch {
			case a == b:
				inOrder += 0.5
			case a < b == (change > 0):
				inOrder++
			}
		}
	}
	return inOrder < ordered*float64(len(first)*len(last))
}

// valuesOf returns the values of the steps that have data.
func valuesOf(steps []Step) (values []float64) {
	for _, step := range steps {
		if step.Data > 0 {
			values = append(values, step.Rate)
		}
	}
	return values
}

// medianOf sorts values, of which there is one at least.
func medianOf(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
