// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"errors"
	"fmt"
)

// pool has the constants of a type in a chunk: by position their id and where they are.
type pool struct {
	class   *class
	ids     []uint64
	offsets []uint32
	index   idTable
	// values are the results of translation by position, plus one; 0 if there is none yet.
	values []int32
}

// Pools that each chunk has. More follow for the types of attributes.
const (
	poolStack = iota
	poolMethod
	poolClass
	poolSymbol
	poolThread
	poolState
	poolFrameType
	poolString
	fixedPools
)

// poolTypes are the types of the constants.
var poolTypes = [fixedPools]string{
	poolStack: "jdk.types.StackTrace", poolMethod: "jdk.types.Method", poolClass: "java.lang.Class", poolSymbol: "jdk.types.Symbol",
	poolThread: "java.lang.Thread", poolState: "jdk.types.ThreadState", poolFrameType: "jdk.types.FrameType", poolString: "java.lang.String",
}

// addPool makes the next pool, for a class which may be nil.
func (d *decoder) addPool(c *class) {
	if len(d.pools) < cap(d.pools) {
		d.pools = d.pools[:len(d.pools)+1]
	} else {
		d.pools = append(d.pools, pool{})
	}
	p := &d.pools[len(d.pools)-1]
	p.class, p.ids, p.offsets, p.values = c, p.ids[:0], p.offsets[:0], p.values[:0]
	if c != nil {
		c.pool = int32(len(d.pools))
	}
}

// readPools finds the constants of all checkpoints. Of one that is there several times the
// last one counts. The order in which checkpoints name each other does not matter.
func (d *decoder) readPools() error {
	d.settingsAt = d.settingsAt[:0]
	if err := d.events(func(typeID uint64, c *cursor, at int) error {
		if typeID != typeCheckpoint {
			return d.noteSetting(typeID, at)
		}
		if err := d.readCheckpoint(c); err != nil {
			return d.at(at, "checkpoint", err)
		}
		return nil
	}); err != nil {
		return err
	}
	for i := range d.pools {
		p := &d.pools[i]
		if err := p.index.build(&d.memory, p.ids); err != nil {
			return err
		}
		var err error
		if p.values, err = zeroed(&d.memory, p.values, len(p.ids)); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) readCheckpoint(c *cursor) error {
	c.varint() // start
	c.varint() // duration
	c.varint() // where the checkpoint before is
	c.varint() // a mask of flags
	for n := c.count(); n > 0 && c.failed == ""; n-- {
		id := c.varint()
		i := d.meta.byID.find(id)
		if i < 0 {
			if c.failed == "" {
				return fmt.Errorf("constants of type %d, which the metadata do not have", id)
			}
			break
		}
		of := &d.meta.classes[i]
		at := c.at
		if err := d.readConstants(c, of); err != nil {
			return err
		}
		if c.failed != "" {
			return fmt.Errorf("constants of type %s, byte %d: %s", of.name, at, c.failed)
		}
	}
	if c.failed != "" {
		return errors.New(c.failed)
	}
	return nil
}

func (d *decoder) readConstants(c *cursor, of *class) (err error) {
	var p *pool
	if of.pool > 0 {
		p = &d.pools[of.pool-1]
	}
	for n := c.count(); n > 0 && c.failed == ""; n-- {
		id := c.varint()
		if p != nil {
			if len(p.ids) == cap(p.ids) {
				if p.ids, err = room(&d.memory, p.ids, 1); err != nil {
					return err
				}
				if p.offsets, err = room(&d.memory, p.offsets, cap(p.ids)-len(p.offsets)); err != nil {
					return err
				}
			}
			p.ids, p.offsets = append(p.ids, id), append(p.offsets, uint32(c.at))
		}
		d.meta.skipValue(c, of, 0)
	}
	return nil
}

// constant returns a cursor at the constant of a pool with an id, and its position. The
// position is -1 if the pool does not have it.
func (d *decoder) constant(number int, id uint64) (c cursor, position int32) {
	p := &d.pools[number]
	position = p.index.find(id)
	if position >= 0 {
		c = cursor{data: d.data[:d.stop], at: int(p.offsets[position])}
	}
	return c, position
}

// text returns the string at a cursor, valid until the next call.
func (d *decoder) text(c *cursor) ([]byte, error) {
	text, constant, isConstant := c.text(&d.scratch)
	if isConstant {
		inner, position := d.constant(poolString, constant)
		if position < 0 {
			return nil, nil
		}
		text, _, _ = inner.text(&d.scratch) // not another constant, which would allow cycles
	}
	if len(text) > d.limits.StringLength {
		return nil, &LimitError{What: "bytes of a string", Limit: int64(d.limits.StringLength)}
	}
	return text, nil
}

// symbol returns the only string of a constant, such as a symbol, or the string that the
// constant is, valid until the next call. It returns nil if the pool does not have it.
func (d *decoder) symbol(number int, id uint64) ([]byte, error) {
	c, position := d.constant(number, id)
	if position < 0 {
		return nil, nil
	}
	of := d.pools[number].class
	if of.kind == kindText {
		return d.text(&c)
	}
	for _, f := range d.meta.fieldsOf(of) {
		if f.kind == kindText && !f.array {
			return d.text(&c)
		}
		d.meta.skipField(&c, &f, 0)
	}
	return nil, nil
}
