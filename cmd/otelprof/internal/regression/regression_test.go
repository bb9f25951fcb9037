// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package regression

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
)

// program has functions that call others, with the shares of many Go programs: few large, many small.
type program struct {
	leaves []float64 // shares, whose sum is 1
	rho    float64   // correlation of the samples of a run
	load   float64   // standard deviation of the load, as a part of it
}

func newProgram(rho float64) *program {
	p := &program{rho: rho}
	const leaves = 60
	sum := 0.0
	for i := range leaves {
		p.leaves = append(p.leaves, 1/float64(i+2))
		if i%8 == 0 {
			p.leaves[i] *= 1.6 // 30 % for group 0
		}
		sum += p.leaves[i]
	}
	for i := range p.leaves {
		p.leaves[i] /= sum
	}
	return p
}

// run takes about n samples of the program. The functions of a group take more time by the factor of the group.
func (p *program) run(rng *rand.Rand, n float64, slow map[int]float64) *Run {
	r := &Run{Seconds: n / 100 / max(0.1, 1+p.load*rng.NormFloat64()), Functions: map[string]Value{}}
	weights, sum := make([]float64, len(p.leaves)), 0.0
	for i, share := range p.leaves {
		weights[i] = share
		if p.rho > 0 { // the shares of a run have a Dirichlet distribution
			weights[i] = distuv.Gamma{Alpha: share * (1/p.rho - 1), Beta: 1 / p.rho, Src: rng}.Rand()
		}
		sum += weights[i]
	}
	for i, weight := range weights {
		factor := 1.0
		if f, found := slow[i%8]; found {
			factor = f
		}
		count := distuv.Poisson{Lambda: max(1e-9, n*weight/sum*factor), Src: rng}.Rand()
		if count == 0 {
			continue
		}
		r.Total += count
		r.Samples += count
		for _, name := range []string{"leaf " + strconv.Itoa(i), "caller " + strconv.Itoa(i%20), "group " + strconv.Itoa(i%8), "half " + strconv.Itoa(i%8/4), "main"} {
			v := r.Functions[name]
			v.Cumulative += count
			if name[0] == 'l' {
				v.Flat += count
			}
			r.Functions[name] = v
		}
	}
	return r
}

func sideOf(runs []*Run) *Side {
	s := &Side{}
	for _, r := range runs {
		s.Add(r)
	}
	return s
}

func (p *program) runs(rng *rand.Rand, k int, n float64, slow map[int]float64) (runs []*Run) {
	for range k {
		runs = append(runs, p.run(rng, n*(0.5+rng.Float64()), slow))
	}
	return runs
}

// TestFalsePositives compares equal sides: fewer than 1 % of the comparisons may find that a function grew. The
// samples of a run are independent, or more correlated than the prior says, and the load of runs differs.
func TestFalsePositives(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, of := range []struct{ rho, load float64 }{{0, 0}, {correlation, 0.03}, {10 * correlation, 0}, {correlation, 0.1}} {
		rho, p, failed, compared := of.rho, newProgram(of.rho), 0, 0
		p.load = of.load
		for _, runs := range []int{1, 3, 10} {
			const pairs = 300
			found := 0
			for range pairs {
				changes := Compare(sideOf(p.runs(rng, runs, 1000, nil)), sideOf(p.runs(rng, runs, 1000, nil)), 0.01)
				if slices.ContainsFunc(changes, func(c Change) bool { return c.Significant && c.Difference > 0 }) {
					found++
				}
			}
			t.Logf("correlation %.4f, load ± %.2f, %2d runs of 1,000 samples a side: %d of %d comparisons of equal sides fail", rho, of.load, runs, found, pairs)
			failed, compared = failed+found, compared+pairs
		}
		assert.Less(t, float64(failed), 0.01*float64(compared))
	}
}

// TestSlowdownIsFound makes a function with a share of 30 % slower by a tenth: it needs 3 samples more of 100.
func TestSlowdownIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := newProgram(1e-5)
	share := 0.0
	for i, of := range p.leaves {
		if i%8 == 0 {
			share += of
		}
	}
	require.InDelta(t, 0.3, share, 0.03)
	for _, test := range []struct {
		runs    int
		samples float64
		atLeast float64
	}{{5, 1000, 0}, {10, 1000, 0}, {10, 3000, 0.4}, {10, 6000, 0.85}, {20, 3000, 0.95}} {
		const pairs = 200
		found := 0
		for range pairs {
			changes := Compare(sideOf(p.runs(rng, test.runs, test.samples, nil)), sideOf(p.runs(rng, test.runs, test.samples, map[int]float64{0: 1.1})), 0.01)
			if slices.ContainsFunc(changes, func(c Change) bool { return c.Function == "group 0" && c.Significant && c.Difference > 0 }) {
				found++
			}
		}
		t.Logf("%2d runs of %.0f samples a side: a slow-down by a tenth of %.0f %% is found in %d of %d comparisons", test.runs, test.samples, share*100, found, pairs)
		assert.GreaterOrEqual(t, float64(found), test.atLeast*pairs)
	}
}

// TestSumsAreThoseOfTheFormula compares the sums of a side with the formulas of the package comment over all runs. The values of a
// side are nanoseconds: any unit has the same result.
func TestSumsAreThoseOfTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	p := newProgram(0)
	base, after := p.runs(rng, 3, 500, nil), p.runs(rng, 4, 900, map[int]float64{2: 1.5})
	for _, r := range base {
		const period = 1e7
		r.Total *= period
		for name, v := range r.Functions {
			r.Functions[name] = Value{v.Cumulative * period, v.Flat * period}
		}
	}
	changes := Compare(sideOf(base), sideOf(after), 0.01)
	require.Greater(t, len(changes), 20)
	raw := map[string]float64{}
	for _, c := range changes {
		var seconds, totals, rates, expected, independent, residuals, ofResiduals, squares, samples [2]float64
		for side, runs := range [][]*Run{base, after} {
			for _, r := range runs {
				seconds[side] += r.Seconds
				totals[side] += r.Total
				samples[side] += r.Samples
				rates[side] += r.Functions[c.Function].Cumulative
			}
			rates[side] /= seconds[side]
			variance := func(r *Run) float64 { return r.Total * r.Total * (1/r.Samples + correlation) }
			for _, r := range runs {
				expected[side] += variance(r)
				squares[side] += variance(r) * variance(r)
				independent[side] += r.Total * r.Total / r.Samples
				residuals[side] += math.Pow(r.Functions[c.Function].Cumulative-rates[side]*r.Seconds, 2)
			}
			for _, r := range runs { // the expectation of the residuals, in units of p(1+κp)
				weight := r.Seconds / seconds[side]
				ofResiduals[side] += variance(r)*(1-2*weight) + weight*weight*expected[side]
			}
		}
		assert.InDelta(t, rates[1]-rates[0], c.Difference, 1e-6, c.Function)
		common := (rates[0]*samples[0] + rates[1]*samples[1]) / (samples[0] + samples[1])
		degrees, dispersions, variance, least := 0.0, 0.0, 0.0, 0.0
		for side := range 2 {
			share := min(1, common*seconds[side]/totals[side])
			factor := share * (1 + ofTotals*share)
			of := expected[side]*expected[side]/squares[side] - 1
			degrees += of
			dispersions += of * residuals[side] / ofResiduals[side] / factor
			variance += factor * expected[side] / (seconds[side] * seconds[side])
			least += share * independent[side] / (seconds[side] * seconds[side])
		}
		df := priorDF + degrees
		phi := max((priorDF+dispersions)/df, dispersions/degrees)
		deviation := math.Sqrt(max(phi*variance, least))
		student := distuv.StudentsT{Sigma: 1, Nu: df}
		assert.InEpsilon(t, deviation*student.Quantile(0.975), c.Margin, 1e-6, c.Function)
		raw[c.Function] = 2 * student.Survival(math.Abs(c.Difference)/deviation)
	}
	for _, c := range changes { // Benjamini and Hochberg: the least of p n/rank over all that are not smaller
		want := 1.0
		for _, p := range raw {
			if p >= raw[c.Function]*(1-1e-9) {
				rank := 0
				for _, q := range raw {
					if q <= p {
						rank++
					}
				}
				want = min(want, p*float64(len(raw))/float64(rank))
			}
		}
		assert.InDelta(t, want, c.P, 1e-6, c.Function)
	}
}

func TestCompareOfExtremes(t *testing.T) {
	one := func(total float64, functions map[string]float64) *Side {
		r := &Run{Total: total, Samples: total, Seconds: total, Functions: map[string]Value{}}
		for name, v := range functions {
			r.Functions[name] = Value{v, v}
		}
		return sideOf([]*Run{r})
	}
	for name, test := range map[string]struct{ base, after *Side }{
		"one sample":        {one(1, map[string]float64{"a": 1}), one(1, map[string]float64{"b": 1})},
		"all samples":       {one(9, map[string]float64{"a": 9}), one(9, map[string]float64{"a": 9})},
		"no function":       {one(9, nil), one(9, nil)},
		"a fraction":        {one(1e-3, map[string]float64{"a": 1e-3}), one(1e-3, nil)},
		"very many samples": {one(1e18, map[string]float64{"a": 5e17}), one(1e18, map[string]float64{"a": 5.0001e17})},
	} {
		for _, c := range Compare(test.base, test.after, 0.01) {
			assert.False(t, c.Significant, "%s: %+v", name, c)
			assert.False(t, math.IsNaN(c.P) || math.IsNaN(c.Margin), "%s: %+v", name, c)
		}
	}
	gone := Compare(one(1e6, map[string]float64{"a": 1e6}), one(1e6, map[string]float64{"b": 1e6}), 0.01)
	assert.Equal(t, []string{"a -1 true", "b 1 true"}, []string{
		fmt.Sprint(gone[0].Function, " ", gone[0].Difference, " ", gone[0].Significant), fmt.Sprint(gone[1].Function, " ", gone[1].Difference, " ", gone[1].Significant),
	})
	assert.Empty(t, Compare(one(100, map[string]float64{"a": 1}), one(100, map[string]float64{"a": 4}), 0.05), "min share")
}
