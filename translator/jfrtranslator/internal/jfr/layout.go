// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"math"
)

// Step reads or skips a field, or skips several of one kind that follow each other. Fields of
// classes inside a class are steps of the outer one.
type Step struct {
	Kind  Kind
	Array bool
	Slot  Slot
	N     int32 // of values
	class int32 // of the elements, if they are values of one
}

// Slot is the purpose for which the user of this package reads a field: an index into the values.
type Slot int16

const (
	SlotNone Slot = iota
	SlotKey       // part of the key
	FirstSlot
)

const (
	maxValueDepth = 16      // of values inside values
	maxSteps      = 1 << 16 // values of one value
)

// sizes of values of fixed size, in bytes.
var sizes = [...]int{KindByte: 1, KindFloat: 4, KindDouble: 8}

// Compile returns the steps that read a value of a class. slot returns the slot of a field. The steps are of no use if
// r.Err is set.
func (r *Recording) Compile(class int32, slot func(f *Field) Slot) []Step {
	return r.compile(class, slot, 0)
}

func (r *Recording) compile(class int32, slot func(f *Field) Slot, depth int) (steps []Step) {
	c := &r.Meta.Classes[class]
	if depth > maxValueDepth {
		r.Fail("levels of values in values of type "+string(c.Name), maxValueDepth)
		return nil
	}
	fields := r.Meta.FieldsOf(class)
	if len(fields) == 0 && c.kind != KindClass {
		fields = []Field{{Kind: c.kind}}
	}
	size := 0
	for i := range fields {
		f := &fields[i]
		all := []Step{{Kind: f.Kind, Array: f.Array, Slot: slot(f), N: 1, class: f.Class}}
		if f.Kind == KindClass && !f.Array {
			all = r.layout(f.Class, depth+1)
		}
		for _, s := range all {
			steps = AppendStep(Grow(&r.Memory, steps, 1), s)
			size += int(s.N)
		}
		if size > maxSteps {
			r.Fail("values in a value of type "+string(c.Name), maxSteps)
		}
		if r.Err != nil {
			return nil
		}
	}
	return steps
}

// Trim returns steps without the last ones that only skip.
func Trim(steps []Step) []Step {
	for n := len(steps); n > 0 && steps[n-1].Slot == SlotNone; n-- {
		steps = steps[:n-1]
	}
	return steps
}

// AppendStep appends a step, or extends the last one if that can do both.
func AppendStep(steps []Step, s Step) []Step {
	if n := len(steps); n > 0 {
		last := &steps[n-1]
		if s.Slot < FirstSlot && s.Slot == last.Slot && s.Kind == last.Kind && !s.Array && !last.Array {
			last.N += s.N
			return steps
		}
	}
	return append(steps, s)
}

// layout returns the steps that skip a value of a class.
func (r *Recording) layout(class int32, depth int) []Step {
	c := &r.Meta.Classes[class]
	if c.layout == nil {
		steps := r.compile(class, func(*Field) Slot { return SlotNone }, depth)
		if r.Err != nil {
			return nil
		}
		c.layout = append([]Step{}, steps...) // not nil
	}
	return c.layout
}

// Varints returns the number of integers that a value consists of, if it consists of nothing else.
func Varints(steps []Step) (n int, only bool) {
	for _, s := range steps {
		if s.Kind != KindVarint || s.Array {
			return 0, false
		}
		n += int(s.N)
	}
	return n, n > 0
}

// IsText reports whether a value of a class consists of a string.
func (r *Recording) IsText(class int32) bool {
	steps := r.layout(class, 0)
	return len(steps) == 1 && steps[0].Kind == KindText && !steps[0].Array && steps[0].N == 1
}

// Read reads a value. It sets the elements of values that steps have the slots of: to a number, the bits
// of a float64, or the position of a text or an array. It appends the bytes of fields with
// SlotKey to key.
func (r *Recording) Read(c *Cursor, steps []Step, values []uint64, key []byte) []byte {
	for i := range steps {
		s := &steps[i]
		from := c.At
		switch {
		case s.Kind == KindVarint && !s.Array && s.Slot >= FirstSlot:
			values[s.Slot] = c.Varint()
			continue
		case s.Kind == KindVarint && !s.Array:
			c.SkipVarints(int(s.N))
		case s.Slot < FirstSlot:
			r.skip(c, s, 0)
		case s.Array || s.Kind == KindText:
			values[s.Slot] = uint64(from)
			if i < len(steps)-1 {
				r.skip(c, s, 0)
			}
		default:
			values[s.Slot] = c.fixed(s.Kind)
		}
		if s.Slot == SlotKey {
			key = append(key, c.Data[from:c.At]...)
		}
	}
	return key
}

// fixed reads a byte, or a floating-point number as the bits of a float64.
func (c *Cursor) fixed(k Kind) uint64 {
	b := c.bytes(sizes[k])
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 4:
		return math.Float64bits(float64(math.Float32frombits(binary.BigEndian.Uint32(b))))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *Recording) skip(c *Cursor, s *Step, depth int) {
	n := int(s.N)
	if s.Array {
		n = c.count()
	}
	switch {
	case s.Kind == KindVarint:
		c.SkipVarints(n)
	case s.Kind == KindText:
		for ; n > 0 && c.Err == nil; n-- {
			c.text()
		}
	case n == 0:
	case s.Kind == KindClass:
		r.skipValues(c, s.class, n, depth+1)
	case s.Kind == KindUnknown:
		c.fail(errNoType)
	default:
		c.bytes(n * sizes[s.Kind])
	}
}

// skipValues skips n values of a class.
func (r *Recording) skipValues(c *Cursor, class int32, n, depth int) {
	steps := r.layout(class, 0)
	varints, only := Varints(steps)
	switch {
	case depth > maxElementDepth:
		c.fail(errTooDeep)
	case r.Err != nil:
		c.fail(r.Err)
	case len(steps) == 0: // whose values take no bytes
	case only:
		c.SkipVarints(n * varints)
	default:
		for ; n > 0 && c.Err == nil; n-- {
			r.skipSteps(c, steps, depth)
		}
	}
}

func (r *Recording) skipSteps(c *Cursor, steps []Step, depth int) {
	for i := range steps {
		r.skip(c, &steps[i], depth)
	}
}

// FailedField returns the name of the field of the value at a position at which reading c fails.
func (r *Recording) FailedField(c Cursor, at int, class int32) []byte {
	c.At, c.Err = at, nil
	for _, f := range r.Meta.FieldsOf(class) {
		if r.skip(&c, &Step{Kind: f.Kind, Array: f.Array, N: 1, class: f.Class}, 0); c.Err != nil {
			return f.Name
		}
	}
	return nil
}
