// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"
	"fmt"
)

// Metadata describes the types of a chunk: those of events, constants and their fields.
type Metadata struct {
	Classes []Class
	ByID    IDTable
	fields  []Field // of all classes, one after the other

	ids         []uint64 // of the classes
	strings     [][]byte
	text        []byte // of strings that are not UTF-8 in the chunk
	annotations []annotation
}

// Class is a type.
type Class struct {
	Name        []byte
	first, stop int32 // its fields in Metadata.fields
	Simple      bool  // a value is shown as that of its only field
	// varints is the number of integers that a value consists of, or -1 if it also has
	// other fields.
	varints int32
	Kind    Kind // of a primitive, or KindClass
	state   layoutState
	depth   uint8 // of values inside values
	Pool    int32 // number of its pool plus one; 0 for constants that no sample needs
}

type layoutState uint8

const (
	layoutUnknown layoutState = iota
	layoutPending
	layoutKnown
)

// Kind is how the value of a field is encoded.
type Kind uint8

const (
	KindUnknown Kind = iota // of a type that the metadata does not have
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

// Field is a field of a class.
type Field struct {
	Name     []byte
	typeID   uint64
	Class    int32 // its type, in Metadata.Classes, or -1
	Kind     Kind
	Array    bool
	Constant bool // an id, of a constant in the pool of its class
	Unit     Unit
	Slot     Slot // what the user of this package reads it for
}

// Slot is a place that the user of this package gives a field. 0 means none.
type Slot uint8

// Unit is that of a time or duration.
type Unit uint8

const (
	UnitNone Unit = iota
	UnitTicks
	UnitNanoseconds
	UnitMicroseconds
	UnitMilliseconds
	UnitSeconds
)

// units are the values of the annotations Timespan and Timestamp.
var units = map[string]Unit{
	"TICKS": UnitTicks, "NANOSECONDS": UnitNanoseconds, "MICROSECONDS": UnitMicroseconds,
	"MILLISECONDS": UnitMilliseconds, "SECONDS": UnitSeconds,
	"NANOSECONDS_SINCE_EPOCH": UnitNanoseconds, "MILLISECONDS_SINCE_EPOCH": UnitMilliseconds, "SECONDS_SINCE_EPOCH": UnitSeconds,
}

// annotation is one of a field.
type annotation struct {
	field  int32
	typeID uint64
	value  []byte
}

const (
	maxElementDepth = 32 // of the metadata
	maxValueDepth   = 16 // of values inside values
	// maxVarints bounds Class.varints.
	maxVarints = 1 << 16
)

// readMetadata reads the body of a metadata event.
func (r *Recording) readMetadata(c *Cursor) error {
	m := &r.Meta
	m.Classes, m.fields, m.ids, m.annotations, m.text = m.Classes[:0], m.fields[:0], m.ids[:0], m.annotations[:0], m.text[:0]
	c.Varint() // start
	c.Varint() // duration
	c.Varint() // id
	if err := r.readMetadataStrings(c); err != nil {
		return err
	}
	if err := r.readElements(c, -1, -1, 0); err != nil {
		return err
	}
	if c.Failed != "" {
		return errors.New(c.Failed)
	}
	if err := m.ByID.build(&r.Memory, m.ids); err != nil {
		return err
	}
	return m.link()
}

func (r *Recording) readMetadataStrings(c *Cursor) (err error) {
	m := &r.Meta
	m.strings = m.strings[:0]
	for n := c.Count(); n > 0 && c.Failed == ""; n-- {
		if m.strings, err = Room(&r.Memory, m.strings, 1); err != nil {
			return err
		}
		text, _, _ := c.text(&r.scratch)
		if len(text) > 0 && len(r.scratch) > 0 && &text[0] == &r.scratch[0] {
			text = append([]byte(nil), text...) // r.scratch is used again
			if err := r.Memory.Take(len(text)); err != nil {
				return err
			}
		}
		m.strings = append(m.strings, text)
	}
	return nil
}

// string returns a string of the metadata by its index.
func (m *Metadata) string(c *Cursor) []byte {
	i := c.Varint()
	if i >= uint64(len(m.strings)) {
		if c.Failed == "" {
			c.fail(fmt.Sprintf("string index %d is not in the metadata, which has %d strings", i, len(m.strings)))
		}
		return nil
	}
	return m.strings[i]
}

// readElements reads an element with all that it contains. ofClass and ofField are the
// class and the field that contain it, or -1.
func (r *Recording) readElements(c *Cursor, ofClass, ofField int32, depth int) (err error) {
	if depth > maxElementDepth {
		return &LimitError{What: "levels of elements in the metadata", Limit: maxElementDepth}
	}
	m := &r.Meta
	name := string(m.string(c))
	var attributes elementAttributes
	for n := c.Count(); n > 0 && c.Failed == ""; n-- {
		attributes.set(m.string(c), m.string(c))
	}
	switch {
	case name == "class":
		if ofClass, err = r.addClass(&attributes); err != nil {
			return err
		}
		defer func() { m.Classes[ofClass].stop = int32(len(m.fields)) }()
	case name == "field" && ofClass >= 0 && ofField < 0:
		ofField = int32(len(m.fields))
		if m.fields, err = Room(&r.Memory, m.fields, 1); err != nil {
			return err
		}
		m.fields = append(m.fields, Field{
			Name: attributes.name, typeID: attributes.class, Class: -1,
			Array: string(attributes.dimension) == "1", Constant: string(attributes.constantPool) == "true",
		})
	case name == "annotation" && ofField >= 0:
		if m.annotations, err = Room(&r.Memory, m.annotations, 1); err != nil {
			return err
		}
		m.annotations = append(m.annotations, annotation{ofField, attributes.class, attributes.value})
	}
	for n := c.Count(); n > 0 && c.Failed == ""; n-- {
		if err := r.readElements(c, ofClass, ofField, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// elementAttributes are the attributes that matter here.
type elementAttributes struct {
	id, class                                        uint64
	name, dimension, constantPool, simpleType, value []byte
}

func (a *elementAttributes) set(key, value []byte) {
	switch string(key) {
	case "id":
		a.id = decimal(value)
	case "class":
		a.class = decimal(value)
	case "name":
		a.name = value
	case "dimension":
		a.dimension = value
	case "constantPool":
		a.constantPool = value
	case "simpleType":
		a.simpleType = value
	case "value":
		a.value = value
	}
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

func (r *Recording) addClass(a *elementAttributes) (int32, error) {
	m := &r.Meta
	var err error
	if m.Classes, err = Room(&r.Memory, m.Classes, 1); err != nil {
		return 0, err
	}
	if m.ids, err = Room(&r.Memory, m.ids, 1); err != nil {
		return 0, err
	}
	m.ids = append(m.ids, a.id)
	m.Classes = append(m.Classes, Class{Name: a.name, first: int32(len(m.fields)), Simple: string(a.simpleType) == "true"})
	return int32(len(m.Classes) - 1), nil
}

// link finds the types of fields, and what annotations say of them.
func (m *Metadata) link() error {
	for i := range m.Classes {
		c := &m.Classes[i]
		c.Kind = KindClass
		if k, primitive := primitives[string(c.Name)]; primitive && c.first == c.stop {
			c.Kind = k
		}
	}
	for i := range m.fields {
		f := &m.fields[i]
		f.Class = m.ByID.Find(f.typeID)
		switch {
		case f.Constant:
			f.Kind = KindVarint
		case f.Class >= 0:
			f.Kind = m.Classes[f.Class].Kind
		}
	}
	for _, a := range m.annotations {
		if i := m.ByID.Find(a.typeID); i >= 0 && a.field < int32(len(m.fields)) {
			if name := string(m.Classes[i].Name); name == "jdk.jfr.Timespan" || name == "jdk.jfr.Timestamp" {
				m.fields[a.field].Unit = units[string(a.value)]
			}
		}
	}
	for i := range m.Classes {
		if err := m.layout(int32(i), 0); err != nil {
			return err
		}
	}
	return nil
}

// layout computes the layout of a class from those of its fields. It removes fields whose
// values take no bytes, so that time is bounded by the bytes of values.
func (m *Metadata) layout(i int32, depth int) error {
	c := &m.Classes[i]
	switch {
	case c.state == layoutKnown:
		return nil
	case c.state == layoutPending:
		return fmt.Errorf("type %s has a field of its own type", c.Name)
	case depth > maxValueDepth:
		return tooDeep(c)
	}
	c.state = layoutPending
	stop := c.first
	for _, f := range m.fields[c.first:c.stop] {
		integers := int32(-1)
		switch {
		case f.Kind == KindClass && !f.Array:
			if err := m.layout(f.Class, depth+1); err != nil {
				return err
			}
			inner := &m.Classes[f.Class]
			if c.depth = max(c.depth, inner.depth+1); c.depth > maxValueDepth {
				return tooDeep(c)
			}
			if integers = inner.varints; integers == 0 {
				continue
			}
		case f.Kind == KindVarint && !f.Array:
			integers = 1
		}
		if integers < 0 || c.varints < 0 {
			c.varints = -1
		} else if c.varints += integers; c.varints > maxVarints {
			return &LimitError{What: fmt.Sprintf("integers in a value of type %s", c.Name), Limit: maxVarints}
		}
		m.fields[stop] = f
		stop++
	}
	c.stop, c.state = stop, layoutKnown
	switch c.Kind {
	case KindClass:
	case KindVarint:
		c.varints = 1
	default:
		c.varints = -1
	}
	return nil
}

func tooDeep(c *Class) error {
	return &LimitError{What: fmt.Sprintf("levels of values in values of type %s", c.Name), Limit: maxValueDepth}
}

// FieldsOf returns the fields of a class.
func (m *Metadata) FieldsOf(c *Class) []Field { return m.fields[c.first:c.stop] }

// Find returns the class with the given name, the last one if there are several, or nil.
func (m *Metadata) Find(name string) *Class {
	for i := len(m.Classes) - 1; i >= 0; i-- {
		if string(m.Classes[i].Name) == name {
			return &m.Classes[i]
		}
	}
	return nil
}

// skipValue skips a value of a class.
func (m *Metadata) skipValue(c *Cursor, of *Class, depth int) {
	switch {
	case of.varints >= 0:
		c.skipVarints(int(of.varints))
	case of.Kind != KindClass:
		m.skipOne(c, of.Kind, nil, depth)
	case depth > maxElementDepth:
		c.fail("has values that nest too deep")
	default:
		for i := of.first; i < of.stop && c.Failed == ""; i++ {
			m.SkipField(c, &m.fields[i], depth)
		}
	}
}

// SkipField skips the value of a field.
func (m *Metadata) SkipField(c *Cursor, f *Field, depth int) {
	var of *Class
	if f.Kind == KindClass {
		of = &m.Classes[f.Class]
	}
	if !f.Array {
		m.skipOne(c, f.Kind, of, depth)
		return
	}
	n := c.Count()
	switch {
	case f.Kind == KindVarint:
		c.skipVarints(n)
	case f.Kind == KindByte:
		c.Bytes(n)
	case f.Kind == KindClass && of.varints >= 0:
		if of.varints > 0 && n > len(c.Data)/int(of.varints) {
			c.fail(truncated)
			return
		}
		c.skipVarints(n * int(of.varints))
	default:
		for ; n > 0 && c.Failed == ""; n-- {
			m.skipOne(c, f.Kind, of, depth)
		}
	}
}

func (m *Metadata) skipOne(c *Cursor, k Kind, of *Class, depth int) {
	switch k {
	case KindVarint:
		c.Varint()
	case KindByte:
		c.Bytes(1)
	case KindFloat:
		c.Bytes(4)
	case KindDouble:
		c.Bytes(8)
	case KindText:
		c.skipText()
	case KindClass:
		m.skipValue(c, of, depth+1)
	default:
		c.fail("is of a type that the metadata does not have")
	}
}
