// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Metadata describes the types of a chunk: those of events, constants and their fields.
type Metadata struct {
	Classes []Class
	fields  []Field  // of all classes, one after the other
	byID    Table    // the numbers of the classes
	event   []byte   // the fields of the metadata event, which names are part of; empty if they are malformed
	words   [][]byte // its strings
}

// Class is a type.
type Class struct {
	Name        []byte
	Pool        int32 // the number of the pool of its constants, if that is above 0
	kind        Kind
	first, stop int32 // its fields in Metadata.fields
	layout      []Step
}

// Field is a field of a class.
type Field struct {
	Name         []byte
	Kind         Kind
	Array        bool
	Constant     bool  // an id, of a constant of its class
	Class        int32 // its type, in Metadata.Classes, or -1
	Unit         Unit
	typeID, unit uint64 // the ids of its type, and of the type of the annotation with its unit
}

// Kind is how a value is encoded.
type Kind uint8

const (
	KindUnknown Kind = iota // of a type that the metadata do not have
	KindVarint
	KindByte
	KindFloat
	KindDouble
	KindText
	KindClass // the fields of another class
)

// primitives are the kinds of types that have no fields.
var primitives = map[string]Kind{
	"boolean": KindByte, "byte": KindByte, "char": KindVarint, "short": KindVarint, "int": KindVarint, "long": KindVarint,
	"float": KindFloat, "double": KindDouble, "java.lang.String": KindText,
}

// Unit is that of a time or duration, in nanoseconds.
type Unit int64

const (
	UnitNone         Unit = 0
	UnitTicks        Unit = -1
	unitNanoseconds  Unit = 1
	unitMicroseconds Unit = 1e3
	UnitMilliseconds Unit = 1e6
	unitSeconds      Unit = 1e9
)

// unitOf returns the unit that is the value of an annotation Timespan or Timestamp.
func unitOf(value []byte) Unit {
	switch string(value) {
	case "TICKS":
		return UnitTicks
	case "NANOSECONDS", "NANOSECONDS_SINCE_EPOCH":
		return unitNanoseconds
	case "MICROSECONDS":
		return unitMicroseconds
	case "MILLISECONDS", "MILLISECONDS_SINCE_EPOCH":
		return UnitMilliseconds
	case "SECONDS", "SECONDS_SINCE_EPOCH":
		return unitSeconds
	}
	return UnitNone
}

const maxElementDepth = 32 // of the metadata

// ReadMetadata reads the metadata event that counts: the one that the header names. That of
// an unfinished chunk may be out of date, so the last complete one counts there. Without one,
// r.Header.Metadata is 0. If the metadata are not those of the chunk before, it calls bind.
func (r *Recording) ReadMetadata(bind func() error) error {
	if r.Header.Unfinished {
		if err := r.findMetadata(); err != nil || r.Header.Metadata == 0 {
			return err
		}
	}
	r.Event = 0
	at := r.Header.Metadata
	if at < headerSize || at >= int64(r.Stop) {
		return r.At("", fmt.Errorf("the metadata are at byte %d: must be inside the chunk, %d to %d", at, headerSize, r.Stop-1))
	}
	var c Cursor
	typeID, ok := r.EventAt(&c, int(at))
	switch {
	case !ok:
		return r.At("metadata", errIncomplete)
	case typeID != TypeMetadata:
		return r.At("metadata", fmt.Errorf("the event has the type %d: must be %d", typeID, TypeMetadata))
	}
	c.SkipVarints(3) // start, duration, id
	m := &r.Meta
	event := c.Data[c.At:]
	if len(m.event) > 0 && bytes.Equal(event, m.event) {
		return nil
	}
	m.event = Grow(&r.Memory, m.event[:0], len(event))
	if r.Err != nil {
		return r.Err
	}
	event = append(m.event, event...)
	err := r.parseMetadata(event)
	if err == nil {
		err = bind()
	}
	if err != nil {
		return r.At("metadata", err)
	}
	m.event = event
	return nil
}

// findMetadata finds the last metadata event.
func (r *Recording) findMetadata() error {
	r.Header.Metadata = 0
	var c Cursor
	for {
		typeID, more, err := r.NextEvent(&c)
		if err != nil || !more {
			return err
		}
		if typeID == TypeMetadata {
			r.Header.Metadata = int64(r.Event)
		}
	}
}

func (r *Recording) parseMetadata(event []byte) error {
	m, c := &r.Meta, Cursor{Data: event}
	m.Classes, m.fields, m.words = m.Classes[:0], m.fields[:0], m.words[:0]
	m.byID.Reset()
	r.readWords(&c)
	r.readElement(&c, -1, -1, 0)
	for i := range m.Classes {
		of := &m.Classes[i]
		of.kind = KindClass
		if primitive, known := LookUp(primitives, of.Name); known && of.first == of.stop {
			of.kind = primitive
		}
	}
	for i := range m.fields {
		f := &m.fields[i]
		switch f.Class = m.ClassOf(f.typeID); {
		case f.Constant:
			f.Kind = KindVarint
		case f.Class >= 0:
			f.Kind = m.Classes[f.Class].kind
		}
		if of := m.ClassOf(f.unit); of < 0 || !m.Classes[of].isTime() {
			f.Unit = UnitNone
		}
	}
	return cmp.Or(c.Err, r.Err)
}

// LookUp returns the value of a name in a map whose names are short. A long name may be that of many types, each of
// which would take the time of hashing it.
func LookUp[V any](in map[string]V, name []byte) (value V, found bool) {
	if len(name) <= 64 {
		value, found = in[string(name)]
	}
	return value, found
}

func (c *Class) isTime() bool {
	return string(c.Name) == "jdk.jfr.Timespan" || string(c.Name) == "jdk.jfr.Timestamp"
}

func (r *Recording) readWords(c *Cursor) {
	for n := c.count(); n > 0 && c.Err == nil && r.Err == nil; n-- {
		encoding, text := c.text()
		if (encoding == textUTF16 || encoding == textLatin1) && r.Take(2*len(text)) {
			text = appendText(nil, encoding, text)
		}
		r.Meta.words = Append(&r.Memory, r.Meta.words, text)
	}
}

// word reads the index of a string of the metadata, and returns the string.
func (m *Metadata) word(c *Cursor) []byte {
	i, n := c.Varint(), len(m.words)
	if i < uint64(n) {
		return m.words[i]
	}
	if c.Err == nil {
		c.fail(fmt.Errorf("string index %d is not in the metadata, which has %d strings", i, n))
	}
	return nil
}

// element is an element of the metadata, without those that it contains.
type element struct{ kind, id, name, class, dimension, constantPool, value []byte }

// element reads an element up to those that it contains.
func (m *Metadata) element(c *Cursor) (e element) {
	e.kind = m.word(c)
	for n := c.count(); n > 0 && c.Err == nil; n-- {
		switch key, text := m.word(c), m.word(c); string(key) {
		case "id":
			e.id = text
		case "name":
			e.name = text
		case "class":
			e.class = text
		case "dimension":
			e.dimension = text
		case "constantPool":
			e.constantPool = text
		case "value":
			e.value = text
		}
	}
	return e
}

// readElement reads an element with all that it contains. class and field are those that
// contain it, or -1.
func (r *Recording) readElement(c *Cursor, class, field, depth int) {
	if depth > maxElementDepth {
		r.Fail("levels of elements in the metadata", maxElementDepth)
		return
	}
	m := &r.Meta
	e := m.element(c)
	isClass := string(e.kind) == "class"
	switch {
	case isClass:
		m.Classes = Append(&r.Memory, m.Classes, Class{Name: e.name, first: int32(len(m.fields))})
		class = len(m.Classes) - 1
		known := m.byID.Put(&r.Memory, Key{Low: parseID(e.id)})
		if _, numbered := known.Number(); !numbered { // the first one counts
			known.SetNumber(int32(class))
		}
	case string(e.kind) == "field" && class >= 0 && field < 0:
		f := Field{Name: e.name, typeID: parseID(e.class), Array: string(e.dimension) == "1", Constant: string(e.constantPool) == "true"}
		m.fields = Append(&r.Memory, m.fields, f)
		field = len(m.fields) - 1
	case string(e.kind) == "annotation" && field >= 0:
		if unit := unitOf(e.value); unit != UnitNone {
			m.fields[field].Unit, m.fields[field].unit = unit, parseID(e.class)
		}
	}
	for n := c.count(); n > 0 && c.Err == nil && r.Err == nil; n-- {
		r.readElement(c, class, field, depth+1)
	}
	if isClass {
		m.Classes[class].stop = int32(len(m.fields))
	}
}

// parseID returns the id that text is, or one that no type has.
func parseID(text []byte) uint64 {
	const most = 20 // digits
	id, err := strconv.ParseUint(string(text[:min(len(text), most+1)]), 10, 64)
	if err != nil {
		return math.MaxUint64
	}
	return id
}

// Find returns the number of the class with the given name, the last one if there are several, or -1.
func (m *Metadata) Find(name string) int32 {
	for i, c := range slices.Backward(m.Classes) {
		if string(c.Name) == name {
			return int32(i)
		}
	}
	return -1
}

// ClassOf returns the number of the class with the given id, or -1.
func (m *Metadata) ClassOf(id uint64) int32 {
	if known := m.byID.Find(Key{Low: id}); known != nil {
		class, _ := known.Number()
		return class
	}
	return -1
}

// FieldsOf returns the fields of a class.
func (m *Metadata) FieldsOf(class int32) []Field {
	c := &m.Classes[class]
	return m.fields[c.first:c.stop]
}
