// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// frameKind is the type of a frame, as profile.frame.type has it.
type frameKind uint8

const (
	frameUnknown frameKind = iota
	frameJVM
	frameNative
	frameKernel
	frameKinds
)

const (
	attributeFrameType    = "profile.frame.type"          // of a location
	attributeHasFunctions = "pprof.mapping.has_functions" // pprof need not look for symbols
)

var frameKindNames = [frameKinds]string{frameJVM: "jvm", frameNative: "native", frameKernel: "kernel"}

// frameTypes are the frame types of the JDK and of async-profiler.
var frameTypes = map[string]frameKind{
	"Interpreted": frameJVM, "JIT compiled": frameJVM, "C1 compiled": frameJVM, "Inlined": frameJVM,
	"Native": frameNative, "C++": frameNative, "Kernel": frameKernel,
}

// nativeDescriptor is what async-profiler gives functions that are not Java methods.
var nativeDescriptor = []byte("()L;")

// method is a method or function that a stack has.
type method struct {
	function int32 // in the dictionary
	mapping  int32
	isJava   bool
	frames   int32 // the number plus one of its first frame in decoder.frames
}

// frame is a location of a method.
type frame struct {
	line     int64
	location int32
	kind     frameKind
	next     int32 // the number plus one of another frame of the method
}

// maxFrames is how many frames of a method are looked through before the dictionary is.
const maxFrames = 16

// stack returns the index of a stack. Id 0 is no stack.
func (d *decoder) stack(id uint64) (int32, error) {
	p := &d.Pools[poolStack]
	position := p.Index.Find(id)
	if position < 0 {
		if id != 0 {
			d.report.MissingStacks++
		}
		return 0, nil
	}
	if i := p.Values[position]; i != 0 {
		return i - 1, nil
	}
	c := jfr.Cursor{Data: d.Data[:d.Stop], At: int(p.Offsets[position])}
	d.locations = d.locations[:0]
	fields := d.Meta.FieldsOf(p.Class)
	for i := range fields {
		f := &fields[i]
		if f.Slot != slotFrames {
			d.Meta.SkipField(&c, f, 0)
			continue
		}
		if err := d.readFrames(&c, &d.Meta.Classes[f.Class]); err != nil {
			return 0, err
		}
		break
	}
	i := d.tables.Stack(d.locations)
	p.Values[position] = i + 1
	return i, nil
}

// readFrames appends the frames at a cursor to d.locations, the leaf first.
func (d *decoder) readFrames(c *jfr.Cursor, of *jfr.Class) (err error) {
	n := c.Count()
	if n > d.limits.StackDepth {
		return &LimitError{What: "frames of a stack", Limit: int64(d.limits.StackDepth)}
	}
	if d.locations, err = jfr.Room(&d.Memory, d.locations, n); err != nil {
		return err
	}
	fields := d.Meta.FieldsOf(of)
	var numbers [slots + 1]uint64
	for ; n > 0; n-- {
		for i := range fields {
			f := &fields[i]
			switch at := c.At; {
			case f.Kind != jfr.KindVarint || f.Array:
				d.Meta.SkipField(c, f, 0)
			case at+1 < len(c.Data) && c.Data[at] >= 0x80 && c.Data[at+1] < 0x80: // as many are
				numbers[f.Slot] = uint64(c.Data[at]&0x7f) | uint64(c.Data[at+1])<<7
				c.At = at + 2
			default:
				numbers[f.Slot] = c.Varint()
			}
		}
		location, err := d.location(numbers[slotMethod], int64(int32(numbers[slotLine])), d.frameKind(numbers[slotFrameType]))
		if err != nil {
			return err
		}
		d.locations = append(d.locations, location)
	}
	return nil
}

// frameKind returns the kind of a frame type.
func (d *decoder) frameKind(id uint64) frameKind {
	p := &d.Pools[poolFrameType]
	position := p.Index.Find(id)
	if position < 0 {
		return frameUnknown
	}
	return frameKind(p.Values[position])
}

// readFrameTypes sets the values of the pool of frame types to their kinds.
func (d *decoder) readFrameTypes() error {
	p := &d.Pools[poolFrameType]
	for i, id := range p.IDs {
		text, err := d.Symbol(poolFrameType, id)
		if err != nil {
			return err
		}
		p.Values[i] = int32(frameTypes[string(text)])
	}
	return nil
}

// location returns the index of a location.
func (d *decoder) location(methodID uint64, line int64, kind frameKind) (int32, error) {
	p := &d.Pools[poolMethod]
	position := p.Index.Find(methodID)
	if position < 0 {
		return d.addLocation(&method{function: d.unknownFunction()}, line, kind), nil
	}
	if p.Values[position] == 0 {
		if err := d.addMethod(position); err != nil {
			return 0, err
		}
	}
	m := &d.methods[p.Values[position]-1]
	number, steps := m.frames, 0
	for ; number != 0 && steps < maxFrames; steps++ {
		f := &d.frames[number-1]
		if f.line == line && f.kind == kind {
			return f.location, nil
		}
		number = f.next
	}
	i := d.addLocation(m, line, kind)
	if steps < maxFrames {
		var err error
		if d.frames, err = jfr.Room(&d.Memory, d.frames, 1); err != nil {
			return 0, err
		}
		d.frames = append(d.frames, frame{line: line, location: i, kind: kind, next: m.frames})
		m.frames = int32(len(d.frames))
	}
	return i, nil
}

func (d *decoder) addLocation(m *method, line int64, kind frameKind) int32 {
	if m.isJava && kind == frameNative { // a method that is declared native
		kind = frameJVM
	}
	l := dictionary.Location{Mapping: m.mapping, Lines: append(d.lines[:0], dictionary.Line{Function: m.function, Line: max(line, 0)})}
	d.lines = l.Lines
	if kind != frameUnknown {
		if d.kindAttributes[kind] == 0 {
			d.kindAttributes[kind] = d.stringAttribute(d.tables.String(attributeFrameType), []byte(frameKindNames[kind]))
		}
		d.attributes = append(d.attributes[:0], d.kindAttributes[kind])
		l.Attributes = d.attributes
	}
	return d.tables.Location(l)
}

// unknownFunction returns the function of frames whose method the recording lacks.
func (d *decoder) unknownFunction() int32 {
	return d.tables.Function(dictionary.Function{Name: d.tables.String("[unknown]")})
}

// addMethod translates the method at a position of its pool.
func (d *decoder) addMethod(position int32) (err error) {
	p := &d.Pools[poolMethod]
	c := jfr.Cursor{Data: d.Data[:d.Stop], At: int(p.Offsets[position])}
	var numbers [slots + 1]uint64
	fields := d.Meta.FieldsOf(p.Class)
	for i := range fields {
		if f := &fields[i]; f.Slot != slotNone {
			numbers[f.Slot] = c.Varint()
		} else {
			d.Meta.SkipField(&c, f, 0)
		}
	}
	m := method{}
	if m.isJava, err = d.readNames(numbers[slotType], numbers[slotName], numbers[slotDescriptor]); err != nil {
		return err
	}
	switch dot := d.nameStart; {
	case len(d.name) == 0:
		m.function = d.unknownFunction()
	case m.isJava:
		f := dictionary.Function{SystemName: d.tables.StringBytes(d.name)}
		name := d.name[:d.nameStop]
		for i, b := range name[:max(dot-1, 0)] {
			if b == '/' {
				name[i] = '.'
			}
		}
		f.Name = d.tables.StringBytes(name)
		m.function = d.tables.Function(f)
	default:
		m.function = d.tables.Function(dictionary.Function{Name: d.tables.StringBytes(d.name[dot:d.nameStop])})
		if dot > 1 {
			d.attributes = append(d.attributes[:0], d.tables.Attribute(d.tables.String(attributeHasFunctions), 0, d.value[:0].AppendBool(true)))
			m.mapping = d.tables.Mapping(dictionary.Mapping{Filename: d.tables.StringBytes(d.name[:dot-1]), Attributes: d.attributes})
		}
	}
	if d.methods, err = jfr.Room(&d.Memory, d.methods, 1); err != nil {
		return err
	}
	d.methods = append(d.methods, m)
	p.Values[position] = int32(len(d.methods))
	return nil
}

// readNames sets d.name to class.name, followed by the descriptor: java/lang/Thread.run()V.
// It reports whether that is a Java method.
func (d *decoder) readNames(classID, name, descriptor uint64) (isJava bool, err error) {
	d.name, d.nameStart = d.name[:0], 0
	c, position := d.Constant(poolClass, classID)
	if position >= 0 {
		symbol := uint64(0)
		fields := d.Meta.FieldsOf(d.Pools[poolClass].Class)
		for i := range fields {
			if f := &fields[i]; f.Slot == slotName {
				symbol = c.Varint()
			} else {
				d.Meta.SkipField(&c, f, 0)
			}
		}
		if err := d.appendSymbol(symbol); err != nil {
			return false, err
		}
	}
	if len(d.name) > 0 {
		d.name = append(d.name, '.')
		d.nameStart = len(d.name)
	}
	if err := d.appendSymbol(name); err != nil {
		return false, err
	}
	d.nameStop = len(d.name)
	if err := d.appendSymbol(descriptor); err != nil {
		return false, err
	}
	return d.nameStart > 0 && !bytes.Equal(d.name[d.nameStop:], nativeDescriptor), nil
}

func (d *decoder) appendSymbol(id uint64) error {
	text, err := d.Symbol(poolSymbol, id)
	d.name = append(d.name, text...)
	return err
}
