// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package rate computes what people read of a series of profiles: rates, the processes that live, values by time, and the
// sum of living snapshots. It has no clock and reads no profiles.
//
// # Terms
//
// An interval covers the time from its start to its end. It stands for more than that: from halfway to the previous to halfway
// to the next one of its process. Between intervals that are more than three usual distances apart, nothing stands but half a
// usual distance after the one and before the other, measured from their middles; likewise before the first and after the last
// interval of a process. The usual distance is the median of the distances between the middles of successive intervals of the
// process, or else of the series, or else a minute. While an interval stands, the rate of its process is its value divided by
// the time that it covers.
//
// The rate of a series is the sum of the rates of its processes. Over a range it is the mean of the time in which any of them
// stands. So it does not matter whether processes are profiled at the same time, how often, or which of them are idle.
//
// Snapshots stand alike; their values are levels, whose sum over the processes is a level.
//
// A series may be a part of another one, its whole: the samples with one value of a label. Then the time is that of the whole, since a
// process without such samples is idle for the part, but was profiled. So the rates of all parts add up to that of the whole.
package rate

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Interval is the time of a process that a Profile covers, or a snapshot of a process. All times are in nanoseconds
// since the epoch.
type Interval struct {
	Process uint64 // identifies the process
	// Start and End are those of the first and last profile that it was made of; for a snapshot they are equal.
	Start, End uint64
	// Covered is how much of the time from Start to End was profiled, in nanoseconds. It is 0 for a snapshot.
	Covered uint64
	Value   int64
	// Profiles is how many intervals or snapshots of the process that were merged begin in it. It is 0 if it only continues one that was
	// divided before.
	Profiles int
	// Processes is how many processes it stands for: 1, or more if the limit of their table was exceeded.
	Processes int
}

// middles returns the middles of the first and the last profile.
func (i *Interval) middles() (first, last uint64) {
	length := i.End - i.Start
	if i.Profiles > 1 {
		length = i.Covered / uint64(i.Profiles)
	}
	return i.Start + length/2, i.End - length/2
}

// Series collects the intervals of one profile type of one group. The zero value is an empty series of intervals. It is for one goroutine,
// with all series that have the same Whole.
type Series struct {
	// Snapshots says that the values are levels.
	Snapshots bool
	// Whole, unless it is nil, has the time of the series: the intervals of the series are parts of its own, of the same processes. It has
	// no Whole.
	Whole *Series

	processes map[uint64][]Interval // in any order
	timeline  *timeline             // of the intervals; nil until it is needed
}

// defaultDistance is the usual distance if nothing tells it, in nanoseconds.
const defaultDistance = 60e9

// Add adds an interval. Without a duration it covers nothing, so that it has no rate, and is ignored, unless the series is
// one of snapshots.
func (s *Series) Add(i Interval) {
	i.Profiles, i.Processes = max(i.Profiles, 0), max(i.Processes, 1)
	i.End = max(i.Start, i.End)
	i.Covered = min(i.Covered, i.End-i.Start)
	if i.Covered == 0 && !s.Snapshots {
		return
	}
	if s.processes == nil {
		s.processes = map[uint64][]Interval{}
	}
	s.timeline = nil
	s.processes[i.Process] = append(s.processes[i.Process], i)
}

// Summary is what people read of a range.
type Summary struct {
	// Rate is the value per second of all processes, PerProcess that of one of them on average.
	Rate, PerProcess float64
	// MeanProcesses is how many processes lived on average, Processes how many there were.
	MeanProcesses float64
	Processes     int
	// Covered is the profiled time of all processes, Alive the time for which they stand, and Data the time in which any of them stands; all
	// in seconds.
	Covered, Alive, Data float64
}

// Coverage is the share of the time of the processes that was profiled.
func (s *Summary) Coverage() float64 {
	if s.Alive == 0 {
		return 0
	}
	return min(1, s.Covered/s.Alive)
}

// Seconds returns how many seconds of the series a sum of its values is of: the sum divided by the rate. The difference of two sums compares
// rates if one is multiplied by the ratio of their seconds. It is 0 if the series has no rate.
func (s *Summary) Seconds(sum float64) float64 {
	switch {
	case s.Data == 0 || s.MeanProcesses == 0:
		return 0
	case s.Rate != 0 && sum/s.Rate > 0:
		return sum / s.Rate
	default:
		return s.Covered / s.MeanProcesses
	}
}

// Summary returns the rates of the time from one nanosecond to another. What was added of the 15 minutes before tells how far intervals
// at the start of the range stand.
func (s *Series) Summary(from, to uint64) Summary {
	of := s.time().summarize(from, to)
	if s.Whole == nil {
		return of.Summary
	}
	summary, value := of.Summary, 0.0
	s.eachPart(func(part float64, stands stand) { value += part * stands.seconds(of.from, of.to) })
	summary.setRate(value, of.processes, of.data)
	return summary
}

// setRate sets what a value makes of seconds of processes, and of seconds that have data.
func (s *Summary) setRate(value, processes, data float64) {
	if data > 0 {
		s.Rate, s.MeanProcesses = value/data, processes/data
	}
	if processes > 0 {
		s.PerProcess = value / processes
	}
}

// settled returns the part of a range in which all living processes stand, whatever their phases: at the ends of the data, some
// have been profiled already or still, and others not. ok is false if the data are too short to leave out their ends.
func settled(lines []line, from, to uint64) (first, last uint64, ok bool) {
	earliest, latest := uint64(math.MaxUint64), uint64(0)
	for _, l := range lines {
		for i := range l.intervals {
			start, end := l.intervals[i].middles()
			if !l.stands[i].overlaps(from, to) {
				continue
			}
			earliest, latest = min(earliest, start), max(latest, end)
		}
	}
	half := usualOf(lines) / 2
	if earliest > latest || latest-earliest < 6*half {
		return 0, 0, false
	}
	first, last = max(from, earliest+half), min(to, latest-half)
	return first, last, first < last
}

// Usual returns the usual distance between the intervals or snapshots of a process, in nanoseconds: shorter steps have nothing new.
func (s *Series) Usual() uint64 { return usualOf(s.lines()) }

// Step is a part of a range.
type Step struct {
	// Rate is the value per second of all processes, or for snapshots their sum; the mean of the time in which any of them stands.
	Rate float64
	// Processes is how many stand on average in that time, and Data that time as a share of the step.
	Processes, Data float64
}

// Steps returns n steps of a length in nanoseconds, the first of which starts at from.
func (s *Series) Steps(from, length uint64, n int) []Step {
	steps := slices.Clone(s.time().steps(from, length, n))
	if s.Whole == nil || n == 0 {
		return steps
	}
	for i := range steps {
		steps[i].Rate = 0
	}
	s.eachPart(func(value float64, stands stand) {
		for i := (max(stands.from, from) - from) / length; i < uint64(n) && from+i*length < stands.to; i++ {
			if start := from + i*length; steps[i].Data > 0 {
				steps[i].Rate += value * stands.seconds(start, start+length) / (steps[i].Data * seconds(length))
			}
		}
	})
	return steps
}

// Living returns the sum of the newest snapshots of the processes that live at the end of a range: those that stand half a usual distance
// before the middle of the latest snapshot, which all others follow that are taken as often. at is the time of the latest snapshot, 0 without any.
func (s *Series) Living(from, to uint64) (sum int64, processes int, at uint64) {
	at = s.eachLiving(from, to, func(l *line, newest *Interval) {
		value := newest.Value
		if s.Whole != nil {
			value = s.valueAt(newest)
		}
		sum = sampletypes.AddSaturated(sum, value)
		processes += l.count
	})
	return sum, processes, at
}

// LivingProcesses returns the processes of which Living is the sum, with the time of their newest snapshot.
func (s *Series) LivingProcesses(from, to uint64) map[uint64]uint64 {
	living := map[uint64]uint64{}
	s.eachLiving(from, to, func(_ *line, newest *Interval) { living[newest.Process] = newest.Start })
	return living
}

// eachLiving calls visit with the newest snapshot of each living process, and returns the time of the latest one.
func (s *Series) eachLiving(from, to uint64, visit func(*line, *Interval)) (at uint64) {
	lines := s.time().lines
	newest := make([]int, len(lines))
	for i, l := range lines {
		newest[i] = -1
		for j := range l.intervals {
			if start := l.intervals[j].Start; start < to && start >= from {
				newest[i] = j
				at = max(at, start)
			}
		}
	}
	if at == 0 {
		return 0
	}
	alive := at - min(at, usualOf(lines)/2)
	for i := range lines {
		if j := newest[i]; j >= 0 && lines[i].lastUntil(j) > alive {
			visit(&lines[i], &lines[i].intervals[j])
		}
	}
	return at
}

func seconds(nanoseconds uint64) float64 { return float64(nanoseconds) / 1e9 }

// share is how much of the time from start to end is in a range. A moment is in it or not.
func share(start, end, from, to uint64) float64 {
	if start == end {
		if start >= from && start < to {
			return 1
		}
		return 0
	}
	if start >= to || end <= from {
		return 0
	}
	return float64(min(end, to)-max(start, from)) / float64(end-start)
}

// stand is the time for which an interval stands.
type stand struct{ from, to uint64 }

func (s stand) overlaps(from, to uint64) bool { return s.from < to && s.to > from }

// seconds is how much of a range an interval stands.
func (s stand) seconds(from, to uint64) float64 {
	if !s.overlaps(from, to) {
		return 0
	}
	return seconds(min(s.to, to) - max(s.from, from))
}

// line is a process.
type line struct {
	intervals []Interval // in the order of time, none of which overlap
	stands    []stand    // of each
	usual     uint64     // distance of its profiles; 0 if there is one
	distances []distance
	count     int // of processes
	snapshots bool
}

// lastUntil is until when an interval stands, if it is the last one.
func (l *line) lastUntil(i int) uint64 {
	_, middle := l.intervals[i].middles()
	return max(l.intervals[i].End, middle+l.usual/2)
}

// distance is how often profiles are so far apart.
type distance struct {
	length uint64
	times  int
}

// lines returns the processes of the series, with the stands of their intervals.
func (s *Series) lines() []line {
	lines := make([]line, 0, len(s.processes))
	for _, intervals := range s.processes {
		l := line{intervals: join(intervals), snapshots: s.Snapshots}
		for i := range l.intervals {
			l.count = max(l.count, l.intervals[i].Processes)
			first, last := l.intervals[i].middles()
			if n := l.intervals[i].Profiles; n > 1 && last > first {
				l.distances = append(l.distances, distance{(last - first) / uint64(n-1), n - 1})
			}
			if i > 0 {
				_, before := l.intervals[i-1].middles()
				l.distances = append(l.distances, distance{first - min(first, before), 1})
			}
		}
		l.usual = median(l.distances)
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b line) int { // so that sums of floating-point numbers are those of every call
		switch x, y := a.intervals[0], b.intervals[0]; {
		case x.Start != y.Start:
			return cmp.Compare(x.Start, y.Start)
		default:
			return cmp.Compare(x.Process, y.Process)
		}
	})
	usual := usualOf(lines)
	for i := range lines {
		if lines[i].usual == 0 {
			lines[i].usual = usual
		}
		lines[i].stand()
	}
	return lines
}

// usualOf returns the usual distance of a series.
func usualOf(lines []line) uint64 {
	var all []distance
	for i := range lines {
		all = append(all, lines[i].distances...)
	}
	if usual := median(all); usual > 0 {
		return usual
	}
	return defaultDistance
}

// median returns the lower median, 0 if there is none.
func median(distances []distance) uint64 {
	slices.SortFunc(distances, func(a, b distance) int { return cmp.Compare(a.length, b.length) })
	all := 0
	for _, d := range distances {
		all += d.times
	}
	before := 0
	for _, d := range distances {
		if before += d.times; 2*before >= all && d.length > 0 {
			return d.length
		}
	}
	return 0
}

// stand sets the stands of the intervals.
func (l *line) stand() {
	l.stands = make([]stand, len(l.intervals))
	half := l.usual / 2
	for i := range l.intervals {
		v, at := &l.intervals[i], &l.stands[i]
		first, last := v.middles()
		at.from, at.to = min(v.Start, first-min(first, half)), max(v.End, last+half)
		if i == 0 {
			continue
		}
		before := &l.intervals[i-1]
		if gap := v.Start - before.End; gap <= 3*l.usual {
			middle := before.End + gap/2
			l.stands[i-1].to, at.from = middle, middle
		}
	}
}

// join returns the intervals of a process in the order of their time. Those that overlap become one: the Profiles of one interval have its
// time once, and others at most that of them all. So do the parts of an interval that was divided.
func join(intervals []Interval) []Interval {
	intervals = slices.Clone(intervals)
	slices.SortFunc(intervals, func(a, b Interval) int {
		if a.Start != b.Start {
			return cmp.Compare(a.Start, b.Start)
		}
		return cmp.Compare(b.End, a.End)
	})
	joined := intervals[:1]
	for _, v := range intervals[1:] {
		last := &joined[len(joined)-1]
		isMoment := v.Start == v.End && last.Start == last.End
		isContinued := v.Profiles == 0 && v.Start == last.End
		if v.Start >= last.End && !(isMoment && v.Start == last.Start) && !isContinued {
			joined = append(joined, v)
			continue
		}
		same := v.Start == last.Start && v.End == last.End && v.Profiles == last.Profiles
		last.End = max(last.End, v.End)
		last.Value = sampletypes.AddSaturated(last.Value, v.Value)
		last.Processes = max(last.Processes, v.Processes)
		if same {
			last.Covered = max(last.Covered, v.Covered)
			continue
		}
		last.Covered = min(last.Covered+v.Covered, last.End-last.Start)
		last.Profiles += v.Profiles
	}
	return joined
}

// change is what happens to the sum of all processes when an interval begins or ceases to stand.
type change struct {
	at    uint64
	value float64 // per second, or the level
	count int
}

func changesOf(lines []line) []change {
	var changes []change
	for _, l := range lines {
		for i, v := range l.intervals {
			value := l.valueOf(v.Value, i)
			changes = append(changes, change{l.stands[i].from, value, v.Processes}, change{l.stands[i].to, -value, -v.Processes})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(a.value, b.value) // so that the sums are those of every call
	})
	return changes
}

// totals are integrals over a time.
type totals struct {
	value     float64
	processes float64 // seconds of processes
	data      float64 // seconds in which any stands
}

// state is the sum of all processes at a time.
type state struct {
	value, lost float64 // lost is what the sum has lost by rounding
	count       int
}

// add adds a change, with compensation for what is lost by rounding.
func (s *state) add(c change) {
	if s.count += c.count; s.count == 0 {
		s.value, s.lost = 0, 0
		return
	}
	value := c.value - s.lost
	sum := s.value + value
	s.lost = (sum - s.value) - value
	s.value = sum
}

// advance integrates from one time to another, and returns the index of the first change after that. changes[:at] are in the state.
func (s *state) advance(changes []change, at int, from, to uint64) (sum totals, next int) {
	for ; at < len(changes) && changes[at].at <= from; at++ {
		s.add(changes[at])
	}
	for from < to {
		until := to
		if at < len(changes) {
			until = min(to, changes[at].at)
		}
		if s.count > 0 {
			length := seconds(until - from)
			sum.value += s.value * length
			sum.processes += float64(s.count) * length
			sum.data += length
		}
		for from = until; at < len(changes) && changes[at].at <= from; at++ {
			s.add(changes[at])
		}
	}
	return sum, at
}

// Change is the relative change from one rate to another, such as 0.05 for 5 % more. ok is false if the first is 0.
func Change(before, after float64) (change float64, ok bool) {
	if before == 0 {
		return 0, false
	}
	return after/before - 1, true
}
