// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// ErrOverflow says that the values of an identity exceed int64 when they are summed.
var ErrOverflow = errors.New("sum of merged values overflows int64")

// add adds the values of s, of a column.
func (b *builder) add(s pprofile.Sample, column int, repeats map[event]int) error {
	identity, err := b.identity(s)
	if err != nil {
		return err
	}
	values, times := s.Values(), s.TimestampsUnixNano()
	if times.Len() == 0 {
		to, err := b.sample(event{identity: identity, repeat: -1})
		if err != nil {
			return err
		}
		for _, v := range values.All() {
			sum := to.Value[column] + v
			if v != 0 && (sum > to.Value[column]) != (v > 0) {
				return ErrOverflow
			}
			to.Value[column] = sum
		}
		return nil
	}
	for i, time := range times.All() {
		e := event{identity: identity, time: time}
		repeats[e]++
		e.repeat = repeats[e] - 1
		to, err := b.sample(e)
		if err != nil {
			return err
		}
		to.Value[column] = 1 // of a timestamp without a value
		if values.Len() > 0 {
			to.Value[column] = values.At(i)
		}
	}
	return nil
}

// identity returns the number of the identity of s.
func (b *builder) identity(s pprofile.Sample) (int32, error) {
	set, err := b.attributeSet(s.AttributeIndices())
	if err != nil {
		return 0, err
	}
	number := b.identities.Number(b.remap.Stack(s.StackIndex()), set, b.remap.Link(s.LinkIndex()))
	if err := b.tables.Err(); err != nil {
		return 0, err
	}
	if int(number) == len(b.parts) {
		stack, err := b.stack(s.StackIndex())
		if err != nil {
			return 0, err
		}
		b.parts = append(b.parts, parts{stack: stack, labels: b.labelsOf(s, set)})
	}
	return number, nil
}

// sample returns the sample of an event, which may be new.
func (b *builder) sample(e event) (*profile.Sample, error) {
	if s := b.samples[e]; s != nil {
		return s, nil
	}
	columns := len(b.pprof.SampleType)
	if (len(b.samples)+1)*columns > b.maxValues {
		return nil, fmt.Errorf("the %d sample types share too few samples for a pprof: it would hold over %d zeros for each value",
			columns, maxSparseness)
	}
	if b.valuesLeft -= columns; b.valuesLeft < 0 {
		return nil, ErrMaxValues
	}
	of := b.parts[e.identity]
	s := &profile.Sample{Location: slices.Clone(of.stack), Value: make([]int64, columns)}
	if e.repeat >= 0 {
		timestamp := label{key: b.names.Timestamp, isNumber: true, number: int64(e.time)}
		if e.time == 0 {
			timestamp.unit = "nanoseconds" // pprof reads a 0 without a unit as no label
		}
		timestamp.addTo(s)
	}
	for i := range of.labels {
		of.labels[i].addTo(s)
	}
	b.samples[e] = s
	b.pprof.Sample = append(b.pprof.Sample, s)
	return s, nil
}

// label is one value of one label: a number, with its unit, or a text.
type label struct {
	key, text string
	isNumber  bool
	number    int64
	unit      string
}

// addTo adds the label to s. If one number of a key has a unit, google/pprof wants a
// unit for each, empty or not.
func (l *label) addTo(s *profile.Sample) {
	if !l.isNumber {
		if s.Label == nil {
			s.Label = map[string][]string{}
		}
		s.Label[l.key] = append(s.Label[l.key], l.text)
		return
	}
	if s.NumLabel == nil {
		s.NumLabel = map[string][]int64{}
	}
	if units := s.NumUnit[l.key]; l.unit != "" || units != nil {
		if s.NumUnit == nil {
			s.NumUnit = map[string][]string{}
		}
		missing := make([]string, len(s.NumLabel[l.key])-len(units))
		s.NumUnit[l.key] = append(append(units, missing...), l.unit)
	}
	s.NumLabel[l.key] = append(s.NumLabel[l.key], l.number)
}

// labelsOf returns the labels of a sample, whose attribute_indices have the value set.
// The labels of its link come first. A link that the other labels make as well adds none.
func (c *converter) labelsOf(s pprofile.Sample, set int32) []label {
	for _, i := range s.AttributeIndices().All() {
		value := c.remap.Attribute(i)
		if _, ok := c.labels[value]; !ok && value != 0 {
			a := c.from.AttributeTable().At(int(i))
			c.labels[value] = labelsOfValue(c.text(a.KeyStrindex()), a.Value(), c.text(a.UnitStrindex()))
		}
	}
	var labels []label
	var named Link
	c.set = c.tables.AppendSet(c.set[:0], set)
	for _, attribute := range c.set {
		values := c.labels[attribute]
		labels = append(labels, values...)
		if len(values) == 1 {
			named.Add(c.names.Role(values[0].key), values[0].isNumber, []byte(values[0].text), values[0].number)
		}
	}
	if c.remap.Link(s.LinkIndex()) == 0 {
		return labels
	}
	link := c.from.LinkTable().At(int(s.LinkIndex()))
	traceID, spanID := link.TraceID(), link.SpanID()
	if t, s, _, ok := named.IDs(); ok && t == traceID && s == spanID {
		return labels
	}
	return append([]label{
		{key: c.names.TraceID, text: hex.EncodeToString(traceID[:])},
		{key: c.names.SpanID, text: hex.EncodeToString(spanID[:])},
	}, labels...)
}

// labelsOfValue turns an attribute into labels: one for a string or an integer, one for
// each element of an array, and the text of anything else. An element may be a
// {value, unit} list, which stands for a string or an integer with a unit of its own.
func labelsOfValue(key string, v pcommon.Value, unit string) []label {
	if v.Type() != pcommon.ValueTypeSlice || v.Slice().Len() == 0 {
		return []label{labelOf(key, v, unit)}
	}
	labels := make([]label, 0, v.Slice().Len())
	for _, e := range v.Slice().All() {
		if value, own, ok := valueWithUnit(e); ok {
			labels = append(labels, labelOf(key, value, own))
		} else {
			labels = append(labels, labelOf(key, e, unit))
		}
	}
	return labels
}

func labelOf(key string, v pcommon.Value, unit string) label {
	if v.Type() == pcommon.ValueTypeInt {
		return label{key: key, isNumber: true, number: v.Int(), unit: unit}
	}
	return label{key: key, text: textOf(v)}
}

// valueWithUnit splits a {value, unit} list; the unit may be missing.
func valueWithUnit(v pcommon.Value) (value pcommon.Value, unit string, ok bool) {
	if v.Type() != pcommon.ValueTypeMap {
		return value, "", false
	}
	value, ok = v.Map().Get(ElementValue)
	if !ok || value.Type() != pcommon.ValueTypeInt && value.Type() != pcommon.ValueTypeStr {
		return value, "", false
	}
	u, hasUnit := v.Map().Get(ElementUnit)
	if !hasUnit {
		return value, "", v.Map().Len() == 1
	}
	return value, dictionary.ValidUTF8(u.Str()), u.Type() == pcommon.ValueTypeStr && v.Map().Len() == 2
}
