// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package jfrwriter writes small JFR recordings, for tests only. It is as strict as JVMs and
// as lax as a test needs: bytes go where the caller puts them.
package jfrwriter

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
)

// Field is a field of a class. Kind is the name of its type.
type Field struct {
	Name, Kind      string
	Constant, Array bool
	// Unit is the value of an annotation, such as Timespan.
	Unit string
}

// Chunk is a chunk under construction. The exported fields are those of its header.
type Chunk struct {
	Start, Duration, Ticks, Rate int64
	State                        byte
	Flags                        uint16

	classes []class
	pools   map[string][]constant
	events  []byte
	raw     []byte // metadata, if it is not to be that of classes
}

type class struct {
	name   string
	fields []Field
}

type constant struct {
	id    uint64
	value []byte
}

// String is a string of the given encoding: 0 null, 1 empty, 3 UTF-8, 4 UTF-16, 5 Latin-1.
type String struct {
	Encoding byte
	Value    string
}

// Ref is a string that is a constant: encoding 2.
type Ref uint64

// List is the value of an array.
type List []any

// Struct is the value of a class inside another.
type Struct []any

// Null is the string null.
var Null = String{}

// New returns a chunk with the types that every recording has. Its ticks are nanoseconds.
func New() *Chunk {
	c := &Chunk{Start: 1_700_000_000_000_000_000, Duration: 10e9, Ticks: 1000, Rate: 1e9, Flags: 1, pools: map[string][]constant{}}
	for _, name := range []string{"boolean", "byte", "char", "short", "int", "long", "float", "double", "java.lang.String"} {
		c.Class(name)
	}
	c.Class("jdk.types.Symbol", Text("string"))
	c.Class("jdk.types.ThreadState", Text("name"))
	c.Class("jdk.types.FrameType", Text("description"))
	c.Class("java.lang.Class", Field{Name: "name", Kind: "jdk.types.Symbol", Constant: true}, Field{Name: "modifiers", Kind: "int"})
	c.Class("java.lang.Thread", Text("osName"), Long("osThreadId"), Text("javaName"), Long("javaThreadId"))
	c.Class("jdk.types.Method", Field{Name: "type", Kind: "java.lang.Class", Constant: true},
		Field{Name: "name", Kind: "jdk.types.Symbol", Constant: true}, Field{Name: "descriptor", Kind: "jdk.types.Symbol", Constant: true},
		Field{Name: "modifiers", Kind: "int"}, Field{Name: "hidden", Kind: "boolean"})
	c.Class("jdk.types.StackFrame", Field{Name: "method", Kind: "jdk.types.Method", Constant: true}, Field{Name: "lineNumber", Kind: "int"},
		Field{Name: "bytecodeIndex", Kind: "int"}, Field{Name: "type", Kind: "jdk.types.FrameType", Constant: true})
	c.Class("jdk.types.StackTrace", Field{Name: "truncated", Kind: "boolean"}, Field{Name: "frames", Kind: "jdk.types.StackFrame", Array: true})
	return c
}

// Class adds a class.
func (c *Chunk) Class(name string, fields ...Field) {
	c.classes = append(c.classes, class{name: name, fields: fields})
}

// SetFields replaces the fields of a class, which may be of classes that follow it.
func (c *Chunk) SetFields(name string, fields ...Field) { c.classes[c.typeID(name)-20].fields = fields }

// Fields that many events have.
var (
	StartTime = Field{Name: "startTime", Kind: "long", Unit: "TICKS"}
	Duration  = Field{Name: "duration", Kind: "long", Unit: "TICKS"}
	Thread    = Field{Name: "eventThread", Kind: "java.lang.Thread", Constant: true}
	Sampled   = Field{Name: "sampledThread", Kind: "java.lang.Thread", Constant: true}
	Stack     = Field{Name: "stackTrace", Kind: "jdk.types.StackTrace", Constant: true}
	State     = Field{Name: "state", Kind: "jdk.types.ThreadState", Constant: true}
)

// Long returns a field of the type long.
func Long(name string) Field { return Field{Name: name, Kind: "long"} }

// Text returns a field of the type String.
func Text(name string) Field { return Field{Name: name, Kind: "java.lang.String"} }

// Constant adds a constant. The value has one element for each field of its class.
func (c *Chunk) Constant(class string, id uint64, value ...any) {
	var data []byte
	for _, v := range value {
		data = Append(data, v)
	}
	c.pools[class] = append(c.pools[class], constant{id, data})
}

// Method adds a method with its class and symbols, all of which get the ids from id on.
func (c *Chunk) Method(id uint64, class, name, descriptor string) {
	c.Constant("jdk.types.Symbol", 4*id, class)
	c.Constant("jdk.types.Symbol", 4*id+1, name)
	c.Constant("jdk.types.Symbol", 4*id+2, descriptor)
	c.Constant("java.lang.Class", id, 4*id, 1)
	c.Constant("jdk.types.Method", id, id, 4*id+1, 4*id+2, 1, false)
}

// Frame is a frame of a stack, with the ids of its method and its type.
type Frame struct{ Method, Line, Type uint64 }

// StackTrace adds a stack, the leaf first.
func (c *Chunk) StackTrace(id uint64, frames ...Frame) {
	list := List{}
	for _, f := range frames {
		list = append(list, Struct{f.Method, f.Line, 7, f.Type})
	}
	c.Constant("jdk.types.StackTrace", id, false, list)
}

// Event adds an event of a class. The fields are in the order of the class.
func (c *Chunk) Event(class string, fields ...any) {
	var data []byte
	for _, f := range fields {
		data = Append(data, f)
	}
	c.events = append(c.events, event(uint64(c.typeID(class)), data)...)
}

// Raw adds bytes where an event could be.
func (c *Chunk) Raw(data []byte) { c.events = append(c.events, data...) }

// RawMetadata replaces the metadata, after their time and id.
func (c *Chunk) RawMetadata(data []byte) { c.raw = data }

// typeID returns the number of a class: from 20 on, as those of events and constants
// must not be 0 or 1.
func (c *Chunk) typeID(name string) int {
	i := slices.IndexFunc(c.classes, func(other class) bool { return other.name == name })
	if i < 0 {
		panic(fmt.Sprintf("no class %s", name))
	}
	return i + 20
}

// Bytes returns the chunk.
func (c *Chunk) Bytes() []byte {
	data := append([]byte(nil), make([]byte, 68)...)
	metadata := len(data)
	data = append(data, c.metadata()...)
	data = append(data, c.events...)
	checkpoint := len(data)
	data = append(data, c.checkpoint()...)
	copy(data, "FLR\x00")
	binary.BigEndian.PutUint16(data[4:], 2)
	binary.BigEndian.PutUint16(data[6:], 1)
	for i, n := range []int64{int64(len(data)), int64(checkpoint), int64(metadata), c.Start, c.Duration, c.Ticks, c.Rate} {
		binary.BigEndian.PutUint64(data[8+8*i:], uint64(n))
	}
	data[64] = c.State
	binary.BigEndian.PutUint16(data[66:], c.Flags)
	return data
}

// event returns an event with its size, which counts itself, in four bytes.
func event(typeID uint64, body []byte) []byte {
	content := append(binary.AppendUvarint(nil, typeID), body...)
	size := len(content) + 4
	return append([]byte{byte(size) | 0x80, byte(size>>7) | 0x80, byte(size>>14) | 0x80, byte(size >> 21)}, content...)
}

func (c *Chunk) checkpoint() []byte {
	body := Append(nil, Struct{1, 2, 0, 0, len(c.pools)})
	for _, name := range slices.Sorted(maps.Keys(c.pools)) {
		body = Append(body, Struct{c.typeID(name), len(c.pools[name])})
		for _, constant := range c.pools[name] {
			body = append(Append(body, constant.id), constant.value...)
		}
	}
	return event(1, body)
}

func (c *Chunk) metadata() []byte {
	body := Append(nil, Struct{1, 2, 3})
	if c.raw != nil {
		return event(0, append(body, c.raw...))
	}
	w := elementWriter{numbers: map[string]int{}}
	w.element("root", 1)
	w.element("metadata", len(c.classes))
	for _, of := range c.classes {
		w.element("class", len(of.fields), "id", strconv.Itoa(c.typeID(of.name)), "name", of.name)
		for _, f := range of.fields {
			attributes := []string{"name", f.Name, "class", "99999"}
			if f.Kind != "" {
				attributes[3] = strconv.Itoa(c.typeID(f.Kind))
			}
			if f.Constant {
				attributes = append(attributes, "constantPool", "true")
			}
			if f.Array {
				attributes = append(attributes, "dimension", "1")
			}
			if f.Unit == "" {
				w.element("field", 0, attributes...)
				continue
			}
			w.element("field", 1, attributes...)
			w.element("annotation", 0, "value", f.Unit)
		}
	}
	body = Append(body, len(w.strings))
	for _, s := range w.strings {
		body = Append(body, s)
	}
	return event(0, append(body, w.data...))
}

// elementWriter writes the elements of the metadata, and collects their strings.
type elementWriter struct {
	strings []string
	numbers map[string]int
	data    []byte
}

func (w *elementWriter) text(s string) {
	if _, known := w.numbers[s]; !known {
		w.numbers[s], w.strings = len(w.strings), append(w.strings, s)
	}
	w.data = Append(w.data, w.numbers[s])
}

// element starts an element with attributes, names and values in turn. The caller then writes as many inner ones.
func (w *elementWriter) element(name string, inner int, attributes ...string) {
	w.text(name)
	w.data = Append(w.data, len(attributes)/2)
	for _, a := range attributes {
		w.text(a)
	}
	w.data = Append(w.data, inner)
}

// Append appends the encoding of a value: integers, bool, float32, float64, string (UTF-8),
// String, Ref, List and Struct; []byte is appended as it is.
func Append(data []byte, value any) []byte {
	switch v := value.(type) {
	case []byte:
		return append(data, v...)
	case bool:
		if v {
			return append(data, 1)
		}
		return append(data, 0)
	case int:
		return Varint(data, uint64(v))
	case int64:
		return Varint(data, uint64(v))
	case uint64:
		return Varint(data, v)
	case float32:
		return binary.BigEndian.AppendUint32(data, math.Float32bits(v))
	case float64:
		return binary.BigEndian.AppendUint64(data, math.Float64bits(v))
	case string:
		return appendString(data, String{3, v})
	case Ref:
		return Varint(append(data, 2), uint64(v))
	case String:
		return appendString(data, v)
	case List:
		return Append(Varint(data, uint64(len(v))), Struct(v))
	case Struct:
		for _, e := range v {
			data = Append(data, e)
		}
		return data
	default:
		panic(fmt.Sprintf("a value of type %T", value))
	}
}

func appendString(data []byte, t String) []byte {
	data = append(data, t.Encoding)
	switch t.Encoding {
	case 3:
		return append(Varint(data, uint64(len(t.Value))), t.Value...)
	case 4:
		units := utf16.Encode([]rune(t.Value))
		data = Varint(data, uint64(len(units)))
		for _, unit := range units {
			data = Varint(data, uint64(unit))
		}
	case 5:
		data = Varint(data, uint64(len([]rune(t.Value))))
		for _, r := range t.Value {
			data = append(data, byte(r))
		}
	}
	return data
}

// Varint appends an integer: seven bits a byte, of which the ninth has eight.
func Varint(data []byte, v uint64) []byte {
	for range 8 {
		if v < 0x80 {
			return append(data, byte(v))
		}
		data = append(data, byte(v)|0x80)
		v >>= 7
	}
	return append(data, byte(v))
}
