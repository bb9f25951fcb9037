// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/fromotlp"
)

// label is one value of a label. It holds string indices of the payload, except for number.
type label struct {
	key, text, number, unit uint64
	role                    fromotlp.Role // of the key
}

// isText reports whether the value is text; otherwise it is number.
func (l *label) isText() bool { return l.text != 0 }

// labelReader holds the labels of the current sample, and caches for those of the
// payload.
type labelReader struct {
	all        []label
	keyNumbers []int32        // by string: its number in keys, or 0; empty until the first sample with labels
	keys       []attributeKey // number 0 is none
	runs       []labelRun     // a cache, with an entry in the place of its hash or the next
}

// attributeKey is a string that is the key of a label.
type attributeKey struct {
	text []byte // as valid UTF-8
	role fromotlp.Role
}

// labelRun is a run of labels without a timestamp, and their meaning.
type labelRun struct {
	position
	set, link int32
}

var runSeed = maphash.MakeSeed()

// reset forgets the payload.
func (r *labelReader) reset() {
	clear(r.keys) // which refer to it
	r.keyNumbers, r.keys = r.keyNumbers[:0], append(r.keys[:0], attributeKey{})
}

// readLabels reads the labels of a sample, which are at the given position, maybe with
// other fields between them, into s. Samples usually repeat the labels of others byte
// for byte.
func (d *decoder) readLabels(at position, s *sample) error {
	r := &d.labels
	if len(r.keyNumbers) == 0 {
		r.keyNumbers = zeroed(r.keyNumbers, len(d.strings))
		r.runs = zeroed(r.runs, 256+1)
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
	if err := d.interpretLabels(s); err != nil {
		return err
	}
	if !s.timed {
		known[1], known[0] = known[0], labelRun{at, s.set, s.link}
	}
	return nil
}

// parseLabels reads the labels into d.labels.all, sorted by key.
func (d *decoder) parseLabels(at position) error {
	c := wire.Cursor{Data: d.data, At: int(at.start), End: int(at.stop)}
	m := wire.Cursor{Data: d.data}
	all, limit := d.labels.all[:0], d.limits.scaled(maxLabels)
	for c.NextOf(sampleLabel, &m) {
		var f [labelNumUnit + 1]uint64
		readVarints(&m, f[:])
		l := label{key: f[labelKey], text: f[labelString], number: f[labelNumber], unit: f[labelNumUnit]}
		if err := cmp.Or(m.Err, c.Err, d.checkLabel(&l)); err != nil {
			return fmt.Errorf("label[%d]: %w", len(all), err)
		}
		if len(all) >= limit {
			return &LimitError{What: "labels", Limit: int64(limit)}
		}
		l.role = d.key(l.key).role
		all = append(all, l)
	}
	slices.SortStableFunc(all, d.compareKeys)
	d.labels.all = all
	return nil
}

func (d *decoder) compareKeys(a, b label) int {
	if a.key == b.key {
		return 0
	}
	one, other := d.key(a.key).text, d.key(b.key).text
	d.texts += min(len(one), len(other))
	return bytes.Compare(one, other)
}

// key returns the key that a string is.
func (d *decoder) key(i uint64) *attributeKey {
	r := &d.labels
	if r.keyNumbers[i] == 0 {
		r.keyNumbers[i] = int32(len(r.keys))
		r.keys = append(r.keys, attributeKey{d.tables.Valid(d.bytes(i)), d.names.Role(string(d.bytes(i)))})
	}
	return &r.keys[r.keyNumbers[i]]
}

// checkLabel checks the strings that google/pprof checks: not the unit of a text, which
// is ignored if it does not exist.
func (d *decoder) checkLabel(l *label) error {
	n := uint64(len(d.strings))
	switch {
	case l.key >= n:
		return fmt.Errorf("key: %w", d.checkStrings(l.key))
	case l.text >= n:
		return fmt.Errorf("str: %w", d.checkStrings(l.text))
	case l.unit < n:
		if !l.isText() && len(d.bytes(l.unit)) == 0 { // WritePprof writes 0 without a unit so
			l.unit = 0
		}
	case l.isText():
		l.unit = 0
	default:
		return fmt.Errorf("num_unit: %w", d.checkStrings(l.unit))
	}
	return nil
}

// interpretLabels sets the timestamp, the link and the attribute set of s. A label with
// several values is an attribute, independent of its key.
func (d *decoder) interpretLabels(s *sample) error {
	replaces := d.readRoles(s)
	d.attribute = d.attribute[:0]
	for all := d.labels.all; len(all) > 0; {
		l, n := &all[0], d.sameKeys(all)
		switch {
		case n > 1:
			if err := d.checkValues(all[:n]); err != nil {
				return err
			}
			d.attribute = append(d.attribute, d.severalValues(all[:n]))
		case l.role == fromotlp.Timestamp && s.timed, replaces && (l.role == fromotlp.TraceID || l.role == fromotlp.SpanID):
		default:
			attribute, err := d.singleValue(l)
			if err != nil {
				return err
			}
			d.attribute = append(d.attribute, attribute)
		}
		all = all[n:]
	}
	s.set = d.tables.AttributeSet(d.attribute)
	return nil
}

// readRoles sets the timestamp and the link of s. It reports whether the link replaces the
// labels of its ids.
func (d *decoder) readRoles(s *sample) (replaces bool) {
	if !slices.ContainsFunc(d.labels.all, func(l label) bool { return l.role != fromotlp.None }) {
		return false
	}
	var link fromotlp.Link
	for all := d.labels.all; len(all) > 0; {
		l, n := &all[0], d.sameKeys(all)
		all = all[n:]
		switch {
		case n > 1, l.role == fromotlp.None:
		case l.role == fromotlp.Timestamp:
			if d.isTimestamp(l) {
				s.time, s.timed = l.number, true
			}
		default:
			link.Add(l.role, !l.isText(), d.bytes(l.text), int64(l.number))
		}
	}
	traceID, spanID, replaces, ok := link.IDs()
	if ok {
		s.link = d.tables.Link(traceID, spanID)
	}
	return replaces
}

// sameKeys is the number of labels at the start of all that have the key of the first.
func (d *decoder) sameKeys(all []label) int {
	n := 1
	for n < len(all) && d.compareKeys(all[n], all[0]) == 0 {
		n++
	}
	return n
}

// isTimestamp reports whether l, which has the key of a timestamp, has the value and
// unit of one.
func (d *decoder) isTimestamp(l *label) bool {
	unit := d.bytes(l.unit)
	return !l.isText() && int64(l.number) > 0 && (len(unit) == 0 || string(unit) == "nanoseconds")
}

// singleValue returns the attribute of a label.
func (d *decoder) singleValue(l *label) (int32, error) {
	if err := d.takeText(d.textSize(l.text)); err != nil {
		return 0, err
	}
	d.value = d.appendValue(d.value[:0], l)
	return d.tables.Attribute(d.stringIndex(l.key), d.stringIndex(l.unit), d.value), nil
}

func (d *decoder) appendValue(v dictionary.Value, l *label) dictionary.Value {
	if l.isText() {
		return v.AppendString(d.labelText(l.text))
	}
	return v.AppendInt(int64(l.number))
}

// checkValues reserves the memory of the attribute of several labels. Its text may be as often in it as there
// are labels.
func (d *decoder) checkValues(labels []label) error {
	size := 0
	for i := range labels {
		size += d.textSize(labels[i].text) + d.textSize(labels[i].unit) // which are compared
	}
	return d.takeText(size)
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
				v = d.appendValue(v.AppendList(1).AppendKey(fromotlp.ElementValue), l)
			default:
				v = v.AppendList(2).AppendKey(fromotlp.ElementUnit).AppendString(d.labelText(l.unit))
				v = d.appendValue(v.AppendKey(fromotlp.ElementValue), l)
			}
		}
	}
	d.value = v
	if differ {
		unit = 0
	}
	return d.tables.Attribute(d.stringIndex(labels[0].key), d.stringIndex(unit), v)
}
