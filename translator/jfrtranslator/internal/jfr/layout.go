// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"fmt"
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

// Compile returns the steps that read a value of a class. slot returns the slot of a field.
func (r *Recording) Compile(class int32, slot func(f *Field) Slot) ([]Step, error) {
	return r.compile(class, slot, 0)
}

func (r *Recording) compile(class int32, slot func(f *Field) Slot, depth int) (steps []Step, err error) {
	m := &r.Meta
	name, size := m.Classes[class].Name, 0
	if depth > maxValueDepth {
		return nil, &LimitError{What: fmt.Sprintf("levels of values in values of type %s", name), Limit: maxValueDepth}
	}
	fields := m.FieldsOf(class)
	if len(fields) == 0 && m.kindOf(class) != KindClass {
		fields = []Field{{Kind: m.kindOf(class)}}
	}
	for i := range fields {
		f := &fields[i]
		all := []Step{{Kind: f.Kind, Array: f.Array, Slot: slot(f), N: 1, class: f.Class}}
		if f.Kind == KindClass && !f.Array {
			if all, err = r.layout(f.Class, depth+1); err != nil {
				return nil, err
			}
		}
		for _, s := range all {
			if steps, err = Room(&r.Memory, steps, 1); err != nil {
				return nil, err
			}
			steps = AppendStep(steps, s)
			if size += int(s.N); size > maxSteps {
				return nil, &LimitError{What: fmt.Sprintf("values in a value of type %s", name), Limit: maxSteps}
			}
		}
	}
	return steps, nil
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
func (r *Recording) layout(class int32, depth int) ([]Step, error) {
	c := &r.Meta.Classes[class]
	if c.layout == nil {
		steps, err := r.compile(class, func(*Field) Slot { return SlotNone }, depth)
		if err != nil {
			return nil, err
		}
		c.layout = append([]Step{}, steps...) // not nil
	}
	return c.layout, nil
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
			c.skipVarints(int(s.N))
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

// AppendRest appends all that c has not read, which it then has.
func (c *Cursor) AppendRest(dst []byte) []byte {
	rest := c.Data[c.At:]
	c.At = len(c.Data)
	return append(dst, rest...)
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
		c.skipVarints(n)
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
	steps, err := r.layout(class, 0)
	switch {
	case err != nil:
		c.fail(err)
	case depth > maxElementDepth:
		c.fail(errTooDeep)
	case len(steps) == 0: // whose values take no bytes
	case len(steps) == 1 && steps[0].Kind == KindVarint && !steps[0].Array:
		c.skipVarints(n * int(steps[0].N))
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
