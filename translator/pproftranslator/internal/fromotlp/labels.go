// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"encoding/hex"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/semconv"
)

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
	earlier := len(s.NumLabel[l.key])
	s.NumLabel[l.key] = append(s.NumLabel[l.key], l.number)
	units, ok := s.NumUnit[l.key]
	if !ok && l.unit == "" {
		return
	}
	if s.NumUnit == nil {
		s.NumUnit = map[string][]string{}
	}
	if !ok {
		units = make([]string, earlier, earlier+1)
	}
	s.NumUnit[l.key] = append(units, l.unit)
}

// labelsOf returns the labels of a sample, whose attribute_indices have the value set.
// The labels of its link come first. A link that the other labels make as well adds none.
func (c *Converter) labelsOf(s pprofile.Sample, set int32) []label {
	for _, i := range s.AttributeIndices().All() {
		value := c.remap.Attribute(i)
		if _, ok := c.labels[value]; !ok && value != 0 {
			a := c.from.AttributeTable().At(int(i))
			c.labels[value] = labelsOfValue(c.text(a.KeyStrindex()), a.Value(), c.text(a.UnitStrindex()))
		}
	}
	var labels []label
	var named semconv.Link
	c.set = c.tables.AppendSet(c.set[:0], set)
	for _, attribute := range c.set {
		values := c.labels[attribute]
		labels = append(labels, values...)
		if len(values) != 1 {
			continue
		}
		if l := &values[0]; l.isNumber {
			named.Add(c.names.Role(l.key), nil, l.number)
		} else {
			named.Add(c.names.Role(l.key), []byte(l.text), 0)
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
// each element of an array, and the text of anything else.
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
	return label{key: key, text: dictionary.ValidUTF8(v.AsString())}
}

// valueWithUnit splits a {value, unit} list, which stands in an array for a string or
// an integer with a unit of its own; the unit may be missing.
func valueWithUnit(v pcommon.Value) (value pcommon.Value, unit string, ok bool) {
	if v.Type() != pcommon.ValueTypeMap {
		return value, "", false
	}
	entries := 1
	value, ok = v.Map().Get(semconv.ElementValue)
	if !ok || value.Type() != pcommon.ValueTypeInt && value.Type() != pcommon.ValueTypeStr {
		return value, "", false
	}
	if u, hasUnit := v.Map().Get(semconv.ElementUnit); hasUnit {
		if u.Type() != pcommon.ValueTypeStr {
			return value, "", false
		}
		entries, unit = 2, dictionary.ValidUTF8(u.Str())
	}
	return value, unit, v.Map().Len() == entries
}
