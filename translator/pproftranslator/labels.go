// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

var runSeed = maphash.MakeSeed()

// labelMessage is a label of a sample. Fields but number are pprof string
// indices; text 0 means that the label is the number.
type labelMessage struct {
	key, text, number, unit int64
	keyBytes                []byte // the key, valid UTF-8
}

func (l *labelMessage) isText() bool { return l.text != 0 }

func readLabel(c *wire.Cursor) labelMessage {
	var f [8]uint64
	c.Scalars(f[:])
	for c.Next() {
		switch c.Field {
		case labelKey, labelString, labelNumber, labelNumUnit:
			f[c.Field] = c.Uint()
		}
	}
	return labelMessage{
		key: int64(f[labelKey]), text: int64(f[labelString]), number: int64(f[labelNumber]), unit: int64(f[labelNumUnit]),
	}
}

// labelSet holds the labels of one sample.
type labelSet struct {
	all  []labelMessage
	link link
	// roles of the keys, by pprof string, once there are labels.
	roles []role
	// runs and texts remember what they met in this payload: a run in the place that
	// its hash says or the next, a text in one place.
	runs  [257]labelRun
	texts [256]textAttribute
}

// labelRun is what the labels at a position mean, in a sample without a timestamp.
type labelRun struct {
	position
	set, link int32
}

// textAttribute is the index of the attribute for a label with a text and no
// unit.
type textAttribute struct {
	key, text int64
	index     int32
}

func (s *labelSet) retained() int { return cap(s.roles) + 64*cap(s.all) }

// readLabels turns the labels of a sample, which are at the given position with
// whatever else is there, into the attribute set, the link and the timestamp of
// its identity. Samples mostly repeat each other's labels, byte for byte.
func (d *decoder) readLabels(at position, to *identity) error {
	s := &d.label
	if len(s.roles) == 0 {
		s.roles = zeroed(s.roles, len(d.strings))
		clear(s.runs[:])
		clear(s.texts[:])
	}
	run := d.data[at.start:at.stop]
	known := s.runs[uint8(maphash.Bytes(runSeed, run)):][:2]
	for i := range known {
		if k := &known[i]; bytes.Equal(d.data[k.start:k.stop], run) {
			to.set, to.link = k.set, k.link
			return nil
		}
	}
	if err := d.parseLabels(at); err != nil {
		return err
	}
	if err := d.interpretLabels(to); err != nil {
		return err
	}
	if !to.timed {
		known[1], known[0] = known[0], labelRun{at, to.set, to.link}
	}
	return nil
}

func (d *decoder) parseLabels(at position) error {
	c := wire.Cursor{Data: d.data, At: int(at.start), End: int(at.stop)}
	m := wire.Cursor{Data: d.data}
	all := d.label.all[:0]
	for c.Next() {
		if c.Field != sampleLabel {
			continue
		}
		m.Enter(&c)
		l := readLabel(&m)
		if err := errors.Join(c.Err, m.Err); err != nil {
			return fmt.Errorf("label[%d]: %w", len(all), err)
		}
		if len(all) >= d.limits.Labels {
			return &LimitError{What: "labels", Limit: int64(d.limits.Labels)}
		}
		all = append(all, l)
	}
	d.label.all = all
	return nil
}

func (d *decoder) interpretLabels(to *identity) error {
	all := d.label.all
	for i := range all {
		l := &all[i]
		if err := d.checkLabel(l); err != nil {
			return fmt.Errorf("label[%d]: %w", i, err)
		}
		l.keyBytes = d.tables.Valid(d.bytes(l.key))
	}
	slices.SortStableFunc(all, func(a, b labelMessage) int {
		if a.key == b.key {
			return 0
		}
		return bytes.Compare(a.keyBytes, b.keyBytes)
	})

	d.label.link = link{}
	for values := range d.label.byKey {
		if len(values) > 1 {
			continue
		}
		switch l, r := &values[0], d.role(values[0].key); {
		case r == roleNone:
		case r == roleTimestamp:
			if d.isTimestamp(l) {
				to.time, to.timed = uint64(l.number), true
			}
		case l.isText():
			d.label.link.offer(r, d.bytes(l.text), 0)
		default:
			d.label.link.offer(r, nil, l.number)
		}
	}
	traceID, spanID, replaces, ok := d.label.link.ids()
	if ok {
		to.link = d.tables.Link(traceID, spanID)
	}

	d.attribute = d.attribute[:0]
	for values := range d.label.byKey {
		if len(values) > 1 {
			d.attribute = append(d.attribute, d.severalValues(values))
			continue
		}
		r := d.role(values[0].key)
		if r == roleTimestamp && to.timed || replaces && (r == roleTraceID || r == roleSpanID) {
			continue
		}
		d.attribute = append(d.attribute, d.singleValue(&values[0]))
	}
	to.set = d.tables.AttributeSet(d.attribute)
	return nil
}

// byKey yields the labels of each key; they are sorted.
func (s *labelSet) byKey(yield func([]labelMessage) bool) {
	for start := 0; start < len(s.all); {
		stop := start + 1
		for stop < len(s.all) && bytes.Equal(s.all[stop].keyBytes, s.all[start].keyBytes) {
			stop++
		}
		if !yield(s.all[start:stop]) {
			return
		}
		start = stop
	}
}

// checkLabel checks the strings that google/pprof looks at: not the unit of a
// string, which is forgotten where it leads nowhere.
func (d *decoder) checkLabel(l *labelMessage) error {
	if err := d.checkString(l.key); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if !l.isText() {
		if err := d.checkString(l.unit); err != nil {
			return fmt.Errorf("num_unit: %w", err)
		}
		return nil
	}
	if err := d.checkString(l.text); err != nil {
		return fmt.Errorf("str: %w", err)
	}
	if d.checkString(l.unit) != nil {
		l.unit = 0
	}
	return nil
}

func (d *decoder) role(key int64) role {
	s := &d.label
	if s.roles[key] == roleUnknown {
		s.roles[key] = d.labels.role(d.bytes(key))
	}
	return s.roles[key]
}

// isTimestamp: a unit other than nanoseconds makes the label an attribute.
func (d *decoder) isTimestamp(l *labelMessage) bool {
	if l.isText() || l.number <= 0 {
		return false
	}
	switch string(d.bytes(l.unit)) {
	case "", "nanoseconds":
		return true
	default:
		return false
	}
}

func (d *decoder) singleValue(l *labelMessage) int32 {
	if !l.isText() || l.unit != 0 {
		d.value = d.appendValue(d.value[:0], l)
		return d.tables.Attribute(d.stringIndex(l.key), d.stringIndex(l.unit), d.value)
	}
	known := &d.label.texts[uint8(l.text)^uint8(l.key*31)]
	if known.key != l.key || known.text != l.text {
		d.value = d.appendValue(d.value[:0], l)
		*known = textAttribute{l.key, l.text, d.tables.Attribute(d.stringIndex(l.key), 0, d.value)}
	}
	return known.index
}

func (d *decoder) appendValue(v dictionary.Value, l *labelMessage) dictionary.Value {
	if l.isText() {
		return v.AppendString(d.tables.Valid(d.bytes(l.text)))
	}
	return v.AppendInt(l.number)
}

// severalValues makes one attribute of the labels of one key: an array with the
// strings first, each kind in its order. Where units differ, the elements are
// lists of a value and its unit, but for strings without a unit.
func (d *decoder) severalValues(labels []labelMessage) int32 {
	slices.SortStableFunc(labels, func(a, b labelMessage) int {
		switch {
		case a.isText() == b.isText():
			return 0
		case a.isText():
			return -1
		default:
			return 1
		}
	})
	unit, differ := int64(-1), false
	for i := range labels {
		l := &labels[i]
		if l.isText() && l.unit == 0 {
			continue
		}
		if unit < 0 {
			unit = l.unit
		}
		differ = differ || l.unit != unit && !bytes.Equal(d.bytes(l.unit), d.bytes(unit))
	}
	v := d.value[:0].AppendArray(len(labels))
	for i := range labels {
		l := &labels[i]
		if !differ || l.isText() && l.unit == 0 {
			v = d.appendValue(v, l)
			continue
		}
		if l.unit == 0 {
			v = d.appendValue(v.AppendList(1).AppendKey(elementValue), l)
			continue
		}
		v = v.AppendList(2).AppendKey(elementUnit).AppendString(d.tables.Valid(d.bytes(l.unit)))
		v = d.appendValue(v.AppendKey(elementValue), l)
	}
	d.value = v
	if differ || unit < 0 {
		return d.tables.Attribute(d.stringIndex(labels[0].key), 0, v)
	}
	return d.tables.Attribute(d.stringIndex(labels[0].key), d.stringIndex(unit), v)
}
