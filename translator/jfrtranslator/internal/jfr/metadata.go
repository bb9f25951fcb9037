// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bytes"
	"fmt"
	"slices"
)

// Metadata describes the types of a chunk: those of events, constants and their fields.
type Metadata struct {
	Classes     []Class
	fields      []Field  // of all classes, one after the other
	byID        Table    // the numbers of the classes
	event       []byte   // the fields of the metadata event, which names are part of
	words       [][]byte // its strings
	annotations []annotation
}

// Class is a type.
type Class struct {
	Name        []byte
	Pool        int32 // its constants are kept if this is above 0
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
	unitNanoseconds  Unit = 1
	unitMicroseconds Unit = 1e3
	UnitMilliseconds Unit = 1e6
	unitSeconds      Unit = 1e9
)

// units are the values of the annotations Timespan and Timestamp.
var units = map[string]Unit{
	"TICKS": UnitTicks, "NANOSECONDS": unitNanoseconds, "MICROSECONDS": unitMicroseconds,
	"MILLISECONDS": UnitMilliseconds, "SECONDS": unitSeconds,
	"NANOSECONDS_SINCE_EPOCH": unitNanoseconds, "MILLISECONDS_SINCE_EPOCH": UnitMilliseconds, "SECONDS_SINCE_EPOCH": unitSeconds,
}

// annotation is one of a field.
type annotation struct {
	field  int32
	value  []byte
	typeID uint64
}

const maxElementDepth = 32 // of the metadata

// ReadMetadata reads the metadata event that counts: the one that the header names. That of
// an unfinished chunk may be out of date, so the last complete one counts there. Without one,
// r.Header.Metadata is 0. It reports whether the metadata are not those of the chunk before.
func (r *Recording) ReadMetadata() (changed bool, err error) {
	var c Cursor
	if r.Header.Unfinished {
		r.Header.Metadata = 0
		for {
			typeID, more, err := r.NextEvent(&c)
			if err != nil {
				return false, err
			}
			if !more {
				break
			}
			if typeID == TypeMetadata {
				r.Header.Metadata = int64(r.Event)
			}
		}
		if r.Header.Metadata == 0 {
			return false, nil
		}
	}
	r.Event = 0
	at := r.Header.Metadata
	if at < headerSize || at >= int64(r.Stop) {
		return false, r.At("", fmt.Errorf("the metadata are at byte %d: must be inside the chunk, %d to %d", at, headerSize, r.Stop-1))
	}
	typeID, ok := r.EventAt(&c, int(at))
	switch {
	case !ok:
		return false, r.At("metadata", errIncomplete)
	case typeID != TypeMetadata:
		return false, r.At("metadata", fmt.Errorf("the event has the type %d: must be %d", typeID, TypeMetadata))
	}
	c.skipVarints(3) // start, duration, id
	m := &r.Meta
	event := c.Data[c.At:]
	if len(m.event) > 0 && bytes.Equal(event, m.event) {
		return false, nil
	}
	if m.event, err = Room(&r.Memory, m.event[:0], len(event)); err == nil {
		m.event = append(m.event, event...)
		if err = r.parseMetadata(); err != nil {
			m.event = m.event[:0]
			err = r.At("metadata", err)
		}
	}
	return true, err
}

func (r *Recording) parseMetadata() error {
	m := &r.Meta
	m.Classes, m.fields, m.annotations, m.words = m.Classes[:0], m.fields[:0], m.annotations[:0], m.words[:0]
	m.byID.Reset()
	c := Cursor{Data: m.event}
	if err := r.readWords(&c); err != nil {
		return err
	}
	if err := r.readElement(&c, -1, -1, 0); err != nil {
		return err
	}
	if c.Err != nil {
		return c.Err
	}
	for _, a := range m.annotations {
		if i := m.ClassOf(a.typeID); i >= 0 {
			if name := string(m.Classes[i].Name); name == "jdk.jfr.Timespan" || name == "jdk.jfr.Timestamp" {
				m.fields[a.field].Unit = units[string(a.value)]
			}
		}
	}
	return nil
}

func (r *Recording) readWords(c *Cursor) (err error) {
	m := &r.Meta
	for n := c.count(); n > 0 && c.Err == nil; n-- {
		encoding, text := c.text()
		if encoding == textUTF16 || encoding == textLatin1 {
			if err := r.Memory.Take(2 * len(text)); err != nil {
				return err
			}
			text = appendText(nil, encoding, text)
		}
		if m.words, err = Append(&r.Memory, m.words, text); err != nil {
			return err
		}
	}
	return nil
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
func (r *Recording) readElement(c *Cursor, class, field int32, depth int) (err error) {
	if depth > maxElementDepth {
		return &LimitError{What: "levels of elements in the metadata", Limit: maxElementDepth}
	}
	m := &r.Meta
	e := m.element(c)
	switch {
	case string(e.kind) == "class":
		class = int32(len(m.Classes))
		if m.Classes, err = Append(&r.Memory, m.Classes, Class{Name: e.name, first: int32(len(m.fields))}); err != nil {
			return err
		}
		known, err := m.byID.Put(&r.Memory, Key{Low: decimal(e.id)})
		if err != nil {
			return err
		}
		if _, numbered := known.Number(); !numbered { // the first one counts
			known.SetNumber(class)
		}
		defer func() { m.Classes[class].stop = int32(len(m.fields)) }()
	case string(e.kind) == "field" && class >= 0 && field < 0:
		field = int32(len(m.fields))
		f := Field{Name: e.name, typeID: decimal(e.class), Array: string(e.dimension) == "1", Constant: string(e.constantPool) == "true"}
		if m.fields, err = Append(&r.Memory, m.fields, f); err != nil {
			return err
		}
	case string(e.kind) == "annotation" && field >= 0 && e.value != nil:
		if m.annotations, err = Append(&r.Memory, m.annotations, annotation{field, e.value, decimal(e.class)}); err != nil {
			return err
		}
	}
	for n := c.count(); n > 0 && c.Err == nil; n-- {
		if err := r.readElement(c, class, field, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// decimal returns the number that text is, or one that no type has.
func decimal(text []byte) (n uint64) {
	if len(text) == 0 || len(text) > 19 {
		return 1<<64 - 1
	}
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			return 1<<64 - 1
		}
		n = 10*n + uint64(digit-'0')
	}
	return n
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
	fields := m.fields[c.first:c.stop]
	for i := range fields {
		f := &fields[i]
		f.Class = m.ClassOf(f.typeID)
		switch {
		case f.Constant:
			f.Kind = KindVarint
		case f.Class >= 0:
			f.Kind = m.kindOf(f.Class)
		}
	}
	return fields
}

func (m *Metadata) kindOf(class int32) Kind {
	c := &m.Classes[class]
	if k, primitive := primitives[string(c.Name)]; primitive && c.first == c.stop {
		return k
	}
	return KindClass
}
