// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"
	"fmt"
)

// Pool has the constants of a type in a chunk: by position their id and where they are.
type Pool struct {
	Class   *Class
	IDs     []uint64
	Offsets []uint32
	Index   IDTable
	// Values are of the user of this package, by position, and 0 at first.
	Values []int32
}

// poolString is the number of the pool of strings.
const poolString = 0

// AddPool makes the next pool, for a class which may be nil.
func (r *Recording) AddPool(c *Class) {
	if len(r.Pools) < cap(r.Pools) {
		r.Pools = r.Pools[:len(r.Pools)+1]
	} else {
		r.Pools = append(r.Pools, Pool{})
	}
	p := &r.Pools[len(r.Pools)-1]
	p.Class, p.IDs, p.Offsets, p.Values = c, p.IDs[:0], p.Offsets[:0], p.Values[:0]
	if c != nil {
		c.Pool = int32(len(r.Pools))
	}
}

// ResetPools starts with the pool of strings only.
func (r *Recording) ResetPools() {
	r.Pools = r.Pools[:0]
	r.AddPool(r.Meta.Find("java.lang.String"))
}

// ReadPools finds the constants of all checkpoints, and calls do for each other event. Of one that is there several times the
// last one counts. The order in which checkpoints name each other does not matter.
func (r *Recording) ReadPools(do func(typeID uint64, at int) error) error {
	if err := r.Events(func(typeID uint64, c *Cursor, at int) error {
		if typeID != TypeCheckpoint {
			return do(typeID, at)
		}
		if err := r.readCheckpoint(c); err != nil {
			return r.At(at, "checkpoint", err)
		}
		return nil
	}); err != nil {
		return err
	}
	for i := range r.Pools {
		p := &r.Pools[i]
		if err := p.Index.build(&r.Memory, p.IDs); err != nil {
			return err
		}
		var err error
		if p.Values, err = Zeroed(&r.Memory, p.Values, len(p.IDs)); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recording) readCheckpoint(c *Cursor) error {
	c.Varint() // start
	c.Varint() // duration
	c.Varint() // where the checkpoint before is
	c.Varint() // a mask of flags
	for n := c.Count(); n > 0 && c.Failed == ""; n-- {
		id := c.Varint()
		i := r.Meta.ByID.Find(id)
		if i < 0 {
			if c.Failed == "" {
				return fmt.Errorf("constants of type %d, which the metadata do not have", id)
			}
			break
		}
		of := &r.Meta.Classes[i]
		at := c.At
		if err := r.readConstants(c, of); err != nil {
			return err
		}
		if c.Failed != "" {
			return fmt.Errorf("constants of type %s, byte %d: %s", of.Name, at, c.Failed)
		}
	}
	if c.Failed != "" {
		return errors.New(c.Failed)
	}
	return nil
}

func (r *Recording) readConstants(c *Cursor, of *Class) (err error) {
	var p *Pool
	if of.Pool > 0 {
		p = &r.Pools[of.Pool-1]
	}
	for n := c.Count(); n > 0 && c.Failed == ""; n-- {
		id := c.Varint()
		if p != nil {
			if len(p.IDs) == cap(p.IDs) {
				if p.IDs, err = Room(&r.Memory, p.IDs, 1); err != nil {
					return err
				}
				if p.Offsets, err = Room(&r.Memory, p.Offsets, cap(p.IDs)-len(p.Offsets)); err != nil {
					return err
				}
			}
			p.IDs, p.Offsets = append(p.IDs, id), append(p.Offsets, uint32(c.At))
		}
		r.Meta.skipValue(c, of, 0)
	}
	return nil
}

// Constant returns a cursor at the constant of a pool with an id, and its position. The
// position is -1 if the pool does not have it.
func (r *Recording) Constant(number int, id uint64) (c Cursor, position int32) {
	p := &r.Pools[number]
	position = p.Index.Find(id)
	if position >= 0 {
		c = Cursor{Data: r.Data[:r.Stop], At: int(p.Offsets[position])}
	}
	return c, position
}

// Text returns the string at a cursor, valid until the next call.
func (r *Recording) Text(c *Cursor) ([]byte, error) {
	text, constant, isConstant := c.text(&r.scratch)
	if isConstant {
		inner, position := r.Constant(poolString, constant)
		if position < 0 {
			return nil, nil
		}
		text, _, _ = inner.text(&r.scratch) // not another constant, which would allow cycles
	}
	if len(text) > r.StringLength {
		return nil, &LimitError{What: "bytes of a string", Limit: int64(r.StringLength)}
	}
	return text, nil
}

// Symbol returns the only string of a constant, such as a symbol, or the string that the
// constant is, valid until the next call. It returns nil if the pool does not have it.
func (r *Recording) Symbol(number int, id uint64) ([]byte, error) {
	c, position := r.Constant(number, id)
	if position < 0 {
		return nil, nil
	}
	of := r.Pools[number].Class
	if of.Kind == KindText {
		return r.Text(&c)
	}
	for _, f := range r.Meta.FieldsOf(of) {
		if f.Kind == KindText && !f.Array {
			return r.Text(&c)
		}
		r.Meta.SkipField(&c, &f, 0)
	}
	return nil, nil
}
