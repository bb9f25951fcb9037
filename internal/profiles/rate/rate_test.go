// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package rate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
)

const (
	second = uint64(1e9)
	minute = 60 * second
	epoch  = 1_800_000_000 * second // a multiple of ten minutes
)

// producer is a process that is profiled.
type producer struct {
	id            uint64
	from, to      uint64 // seconds after epoch in which it lives
	phase         uint64 // seconds after from at which it is profiled first
	every, length uint64 // seconds: it is profiled for length in each of every
	cores         func(i int) float64
	level         int64 // of its snapshots, if length is 0
}

func steady(cores float64) func(int) float64 { return func(int) float64 { return cores } }

func (p *producer) intervals() (all []Interval) {
	i := 0
	for at := p.from + p.phase; at+p.length <= p.to; at += p.every {
		v := Interval{Process: p.id, Start: epoch + at*second, End: epoch + (at+p.length)*second, Covered: p.length * second, Profiles: 1, Processes: 1}
		if v.Value = p.level; p.length > 0 {
			v.Value = int64(math.Round(p.cores(i) * float64(p.length) * 1e9))
		}
		all = append(all, v)
		i++
	}
	return all
}

// windowed merges the intervals of each process that end in the same window of so many seconds, as a gateway does. Of snapshots, the last one stays.
func windowed(intervals []Interval, window uint64) []Interval {
	return merged(intervals, func(v Interval) uint64 { return v.End / (window * second) })
}

func merged(intervals []Interval, window func(v Interval) uint64) (rows []Interval) {
	places := map[[2]uint64]int{}
	for _, v := range intervals {
		key := [2]uint64{v.Process, window(v)}
		at, found := places[key]
		if !found {
			places[key] = len(rows)
			rows = append(rows, v)
			continue
		}
		row := &rows[at]
		if v.Start == v.End {
			*row = v
			continue
		}
		row.Start, row.End = min(row.Start, v.Start), max(row.End, v.End)
		row.Covered += v.Covered
		row.Value += v.Value
		row.Profiles += v.Profiles
	}
	return rows
}

// compacted divides intervals at the borders of slots of so many seconds, and merges what is in one.
func compacted(intervals []Interval, slot uint64) []Interval {
	slot *= second
	var parts []Interval
	for _, v := range intervals {
		var lengths []uint64
		for at := v.Start; at < v.End; at += lengths[len(lengths)-1] {
			lengths = append(lengths, min(v.End, (at/slot+1)*slot)-at)
		}
		if len(lengths) < 2 {
			parts = append(parts, v)
			continue
		}
		values, covered, at := processes.Divide(v.Value, lengths), processes.Divide(int64(v.Covered), lengths), v.Start
		counts := make([]int64, len(lengths))
		if counts[0] = 1; v.Profiles > 1 {
			counts = processes.Divide(int64(v.Profiles), lengths)
		}
		for i, length := range lengths {
			part := v
			part.Start, part.End, part.Value, part.Covered, part.Profiles = at, at+length, values[i], uint64(covered[i]), int(counts[i])
			parts = append(parts, part)
			at += length
		}
	}
	return merged(parts, func(v Interval) uint64 { return v.Start / slot })
}

func seriesOf(snapshots bool, intervals []Interval) *Series {
	s := &Series{Snapshots: snapshots}
	for _, v := range intervals {
		s.Add(v)
	}
	return s
}

func all(producers ...producer) (intervals []Interval) {
	for i := range producers {
		producers[i].id = uint64(i + 1)
		intervals = append(intervals, producers[i].intervals()...)
	}
	return intervals
}

// ways are the ways on which intervals reach a reader.
func ways(intervals []Interval) map[string][]Interval {
	return map[string][]Interval{
		"direct":                            intervals,
		"windows of 5 s":                    windowed(intervals, 5),
		"windows of 60 s":                   windowed(intervals, 60),
		"compacted to 1 minute":             compacted(intervals, 60),
		"compacted to 10 minutes":           compacted(intervals, 600),
		"windows of 60 s, 1 and 10 minutes": compacted(compacted(windowed(intervals, 60), 60), 600),
	}
}

const hour = 3600

func TestRatesAreTrue_T1(t *testing.T) {
	replicas := func(n int, cores float64, phase, every, length uint64) (p []producer) {
		for i := range n {
			p = append(p, producer{to: hour, phase: uint64(i) * phase, every: every, length: length, cores: steady(cores)})
		}
		return p
	}
	var restarts []producer
	for i := range uint64(12) {
		restarts = append(restarts, producer{from: 300 * i, to: 300 * (i + 1), phase: 7 * i % 40, every: 60, length: 10, cores: steady(0.5)})
	}
	for name, test := range map[string]struct {
		producers []producer
		want      float64
	}{
		"three replicas, never at once":     {replicas(3, 0.4, 20, 60, 10), 1.2},
		"three replicas, half at once":      {replicas(3, 0.4, 5, 60, 10), 1.2},
		"three replicas, at once":           {replicas(3, 0.4, 0, 60, 10), 1.2},
		"idle in two of three":              {[]producer{{to: hour, every: 60, length: 10, cores: func(i int) float64 { return []float64{0.6, 0, 0}[i%3] }}}, 0.2},
		"different shares of the time":      {[]producer{{to: hour, every: 60, length: 10, cores: steady(0.2)}, {to: hour, phase: 20, every: 60, length: 30, cores: steady(1)}}, 1.2},
		"two continuous ones":               {replicas(2, 0.5, 0, 10, 10), 1},
		"two continuous ones, out of phase": {replicas(2, 0.5, 5, 10, 10), 1},
		"restarts":                          {restarts, 0.5},
	} {
		for way, intervals := range ways(all(test.producers...)) {
			s := seriesOf(false, intervals)
			got := s.Summary(epoch, epoch+hour*second)
			assert.InEpsilon(t, test.want, got.Rate/1e9, 0.05, "%s: %s: %+v", name, way, got)
			highest := 0.0
			for _, step := range s.Steps(epoch, minute, 60) {
				highest = max(highest, step.Rate)
			}
			assert.GreaterOrEqual(t, highest, got.Rate*0.999, "%s: %s: no step is as high as the mean", name, way)
		}
	}
}

func TestScalingIsVisible(t *testing.T) {
	p := []producer{{to: hour, every: 60, length: 10, cores: steady(1)}}
	for i := range uint64(3) {
		p = append(p, producer{from: hour / 2, to: hour, phase: 13 * i, every: 60, length: 10, cores: steady(1)})
	}
	for way, intervals := range ways(all(p...)) {
		steps := seriesOf(false, intervals).Steps(epoch, 10*minute, 6)
		for i, want := range []float64{1, 1, 1, 4, 4, 4} {
			assert.InEpsilon(t, want, steps[i].Rate/1e9, 0.07, "%s: step %d", way, i)
			assert.InEpsilon(t, want, steps[i].Processes, 0.07, "%s: step %d", way, i)
		}
	}
}

func TestLivingSnapshotsOfReplacedPods(t *testing.T) {
	const mib = 1 << 20
	for _, every := range []uint64{15, 60} {
		var pods []producer
		for i := range uint64(15) {
			pods = append(pods, producer{from: 240 * i, to: 240 * (i + 1), phase: (7*i + 3) % every, every: every, level: 100 * mib})
		}
		for way, intervals := range ways(all(pods...)) {
			if every == 15 && way == "windows of 5 s" {
				continue // the same as direct
			}
			s := seriesOf(true, intervals)
			sum, n, at := s.Living(epoch, epoch+hour*second)
			assert.EqualValues(t, 100*mib, sum, "%d s, %s", every, way)
			assert.Equal(t, 1, n)
			assert.Less(t, hour*second+epoch-at, 61*second)
			for i, step := range s.Steps(epoch, 10*minute, 6) {
				assert.InEpsilon(t, 100*mib, step.Rate, 0.12, "%d s, %s, step %d", every, way, i)
			}
		}
	}
	three := all(producer{to: hour, every: 15, level: 10}, producer{to: hour, phase: 5, every: 15, level: 20}, producer{to: hour, phase: 10, every: 15, level: 30})
	sum, n, _ := seriesOf(true, three).Living(epoch, epoch+hour*second)
	assert.EqualValues(t, 60, sum, "processes of other phases")
	assert.Equal(t, 3, n)
}

// A process that dies loses its last interval, and the series reads low while another one starts.
func TestLostIntervalsReadLow_T1(t *testing.T) {
	s := seriesOf(false, all(
		producer{to: 1795, every: 60, length: 60, cores: steady(1)},
		producer{from: 1795, to: hour, every: 60, length: 60, cores: steady(1)},
	))
	got := s.Summary(epoch, epoch+hour*second)
	assert.InEpsilon(t, 1, got.Rate/1e9, 0.05)
	assert.LessOrEqual(t, got.Rate/1e9, 1.0001)
}

func TestSummaryCountsProcessesAndTime(t *testing.T) {
	s := seriesOf(false, all(
		producer{to: 600, every: 60, length: 10, cores: steady(0.5)},
		producer{to: 600, phase: 30, every: 60, length: 10, cores: steady(1.5)},
	))
	got := s.Summary(epoch, epoch+600*second)
	assert.Equal(t, 2, got.Processes)
	assert.InEpsilon(t, 2, got.MeanProcesses, 0.001)
	assert.InEpsilon(t, 1, got.PerProcess/1e9, 0.001)
	assert.InEpsilon(t, 200, got.Covered, 0.001)
	assert.InEpsilon(t, 1.0/6, got.Coverage(), 0.06)
	empty := (&Series{}).Summary(0, math.MaxInt64)
	assert.Zero(t, empty)
	assert.Zero(t, empty.Coverage())
	without := seriesOf(false, []Interval{{Process: 1, Start: 5, End: 5, Value: 7}})
	assert.Zero(t, without.Summary(0, 100), "a Profile without a duration has no rate")
	_, _, at := (&Series{Snapshots: true}).Living(0, 10)
	assert.Zero(t, at)
}

func TestGapsAreNotBridged(t *testing.T) {
	intervals := append(all(producer{to: 600, every: 60, length: 10, cores: steady(1)}),
		(&producer{id: 1, from: 1800, to: 2400, every: 60, length: 10, cores: steady(1)}).intervals()...)
	s := seriesOf(false, intervals)
	steps := s.Steps(epoch, 10*minute, 4)
	assert.InEpsilon(t, 1, steps[0].Data, 0.1)
	assert.Zero(t, steps[1].Data)
	assert.InDelta(t, 0.05, steps[2].Data, 0.05)
	assert.InEpsilon(t, 1, steps[3].Rate/1e9, 0.001)
	assert.InEpsilon(t, 1, s.Summary(epoch, epoch+2400*second).Rate/1e9, 0.001)
}

// Profiles of one interval have its time once.
func TestProfilesOfOneIntervalCoverItOnce(t *testing.T) {
	s := seriesOf(false, []Interval{
		{Process: 1, Start: epoch, End: epoch + minute, Covered: minute, Value: 30e9, Profiles: 1},
		{Process: 1, Start: epoch, End: epoch + minute, Covered: minute, Value: 30e9, Profiles: 1},
	})
	got := s.Summary(epoch, epoch+minute)
	assert.InEpsilon(t, 1, got.Rate/1e9, 1e-9)
	assert.InEpsilon(t, 60, got.Covered, 1e-9)
}

// Random processes with phases, gaps, restarts: each way to the reader is within 5 % of the truth, and exact if the profiles are continuous.
func TestRandomProcessesAreWithinFivePercent_T1(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		every := []uint64{10, 15, 60}[r.IntN(3)]
		length := every
		if r.IntN(2) == 0 {
			length = max(5, every/(1+r.Uint64N(4)))
		}
		cores := 0.1 + r.Float64()
		var producers []producer
		want := 0.0
		for range 1 + r.IntN(5) {
			p := producer{to: hour, every: every, length: length, cores: steady(cores), phase: r.Uint64N(every)}
			want += cores
			if r.IntN(3) == 0 { // it restarts at the end of an interval
				restart := every * (hour / every / 2)
				first := p
				first.phase, first.to = 0, restart
				p.from, p.phase = restart, 0
				producers = append(producers, first)
			}
			producers = append(producers, p)
		}
		for way, intervals := range ways(all(producers...)) {
			got := seriesOf(false, intervals).Summary(epoch, epoch+hour*second)
			require.InEpsilon(t, want, got.Rate/1e9, 0.05, "seed %d, %s: %+v, every %d, length %d", seed, way, got, every, length)
		}
	}
}

func TestStepsAddUpToTheSummary(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		s := &Series{}
		for range 200 {
			start := epoch + r.Uint64N(hour*second)
			length := 1 + r.Uint64N(minute)
			s.Add(Interval{Process: r.Uint64N(8), Start: start, End: start + length, Covered: 1 + r.Uint64N(length), Value: r.Int64N(1e12) - 1e11, Profiles: 1 + r.IntN(3)})
		}
		whole := s.time().sweep(epoch, epoch+hour*second)
		var value, data float64
		for _, step := range s.Steps(epoch, minute, 60) {
			value += step.Rate * step.Data * 60
			data += step.Data * 60
		}
		assert.InEpsilon(t, whole.value, value, 1e-6)
		assert.InEpsilon(t, whole.data, data, 1e-6)
	}
}

func BenchmarkSummary(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		s := &Series{}
		for i := range n {
			start := epoch + uint64(i/10)*minute
			s.Add(Interval{Process: uint64(i % 10), Start: start, End: start + 10*second, Covered: 10 * second, Value: int64(i)})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				s.timeline = nil
				s.Summary(epoch, epoch+uint64(n)*minute)
			}
		})
	}
}

func TestSecondsAreTheSumByItsRate(t *testing.T) {
	for _, test := range []struct {
		of        Summary
		sum, want float64
	}{
		{Summary{}, 5, 0},
		{Summary{Rate: 2, MeanProcesses: 1, Covered: 7, Data: 60}, 20, 10},
		{Summary{Rate: 0, MeanProcesses: 2, Covered: 20, Data: 60}, 0, 10},  // idle
		{Summary{Rate: 0, MeanProcesses: 2, Covered: 20, Data: 60}, 5, 10},  // but at the ends of the data
		{Summary{Rate: -1, MeanProcesses: 2, Covered: 20, Data: 60}, 5, 10}, // of values with several signs
	} {
		assert.InDelta(t, test.want, test.of.Seconds(test.sum), 0, "%+v", test)
	}
}
