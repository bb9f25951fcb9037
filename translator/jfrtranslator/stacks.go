// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"math"

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
	function, mapping int32 // in the dictionary
	isJava            bool
}

// maxDepth is how many frames a stack may have.
const maxDepth = 64 << 10

// stack returns the index of a stack. Id 0 is no stack.
func (d *decoder) stack(id uint64) (int32, error) {
	constant := d.Constant(poolStack, id)
	if constant < 0 {
		if id != 0 && id != noConstant {
			d.report.MissingStacks++
		}
		return 0, nil
	}
	if i := d.Values[constant].Of; i != 0 {
		return i - 1, nil
	}
	d.locations = d.locations[:0]
	if at := d.readConstant(poolStack, constant)[slotFrames]; at != 0 {
		c := d.CursorAt(constant)
		c.At = int(at)
		if err := d.readFrames(&c); err != nil {
			return 0, err
		}
	}
	i := d.tables.Stack(d.locations)
	d.Values[constant].Of = i + 1
	return i, nil
}

// readFrames appends the frames at a cursor to d.locations, the leaf first.
func (d *decoder) readFrames(c *jfr.Cursor) (err error) {
	n := int(min(c.Varint(), maxDepth+1))
	if n > maxDepth {
		return &LimitError{What: "frames of a stack", Limit: maxDepth}
	}
	if d.locations, err = jfr.Room(&d.Memory, d.locations, n); err != nil {
		return err
	}
	for ; n > 0 && c.Failed == ""; n-- {
		// Frames with equal bytes are equal. Most have eight or fewer, which are a key.
		at := c.At
		bytes, short := c.ShortVarints(d.frameVarints)
		key := jfr.Key{bytes, shortFrame}
		location := int32(-1)
		if short {
			location = d.locationOf.Find(key)
		}
		if location < 0 {
			c.At = at
			if location, err = d.readFrame(c, key, short); err != nil {
				return err
			}
		}
		d.locations = append(d.locations, location)
	}
	return nil
}

// shortFrame marks keys of decoder.locationOf that are the bytes of a frame.
const shortFrame = math.MaxUint64

// readFrame returns the location of the frame at a cursor. key is that of a short one.
func (d *decoder) readFrame(c *jfr.Cursor, key jfr.Key, short bool) (int32, error) {
	var v [slots]uint64
	d.Read(c, d.frameSteps, v[:], nil)
	frameType := min(v[slotType], math.MaxInt32)
	if !short {
		key = jfr.Key{v[slotMethod], frameType<<32 | uint64(uint32(v[slotLine]))}
		if location := d.locationOf.Find(key); location >= 0 {
			return location, nil
		}
	}
	location, err := d.location(v[slotMethod], int64(int32(v[slotLine])), frameType)
	if err != nil {
		return 0, err
	}
	return d.locationOf.Put(&d.Memory, key, location)
}

// location returns the index of a location.
func (d *decoder) location(methodID uint64, line int64, frameType uint64) (int32, error) {
	m, err := d.method(methodID)
	if err != nil {
		return 0, err
	}
	kind, err := d.frameKind(frameType)
	if err != nil {
		return 0, err
	}
	if m.isJava && kind == frameNative { // a method that is declared native
		kind = frameJVM
	}
	l := dictionary.Location{Mapping: m.mapping, Lines: append(d.lines[:0], dictionary.Line{Function: m.function, Line: max(line, 0)})}
	d.lines = l.Lines
	if kind != frameUnknown {
		if d.kindAttributes[kind] == 0 {
			d.kindAttributes[kind] = d.stringAttribute(d.tables.String("profile.frame.type"), []byte(frameKindNames[kind]))
		}
		d.attributes = append(d.attributes[:0], d.kindAttributes[kind])
		l.Attributes = d.attributes
	}
	return d.tables.Location(l), nil
}

// frameKind returns the kind of a frame type.
func (d *decoder) frameKind(id uint64) (frameKind, error) {
	constant := d.Constant(poolFrameType, id)
	if constant < 0 {
		return frameUnknown, nil
	}
	v := &d.Values[constant].Of
	if *v == 0 {
		text, err := d.symbol(poolFrameType, id)
		if err != nil {
			return frameUnknown, err
		}
		*v = int32(frameTypes[string(text)]) + 1
	}
	return frameKind(*v - 1), nil
}

// method translates a method once.
func (d *decoder) method(id uint64) (m method, err error) {
	constant := d.Constant(poolMethod, id)
	if constant < 0 {
		return d.unknownMethod(), nil
	}
	if n := d.Values[constant].Of; n != 0 {
		return d.methods[n-1], nil
	}
	v := d.readConstant(poolMethod, constant)
	if m, err = d.newMethod(v[slotType], v[slotName], v[slotDescriptor]); err != nil {
		return m, err
	}
	if d.methods, err = jfr.Room(&d.Memory, d.methods, 1); err != nil {
		return m, err
	}
	d.methods = append(d.methods, m)
	d.Values[constant].Of = int32(len(d.methods))
	return m, nil
}

// unknownMethod is that of frames whose method the recording lacks.
func (d *decoder) unknownMethod() method {
	return method{function: d.tables.Function(dictionary.Function{Name: d.tables.String("[unknown]")})}
}

// newMethod returns a method by its class, name and descriptor: java/lang/Thread.run()V.
func (d *decoder) newMethod(classID, name, descriptor uint64) (m method, err error) {
	d.name = d.name[:0]
	if constant := d.Constant(poolClass, classID); constant >= 0 {
		symbol := &d.Values[constant].Of // the number plus one of its name, or -1
		if *symbol == 0 {
			if *symbol = d.Constant(poolSymbol, d.readConstant(poolClass, constant)[slotName]) + 1; *symbol == 0 {
				*symbol = -1
			}
		}
		if err := d.appendSymbol(*symbol - 1); err != nil {
			return m, err
		}
	}
	class := len(d.name)
	if class > 0 {
		d.name = append(d.name, '.')
	}
	from := len(d.name)
	if err := d.appendSymbol(d.Constant(poolSymbol, name)); err != nil {
		return m, err
	}
	to := len(d.name)
	if err := d.appendSymbol(d.Constant(poolSymbol, descriptor)); err != nil {
		return m, err
	}
	m.isJava = class > 0 && !bytes.Equal(d.name[to:], nativeDescriptor)
	switch {
	case len(d.name) == 0:
		return d.unknownMethod(), nil
	case m.isJava:
		f := dictionary.Function{SystemName: d.tables.StringBytes(d.name)}
		for i, b := range d.name[:class] {
			if b == '/' {
				d.name[i] = '.'
			}
		}
		f.Name = d.tables.StringBytes(d.name[:to])
		m.function = d.tables.Function(f)
	default:
		m.function = d.tables.Function(dictionary.Function{Name: d.tables.StringBytes(d.name[from:to])})
		if class > 0 { // the name of a library; pprof need not look for its symbols
			hasFunctions := d.tables.Attribute(d.tables.String("pprof.mapping.has_functions"), 0, d.value[:0].AppendBool(true))
			m.mapping = d.tables.Mapping(dictionary.Mapping{Filename: d.tables.StringBytes(d.name[:class]), Attributes: []int32{hasFunctions}})
		}
	}
	return m, nil
}

func (d *decoder) appendSymbol(constant int32) error {
	text, err := d.text(poolSymbol, constant)
	d.name = append(d.name, text...)
	return err
}
