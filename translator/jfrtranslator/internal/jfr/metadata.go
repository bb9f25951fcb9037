// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bytes"
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
	Name     []byte
	Kind     Kind
	Array    bool
	Constant bool  // an id, of a constant of its class
	Class    int32 // its type, in Metadata.Classes, or -1
	Unit     Unit
	typeID   uint64
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
	UnitMilliseconds Unit = 1e6
)

// units are the values of the annotations Timespan and Timestamp.
var units = map[string]Unit{
	"TICKS": UnitTicks, "NANOSECONDS": 1, "NANOSECONDS_SINCE_EPOCH": 1, "MICROSECONDS": 1e3,
	"MILLISECONDS": UnitMilliseconds, "MILLISECONDS_SINCE_EPOCH": UnitMilliseconds, "SECONDS": 1e9, "SECONDS_SINCE_EPOCH": 1e9,
}

const maxElementDepth = 32 // of the metadata

// readMetadata reads the metadata event that counts: the one that the header names. That of
// an unfinished chunk may be out of date, so the last complete one counts there. Without one, no event can be read.
// It reports whether the metadata are not those of the chunk before.
func (r *Recording) readMetadata() (changed bool, err error) {
	at := r.Header.metadata
	if r.Header.Unfinished {
		at = 0
		for typeID := range r.Events {
			if typeID == TypeMetadata {
				at = int64(r.Event)
			}
		}
		if at == 0 {
			r.stop = 0
			return false, nil
		}
	}
	r.Event = 0
	if at < headerSize || at >= int64(r.stop) {
		return false, r.At("", fmt.Errorf("the metadata are at byte %d: must be inside the chunk, %d to %d", at, headerSize, r.stop-1))
	}
	var c Cursor
	typeID, complete := r.EventAt(&c, int(at))
	switch {
	case !complete:
		return false, r.At("metadata", errIncomplete)
	case typeID != TypeMetadata:
		return false, r.At("metadata", fmt.Errorf("the event has the type %d: must be %d", typeID, TypeMetadata))
	}
	c.SkipVarints(3) // start, duration, id
	m := &r.Meta
	if event := c.Data[c.At:]; len(m.event) == 0 || !bytes.Equal(event, m.event) {
		own := Grow(&r.Memory, m.event[:0], len(event))
		if r.Err != nil {
			return true, r.Err
		}
		own = append(own, event...)
		m.event = own[:0]
		if err := r.parseMetadata(own); err != nil {
			return true, r.At("metadata", err)
		}
		m.event, changed = own, true
	}
	return changed, nil
}

func (r *Recording) parseMetadata(event []byte) error {
	m, c := &r.Meta, Cursor{Data: event}
	m.Classes, m.fields, m.words = m.Classes[:0], m.fields[:0], m.words[:0]
	m.byID.Reset()
	for n := c.count(); n > 0 && c.Err == nil && r.Err == nil; n-- {
		encoding, text := c.text()
		if (encoding == textUTF16 || encoding == textLatin1) && r.Take(2*len(text)) {
			text = appendText(nil, encoding, text)
		}
		m.words = Append(&r.Memory, m.words, text)
	}
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
	}
	if r.Err != nil {
		return r.Err
	}
	return c.Err
}

// LookUp returns the value of a name in a map whose names are short. A long name may be that of many types, each of
// which would take the time of hashing it.
func LookUp[V any](in map[string]V, name []byte) (value V, found bool) {
	if len(name) <= 64 {
		value, found = in[string(name)]
	}
	return value, found
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

// readElement reads an element with all that it contains. class and field are the numbers of those that
// contain it, or -1.
func (r *Recording) readElement(c *Cursor, class, field, depth int) {
	if depth > maxElementDepth {
		r.Fail("levels of elements in the metadata", maxElementDepth)
		return
	}
	m := &r.Meta
	kind := string(m.word(c))
	var id uint64
	var name, value []byte
	f := Field{typeID: noType}
	for n := c.count(); n > 0 && c.Err == nil; n-- {
		switch key, text := m.word(c), m.word(c); string(key) {
		case "id":
			id = parseID(text)
		case "name":
			name = text
		case "value":
			value = text
		case "class":
			f.typeID = parseID(text)
		case "dimension":
			f.Array = string(text) == "1"
		case "constantPool":
			f.Constant = string(text) == "true"
		}
	}
	switch {
	case kind == "class":
		class = len(m.Classes)
		m.Classes = Append(&r.Memory, m.Classes, Class{Name: name, first: int32(len(m.fields))})
		known := m.byID.Put(&r.Memory, Key{Low: id})
		if _, numbered := known.Number(); !numbered { // the first one counts
			known.SetNumber(int32(class))
		}
	case kind == "field" && class >= 0 && field < 0:
		field, f.Name = len(m.fields), name
		m.fields = Append(&r.Memory, m.fields, f)
	case kind == "annotation" && field >= 0:
		if unit, isUnit := LookUp(units, value); isUnit {
			m.fields[field].Unit = unit
		}
	}
	for n := c.count(); n > 0 && c.Err == nil && r.Err == nil; n-- {
		r.readElement(c, class, field, depth+1)
	}
	if kind == "class" && r.Err == nil {
		m.Classes[class].stop = int32(len(m.fields))
	}
}

// noType is the id of no type.
const noType = math.MaxUint64

// parseID returns the id that text is, or noType.
func parseID(text []byte) uint64 {
	const most = 20 // digits
	id, err := strconv.ParseUint(string(text[:min(len(text), most+1)]), 10, 64)
	if err != nil {
		return noType
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
