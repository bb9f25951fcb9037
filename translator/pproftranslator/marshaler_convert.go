// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"strings"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// pprofConverter makes the pprofs of one payload. The tables and the remap number
// each entry of the payload's dictionary by its value, so that what is equal is
// joined even where the dictionary repeats it; the texts are read from the payload.
type pprofConverter struct {
	from   pprofile.ProfilesDictionary
	tables *dictionary.Tables
	remap  dictionary.Remap

	names  labelNames
	labels map[int32][]pprofLabel // by attribute, in the tables
	set    []int32

	// Of the pprof being made.
	pprof                          *profile.Profile
	mappings, locations, functions numbering // by index in the tables
	numbers                        map[sampleKey]int
	identities                     []sampleIdentity // by their number
	joined                         *joinedSamples
}

// sampleKey is the identity of a sample: indices into the tables, and the number
// of an attribute set.
type sampleKey struct{ stack, set, link int32 }

// sampleIdentity is the identity of a sample as pprof says it.
type sampleIdentity struct {
	stack  []*profile.Location
	labels []pprofLabel
}

func newPprofConverter(m Marshaler, from pprofile.ProfilesDictionary) *pprofConverter {
	c := &pprofConverter{
		from:   from,
		tables: dictionary.New(0),
		names: labelNames{
			timestamp: orDefault(m.TimestampLabel, "end_timestamp_ns"),
			traceID:   orDefault(m.TraceIDLabel, "trace_id"),
			spanID:    orDefault(m.SpanIDLabel, "span_id"),
		},
		labels: map[int32][]pprofLabel{},
	}
	c.remap.Reset(from, c.tables)
	return c
}

// convert makes one pprof. executable is the base name of the main binary, if it
// is known.
func (c *pprofConverter) convert(plan *pprofPlan, executable string) (*profile.Profile, error) {
	c.mappings.reset()
	c.locations.reset()
	c.functions.reset()
	c.numbers = map[sampleKey]int{}
	c.identities = nil
	c.pprof = &profile.Profile{DefaultSampleType: plan.defaultType}
	c.joined = newJoinedSamples(len(plan.types), plan.countValues())

	plan.header.write(c.pprof)
	for _, t := range plan.types {
		c.pprof.SampleType = append(c.pprof.SampleType, &profile.ValueType{Type: t.name, Unit: t.unit})
	}
	for _, p := range plan.profiles {
		c.joined.column = p.of.column
		samples := p.profile.Samples()
		for i := range samples.Len() {
			if err := c.addSample(samples.At(i)); err != nil {
				return nil, fmt.Errorf("profiles[%d].samples[%d]: %w", p.index, i, err)
			}
		}
	}
	c.pprof.Sample = c.joined.samples(c.identities, c.names.timestamp)
	moveToFront(c.pprof.Mapping, executable)
	return c.pprof, nil
}

func (c *pprofConverter) addSample(s pprofile.Sample) error {
	set, err := c.attributeSet(s.AttributeIndices())
	if err != nil {
		return err
	}
	key := sampleKey{stack: c.remap.Stack(s.StackIndex()), set: set, link: c.remap.Link(s.LinkIndex())}
	// The remap looks at a location once; c.location does for each pprof.
	_ = c.tables.TakeDuplicate()
	if err := c.tables.Err(); err != nil {
		return err
	}
	number, ok := c.numbers[key]
	if !ok {
		stack, err := c.stack(s.StackIndex())
		if err != nil {
			return err
		}
		number = len(c.identities)
		c.numbers[key] = number
		c.identities = append(c.identities, sampleIdentity{stack: stack, labels: c.labelsOf(s, set)})
	}
	values, times := s.Values(), s.TimestampsUnixNano()
	if times.Len() == 0 {
		return c.joined.addValues(number, values)
	}
	return c.joined.addTimed(number, times, values)
}

// attributeSet returns the number of a set of attribute indices. Two attributes of one
// key are an error of this set and of no other.
func (c *pprofConverter) attributeSet(indices pcommon.Int32Slice) (int32, error) {
	set := c.remap.AttributeSet(indices)
	if err := c.tables.TakeDuplicate(); err != nil {
		return 0, err
	}
	return set, c.tables.Err()
}

// text returns string i, repaired. An empty table has the empty string at 0.
func (c *pprofConverter) text(i int32) string {
	if i == 0 && c.from.StringTable().Len() == 0 {
		return ""
	}
	return validText(c.from.StringTable().At(int(i)))
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// attribute returns the key and value of attribute i, unless it is the zero value.
func (c *pprofConverter) attribute(i int32) (key string, v pcommon.Value, ok bool) {
	if c.remap.Attribute(i) == 0 {
		return "", pcommon.Value{}, false
	}
	a := c.from.AttributeTable().At(int(i))
	return c.text(a.KeyStrindex()), a.Value(), true
}

// numbering numbers the entries of a table from 0, in order of first use. Starting
// again costs what has been numbered, not the size of the table.
type numbering struct {
	numbers []int // by index in the table: the number plus one
	used    []int32
}

func (n *numbering) number(index int32) (number int, isNew bool) {
	if int(index) >= len(n.numbers) {
		n.numbers = append(n.numbers, make([]int, int(index)+1-len(n.numbers))...)
	}
	if known := n.numbers[index]; known > 0 {
		return known - 1, false
	}
	n.used = append(n.used, index)
	n.numbers[index] = len(n.used)
	return len(n.used) - 1, true
}

func (n *numbering) reset() {
	for _, index := range n.used {
		n.numbers[index] = 0
	}
	n.used = n.used[:0]
}
