// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package rate

import (
	"cmp"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// timeline is when the processes of a series stand. Its series and all parts of that use it.
type timeline struct {
	lines   []line
	changes []change

	stepped    []Step // what steps returned last, for stepsOf
	stepsOf    [2]uint64
	summarized summarized // what summarize returned last, for summaryOf
	summaryOf  stand
	numberByID map[uint64]int // of lines, by process; nil until a part needs it
}

// time returns the timeline of the series, which is that of its whole.
func (s *Series) time() *timeline {
	if s.Whole != nil {
		s = s.Whole
	}
	if s.timeline == nil {
		lines := s.lines()
		s.timeline = &timeline{lines: lines, changes: changesOf(lines)}
	}
	return s.timeline
}

// summarized is a Summary, and of what its rates are.
type summarized struct {
	Summary
	from, to uint64 // the part of the range in which all processes stand
	totals          // of that part
}

// summarize returns the Summary of the series itself.
func (t *timeline) summarize(from, to uint64) *summarized {
	if of := (stand{from, to}); t.summaryOf == of && to > from {
		return &t.summarized
	}
	t.summaryOf, t.summarized = stand{from, to}, summarized{from: from, to: to}
	summary := &t.summarized
	for _, l := range t.lines {
		alive := false
		for i := range l.intervals {
			v := &l.intervals[i]
			alive = alive || l.stands[i].overlaps(from, to)
			summary.Covered += seconds(v.Covered) * share(v.Start, v.End, from, to)
		}
		if alive {
			summary.Processes += l.count
		}
	}
	summary.totals = t.sweep(from, to)
	summary.Data, summary.Alive = summary.data, summary.processes
	if first, last, ok := settled(t.lines, from, to); ok {
		summary.from, summary.to, summary.totals = first, last, t.sweep(first, last)
	}
	summary.setRate(summary.value, summary.processes, summary.data)
	return summary
}

// sweep integrates over a range.
func (t *timeline) sweep(from, to uint64) totals {
	var s state
	sum, _ := s.advance(t.changes, 0, from, to)
	return sum
}

// steps returns Steps of the series itself. The caller must not change them.
func (t *timeline) steps(from, length uint64, n int) []Step {
	if of := [...]uint64{from, length}; t.stepped == nil || len(t.stepped) != n || t.stepsOf != of {
		t.stepped, t.stepsOf = make([]Step, n), of
		at, state := 0, state{}
		for i := range t.stepped {
			start := from + uint64(i)*length
			var sum totals
			if sum, at = state.advance(t.changes, at, start, start+length); sum.data > 0 {
				t.stepped[i] = Step{Rate: sum.value / sum.data, Processes: sum.processes / sum.data, Data: sum.data / seconds(length)}
			}
		}
	}
	return t.stepped
}

// find returns the line of a process, and the index of its interval that contains the start of a part; negative if there is none.
func (t *timeline) find(part *Interval) (of *line, i int) {
	if t.numberByID == nil {
		t.numberByID = make(map[uint64]int, len(t.lines))
		for i := range t.lines {
			t.numberByID[t.lines[i].intervals[0].Process] = i
		}
	}
	number, known := t.numberByID[part.Process]
	if !known {
		return nil, -1
	}
	of = &t.lines[number]
	after, found := slices.BinarySearchFunc(of.intervals, part.Start, func(v Interval, start uint64) int { return cmp.Compare(v.Start, start) })
	if !found {
		after--
	}
	if after >= 0 && of.intervals[after].End < part.Start { // of a snapshot that another one has replaced
		after = -1
	}
	return of, after
}

// eachPart calls visit with the rate or level of each interval of a series that has a Whole, and when it stands.
func (s *Series) eachPart(visit func(value float64, stands stand)) {
	t := s.time()
	for _, process := range s.order() {
		for i := range s.processes[process] {
			part := &s.processes[process][i]
			if of, at := t.find(part); at >= 0 {
				visit(of.valueOf(part.Value, at), of.stands[at])
			}
		}
	}
}

// order returns the processes in an order that does not change, so that sums of floating-point numbers are those of every call.
func (s *Series) order() []uint64 {
	all := make([]uint64, 0, len(s.processes))
	for process := range s.processes {
		all = append(all, process)
	}
	slices.Sort(all)
	return all
}

// valueOf is the rate or level of a value of an interval.
func (l *line) valueOf(value int64, i int) float64 {
	if l.snapshots {
		return float64(value)
	}
	return float64(value) / seconds(l.intervals[i].Covered)
}

// valueAt returns the sum of the parts of an interval of the whole.
func (s *Series) valueAt(of *Interval) (sum int64) {
	for i := range s.processes[of.Process] {
		if part := &s.processes[of.Process][i]; part.Start >= of.Start && part.Start <= of.End {
			sum = sampletypes.AddSaturated(sum, part.Value)
		}
	}
	return sum
}
