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

var frameKindNames = [frameKinds]string{frameJVM: "jvm", frameNative: "native", frameKernel: "kernel"}

// frameTypes are the frame types of the JDK and of async-profiler.
var frameTypes = map[string]frameKind{
	"Interpreted": frameJVM, "JIT compiled": frameJVM, "C1 compiled": frameJVM, "Inlined": frameJVM,
	"Native": frameNative, "C++": frameNative, "Kernel": frameKernel,
}

// nativeDescriptor is the descriptor that async-profiler gives functions that are not Java methods.
var nativeDescriptor = []byte("()L;")

// method is a method or function that a stack has.
type method struct {
	function, mapping int32 // in the dictionary
	isJava            bool
}

// maxDepth is how many frames a stack may have.
const maxDepth = 64 << 10

// stack returns the index of a stack. Id 0 means no stack.
func (d *decoder) stack(id uint64) (int32, error) {
	constant := d.Constant(poolStack, id)
	if constant == nil {
		return 0, nil
	}
	if i, translated := constant.Number(); translated {
		return i, nil
	}
	var locations []int32
	if at := d.readConstant(poolStack, constant.At)[slotFrames]; at != 0 {
		c := d.CursorAt(int32(at))
		if err := d.readFrames(&c, constant.End()); err != nil {
			return 0, err
		}
		locations = d.stacks[0].locations
	}
	i := d.tables.Stack(locations)
	constant.SetNumber(i)
	return i, nil
}

// frames are those of a stack, the leaf first.
type frames struct {
	locations []int32
	rests     []int32 // the bytes from the start of each frame to the end of the stack
	end       int     // of the stack in the chunk
}

// readFrames reads the frames at a cursor, of a stack with this end, into d.stacks[0]. The stack that was read
// before often has the same bytes at its end, which then are the same frames.
func (d *decoder) readFrames(c *jfr.Cursor, end int) (err error) {
	n := int(min(c.Varint(), maxDepth+1))
	if n > maxDepth {
		return &LimitError{What: "frames of a stack", Limit: maxDepth}
	}
	d.stacks[0], d.stacks[1] = d.stacks[1], d.stacks[0]
	s, before := &d.stacks[0], &d.stacks[1]
	if s.locations, err = jfr.Room(&d.Memory, s.locations[:0], n); err != nil {
		return err
	}
	if s.rests, err = jfr.Room(&d.Memory, s.rests[:0], n); err != nil {
		return err
	}
	shared := 0 // bytes at the end
	if s.end = end; len(before.rests) > 0 {
		shared = c.SharedBefore(end, before.end, min(end-c.At, int(before.rests[0])))
	}
	for ; n > 0 && c.Err == nil; n-- {
		rest := int32(end - c.At)
		if i := len(before.rests) - n; int(rest) <= shared && i >= 0 && before.rests[i] == rest {
			s.locations, s.rests = append(s.locations, before.locations[i:]...), append(s.rests, before.rests[i:]...)
			break
		}
		location, err := d.frame(c)
		if err != nil {
			return err
		}
		s.locations, s.rests = append(s.locations, location), append(s.rests, rest)
	}
	if c.Err != nil {
		s.rests = s.rests[:0]
	}
	return nil
}

// frame reads a frame and returns its location. Frames with equal bytes are equal.
func (d *decoder) frame(c *jfr.Cursor) (int32, error) {
	at := c.At
	key, short := c.ShortVarints(d.frameVarints)
	if short {
		if known := d.locationOf.Find(key); known != nil {
			location, _ := known.Number()
			return location, nil
		}
	}
	c.At = at
	v := d.readFields(c, d.frameSteps)
	location, err := d.location(v[slotMethod], int64(int32(v[slotLine])), v[slotType])
	if err != nil || !short {
		return location, err
	}
	known, err := d.locationOf.Put(&d.Memory, key)
	if err == nil {
		known.SetNumber(location)
	}
	return location, err
}

// location returns the index of a location.
func (d *decoder) location(methodID uint64, line int64, frameType uint64) (int32, error) {
	m, err := d.method(methodID)
	kind := d.frameKind(frameType)
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
	return d.tables.Location(l), err
}

func (d *decoder) frameKind(id uint64) frameKind {
	constant := d.Constant(poolFrameType, id)
	if constant == nil {
		return frameUnknown
	}
	kind, translated := constant.Number()
	if !translated {
		kind = int32(frameTypes[string(d.text(poolFrameType, constant.At))])
		constant.SetNumber(kind)
	}
	return frameKind(kind)
}

// method translates a method once.
func (d *decoder) method(id uint64) (m method, err error) {
	constant := d.Constant(poolMethod, id)
	if constant == nil {
		return d.unknownMethod(), nil
	}
	i, translated := constant.Number()
	if !translated {
		i = int32(len(d.methods))
		v := d.readConstant(poolMethod, constant.At)
		if d.methods, err = jfr.Append(&d.Memory, d.methods, d.newMethod(v[slotType], v[slotName], v[slotDescriptor])); err != nil {
			return m, err
		}
		constant.SetNumber(i)
	}
	return d.methods[i], nil
}

// unknownMethod is that of frames whose method the recording lacks.
func (d *decoder) unknownMethod() method {
	return method{function: d.tables.Function(dictionary.Function{Name: d.tables.String("[unknown]")})}
}

// newMethod returns a method by its class, name and descriptor: java/lang/Thread.run()V.
func (d *decoder) newMethod(classID, nameID, descriptorID uint64) (m method) {
	name := d.name[:0]
	if class := d.Constant(poolClass, classID); class != nil {
		at, known := class.Number() // where its name is, or 0
		if !known {
			at = d.position(poolSymbol, d.readConstant(poolClass, class.At)[slotName])
			class.SetNumber(at)
		}
		name = append(name, d.text(poolSymbol, at)...)
	}
	class := len(name)
	if class > 0 {
		name = append(name, '.')
	}
	from := len(name)
	name = append(name, d.symbol(poolSymbol, nameID)...)
	to := len(name)
	name = append(name, d.symbol(poolSymbol, descriptorID)...)
	d.name = name
	d.texts += len(name)
	m.isJava = class > 0 && !bytes.Equal(name[to:], nativeDescriptor)
	switch {
	case len(name) == 0:
		return d.unknownMethod()
	case m.isJava:
		f := dictionary.Function{SystemName: d.tables.StringBytes(name)}
		for i, b := range name[:class] {
			if b == '/' {
				name[i] = '.'
			}
		}
		f.Name = d.tables.StringBytes(name[:to])
		m.function = d.tables.Function(f)
	default:
		m.function = d.tables.Function(dictionary.Function{Name: d.tables.StringBytes(name[from:to])})
		if class > 0 { // the name of a library; pprof need not look for its symbols
			hasFunctions := d.tables.Attribute(d.tables.String("pprof.mapping.has_functions"), 0, d.value[:0].AppendBool(true))
			m.mapping = d.tables.Mapping(dictionary.Mapping{Filename: d.tables.StringBytes(name[:class]), Attributes: []int32{hasFunctions}})
		}
	}
	return m
}
