// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"
	"fmt"
)

// constants are those of the chunk that are kept: where each is, and what the user of this
// package makes of it, by its number.
type constants struct {
	pools  []ids
	Values []Value
}

// Value is a constant.
type Value struct {
	at int32
	// Of is of the user of this package, and 0 at first.
	Of int32
}

// ResetConstants removes those of the chunk before.
func (r *Recording) ResetConstants() {
	for i := range r.pools {
		r.pools[i].reset()
	}
	r.Values = r.Values[:0]
}

// Constant returns the number of a constant, or -1.
func (r *Recording) Constant(pool int32, id uint64) int32 {
	if int(pool) >= len(r.pools) {
		return -1
	}
	return r.pools[pool].find(id)
}

// CursorAt returns a cursor at a constant.
func (r *Recording) CursorAt(constant int32) Cursor {
	return Cursor{Data: r.Data[:r.Stop], At: int(r.Values[constant].at)}
}

// ReadCheckpoint finds the constants of a checkpoint. Of one that is there several times the last
// one counts.
func (r *Recording) ReadCheckpoint(c *Cursor) error {
	c.skipVarints(4) // start, duration, where the checkpoint before is, flags
	for n := c.count(); n > 0 && c.Failed == ""; n-- {
		id := c.Varint()
		if c.Failed != "" {
			break
		}
		class := r.Meta.ClassOf(id)
		if class < 0 {
			return fmt.Errorf("constants of type %d, which the metadata do not have", id)
		}
		at := c.At
		if err := r.readConstants(c, class); err != nil {
			return err
		}
		if c.Failed != "" {
			return fmt.Errorf("constants of type %s, byte %d: %s", r.Meta.Classes[class].Name, at, c.Failed)
		}
	}
	if c.Failed != "" {
		return errors.New(c.Failed)
	}
	return nil
}

func (r *Recording) readConstants(c *Cursor, class int32) error {
	pool := r.Meta.Classes[class].Pool
	for int(pool) >= len(r.pools) {
		r.pools = append(r.pools, ids{})
	}
	n := c.count()
	steps, err := r.layout(class, 0)
	if err != nil && n > 0 {
		return err
	}
	for ; n > 0 && c.Failed == ""; n-- {
		id := c.Varint()
		if pool > 0 {
			if err := r.addConstant(&r.pools[pool], id, int32(c.At)); err != nil {
				return err
			}
		}
		r.skipSteps(c, steps, 0)
	}
	return nil
}

// addConstant adds a constant, or moves it if it is there.
func (r *Recording) addConstant(pool *ids, id uint64, at int32) (err error) {
	number := int32(len(r.Values))
	if id < uint64(len(pool.dense)) && pool.dense[id] == 0 {
		pool.dense[id] = number + 1
	} else if number, err = pool.put(&r.Memory, id, number); err != nil {
		return err
	}
	if int(number) == len(r.Values) {
		if number == int32(cap(r.Values)) {
			if r.Values, err = Room(&r.Memory, r.Values, 1); err != nil {
				return err
			}
		}
		r.Values = append(r.Values, Value{})
	}
	r.Values[number].at = at
	return nil
}

// Text returns the string at a position of the chunk, in UTF-8 or as bytes that are not, valid until the
// next call. If it is a constant of the pool strings, it returns that one.
func (r *Recording) Text(at int, strings int32) ([]byte, error) {
	c := Cursor{Data: r.Data[:r.Stop], At: at}
	if at+1 < len(c.Data) && c.Data[at] == textUTF8 { // most are short
		if n := int(c.Data[at+1]); n < 0x80 && at+2+n <= len(c.Data) {
			return c.Data[at+2 : at+2+n], nil
		}
	}
	encoding, text := c.text()
	if encoding == textConstant {
		id := Cursor{Data: text}
		number := r.Constant(strings, id.Varint())
		if number < 0 {
			return nil, nil
		}
		c = r.CursorAt(number)
		if encoding, text = c.text(); encoding == textConstant { // which would allow cycles
			return nil, nil
		}
	}
	if encoding == textUTF16 || encoding == textLatin1 {
		r.scratch = appendText(r.scratch[:0], encoding, text)
		text = r.scratch
	}
	if len(text) > MaxString {
		return nil, &LimitError{What: "bytes of a string", Limit: MaxString}
	}
	return text, nil
}

// MaxString is the longest string that Text returns, in bytes.
const MaxString = 1 << 20
