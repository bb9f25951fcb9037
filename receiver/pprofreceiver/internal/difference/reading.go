// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

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
