// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// thread are the attributes of a thread and their keys: its name and its id, 0 if it lacks one.
type thread struct {
	attributes, keys [2]int32
	// from and to are where decoder.contexts has the context of the last sample. set and link are those of that sample:
	// many have the same context.
	from, to  int
	set, link int32
}

// attributesOf returns the attributes and the link of the sample that d.values are. IDs of spans without
// the id of a trace have the names that the labels of Pyroscope's and Datadog's libraries for
// other languages have.
func (d *decoder) attributesOf(e *event) (set, link int32) {
	v := d.values
	number := d.number(poolThread, v[slotThread], (*decoder).newThread)
	t, context := &d.threads[number], v[slotContextOf:]
	if slices.Equal(context, d.contexts[t.from:t.to]) {
		return t.set, t.link
	}
	if len(context) > t.to-t.from {
		t.from = len(d.contexts)
		d.contexts = append(jfr.Grow(&d.Memory, d.contexts, len(context)), context...)
	}
	t.to = t.from + copy(d.contexts[t.from:], context)
	d.attributes, d.keys = d.attributes[:0], d.keys[:0]
	for i, attribute := range t.attributes {
		if attribute != 0 {
			d.keys, d.attributes = append(d.keys, t.keys[i]), append(d.attributes, attribute)
		}
	}
	addString(d, attrkey.ThreadState, d.symbol(poolState, v[slotState]))
	if e.reason != 0 {
		addString(d, timing.StateAttribute, []byte(timing.Blocked))
		addString(d, timing.ReasonAttribute, []byte(reasonNames[e.reason]))
		if d.options.Timestamps {
			addString(d, timing.TimestampMarksAttribute, []byte(timing.MarksEnd))
		}
	}
	link = d.addSpan(e)
	for i, a := range e.attributes {
		var value []byte
		if at := v[int(slotAttributes)+i]; a.pool == 0 {
			value = d.Text(int32(at))
		} else {
			value = d.symbol(a.pool, at)
		}
		addString(d, a.name, value)
	}
	for _, label := range d.labels.contexts[int64(v[slotContext])] {
		addString(d, d.labels.strings[label.key], []byte(d.labels.strings[label.value]))
	}
	if v[slotSpanName] != 0 {
		addString(d, "span_name", []byte(d.labels.strings[int64(v[slotSpanName])]))
	}
	t.set, t.link = d.tables.AttributeSet(d.attributes), link
	return t.set, t.link
}

// addString adds an attribute, unless it is empty or the sample has one of that key.
func addString[K string | []byte](d *decoder, key K, value []byte) {
	if len(key) == 0 || len(value) == 0 || !d.takeText(len(key)) {
		return
	}
	if index := d.tables.StringBytes([]byte(key)); !slices.Contains(d.keys, index) {
		d.keys, d.attributes = append(d.keys, index), append(d.attributes, d.stringAttribute(index, value))
	}
}

func (d *decoder) stringAttribute(key int32, value []byte) int32 {
	if !d.takeText(dictionary.ValidSize(value)) {
		return 0
	}
	d.value = d.value[:0].AppendString(d.tables.Valid(value))
	return d.tables.Attribute(key, 0, d.value)
}

// newThread translates a thread, and returns its index in d.threads. Its name and id are those of Java or, if it is
// none of Java, of the operating system.
func (d *decoder) newThread(constant *jfr.Value) int32 {
	v := *d.readConstant(poolThread, constant.At)
	var t thread
	name := d.Text(int32(v[slotJavaName]))
	if len(name) == 0 {
		name = d.Text(int32(v[slotOSName]))
	}
	if len(name) > 0 {
		t.keys[0] = d.tables.String("thread.name")
		t.attributes[0] = d.stringAttribute(t.keys[0], name)
	}
	id := int64(v[slotJavaID])
	if id <= 0 {
		id = int64(v[slotOSID])
	}
	if id > 0 {
		t.keys[1] = d.tables.String("thread.id")
		t.attributes[1] = d.tables.Attribute(t.keys[1], 0, d.value[:0].AppendInt(id))
	}
	d.threads = jfr.Append(&d.Memory, d.threads, t)
	return int32(len(d.threads) - 1)
}

// addSpan returns the link of a sample. It needs the ids of a trace and of a span; without
// one of them, the other is an attribute.
func (d *decoder) addSpan(e *event) (link int32) {
	var trace [16]byte
	var span [8]byte
	binary.BigEndian.PutUint64(trace[:8], d.values[slotTraceHi])
	binary.BigEndian.PutUint64(trace[8:], d.values[slotTraceLo])
	binary.BigEndian.PutUint64(span[:], d.values[slotSpan])
	switch hasTrace, hasSpan := trace != [16]byte{}, span != [8]byte{}; {
	case hasTrace && hasSpan:
		link = d.tables.Link(trace, span)
	case hasTrace:
		addString(d, "trace_id", hex.AppendEncode(nil, trace[:]))
	case hasSpan && e.datadog:
		addString(d, "span id", strconv.AppendUint(nil, d.values[slotSpan], 10))
	case hasSpan:
		addString(d, "profile_id", hex.AppendEncode(nil, span[:]))
	}
	if root := d.values[slotRootSpan]; root != 0 {
		addString(d, "local root span id", strconv.AppendUint(nil, root, 10))
	}
	return link
}
