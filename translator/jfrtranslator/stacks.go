// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
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

// newStack translates a stack.
func (d *decoder) newStack(constant *jfr.Value) int32 {
	if at := d.readConstant(poolStack, constant.At)[slotFrames]; at != 0 {
		d.readFrames(int32(at), int(constant.End))
		return d.tables.Stack(d.stack)
	}
	return 0
}

// readFrames sets d.stack to the locations of the stack with these frames and this end. The stack that was read before
// often has the same bytes at its end. From a place on where an integer ends, these are the same frames. Without this,
// recordings with deep stacks took a third more instructions.
func (d *decoder) readFrames(at int32, end int) {
	c := d.CursorAt(at)
	n := int(min(c.Varint(), maxDepth+1))
	d.stack, d.stackBefore = jfr.Grow(&d.Memory, d.stackBefore[:0], n), d.stack
	if n > maxDepth {
		d.Fail("frames of a stack", maxDepth)
	}
	shared := 0 // bytes at the end
	if d.frameVarints > 0 {
		shared = c.SharedBefore(end, d.stackEnd, min(end-c.At, d.stackEnd))
	}
	for ; n > 0 && c.Err == nil && d.Err == nil; n-- {
		const lastOfInteger = 0x80 // and above are not
		if end-c.At < shared && n <= len(d.stackBefore) && d.Data[c.At-1] < lastOfInteger {
			d.stack = append(d.stack, d.stackBefore[len(d.stackBefore)-n:]...)
			break
		}
		before := c.At
		d.stack = append(d.stack, d.frame(&c))
		if c.At == before {
			break // its frames have no bytes, so that there may be any number
		}
	}
	if d.stackEnd = end; c.Err != nil {
		d.stackEnd = 0
	}
}

// frame reads a frame and returns its location. Frames with equal bytes are equal.
func (d *decoder) frame(c *jfr.Cursor) (location int32) {
	at := c.At
	var known *jfr.Value
	if d.frameVarints > 0 {
		c.SkipVarints(d.frameVarints)
		if key, short := jfr.KeyOf(c.Data[at:c.At]); short {
			known = d.locationOf.Put(&d.Memory, key)
			if location, translated := known.Number(); translated {
				return location
			}
		}
		c.At = at
	}
	v := d.readFields(c, d.frameSteps)
	location = d.location(v[slotMethod], int64(int32(v[slotLine])), v[slotType])
	if known != nil {
		known.SetNumber(location)
	}
	return location
}

// location returns the index of a location.
func (d *decoder) location(methodID uint64, line int64, frameType uint64) int32 {
	number := d.number(poolMethod, methodID, (*decoder).newMethod)
	m := d.methods[number]
	if number == 0 {
		m = d.unknownMethod()
	}
	kind := frameKind(d.number(poolFrameType, frameType, (*decoder).newFrameKind))
	if m.isJava && kind == frameNative { // a method that is declared native
		kind = frameJVM
	}
	l := dictionary.Location{Mapping: m.mapping, Lines: append(d.lines[:0], dictionary.Line{Function: m.function, Line: max(line, 0)})}
	d.lines = l.Lines
	if kind != frameUnknown {
		if d.kindAttributes[kind] == 0 {
			d.kindAttributes[kind] = d.stringAttribute(d.tables.String(string(semconv.ProfileFrameTypeKey)), []byte(frameKindNames[kind]))
		}
		d.attributes = append(d.attributes[:0], d.kindAttributes[kind])
		l.Attributes = d.attributes
	}
	return d.tables.Location(&l)
}

// newFrameKind translates a frame type.
func (d *decoder) newFrameKind(constant *jfr.Value) int32 {
	text := d.text(poolFrameType, constant.At)
	if !d.takeText(dictionary.ValidSize(text)) {
		return 0
	}
	kind, _ := jfr.LookUp(frameTypes, text)
	return int32(kind)
}

// unknownMethod is that of frames whose method the recording lacks, or has no name for.
func (d *decoder) unknownMethod() method {
	return method{function: d.tables.Function(dictionary.Function{Name: d.tables.String("[unknown]")})}
}

// newMethod translates a method, and returns its index in d.methods.
func (d *decoder) newMethod(constant *jfr.Value) int32 {
	v := d.readConstant(poolMethod, constant.At)
	d.methods = jfr.Append(&d.Memory, d.methods, d.methodOf(v[slotType], v[slotName], v[slotDescriptor]))
	return int32(len(d.methods) - 1)
}

// methodOf returns a method by its class, name and descriptor: java/lang/Thread.run()V.
func (d *decoder) methodOf(classID, nameID, descriptorID uint64) (m method) {
	name := d.name[:0]
	if class := d.Constant(poolClass, classID); class != nil {
		name = append(name, d.symbol(poolSymbol, d.readConstant(poolClass, class.At)[slotName])...)
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
	if !d.takeText(dictionary.ValidSize(name)) {
		return m
	}
	m.isJava = class > 0 && !bytes.Equal(name[to:], nativeDescriptor)
	switch {
	case len(name) == 0:
		return d.unknownMethod()
	case m.isJava:
		f := dictionary.Function{SystemName: d.tables.StringBytes(name)}
		className, rest := name[:class], name[class:to]
		if d.options.NormalizeClassNames {
			className = normalizeClass(className)
		}
		for i, b := range className {
			if b == '/' {
				className[i] = '.'
			}
		}
		f.Name = d.tables.StringBytes(append(className, rest...))
		m.function = d.tables.Function(f)
	default:
		m.function = d.tables.Function(dictionary.Function{Name: d.tables.StringBytes(name[from:to])})
		if class > 0 { // the name of a library; pprof need not look for its symbols
			hasFunctions := d.tables.Attribute(d.tables.String(string(semconv.PprofMappingHasFunctionsKey)), 0, d.value[:0].AppendBool(true))
			m.mapping = d.tables.Mapping(dictionary.Mapping{Filename: d.tables.StringBytes(name[:class]), Attributes: []int32{hasFunctions}})
		}
	}
	return m
}
