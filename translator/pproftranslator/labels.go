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
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/semconv"
)

// label is one value of a label. Fields but number are string indices of the payload.
type label struct {
	key, text, number, unit uint64
	keyBytes                []byte // the key as valid UTF-8
}

// isText reports whether the value is text; otherwise it is number.
func (l *label) isText() bool { return l.text != 0 }

func readLabel(c *wire.Cursor) label {
	var f [labelNumUnit + 1]uint64
	readVarints(c, f[:])
	return label{key: f[labelKey], text: f[labelString], number: f[labelNumber], unit: f[labelNumUnit]}
}

// labelReader holds the labels of the current sample, and caches for those of the
// payload.
type labelReader struct {
	all   []label
	roles []semconv.Role // by string; empty until the first sample with labels
	// runs is a cache: an entry is in the place of its hash or the next.
	runs [257]labelRun
}

// labelRun is a run of labels without a timestamp, and what they mean.
type labelRun struct {
	position
	set, link int32
}

var runSeed = maphash.MakeSeed()

// readLabels reads the labels of a sample, which are at the given position, maybe with
// other fields between them, into s. Samples usually repeat the labels of others byte
// for byte.
func (d *decoder) readLabels(at position, s *sample) error {
	r := &d.labels
	if len(r.roles) == 0 {
		r.roles = zeroed(r.roles, len(d.strings))
		clear(r.runs[:])
	}
	run := d.data[at.start:at.stop]
	known := r.runs[uint8(maphash.Bytes(runSeed, run)):][:2]
	for i := range known {
		if k := &known[i]; bytes.Equal(d.data[k.start:k.stop], run) {
			s.set, s.link = k.set, k.link
			return nil
		}
	}
	if err := d.parseLabels(at); err != nil {
		return err
	}
	d.interpretLabels(s)
	if !s.timed {
		known[1], known[0] = known[0], labelRun{at, s.set, s.link}
	}
	return nil
}

// parseLabels reads the labels into d.labels.all, sorted by key.
func (d *decoder) parseLabels(at position) error {
	c := wire.Cursor{Data: d.data, At: int(at.start), End: int(at.stop)}
	m := wire.Cursor{Data: d.data}
	all := d.labels.all[:0]
	for c.Next() {
		if c.Field != sampleLabel {
			continue
		}
		m.Enter(&c)
		l := readLabel(&m)
		err := errors.Join(c.Err, m.Err)
		if err == nil {
			err = d.checkLabel(&l)
		}
		if err != nil {
			return fmt.Errorf("label[%d]: %w", len(all), err)
		}
		if len(all) >= d.limits.Labels {
			return &LimitError{What: "labels", Limit: int64(d.limits.Labels)}
		}
		l.keyBytes = d.tables.Valid(d.bytes(l.key))
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b label) int {
		if a.key == b.key {
			return 0
		}
		return bytes.Compare(a.keyBytes, b.keyBytes)
	})
	d.labels.all = all
	return nil
}

// checkLabel checks the strings that google/pprof checks: not the unit of a text, which
// is ignored if it does not exist.
func (d *decoder) checkLabel(l *label) error {
	if err := d.checkStrings(l.key); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if !l.isText() {
		if err := d.checkStrings(l.unit); err != nil {
			return fmt.Errorf("num_unit: %w", err)
		}
		if len(d.bytes(l.unit)) == 0 { // WritePprof writes 0 without a unit so
			l.unit = 0
		}
		return nil
	}
	if err := d.checkStrings(l.text); err != nil {
		return fmt.Errorf("str: %w", err)
	}
	if d.checkStrings(l.unit) != nil {
		l.unit = 0
	}
	return nil
}

// interpretLabels sets the timestamp, the link and the attribute set of s. A label with
// several values is an attribute, whatever its key.
func (d *decoder) interpretLabels(s *sample) {
	var link semconv.Link
	for values := range d.labels.byKey {
		if len(values) > 1 {
			continue
		}
		switch l, role := &values[0], d.role(values[0].key); {
		case role == semconv.None:
		case role == semconv.Timestamp:
			if d.isTimestamp(l) {
				s.time, s.timed = l.number, true
			}
		case l.isText():
			link.Add(role, d.bytes(l.text), 0)
		default:
			link.Add(role, nil, int64(l.number))
		}
	}
	traceID, spanID, replaces, ok := link.IDs()
	if ok {
		s.link = d.tables.Link(traceID, spanID)
	}

	d.attribute = d.attribute[:0]
	for values := range d.labels.byKey {
		if len(values) > 1 {
			d.attribute = append(d.attribute, d.severalValues(values))
			continue
		}
		role := d.role(values[0].key)
		if role == semconv.Timestamp && s.timed || replaces && (role == semconv.TraceID || role == semconv.SpanID) {
			continue
		}
		d.attribute = append(d.attribute, d.singleValue(&values[0]))
	}
	s.set = d.tables.AttributeSet(d.attribute)
}

// byKey yields the labels of each key.
func (r *labelReader) byKey(yield func([]label) bool) {
	for start := 0; start < len(r.all); {
		stop := start + 1
		for stop < len(r.all) && bytes.Equal(r.all[stop].keyBytes, r.all[start].keyBytes) {
			stop++
		}
		if !yield(r.all[start:stop]) {
			return
		}
		start = stop
	}
}

func (d *decoder) role(key uint64) semconv.Role {
	r := &d.labels.roles[key]
	if *r == semconv.Unknown {
		*r = d.names.Role(string(d.bytes(key)))
	}
	return *r
}

// isTimestamp reports whether l, which has the key of a timestamp, has the value and
// unit of one.
func (d *decoder) isTimestamp(l *label) bool {
	unit := d.bytes(l.unit)
	return !l.isText() && int64(l.number) > 0 && (len(unit) == 0 || string(unit) == "nanoseconds")
}

func (d *decoder) singleValue(l *label) int32 {
	d.value = d.appendValue(d.value[:0], l)
	return d.tables.Attribute(d.stringIndex(l.key), d.stringIndex(l.unit), d.value)
}

func (d *decoder) appendValue(v dictionary.Value, l *label) dictionary.Value {
	if l.isText() {
		return v.AppendString(d.tables.Valid(d.bytes(l.text)))
	}
	return v.AppendInt(int64(l.number))
}

// severalValues makes one attribute of the labels of one key: an array, texts first. If
// their units differ, an element with a unit is a {value, unit} list.
func (d *decoder) severalValues(labels []label) int32 {
	unit, hasUnit, differ := uint64(0), false, false
	for i := range labels {
		switch l := &labels[i]; {
		case l.isText() && l.unit == 0: // fits any unit
		case !hasUnit:
			unit, hasUnit = l.unit, true
		case l.unit != unit && !bytes.Equal(d.bytes(l.unit), d.bytes(unit)):
			differ = true
		}
	}
	v := d.value[:0].AppendArray(len(labels))
	for _, texts := range []bool{true, false} {
		for i := range labels {
			l := &labels[i]
			switch {
			case l.isText() != texts:
			case !differ || texts && l.unit == 0:
				v = d.appendValue(v, l)
			case l.unit == 0:
				v = d.appendValue(v.AppendList(1).AppendKey(semconv.ElementValue), l)
			default:
				v = v.AppendList(2).AppendKey(semconv.ElementUnit).AppendString(d.tables.Valid(d.bytes(l.unit)))
				v = d.appendValue(v.AppendKey(semconv.ElementValue), l)
			}
		}
	}
	d.value = v
	if differ {
		unit = 0
	}
	return d.tables.Attribute(d.stringIndex(labels[0].key), d.stringIndex(unit), v)
}
