// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// joinedSamples are the samples of a pprof while the values of one sample type
// after the other come in. A sample is a row, a sample type a column.
//
// A row without a timestamp is found by its identity; the values of one column
// for it are added up. A row with one is found by {identity, timestamp, how many
// of the same came before in this column}, and nothing is added up.
type joinedSamples struct {
	types  int // columns
	column int // the column that values come in for
	rows   []joinedRow
	values []int64 // row by row
	room   int     // how long values may get

	plain  []int // by identity: the row plus one
	chains map[timedIdentity]*rowChain
}

type joinedRow struct {
	identity int
	time     uint64 // nanoseconds since the epoch
	isTimed  bool
	next     int // the next row of the same timedIdentity, or 0
}

type timedIdentity struct {
	identity int
	time     uint64
}

// rowChain holds the rows of one timedIdentity, linked by joinedRow.next.
type rowChain struct {
	first  int
	column int // the column that last was of this chain
	last   int // is where that column is
}

// maxSparseness is how many zeros a pprof may have to spell out for each value
// that is there, beyond the first freeCells. OTLP leaves them out, so that a small
// payload with thousands of sample types could take all memory.
const (
	maxSparseness = 64
	freeCells     = 1 << 20
)

// newJoinedSamples expects so many values with a time or an identity of their own,
// for all types together.
func newJoinedSamples(types, values int) *joinedSamples {
	return &joinedSamples{
		types:  types,
		room:   freeCells + (maxSparseness+1)*values,
		chains: map[timedIdentity]*rowChain{},
	}
}

var errValueOverflow = errors.New("the values of its identity add up beyond int64")

func (j *joinedSamples) newRow(row joinedRow) (int, error) {
	if len(j.values)+j.types > j.room {
		return 0, fmt.Errorf("the %d sample types share too few samples for a pprof: it would hold over %d zeros for each value",
			j.types, maxSparseness)
	}
	j.rows = append(j.rows, row)
	j.values = append(j.values, make([]int64, j.types)...)
	return len(j.rows) - 1, nil
}

// addValues adds values without timestamps to what identity has.
func (j *joinedSamples) addValues(identity int, values pcommon.Int64Slice) error {
	if identity >= len(j.plain) {
		j.plain = append(j.plain, make([]int, identity+1-len(j.plain))...)
	}
	if j.plain[identity] == 0 {
		row, err := j.newRow(joinedRow{identity: identity})
		if err != nil {
			return err
		}
		j.plain[identity] = row + 1
	}
	sum := &j.values[(j.plain[identity]-1)*j.types+j.column]
	for i := range values.Len() {
		v := values.At(i)
		added := *sum + v
		if (added > *sum) != (v > 0) && v != 0 {
			return errValueOverflow
		}
		*sum = added
	}
	return nil
}

// addTimed adds values at times, or 1 for each time where there are no values.
func (j *joinedSamples) addTimed(identity int, times pcommon.UInt64Slice, values pcommon.Int64Slice) error {
	for i := range times.Len() {
		row, err := j.timedRow(timedIdentity{identity, times.At(i)})
		if err != nil {
			return err
		}
		value := int64(1)
		if values.Len() > 0 {
			value = values.At(i)
		}
		j.values[row*j.types+j.column] = value
	}
	return nil
}

func (j *joinedSamples) timedRow(at timedIdentity) (int, error) {
	chain := j.chains[at]
	if chain != nil && chain.column != j.column {
		chain.column, chain.last = j.column, chain.first
		return chain.first, nil
	}
	if chain != nil {
		if next := j.rows[chain.last].next; next != 0 {
			chain.last = next
			return next, nil
		}
	}
	row, err := j.newRow(joinedRow{identity: at.identity, time: at.time, isTimed: true})
	if err != nil {
		return 0, err
	}
	if chain == nil {
		j.chains[at] = &rowChain{first: row, column: j.column, last: row}
	} else {
		j.rows[chain.last].next = row
		chain.last = row
	}
	return row, nil
}

// samples returns the samples in the order in which they first came in. identities
// are by the numbers that were given with the values.
func (j *joinedSamples) samples(identities []sampleIdentity, timestampLabel string) []*profile.Sample {
	depth := 0
	for _, row := range j.rows {
		depth += len(identities[row.identity].stack)
	}
	all := make([]profile.Sample, len(j.rows))
	samples := make([]*profile.Sample, len(j.rows))
	locations := make([]*profile.Location, 0, depth)
	for i, row := range j.rows {
		s, identity := &all[i], &identities[row.identity]
		samples[i] = s
		start := len(locations)
		locations = append(locations, identity.stack...)
		s.Location = locations[start:len(locations):len(locations)]
		s.Value = j.values[i*j.types : (i+1)*j.types : (i+1)*j.types]
		if row.isTimed {
			label := numberLabel(timestampLabel, int64(row.time), "")
			if row.time == 0 {
				label.unit = "nanoseconds" // pprof reads a 0 without a unit as no label
			}
			label.addTo(s)
		}
		for k := range identity.labels {
			identity.labels[k].addTo(s)
		}
	}
	return samples
}
