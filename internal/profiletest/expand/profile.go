// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Profile is one Profile, or one sample type of a pprof, written out: nothing
// in it is an index or an id of the format it was read from.
type Profile struct {
	Resource Entity
	Scope    Entity

	Type, Unit             string
	PeriodType, PeriodUnit string
	Period                 int64
	// Time is in nanoseconds since the UNIX epoch, Duration in nanoseconds.
	Time, Duration uint64
	// ProfileID is in hex, empty if it is unset or all zeros.
	ProfileID         string
	Attributes        []Attribute // sorted, without repetition
	DroppedAttributes uint32
	PayloadFormat     string
	Payload           string

	// Shape is that of the first sample.
	Shape Shape
	// Samples holds one element for each identity, in order of first
	// occurrence; samples of equal identity are summed.
	Samples []*Sample
}

// Entity is a resource or a scope.
type Entity struct {
	Name, Version     string // of a scope
	SchemaURL         string
	Attributes        []Attribute // sorted, without repetition
	DroppedAttributes uint32
}

func (e Entity) String() string {
	return fmt.Sprintf("%q %q %q %v dropped %d", e.Name, e.Version, e.SchemaURL, e.Attributes, e.DroppedAttributes)
}

// Sample has the values of one identity {stack, set of attributes, link}.
type Sample struct {
	Stack      []*Frame    // leaf first
	Attributes []Attribute // sorted, without repetition
	// Link is "trace id/span id" in hex, or empty.
	Link string

	// Sum is the sum of all values; a timestamp without a value counts 1.
	Sum *big.Int
	// Points are sorted.
	Points []Point
}

// Point is one observation with a timestamp, in nanoseconds since the UNIX epoch.
type Point struct {
	Timestamp uint64
	Value     int64
}

// Frame is a location: an address with the lines found there.
type Frame struct {
	Address    uint64
	Lines      []Line // the innermost inlined function first
	Mapping    Mapping
	Attributes []Attribute // sorted, without repetition
}

// Line is a line of source in a function.
type Line struct {
	Function, SystemName, Filename string
	StartLine, Line, Column        int64
}

// Mapping is a mapped binary. The zero value is not a mapping.
type Mapping struct {
	Start, Limit, Offset uint64
	File                 string
	Attributes           []Attribute // sorted, without repetition
}

// Identity writes the sample's identity out, the leaf first, one frame a line.
func (s *Sample) Identity() string {
	var b strings.Builder
	for _, f := range s.Stack {
		b.WriteString(f.String() + "\n")
	}
	return b.String() + fmt.Sprintf("attributes %v link %q", s.Attributes, s.Link)
}

// String writes the frame out so that two are the same exactly if they are equal.
func (f *Frame) String() string {
	return fmt.Sprintf("%#x %v in (%v) attributes %v", f.Address, f.Lines, f.Mapping, f.Attributes)
}

func (l Line) String() string {
	return fmt.Sprintf("%q/%q@%q:%d:%d(start %d)", l.Function, l.SystemName, l.Filename, l.Line, l.Column, l.StartLine)
}

func (m Mapping) String() string {
	return fmt.Sprintf("%#x-%#x+%#x %q %v", m.Start, m.Limit, m.Offset, m.File, m.Attributes)
}

func (m Mapping) isZero() bool { return m.String() == Mapping{}.String() }

// Header writes out everything but the samples.
func (e *Profile) Header() string {
	return fmt.Sprintf("%q/%q period %q/%q %d time %d+%d id %q attributes %v dropped %d, %s, payload %q %q\n    resource %v\n    scope %v",
		e.Type, e.Unit, e.PeriodType, e.PeriodUnit, e.Period, e.Time, e.Duration, e.ProfileID, e.Attributes, e.DroppedAttributes,
		e.Shape, e.PayloadFormat, e.Payload, e.Resource, e.Scope)
}

// interner gives identities as short keys: a number for each written-out part.
// Keys of one interner are equal exactly if the identities are.
type interner struct {
	ids    map[string]uint64
	frames map[*Frame]uint64
}

func newInterner() *interner {
	return &interner{ids: map[string]uint64{}, frames: map[*Frame]uint64{}}
}

func (in *interner) id(text string) uint64 {
	id, ok := in.ids[text]
	if !ok {
		id = uint64(len(in.ids))
		in.ids[text] = id
	}
	return id
}

func (in *interner) key(s *Sample) string {
	key := binary.AppendUvarint(nil, in.id(fmt.Sprint(s.Attributes)))
	key = binary.AppendUvarint(key, in.id(s.Link))
	for _, f := range s.Stack {
		id, ok := in.frames[f]
		if !ok {
			id = in.id(f.String())
			in.frames[f] = id
		}
		key = binary.AppendUvarint(key, id)
	}
	return string(key)
}

// sampleSet sums samples of equal identity.
type sampleSet struct {
	in    *interner
	byKey map[string]*Sample
	list  []*Sample
}

func newSampleSet(in *interner) *sampleSet {
	return &sampleSet{in: in, byKey: map[string]*Sample{}}
}

// add takes s, which it may change later.
func (set *sampleSet) add(s *Sample) {
	key := set.in.key(s)
	have, ok := set.byKey[key]
	if !ok {
		set.byKey[key] = s
		set.list = append(set.list, s)
		return
	}
	have.Sum.Add(have.Sum, s.Sum)
	have.Points = append(have.Points, s.Points...)
}

// samples returns the sums, with sorted points.
func (set *sampleSet) samples() []*Sample {
	for _, s := range set.list {
		slices.SortFunc(s.Points, Point.Compare)
	}
	return set.list
}

// Compare orders points by time, then by value.
func (p Point) Compare(other Point) int {
	return cmp.Or(cmp.Compare(p.Timestamp, other.Timestamp), cmp.Compare(p.Value, other.Value))
}

// Shape is the way a sample records its data.
type Shape int

// The shapes that the format knows.
const (
	ShapeNone       Shape = iota
	ShapeValues           // one value, without timestamps
	ShapeTimestamps       // timestamps, each of which stands for the value 1
	ShapeBoth             // as many values as timestamps
)

func shapeOfCounts(values, timestamps int) Shape {
	switch {
	case values > 0 && timestamps > 0:
		return ShapeBoth
	case values > 0:
		return ShapeValues
	case timestamps > 0:
		return ShapeTimestamps
	}
	return ShapeNone
}

func (s Shape) String() string {
	return [...]string{"no data", "values only", "timestamps only", "values and timestamps"}[s]
}
