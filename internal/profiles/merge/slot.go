// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// slot is the span of the Unix clock in which a Profile ends or, with Options.SlotByStart, starts: from number*length for
// length nanoseconds. It is zero for a Profile without a time, and without slots.
type slot struct{ length, number uint64 }

// slotOf returns the slot of p. Its length is the least of window, twice window, four times
// window and so on that is not less than the duration of p. It saturates, as does the end of p.
func slotOf(p pprofile.Profile, options *Options) slot {
	window, start, duration := uint64(options.SlotLength), uint64(p.Time()), p.DurationNano()
	if window == 0 || start == 0 {
		return slot{}
	}
	if options.SlotByStart {
		return slot{window, start / window}
	}
	length := window
	for length < duration {
		if length > math.MaxUint64/2 {
			length = math.MaxUint64
			break
		}
		length *= 2
	}
	return slot{length, endOf(start, duration) / length}
}

// start is the first nanosecond of s since the epoch.
func (s slot) start() uint64 { return s.number * s.length }

// endOf is start plus duration, saturating.
func endOf(start, duration uint64) uint64 {
	if end := start + duration; end >= start {
		return end
	}
	return math.MaxUint64
}

// division is the time of an incoming Profile that is in several slots. It becomes one Profile in each of them:
//
// The value of each process is divided in proportion to its time in each slot, by processes.Divide, and so is the time that it
// covers. Samples without timestamps are divided in proportion to these values, such that the sum of the samples of each slot is that of the
// processes, to the last unit: dividing each sample for itself would put all samples of the value 1 into one slot. A sample with
// timestamps goes into the slots of these.
type division struct {
	start   uint64
	first   slot
	lengths []uint64 // of the time in each slot
}

// maxParts is how many parts a Profile is divided into. If there are more slots, it has slots that are twice as long, or four times, and so on.
const maxParts = 256

// divisionOf returns nil if the time from start to end is in one slot, or unknown.
func divisionOf(start, end, window uint64) *division {
	if start == 0 || window == 0 || end <= start {
		return nil
	}
	length := window
	for (end-1)/length-start/length >= maxParts {
		length *= 2
	}
	d := &division{start: start, first: slot{length, start / length}}
	if d.lengths = d.overlaps(start, end, int((end-1)/length-start/length)+1); len(d.lengths) == 1 {
		return nil
	}
	return d
}

// border is the start of part i, and the end of the one before.
func (d *division) border(i int) uint64 {
	if i == 0 {
		return d.start
	}
	hi, lo := bits.Mul64(d.first.number+uint64(i), d.first.length)
	if hi > 0 {
		return ^uint64(0)
	}
	return lo
}

// overlaps returns how much of the time from start to end is in each of n parts.
func (d *division) overlaps(start, end uint64, n int) []uint64 {
	lengths := make([]uint64, n)
	for i := range lengths {
		from, to := max(start, d.border(i)), min(end, d.border(i+1))
		lengths[i] = max(to, from) - from
	}
	return lengths
}

// part returns the part that a time is in, or the one next to it.
func (d *division) part(time uint64) int {
	if time <= d.start {
		return 0
	}
	return int(min(time/d.first.length-d.first.number, uint64(len(d.lengths)-1)))
}

// rows divides rows: those of each part are in the order of rows. Each is in the parts that its time is in.
func (d *division) rows(rows []processes.Row) [][]processes.Row {
	divided := make([][]processes.Row, len(d.lengths))
	for _, row := range rows {
		overlaps := d.overlaps(row.Start, row.End, len(d.lengths))
		values := processes.Divide(row.Value, overlaps)
		covered := divideLength(row.Covered, overlaps)
		before, whole := uint64(0), row.End-max(row.Start, d.start)
		if whole == 0 || row.End < d.start {
			at := d.part(row.Start)
			divided[at] = append(divided[at], row)
			continue
		}
		for i, length := range overlaps {
			if length == 0 {
				continue
			}
			part := row
			part.Start, part.End = max(row.Start, d.border(i)), min(row.End, d.border(i+1))
			part.Value, part.Covered = values[i], covered[i]
			part.Profiles = beginning(row.Profiles, before+length, whole) - beginning(row.Profiles, before, whole)
			divided[i] = append(divided[i], part)
			before += length
		}
	}
	return divided
}

// beginning returns how many of n intervals, one after the other in a whole time, begin in some nanoseconds at its start.
func beginning(n int, nanoseconds, whole uint64) int {
	hi, lo := bits.Mul64(uint64(n), nanoseconds)
	quotient, remainder := bits.Div64(hi, lo, whole) // nanoseconds is at most whole: less than hi is n
	if remainder > 0 {
		quotient++
	}
	return int(quotient)
}

// divideLength divides a length of time, none of which becomes longer than its weight if their sum is not less.
func divideLength(length uint64, weights []uint64) []uint64 {
	const most = 1<<63 - 1
	parts := make([]uint64, len(weights))
	for i, part := range processes.Divide(int64(min(length, most)), weights) {
		parts[i] = min(uint64(part), weights[i])
	}
	return parts
}

// share divides the values of samples such that their sums are those that processes.Divide makes of the whole sum. Each part of a value is
// less than 1 from its share if values are not negative and sums fit, or else nearly.
type share struct {
	weights []uint64
	total   uint64
	shift   int     // of remainders, so that some of them add up
	needs   []int64 // what parts get in addition to shares that are rounded towards 0
	owed    []int64 // what remainders of a part add up to, less what it has got
	order   []int
	parts   []int64
}

// newShare returns a share for the samples of which sum returns the sum of those that are positive.
func newShare(weights []uint64, values func(func(int64) bool)) *share {
	n := len(weights)
	s := &share{weights: weights, owed: make([]int64, n), order: make([]int, n), parts: make([]int64, n)}
	for i, w := range weights {
		s.total += w
		s.order[i] = i
	}
	sum := int64(0)
	for v := range values {
		sum = sampletypes.AddSaturated(sum, max(v, 0))
	}
	s.shift = max(0, bits.Len64(s.total)-40)
	s.needs = processes.Divide(sum, weights)
	for v := range values {
		if v > 0 {
			for i := range s.parts {
				quotient, _ := s.of(v, i)
				s.needs[i] -= quotient
			}
		}
	}
	for _, need := range s.needs {
		if need < 0 {
			s.needs = nil // the sum is saturated
			break
		}
	}
	return s
}

// of returns the share of part i of v, which is not negative, and what rounding leaves of it.
func (s *share) of(v int64, i int) (quotient int64, remainder uint64) {
	hi, lo := bits.Mul64(uint64(v), s.weights[i])
	q, remainder := bits.Div64(hi, lo, s.total)
	return int64(q), remainder
}

// divide divides v, in memory that the next call overwrites.
func (s *share) divide(v int64) []int64 {
	if v <= 0 || s.needs == nil {
		return processes.Divide(v, s.weights)
	}
	left := v
	for i := range s.parts {
		quotient, remainder := s.of(v, i)
		s.parts[i] = quotient
		s.owed[i] += int64(remainder >> s.shift)
		left -= quotient
	}
	if left == 0 {
		return s.parts
	}
	slices.SortFunc(s.order, func(a, b int) int { return cmp.Or(cmp.Compare(s.owed[b], s.owed[a]), cmp.Compare(a, b)) })
	for left > 0 {
		given := left
		for _, i := range s.order {
			if left > 0 && s.needs[i] > 0 {
				s.parts[i]++
				s.needs[i]--
				s.owed[i] -= int64(s.total >> s.shift)
				left--
			}
		}
		if given == left { // never: what all need is what all values leave
			s.parts[0], left = s.parts[0]+left, 0
		}
	}
	return s.parts
}

// dividing is the addition of a divided Profile.
type dividing struct {
	*addition
	from      *Profile
	into      *resource
	key       profileKey
	durations []uint64
	targets   []*target // of parts; nil for those with nothing
	found     [shapes]bool
}

// divide adds the parts of a Profile to the scopes of their slots.
func (a *addition) divide(into *resource, from *Profile) {
	d := from.division
	n := len(d.lengths)
	parts := dividing{
		addition: a, from: from, into: into, key: a.keyOf(from), targets: make([]*target, n),
		durations: divideLength(from.from.DurationNano(), d.lengths),
	}
	a.rows = a.payload.appendRows(a.rows[:0], from)
	processes.Fit(a.rows, processes.Sum(from.from))
	rows := d.rows(a.rows)
	for i := range rows {
		if len(rows[i]) > 0 {
			parts.target(i)
		}
	}
	parts.add(newShare(weightsOf(rows, d.lengths), parts.plainValues))
	for i, t := range parts.targets {
		if t == nil {
			continue
		}
		if parts.found == [shapes]bool{} {
			t.merged(shapeValues) // a Profile without samples is kept
		}
		for s, found := range parts.found {
			if found {
				t.merged(shape(s))
			}
		}
		if len(rows[i]) == 0 { // only timestamps are in this part
			rows[i] = []processes.Row{{Hash: a.rows[0].Hash, Start: t.start, End: t.start, Processes: a.rows[0].Processes}}
		}
		t.done(rows[i])
	}
}

// weightsOf returns the values of parts, or their lengths if these tell nothing.
func weightsOf(rows [][]processes.Row, lengths []uint64) []uint64 {
	weights := make([]uint64, len(rows))
	total := int64(0)
	for i := range rows {
		for _, row := range rows[i] {
			if row.Value < 0 {
				return lengths
			}
			weights[i] += uint64(row.Value)
			total = sampletypes.AddSaturated(total, row.Value)
		}
	}
	if total == 0 || total == 1<<63-1 {
		return lengths
	}
	return weights
}

// plainValues is an iterator of the values of samples without timestamps.
func (d *dividing) plainValues(yield func(int64) bool) {
	samples := d.from.from.Samples()
	for i := d.next(samples, 0); i < samples.Len(); i = d.next(samples, i+1) {
		if s := samples.At(i); s.TimestampsUnixNano().Len() == 0 && s.Values().Len() > 0 && !yield(sumOfValues(s)) {
			return
		}
	}
}

func sumOfValues(s pprofile.Sample) (sum int64) {
	for i := range s.Values().Len() {
		sum = sampletypes.AddSaturated(sum, s.Values().At(i))
	}
	return sum
}

// target returns that of a part.
func (d *dividing) target(i int) *target {
	if d.targets[i] == nil {
		part, division := *d.from, d.from.division
		part.slot.number += uint64(i)
		d.targets[i] = &target{
			addition: d.addition, scope: d.scope(d.into, &part), key: d.key, from: d.from,
			start: division.border(i), duration: d.durations[i],
		}
	}
	return d.targets[i]
}

// add adds all samples.
func (d *dividing) add(share *share) {
	samples := d.from.from.Samples()
	for i := d.next(samples, 0); i < samples.Len(); i = d.next(samples, i+1) {
		s := samples.At(i)
		values, times := s.Values(), s.TimestampsUnixNano()
		stack, set, link := d.remap.Sample(s, d.payload.dropped)
		if times.Len() > 0 {
			for n := range times.Len() {
				t := d.target(d.from.division.part(times.At(n)))
				d.addTime(t, t.row(stack, set, link), values, times, n)
			}
			continue
		}
		if values.Len() == 0 {
			continue
		}
		d.found[shapeValues] = true
		total := sumOfValues(s)
		for part, v := range share.divide(total) {
			if v == 0 && (total != 0 || part > 0) {
				continue
			}
			t := d.target(part)
			t.addValue(t.row(stack, set, link), v)
		}
	}
}

// addTime adds timestamp n of a sample.
func (d *dividing) addTime(t *target, row int32, values pcommon.Int64Slice, times pcommon.UInt64Slice, n int) {
	switch {
	case d.options.DropTimestamps && n < values.Len():
		d.found[shapeValues], t.untimed = true, true
		t.addValue(row, values.At(n))
	case d.options.DropTimestamps:
		d.found[shapeValues], t.untimed = true, true
		t.addValue(row, 1)
	case n < values.Len():
		d.found[shapeBoth] = true
		t.addEvent(shapeBoth, event{row: row, time: times.At(n), value: values.At(n)})
	default:
		d.found[shapeTimes] = true
		t.addEvent(shapeTimes, event{row: row, time: times.At(n)})
	}
}

// row returns the number of a sample in the scope.
func (t *target) row(stack, set, link int32) int32 {
	t.size -= t.scope.samples.Retained()
	row := t.scope.samples.Number(stack, set, link)
	t.size += t.scope.samples.Retained()
	return row
}

func (t *target) addValue(row int32, v int64) {
	t.sums[shapeValues] = sampletypes.AddSaturated(t.sums[shapeValues], v)
	if !t.merged(shapeValues).column.Add(row, v, false) {
		t.saturated++
	}
}

func (t *target) addEvent(s shape, e event) {
	v := e.value
	if s == shapeTimes {
		v = 1
	}
	t.sums[s] = sampletypes.AddSaturated(t.sums[s], v)
	p := t.merged(s)
	p.events = append(p.events, e)
}
