// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// maxKept is how many stacks with labels a reading may have whose values are not
// 0: some 8 MiB of a heap profile. It bounds what is kept between scrapes.
const maxKept = 1 << 18

// reading is what is kept of a profile whose values count from the start of the
// process: all that the next one has to be compared with, and no more.
type reading struct {
	types    []string   // the sample types that count
	ids      []identity // in order
	values   []int64    // of each id, one for each type; not all are 0
	mappings []identity

	time int64     // nanoseconds since 1970, by the target's clock; 0 is unknown
	at   time.Time // by ours
}

// size is the memory that a reading keeps, in bytes, but for what is small.
func (r *reading) size() int {
	return 16*cap(r.ids) + 8*cap(r.values) + 16*cap(r.mappings)
}

// comparer is one kind of profile of one target, over time. It is not safe for
// concurrent use.
type comparer struct {
	kind  scrapeKind
	delta bool // take differences of what counts from the start
	most  int  // stacks with labels that a reading may keep

	last *reading // that the next profile is compared with, nil before the first
}

// payloadPart is a profile to hand on.
type payloadPart struct {
	payload     []byte
	temporality func(sampleType string) temporality
	counted     bool // its values are differences
}

// comparison is the outcome of comparing a profile with the one before.
type comparison struct {
	parts []payloadPart
	// next is the reading to compare the following profile with, once the parts
	// are accepted.
	next *reading
	// restarted: the process is another one than that of the reading before.
	restarted bool
}

// compare turns a profile into what can be handed on: the values that count from
// the start of the process become their differences from the reading before, which
// are left out where there is none. The rest is handed on as it is, as a profile of
// its own: its time is a moment, that of a difference an interval.
func (s *comparer) compare(payload []byte, at time.Time) (comparison, error) {
	whole := comparison{parts: []payloadPart{{payload: payload, temporality: s.kind.temporality}}}
	if !s.looksInto() {
		return whole, nil
	}
	view, err := viewPprof(payload)
	if err != nil {
		return comparison{}, err
	}
	counted, rest := s.columns(view)
	if len(counted) == 0 {
		return whole, nil
	}
	next := &reading{time: view.time, at: at}
	var first []int32
	if !s.kind.sinceLast {
		if first, err = next.read(view, counted, s.most); err != nil {
			return comparison{}, err
		}
	}
	result := comparison{next: next}
	if len(rest) > 0 {
		result.parts = append(result.parts, payloadPart{
			payload:     view.project(projection{columns: rest, values: view.nonzero(rest)}),
			temporality: s.kind.temporality,
		})
	}
	if s.last == nil {
		return result, nil
	}
	difference := projection{columns: counted, values: view.nonzero(counted)}
	if !s.kind.sinceLast {
		if result.restarted = !next.follows(s.last); result.restarted {
			return result, nil
		}
		difference.values = next.minus(s.last, first)
	}
	difference.time, difference.duration = interval(s.last, next)
	result.parts = append(result.parts, payloadPart{
		payload:     view.project(difference),
		temporality: always(temporalityDelta),
		counted:     true,
	})
	return result, nil
}

// viewFactor is how many times its size the comparison of a profile takes.
const viewFactor = 4

// looksInto tells whether profiles may have values that count.
func (s *comparer) looksInto() bool {
	return s.kind.sinceLast || s.delta && s.kind.temporality("alloc_space") == temporalityCumulative
}

// columns tells the sample types that count from those that do not.
func (s *comparer) columns(view *pprofView) (counted, rest []int) {
	wanted := temporalityCumulative
	if s.kind.sinceLast {
		wanted = temporalityDelta
	}
	for i, name := range view.sampleTypes {
		if s.kind.temporality(name) == wanted {
			counted = append(counted, i)
		} else {
			rest = append(rest, i)
		}
	}
	return counted, rest
}

// interval is from one reading to the next, by the target's clock unless that
// stepped back.
func interval(last, next *reading) (begin, duration int64) {
	if last.time > 0 && next.time > last.time {
		return last.time, next.time - last.time
	}
	duration = max(next.at.Sub(last.at).Nanoseconds(), 0)
	end := next.time
	if end == 0 {
		end = next.at.UnixNano()
	}
	return max(end-duration, 1), duration
}

// nonzero returns the values of these columns as they are, of the samples that
// have any.
func (v *pprofView) nonzero(columns []int) func(sample int) ([]int64, bool) {
	values := make([]int64, len(columns))
	return func(sample int) ([]int64, bool) {
		found := false
		for i, column := range columns {
			values[i] = v.values[sample*len(v.sampleTypes)+column]
			found = found || values[i] != 0
		}
		return values, found
	}
}

// read fills r with the sums of the values of equal samples. It returns, for each
// sample of the view, the index of its id if it is the first of that id, else -1.
func (r *reading) read(view *pprofView, columns []int, most int) (first []int32, err error) {
	for _, column := range columns {
		r.types = append(r.types, view.sampleTypes[column])
	}
	r.mappings = slices.Clip(view.mappings)
	order := make([]int32, len(view.samples))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return view.samples[a].compare(view.samples[b]) })

	first = make([]int32, len(view.samples))
	sums := make([]int64, len(columns))
	for begin := 0; begin < len(order); {
		id := view.samples[order[begin]]
		clear(sums)
		end, found := begin, false
		for ; end < len(order) && view.samples[order[end]] == id; end++ {
			sample := int(order[end])
			first[sample] = -1
			for i, column := range columns {
				value := view.values[sample*len(view.sampleTypes)+column]
				switch {
				case value < 0:
					return nil, fmt.Errorf("pprof: sample[%d]: %s is %d, and counts from the start: want 0 or more", sample, r.types[i], value)
				case value > math.MaxInt64-sums[i]:
					return nil, fmt.Errorf("pprof: sample[%d]: the sum of its %s does not fit into 64 bits", sample, r.types[i])
				}
				sums[i] += value
				found = found || sums[i] != 0
			}
		}
		if found {
			if len(r.ids) == most {
				return nil, &pproftranslator.LimitError{What: "different samples of a profile to take differences of", Limit: int64(most)}
			}
			first[order[begin]] = int32(len(r.ids))
			r.ids = append(r.ids, id)
			r.values = append(r.values, sums...)
		}
		begin = end
	}
	r.ids, r.values = slices.Clone(r.ids), slices.Clone(r.values)
	return first, nil
}

// follows tells whether r can be a later reading of the same process: nothing of
// last is gone, and nothing is less.
func (r *reading) follows(last *reading) bool {
	if !slices.Equal(r.types, last.types) || !contains(r.mappings, last.mappings) {
		return false
	}
	n := 0
	for i, id := range last.ids {
		for n < len(r.ids) && r.ids[n].compare(id) < 0 {
			n++
		}
		if n == len(r.ids) || r.ids[n] != id {
			return false
		}
		for column := range r.types {
			if r.values[n*len(r.types)+column] < last.values[i*len(r.types)+column] {
				return false
			}
		}
	}
	return true
}

// contains tells whether all of part are in all; both are in order.
func contains(all, part []identity) bool {
	for _, id := range part {
		n, found := slices.BinarySearchFunc(all, id, identity.compare)
		if !found {
			return false
		}
		all = all[n:]
	}
	return true
}

// minus returns the differences of r from last, which it follows, of the samples
// that first has the ids of. Those without a difference are left out.
func (r *reading) minus(last *reading, first []int32) func(sample int) ([]int64, bool) {
	columns := len(r.types)
	differences := make([]int64, columns)
	return func(sample int) ([]int64, bool) {
		index := int(first[sample])
		if index < 0 {
			return nil, false
		}
		copy(differences, r.values[index*columns:])
		if before, found := slices.BinarySearchFunc(last.ids, r.ids[index], identity.compare); found {
			for i := range differences {
				differences[i] -= last.values[before*columns+i]
			}
		}
		return differences, slices.ContainsFunc(differences, func(n int64) bool { return n != 0 })
	}
}

// errNoProfile: a target answered with nothing.
var errNoProfile = errors.New("empty, want a pprof profile")
