// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"errors"
	"fmt"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// join makes the samples of one pprof of those of its Profiles. A row becomes a sample;
// it has a value for each column.
type join struct {
	symbols
	columns   int
	maxValues int

	column     int // of the current Profile
	identities dictionary.Samples
	parts      []parts // by number of an identity
	rowOf      map[event]int
	repeats    map[event]int // how often the current Profile had an event, by its first
	rows       []event
	values     []int64 // row by row
}

// parts are the parts of an identity as pprof has them.
type parts struct {
	stack  []*profile.Location
	labels []label
}

// event is an observation of an identity at a time. A row without a timestamp has
// repeat -1.
type event struct {
	identity int32
	repeat   int    // how many equal events came before it in the same Profile
	time     uint64 // nanoseconds since the epoch
}

// maxSparseness is how many zeros a pprof may hold for each value of the Profiles,
// beyond the first freeValues. OTLP leaves zeros out: without a limit, a small payload
// with thousands of sample types could take all memory.
const (
	maxSparseness = 64
	freeValues    = 1 << 20
)

// ErrOverflow says that the values of an identity exceed int64 when they are summed.
var ErrOverflow = errors.New("sum of merged values overflows int64")

func newJoin(c *Converter, p *profile.Profile, g *group) *join {
	values := 0
	for _, m := range g.members {
		for _, s := range m.profile.Samples().All() {
			values += max(1, s.TimestampsUnixNano().Len())
		}
	}
	return &join{
		symbols:   newSymbols(c, p),
		columns:   len(g.columns),
		maxValues: freeValues + (maxSparseness+1)*values,
		rowOf:     map[event]int{},
		repeats:   map[event]int{},
	}
}

// startProfile says that the next samples are of a Profile with values for a column.
func (j *join) startProfile(column int) {
	j.column = column
	clear(j.repeats)
}

func (j *join) addSample(s pprofile.Sample) error {
	identity, err := j.identity(s)
	if err != nil {
		return err
	}
	values, times := s.Values(), s.TimestampsUnixNano()
	if times.Len() == 0 {
		row, err := j.row(event{identity: identity, repeat: -1})
		if err != nil {
			return err
		}
		return addAll(&j.values[row*j.columns+j.column], values.All())
	}
	for i, time := range times.All() {
		e := event{identity: identity, time: time}
		repeat := j.repeats[e]
		j.repeats[e]++
		e.repeat = repeat
		row, err := j.row(e)
		if err != nil {
			return err
		}
		value := int64(1) // of a timestamp without a value
		if values.Len() > 0 {
			value = values.At(i)
		}
		j.values[row*j.columns+j.column] = value
	}
	return nil
}

// identity returns the number of the identity of s.
func (j *join) identity(s pprofile.Sample) (int32, error) {
	set, err := j.attributeSet(s.AttributeIndices())
	if err != nil {
		return 0, err
	}
	number := j.identities.Number(j.remap.Stack(s.StackIndex()), set, j.remap.Link(s.LinkIndex()))
	// If a location or a mapping of the stack has two attributes of one key, j.stack
	// reports it, for each pprof; the remap does so only the first time.
	_ = j.tables.TakeDuplicate()
	if err := j.tables.Err(); err != nil {
		return 0, err
	}
	if int(number) == len(j.parts) {
		stack, err := j.stack(s.StackIndex())
		if err != nil {
			return 0, err
		}
		j.parts = append(j.parts, parts{stack: stack, labels: j.labelsOf(s, set)})
	}
	return number, nil
}

// row returns the row of e, which may be new.
func (j *join) row(e event) (int, error) {
	if row, ok := j.rowOf[e]; ok {
		return row, nil
	}
	if len(j.values)+j.columns > j.maxValues {
		return 0, fmt.Errorf("the %d sample types share too few samples for a pprof: it would hold over %d zeros for each value",
			j.columns, maxSparseness)
	}
	j.rowOf[e] = len(j.rows)
	j.rows = append(j.rows, e)
	j.values = append(j.values, make([]int64, j.columns)...)
	return len(j.rows) - 1, nil
}

func addAll(sum *int64, values func(func(int, int64) bool)) error {
	for _, v := range values {
		added := *sum + v
		if v != 0 && (added > *sum) != (v > 0) {
			return ErrOverflow
		}
		*sum = added
	}
	return nil
}

// samples returns the samples in the order in which they first appeared.
func (j *join) samples() []*profile.Sample {
	depth := 0
	for _, e := range j.rows {
		depth += len(j.parts[e.identity].stack)
	}
	all := make([]profile.Sample, len(j.rows))
	samples := make([]*profile.Sample, len(j.rows))
	locations := make([]*profile.Location, 0, depth)
	for row, e := range j.rows {
		s, parts := &all[row], &j.parts[e.identity]
		samples[row] = s
		start := len(locations)
		locations = append(locations, parts.stack...)
		s.Location = locations[start:len(locations):len(locations)]
		s.Value = j.values[row*j.columns : (row+1)*j.columns : (row+1)*j.columns]
		if e.repeat >= 0 {
			timestamp := label{key: j.names.Timestamp, isNumber: true, number: int64(e.time)}
			if e.time == 0 {
				timestamp.unit = "nanoseconds" // pprof reads a 0 without a unit as no label
			}
			timestamp.addTo(s)
		}
		for i := range parts.labels {
			parts.labels[i].addTo(s)
		}
	}
	return samples
}
