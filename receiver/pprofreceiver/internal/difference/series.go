// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import "time"

// Series is one kind of profile of one target, over time; the target may be one
// process after another. The zero value is a series in which nothing counts: its
// profiles are handed on unread. A Series is not safe for concurrent use.
type Series struct {
	counts    func(sampleType string) bool // nil: none does
	sinceLast bool
	maxStacks int

	last *reading // that the next profile is compared with, nil before the first
}

// Cumulative makes a series in which the values of the sample types that counts
// tells of count from the start of the process. Between profiles it keeps 16 bytes
// for each stack with labels that has such a value other than 0, and 8 for each of
// its values. A profile with more than maxStacks of them is refused.
func Cumulative(counts func(sampleType string) bool, maxStacks int) *Series {
	return &Series{counts: counts, maxStacks: maxStacks}
}

// SinceLast makes a series in which the values of the sample types that counts
// tells of are differences already: what happened since the target was asked last.
// What they lack is their interval. Between profiles it keeps that.
func SinceLast(counts func(sampleType string) bool) *Series {
	return &Series{counts: counts, sinceLast: true}
}

// Part is a profile to hand on.
type Part struct {
	Payload []byte // pprof, not compressed
	// Difference: its values are of the interval that its time and duration tell.
	// Those of other parts are as they were given, and so is their time.
	Difference bool
}

// Step is what becomes of one profile of a series. The series goes on to the next
// one by Accept or Defer.
type Step struct {
	// Parts are what to hand on, none if all of the profile counts and there is
	// nothing to compare it with.
	Parts []Part
	// Restarted: the process is another one than that of the profile before.
	Restarted bool

	next *reading // nil if nothing counts
}

// memoryFactor is how many times its size the comparison of a profile takes.
const memoryFactor = 4

// Memory is about how many bytes Next takes for a payload of this size, the payload
// among them, and 0 for a series that does not read it.
func (s *Series) Memory(size int) int64 {
	if s.counts == nil {
		return 0
	}
	return memoryFactor * int64(size)
}

// Next turns a profile, an uncompressed pprof that was taken at this time by our
// clock, into what can be handed on. The values that count become differences from
// the last profile that was accepted, and are left out where there is none, or it
// was of another process. The rest is handed on as it is, as a profile of its own:
// its time is a moment, that of a difference an interval.
//
// The parts may hold the payload itself. An error is of the payload; a
// *pproftranslator.LimitError is in it where that is too large. The series is as it
// was before then.
func (s *Series) Next(payload []byte, at time.Time) (Step, error) {
	whole := Step{Parts: []Part{{Payload: payload}}}
	if s.counts == nil {
		return whole, nil
	}
	view, err := viewPprof(payload)
	if err != nil {
		return Step{}, err
	}
	counted, rest := s.columns(view)
	if len(counted) == 0 {
		if s.sinceLast { // the target was asked all the same
			whole.next = &reading{time: view.time, at: at}
		}
		return whole, nil
	}
	step := Step{next: &reading{time: view.time, at: at}}
	var first []int32
	if !s.sinceLast {
		if first, err = step.next.read(view, counted, s.maxStacks); err != nil {
			return Step{}, err
		}
	}
	if len(rest) > 0 {
		step.Parts = append(step.Parts, Part{
			Payload: view.project(projection{columns: rest, values: view.nonzero(rest)}),
		})
	}
	if s.last == nil {
		return step, nil
	}
	difference := projection{columns: counted, values: view.nonzero(counted)}
	if !s.sinceLast {
		if step.Restarted = !step.next.follows(s.last); step.Restarted {
			return step, nil
		}
		difference.values = step.next.minus(s.last, first)
	}
	difference.time, difference.duration = interval(s.last, step.next)
	step.Parts = append(step.Parts, Part{Payload: view.project(difference), Difference: true})
	return step, nil
}

// columns tells the sample types that count from those that do not.
func (s *Series) columns(view *pprofView) (counted, rest []int) {
	for i, name := range view.sampleTypes {
		if s.counts(name) {
			counted = append(counted, i)
		} else {
			rest = append(rest, i)
		}
	}
	return counted, rest
}

// Accept tells that the parts of a step are handed on, or lost for good: the next
// profile is compared with that of the step.
func (s *Series) Accept(step Step) {
	if step.next != nil {
		s.last = step.next
	}
}

// Defer tells that the difference of a step could not be handed on now. The next
// one holds it, over the longer interval, but where a target tells everything once:
// it is lost there.
func (s *Series) Defer(step Step) {
	if s.sinceLast {
		s.Accept(step)
	}
}

// Lost tells that the target took a profile that did not arrive, or that Next could not
// read, at this time by our clock. Where it tells everything once, what happened until then is lost: the
// next difference begins there.
func (s *Series) Lost(at time.Time) {
	if s.sinceLast && s.last != nil {
		s.last = &reading{at: at}
	}
}
