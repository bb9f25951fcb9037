// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"errors"
	"fmt"
)

// metadata describes the types of a chunk: those of events, constants and their fields.
type metadata struct {
	classes []class
	byID    idTable
	fields  []field // of all classes, one after the other

	ids         []uint64 // of the classes
	strings     [][]byte
	text        []byte // of strings that are not UTF-8 in the chunk
	annotations []annotation
}

// class is a type.
type class struct {
	name        []byte
	first, stop int32 // its fields in metadata.fields
	simple      bool  // a value is shown as that of its only field
	// varints is the number of integers that a value consists of, or -1 if it also has
	// other fields.
	varints int32
	kind    kind // of a primitive, or kindClass
	state   layoutState
	depth   uint8 // of values inside values
	pool    int32 // number of its pool plus one; 0 for constants that no sample needs
	event   *event
}

type layoutState uint8

const (
	layoutUnknown layoutState = iota
	layoutPending
	layoutKnown
)

// kind is how the value of a field is encoded.
type kind uint8

const (
	kindUnknown kind = iota // of a type that the metadata does not have
	kindVarint
	kindByte
	kindFloat
	kindDouble
	kindText
	kindClass // the fields of another class
)

// primitives are the kinds of types that have no fields.
var primitives = map[string]kind{
	"boolean": kindByte, "byte": kindByte, "char": kindVarint, "short": kindVarint, "int": kindVarint, "long": kindVarint,
	"float": kindFloat, "double": kindDouble, "java.lang.String": kindText,
}

// field is a field of a class.
type field struct {
	name     []byte
	typeID   uint64
	class    int32 // its type, in metadata.classes, or -1
	kind     kind
	array    bool
	constant bool // an id, of a constant in the pool of its class
	unit     unit
	slot     slot // of an event or constant that samples need
}

// unit is that of a time or duration.
type unit uint8

const (
	unitNone unit = iota
	unitTicks
	unitNanoseconds
	unitMicroseconds
	unitMilliseconds
	unitSeconds
)

// units are the values of the annotations Timespan and Timestamp.
var units = map[string]unit{
	"TICKS": unitTicks, "NANOSECONDS": unitNanoseconds, "MICROSECONDS": unitMicroseconds,
	"MILLISECONDS": unitMilliseconds, "SECONDS": unitSeconds,
	"NANOSECONDS_SINCE_EPOCH": unitNanoseconds, "MILLISECONDS_SINCE_EPOCH": unitMilliseconds, "SECONDS_SINCE_EPOCH": unitSeconds,
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
	// maxVarints bounds class.varints.
	maxVarints = 1 << 16
)

// readMetadata reads the body of a metadata event.
func (d *decoder) readMetadata(c *cursor) error {
	m := &d.meta
	m.classes, m.fields, m.ids, m.annotations, m.text = m.classes[:0], m.fields[:0], m.ids[:0], m.annotations[:0], m.text[:0]
	c.varint() // start
	c.varint() // duration
	c.varint() // id
	if err := d.readMetadataStrings(c); err != nil {
		return err
	}
	if err := d.readElements(c, -1, -1, 0); err != nil {
		return err
	}
	if c.failed != "" {
		return errors.New(c.failed)
	}
	if err := m.byID.build(&d.memory, m.ids); err != nil {
		return err
	}
	return m.link()
}

func (d *decoder) readMetadataStrings(c *cursor) (err error) {
	m := &d.meta
	m.strings = m.strings[:0]
	for n := c.count(); n > 0 && c.failed == ""; n-- {
		if m.strings, err = room(&d.memory, m.strings, 1); err != nil {
			return err
		}
		text, _, _ := c.text(&d.scratch)
		if len(text) > 0 && len(d.scratch) > 0 && &text[0] == &d.scratch[0] {
			text = append([]byte(nil), text...) // d.scratch is used again
			if err := d.memory.take(len(text)); err != nil {
				return err
			}
		}
		m.strings = append(m.strings, text)
	}
	return nil
}

// string returns a string of the metadata by its index.
func (m *metadata) string(c *cursor) []byte {
	i := c.varint()
	if i >= uint64(len(m.strings)) {
		if c.failed == "" {
			c.fail(fmt.Sprintf("string index %d is not in the metadata, which has %d strings", i, len(m.strings)))
		}
		return nil
	}
	return m.strings[i]
}

// readElements reads an element with all that it contains. ofClass and ofField are the
// class and the field that contain it, or -1.
func (d *decoder) readElements(c *cursor, ofClass, ofField int32, depth int) (err error) {
	if depth > maxElementDepth {
		return &LimitError{What: "levels of elements in the metadata", Limit: maxElementDepth}
	}
	m := &d.meta
	name := string(m.string(c))
	var attributes elementAttributes
	for n := c.count(); n > 0 && c.failed == ""; n-- {
		attributes.set(m.string(c), m.string(c))
	}
	switch {
	case name == "class":
		if ofClass, err = d.addClass(&attributes); err != nil {
			return err
		}
		defer func() { m.classes[ofClass].stop = int32(len(m.fields)) }()
	case name == "field" && ofClass >= 0 && ofField < 0:
		ofField = int32(len(m.fields))
		if m.fields, err = room(&d.memory, m.fields, 1); err != nil {
			return err
		}
		m.fields = append(m.fields, field{
			name: attributes.name, typeID: attributes.class, class: -1,
			array: string(attributes.dimension) == "1", constant: string(attributes.constantPool) == "true",
		})
	case name == "annotation" && ofField >= 0:
		if m.annotations, err = room(&d.memory, m.annotations, 1); err != nil {
			return err
		}
		m.annotations = append(m.annotations, annotation{ofField, attributes.class, attributes.value})
	}
	for n := c.count(); n > 0 && c.failed == ""; n-- {
		if err := d.readElements(c, ofClass, ofField, depth+1); err != nil {
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

func (d *decoder) addClass(a *elementAttributes) (int32, error) {
	m := &d.meta
	var err error
	if m.classes, err = room(&d.memory, m.classes, 1); err != nil {
		return 0, err
	}
	if m.ids, err = room(&d.memory, m.ids, 1); err != nil {
		return 0, err
	}
	m.ids = append(m.ids, a.id)
	m.classes = append(m.classes, class{name: a.name, first: int32(len(m.fields)), simple: string(a.simpleType) == "true"})
	return int32(len(m.classes) - 1), nil
}

// link finds the types of fields, and what annotations say of them.
func (m *metadata) link() error {
	for i := range m.classes {
		c := &m.classes[i]
		c.kind = kindClass
		if k, primitive := primitives[string(c.name)]; primitive && c.first == c.stop {
			c.kind = k
		}
	}
	for i := range m.fields {
		f := &m.fields[i]
		f.class = m.byID.find(f.typeID)
		switch {
		case f.constant:
			f.kind = kindVarint
		case f.class >= 0:
			f.kind = m.classes[f.class].kind
		}
	}
	for _, a := range m.annotations {
		if i := m.byID.find(a.typeID); i >= 0 && a.field < int32(len(m.fields)) {
			if name := string(m.classes[i].name); name == "jdk.jfr.Timespan" || name == "jdk.jfr.Timestamp" {
				m.fields[a.field].unit = units[string(a.value)]
			}
		}
	}
	for i := range m.classes {
		if err := m.layout(int32(i), 0); err != nil {
			return err
		}
	}
	return nil
}

// layout computes the layout of a class from those of its fields. It removes fields whose
// values take no bytes, so that time is bounded by the bytes of values.
func (m *metadata) layout(i int32, depth int) error {
	c := &m.classes[i]
	switch {
	case c.state == layoutKnown:
		return nil
	case c.state == layoutPending:
		return fmt.Errorf("type %s has a field of its own type", c.name)
	case depth > maxValueDepth:
		return tooDeep(c)
	}
	c.state = layoutPending
	stop := c.first
	for _, f := range m.fields[c.first:c.stop] {
		integers := int32(-1)
		switch {
		case f.kind == kindClass && !f.array:
			if err := m.layout(f.class, depth+1); err != nil {
				return err
			}
			inner := &m.classes[f.class]
			if c.depth = max(c.depth, inner.depth+1); c.depth > maxValueDepth {
				return tooDeep(c)
			}
			if integers = inner.varints; integers == 0 {
				continue
			}
		case f.kind == kindVarint && !f.array:
			integers = 1
		}
		if integers < 0 || c.varints < 0 {
			c.varints = -1
		} else if c.varints += integers; c.varints > maxVarints {
			return &LimitError{What: fmt.Sprintf("integers in a value of type %s", c.name), Limit: maxVarints}
		}
		m.fields[stop] = f
		stop++
	}
	c.stop, c.state = stop, layoutKnown
	switch c.kind {
	case kindClass:
	case kindVarint:
		c.varints = 1
	default:
		c.varints = -1
	}
	return nil
}

func tooDeep(c *class) error {
	return &LimitError{What: fmt.Sprintf("levels of values in values of type %s", c.name), Limit: maxValueDepth}
}

// fieldsOf returns the fields of a class.
func (m *metadata) fieldsOf(c *class) []field { return m.fields[c.first:c.stop] }

// find returns the class with the given name, the last one if there are several, or nil.
func (m *metadata) find(name string) *class {
	for i := len(m.classes) - 1; i >= 0; i-- {
		if string(m.classes[i].name) == name {
			return &m.classes[i]
		}
	}
	return nil
}

// skipValue skips a value of a class.
func (m *metadata) skipValue(c *cursor, of *class, depth int) {
	switch {
	case of.varints >= 0:
		c.skipVarints(int(of.varints))
	case of.kind != kindClass:
		m.skipOne(c, of.kind, nil, depth)
	case depth > maxElementDepth:
		c.fail("has values that nest too deep")
	default:
		for i := of.first; i < of.stop && c.failed == ""; i++ {
			m.skipField(c, &m.fields[i], depth)
		}
	}
}

// skipField skips the value of a field.
func (m *metadata) skipField(c *cursor, f *field, depth int) {
	var of *class
	if f.kind == kindClass {
		of = &m.classes[f.class]
	}
	if !f.array {
		m.skipOne(c, f.kind, of, depth)
		return
	}
	n := c.count()
	switch {
	case f.kind == kindVarint:
		c.skipVarints(n)
	case f.kind == kindByte:
		c.bytes(n)
	case f.kind == kindClass && of.varints >= 0:
		if of.varints > 0 && n > len(c.data)/int(of.varints) {
			c.fail(truncated)
			return
		}
		c.skipVarints(n * int(of.varints))
	default:
		for ; n > 0 && c.failed == ""; n-- {
			m.skipOne(c, f.kind, of, depth)
		}
	}
}

func (m *metadata) skipOne(c *cursor, k kind, of *class, depth int) {
	switch k {
	case kindVarint:
		c.varint()
	case kindByte:
		c.bytes(1)
	case kindFloat:
		c.bytes(4)
	case kindDouble:
		c.bytes(8)
	case kindText:
		c.skipText()
	case kindClass:
		m.skipValue(c, of, depth+1)
	default:
		c.fail("is of a type that the metadata does not have")
	}
}
