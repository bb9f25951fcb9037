// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package rate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// grown is the growth of three processes over an hour in n steps, which have these cores together.
func grown(n int, snapshots bool, value func(step int) float64) Growth {
	s := Series{Snapshots: snapshots}
	every := 3600 / uint64(n)
	for id := range uint64(3) {
		p := producer{id: id + 1, to: 3600, phase: id * every / 3, every: every, length: every / 2, cores: func(i int) float64 { return value(i) / 3 }}
		for i, v := range p.intervals() {
			if snapshots {
				v.End, v.Covered, v.Value = v.Start, 0, int64(math.Round(1e9*value(i)/3))
			}
			s.Add(v)
		}
	}
	return s.Growth(epoch, epoch+3600*second)
}

func TestGrowthComparesTheThirds(t *testing.T) {
	for _, snapshots := range []bool{false, true} {
		for name, test := range map[string]struct {
			value         func(step int) float64
			before, after float64
			noise         bool
		}{
			"leak":        {func(i int) float64 { return 1 + 0.1*float64(i) }, 1.95, 5.95, false},
			"jump":        {func(i int) float64 { return []float64{1, 2}[i/30] }, 1, 2, false},
			"early jump":  {func(i int) float64 { return 1 + float64(min(1, i/15)) }, 1.25, 2, false},
			"shrinks":     {func(i int) float64 { return 4 - 0.05*float64(i) }, 3.52, 1.52, false},
			"constant":    {func(int) float64 { return 1 }, 1, 1, true},
			"nearly":      {func(i int) float64 { return 1 + 0.0001*float64(i) }, 1.001, 1.005, true},
			"none":        {func(int) float64 { return 0 }, 0, 0, true},
			"spike":       {func(i int) float64 { return []float64{1, 9}[i/55*(i%55/4+1)%2] }, 1, 1, true},
			"alternating": {func(i int) float64 { return float64(i % 2) }, 0.5, 0.5, true},
			"collections": {func(i int) float64 { return 1 + float64(i%7)/7 }, 1.43, 1.43, true},
		} {
			g := grown(60, snapshots, test.value)
			assert.Equal(t, test.noise, g.Noise, "%s: %+v", name, g)
			if name != "spike" {
				assert.InDelta(t, test.before, g.Before/1e9, 0.08*test.before, "%s: %+v", name, g)
				assert.InDelta(t, test.after, g.After/1e9, 0.08*test.after, "%s: %+v", name, g)
			}
		}
	}
}

func TestGrowthOfAShortHistoryIsNotKnown(t *testing.T) {
	for n, noise := range map[int]bool{1: true, 3: true, 5: true, 12: false} {
		assert.Equal(t, noise, grown(n, false, func(i int) float64 { return float64(i + 1) }).Noise, n)
	}
	assert.True(t, (&Series{}).Growth(epoch, epoch+3600*second).Noise)
	assert.True(t, (&Series{}).Growth(epoch, epoch).Noise)
}

func TestGrowthTellsWhatBeginsAndEnds(t *testing.T) {
	of := func(from, to uint64) Growth {
		var s Series
		for _, v := range (&producer{id: 1, from: from, to: to, every: 60, length: 10, cores: steady(0.5)}).intervals() {
			s.Add(v)
		}
		return s.Growth(epoch, epoch+3600*second)
	}
	g := of(1800, 3600)
	assert.True(t, g.IsNew && !g.HasEnded && !g.Noise, "%+v", g)
	assert.InEpsilon(t, 0.5e9, g.After, 0.01)
	assert.Zero(t, g.Before)
	g = of(0, 1800)
	assert.True(t, !g.IsNew && g.HasEnded && !g.Noise, "%+v", g)
}

// TestNoiseIsNotGrowth_T3 measures how often chance is taken for growth, and growth for chance.
func TestNoiseIsNotGrowth_T3(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	correlated := 0.0
	for name, test := range map[string]struct {
		value func(i int) float64
		most  float64 // share of series that are taken for growth
	}{
		"normal":      {func(int) float64 { return max(0, 1+0.3*rng.NormFloat64()) }, 0.005},
		"exponential": {func(int) float64 { return rng.ExpFloat64() }, 0.01},
		"poisson":     {func(int) float64 { return math.Round(3 + math.Sqrt(3)*rng.NormFloat64()) }, 0.01},
		"correlated":  {func(int) float64 { correlated = correlated/2 + 0.1*rng.NormFloat64(); return max(0, 1+correlated) }, 0.05},
	} {
		for _, n := range []int{15, 24} {
			const times = 1000
			found := 0
			for range times {
				steps := make([]Step, n)
				for i := range steps {
					steps[i] = Step{Rate: test.value(i), Data: 1}
				}
				if !isNoise(steps) {
					found++
				}
			}
			t.Logf("%s, %d steps: %d of %d", name, n, found, times)
			assert.LessOrEqual(t, float64(found), test.most*times, "%s, %d steps", name, n)
		}
	}
	found := 0
	for range 1000 {
		steps := make([]Step, 24)
		for i := range steps {
			steps[i] = Step{Rate: 1 + 0.02*float64(i) + 0.05*rng.NormFloat64(), Data: 1}
		}
		if !isNoise(steps) {
			found++
		}
	}
	assert.Greater(t, found, 900, "a leak of a third, with noise of a twentieth")
}
