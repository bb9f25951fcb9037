// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package rate

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPartsAddUpToTheirWhole: however values are divided into parts, the rates, steps and levels of the parts add up to those of the whole,
// and their times are equal. A part that has nothing of an interval is idle in it.
func TestPartsAddUpToTheirWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 60 {
		snapshots := round%3 == 2
		whole := &Series{Snapshots: snapshots}
		parts := make([]*Series, 4)
		for i := range parts {
			parts[i] = &Series{Snapshots: snapshots, Whole: whole}
		}
		for range 300 {
			start, length := epoch+r.Uint64N(hour*second), 1+r.Uint64N(minute)
			if snapshots {
				length = 0
			}
			v := Interval{Process: r.Uint64N(6), Start: start, End: start + length, Covered: length, Profiles: 1, Processes: 1}
			for _, part := range parts[:1+r.IntN(len(parts))] {
				of := v
				of.Value = r.Int64N(1e12) - 1e11
				v.Value += of.Value
				part.Add(of)
			}
			whole.Add(v)
		}
		const from, to = epoch + 5*60*second, epoch + 50*60*second
		want, sum := whole.Summary(from, to), Summary{}
		steps, rates := whole.Steps(from, minute, 45), make([]float64, 45)
		wantLevel, processes, at := whole.Living(from, to)
		level := int64(0)
		for _, part := range parts {
			got := part.Summary(from, to)
			sum.Rate, sum.PerProcess = sum.Rate+got.Rate, sum.PerProcess+got.PerProcess
			got.Rate, got.PerProcess = want.Rate, want.PerProcess
			assert.Equal(t, want, got)
			for i, step := range part.Steps(from, minute, 45) {
				rates[i] += step.Rate
				assert.Equal(t, [...]float64{steps[i].Processes, steps[i].Data}, [...]float64{step.Processes, step.Data})
			}
			partLevel, of, last := part.Living(from, to)
			level += partLevel
			assert.Equal(t, processes, of)
			assert.Equal(t, at, last)
		}
		assert.InEpsilon(t, want.Rate, sum.Rate, 1e-6)
		assert.InEpsilon(t, want.PerProcess, sum.PerProcess, 1e-6)
		for i := range rates {
			assert.InDelta(t, steps[i].Rate, rates[i], 1e-6*want.Rate)
		}
		assert.Equal(t, wantLevel, level)
	}
}
