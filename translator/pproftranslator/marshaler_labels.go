// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"encoding/hex"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// pprofLabel is one value of one label: a number, with its unit, or a text.
type pprofLabel struct {
	key, text string
	isNumber  bool
	number    int64
	unit      string
}

func textLabel(key, text string) pprofLabel { return pprofLabel{key: key, text: validText(text)} }

func numberLabel(key string, number int64, unit string) pprofLabel {
	return pprofLabel{key: key, isNumber: true, number: number, unit: unit}
}

// addTo adds the label to those that s has. Where one number of a key has a unit,
// google/pprof wants one for each, if an empty one.
func (l *pprofLabel) addTo(s *profile.Sample) {
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

// labelsOf returns the labels of a sample, whose attribute_indices are the set of
// that number: those of its link before those of its attributes, so that of two
// values of a key the link's is the first. A link that the labels of the
// attributes make by themselves adds none.
func (c *pprofConverter) labelsOf(s pprofile.Sample, set int32) []pprofLabel {
	for _, i := range s.AttributeIndices().All() {
		c.readAttribute(i)
	}
	var labels []pprofLabel
	var named link
	c.set = c.tables.AppendSet(c.set[:0], set)
	for _, index := range c.set {
		values := c.labels[index]
		labels = append(labels, values...)
		if len(values) == 1 {
			c.offer(&named, &values[0])
		}
	}
	if c.remap.Link(s.LinkIndex()) == 0 {
		return labels
	}
	from := c.from.LinkTable().At(int(s.LinkIndex()))
	traceID, spanID := from.TraceID(), from.SpanID()
	if t, s, _, ok := named.ids(); ok && t == traceID && s == spanID {
		return labels
	}
	return append([]pprofLabel{
		textLabel(c.names.traceID, hex.EncodeToString(traceID[:])),
		textLabel(c.names.spanID, hex.EncodeToString(spanID[:])),
	}, labels...)
}

// offer shows to a label that is the only one of its key, as the way in does.
func (c *pprofConverter) offer(to *link, l *pprofLabel) {
	switch r := c.names.role([]byte(l.key)); {
	case r == roleNone || r == roleTimestamp:
	case l.isNumber:
		to.offer(r, nil, l.number)
	default:
		to.offer(r, []byte(l.text), 0)
	}
}

// readAttribute sees to it that c.labels holds what attribute i becomes.
func (c *pprofConverter) readAttribute(i int32) {
	index := c.remap.Attribute(i)
	if _, ok := c.labels[index]; ok || index == 0 {
		return
	}
	a := c.from.AttributeTable().At(int(i))
	c.labels[index] = labelsOfValue(c.text(a.KeyStrindex()), a.Value(), c.text(a.UnitStrindex()))
}

// labelsOfValue turns an attribute into labels: one for a string or an integer,
// one for each element of an array, and the text of anything else.
func labelsOfValue(key string, v pcommon.Value, unit string) []pprofLabel {
	switch {
	case v.Type() == pcommon.ValueTypeInt:
		return []pprofLabel{numberLabel(key, v.Int(), unit)}
	case v.Type() != pcommon.ValueTypeSlice || v.Slice().Len() == 0:
		return []pprofLabel{textLabel(key, v.AsString())}
	}
	labels := make([]pprofLabel, 0, v.Slice().Len())
	for _, e := range v.Slice().All() {
		ownUnit := unit
		if value, u, ok := valueWithUnit(e); ok {
			e, ownUnit = value, u
		}
		if e.Type() == pcommon.ValueTypeInt {
			labels = append(labels, numberLabel(key, e.Int(), ownUnit))
		} else {
			labels = append(labels, textLabel(key, e.AsString()))
		}
	}
	return labels
}

// valueWithUnit takes apart a {value, unit} list, which stands in an array for a
// string or an integer with a unit of its own; the unit may be missing.
func valueWithUnit(v pcommon.Value) (value pcommon.Value, unit string, ok bool) {
	if v.Type() != pcommon.ValueTypeMap {
		return value, "", false
	}
	entries := 1
	value, ok = v.Map().Get(elementValue)
	if !ok || value.Type() != pcommon.ValueTypeInt && value.Type() != pcommon.ValueTypeStr {
		return value, "", false
	}
	if u, hasUnit := v.Map().Get(elementUnit); hasUnit {
		if u.Type() != pcommon.ValueTypeStr {
			return value, "", false
		}
		entries, unit = 2, validText(u.Str())
	}
	return value, unit, v.Map().Len() == entries
}
