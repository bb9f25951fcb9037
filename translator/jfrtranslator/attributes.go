// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// Attributes of samples. IDs of spans without the id of a trace have the names that the
// labels of Pyroscope's and Datadog's libraries for other languages have.
const (
	attributeThreadName    = "thread.name"
	attributeThreadID      = "thread.id"
	attributeThreadState   = "thread.state"
	attributeTraceID       = "trace_id"
	attributePyroscopeSpan = "profile_id"
	attributeSpanName      = "span_name"
	attributeDatadogSpan   = "span id"
	attributeDatadogRoot   = "local root span id"
)

// setKey is everything that the attributes of most samples depend on.
type setKey struct {
	thread, state           int32 // positions in their pools
	context, span, spanName uint64
	rootSpan                uint64
	traceHi, traceLo        uint64
	datadog, extended       bool
}

// setValue is the number of a set of attributes, and a link.
type setValue struct{ set, link int32 }

// attributesOf returns the attributes of the sample that d.event is, and its link.
func (d *decoder) attributesOf(e *event) (set, link int32, err error) {
	key := setKey{thread: d.position(e, slotThread, poolThread), state: d.position(e, slotState, poolState), datadog: e.datadog, extended: e.extended}
	if n := &e.numbers; n[slotContext]|n[slotSpan]|n[slotSpanName]|n[slotRootSpan]|n[slotTraceHi]|n[slotTraceLo] != 0 {
		key.context, key.span, key.spanName, key.rootSpan = n[slotContext], n[slotSpan], n[slotSpanName], n[slotRootSpan]
		key.traceHi, key.traceLo = n[slotTraceHi], n[slotTraceLo]
	} else if !e.extended {
		// Most samples have a thread and a state alone, of which there are few.
		at := int(key.thread+1)*(len(d.Pools[poolState].IDs)+1) + int(key.state+1)
		if at < len(d.plainSets) {
			if d.plainSets[at] == 0 {
				v, err := d.attributeSet(&key)
				if err != nil {
					return 0, 0, err
				}
				d.plainSets[at] = v.set + 1
			}
			return d.plainSets[at] - 1, 0, nil
		}
	}
	if e.extended {
		v, err := d.attributeSet(&key)
		return v.set, v.link, err
	}
	v, found := d.sets[key]
	if !found {
		if v, err = d.attributeSet(&key); err != nil {
			return 0, 0, err
		}
		if err := d.Memory.Take(2 * setSize); err != nil {
			return 0, 0, err
		}
		d.sets[key] = v
	}
	return v.set, v.link, nil
}

// maxPlainSets bounds the sets that are found by the positions of thread and state.
const maxPlainSets = 1 << 14

// resetSets prepares the sets of a chunk.
func (d *decoder) resetSets() (err error) {
	clear(d.sets)
	n := min(maxPlainSets, (len(d.Pools[poolThread].IDs)+1)*(len(d.Pools[poolState].IDs)+1))
	d.plainSets, err = jfr.Zeroed(&d.Memory, d.plainSets, n)
	return err
}

// position returns where the constant of a field is in its pool, or -1. Id 0 may be a constant.
func (d *decoder) position(e *event, s jfr.Slot, number int) int32 {
	if !e.has[s] {
		return -1
	}
	return d.Pools[number].Index.Find(e.numbers[s])
}

// setSize is the size of an entry of decoder.sets, in bytes.
const setSize = 80

func (d *decoder) attributeSet(k *setKey) (v setValue, err error) {
	d.attributes, d.keys = d.attributes[:0], d.keys[:0]
	if !k.extended {
		d.extra = d.extra[:0]
	}
	if err := d.addThread(k.thread); err != nil {
		return v, err
	}
	if k.state >= 0 {
		state, err := d.Symbol(poolState, d.Pools[poolState].IDs[k.state])
		if err != nil {
			return v, err
		}
		d.addString(attributeThreadState, state)
	}
	v.link = d.addSpan(k)
	for _, a := range d.extra {
		if err := d.addEventAttribute(a); err != nil {
			return v, err
		}
	}
	for _, label := range d.labels.contexts[int64(k.context)] {
		d.addString(d.labels.strings[label.key], []byte(d.labels.strings[label.value]))
	}
	if k.spanName != 0 {
		d.addString(attributeSpanName, []byte(d.labels.strings[int64(k.spanName)]))
	}
	v.set = d.tables.AttributeSet(d.attributes)
	return v, nil
}

// addKey reports whether a set does not have the key yet, and adds it.
func (d *decoder) addKey(key string) (index int32, added bool) {
	index = d.tables.String(key)
	if slices.Contains(d.keys, index) {
		return index, false
	}
	d.keys = append(d.keys, index)
	return index, true
}

// addString adds an attribute, unless it is empty or there is one of that key.
func (d *decoder) addString(key string, value []byte) {
	if key == "" || len(value) == 0 {
		return
	}
	if index, added := d.addKey(key); added {
		d.attributes = append(d.attributes, d.stringAttribute(index, value))
	}
}

func (d *decoder) stringAttribute(key int32, value []byte) int32 {
	d.value = d.value[:0].AppendString(d.tables.Valid(value))
	return d.tables.Attribute(key, 0, d.value)
}

// addThread adds the name and the id of a thread: those of Java or, if it is none of Java,
// of the operating system.
func (d *decoder) addThread(position int32) error {
	if position < 0 {
		return nil
	}
	p := &d.Pools[poolThread]
	c := jfr.Cursor{Data: d.Data[:d.Stop], At: int(p.Offsets[position])}
	d.name = d.name[:0]
	var osID, javaID int64
	named := false // as Java does
	fields := d.Meta.FieldsOf(p.Class)
	for i := range fields {
		switch f := &fields[i]; f.Slot {
		case slotOSName, slotJavaName:
			name, err := d.Text(&c)
			if err != nil {
				return err
			}
			if len(name) > 0 && !named {
				d.name, named = append(d.name[:0], name...), f.Slot == slotJavaName
			}
		case slotOSID:
			osID = int64(c.Varint())
		case slotJavaID:
			javaID = int64(c.Varint())
		default:
			d.Meta.SkipField(&c, f, 0)
		}
	}
	d.addString(attributeThreadName, d.name)
	if javaID <= 0 {
		javaID = osID
	}
	if javaID > 0 {
		if index, added := d.addKey(attributeThreadID); added {
			d.value = d.value[:0].AppendInt(javaID)
			d.attributes = append(d.attributes, d.tables.Attribute(index, 0, d.value))
		}
	}
	return nil
}

// addSpan returns the link of a sample. It needs the ids of a trace and of a span; without
// one of them, the other is an attribute.
func (d *decoder) addSpan(k *setKey) (link int32) {
	var trace [16]byte
	var span [8]byte
	binary.BigEndian.PutUint64(trace[:8], k.traceHi)
	binary.BigEndian.PutUint64(trace[8:], k.traceLo)
	binary.BigEndian.PutUint64(span[:], k.span)
	switch hasTrace := trace != [16]byte{}; {
	case hasTrace && k.span != 0:
		link = d.tables.Link(trace, span)
	case hasTrace:
		d.addString(attributeTraceID, hex.AppendEncode(nil, trace[:]))
	case k.span == 0:
	case k.datadog:
		d.addString(attributeDatadogSpan, strconv.AppendUint(nil, k.span, 10))
	default:
		d.addString(attributePyroscopeSpan, hex.AppendEncode(nil, span[:]))
	}
	if k.rootSpan != 0 {
		d.addString(attributeDatadogRoot, strconv.AppendUint(nil, k.rootSpan, 10))
	}
	return link
}

// addEventAttribute adds the value of a field of Datadog's context.
func (d *decoder) addEventAttribute(a eventAttribute) error {
	var value []byte
	var err error
	if a.field.Constant {
		value, err = d.Symbol(int(d.Meta.Classes[a.field.Class].Pool-1), uint64(a.at))
	} else {
		value, err = d.Text(&jfr.Cursor{Data: d.Data[:d.Stop], At: a.at})
	}
	if err != nil {
		return err
	}
	d.addString(string(a.field.Name), value)
	return nil
}
