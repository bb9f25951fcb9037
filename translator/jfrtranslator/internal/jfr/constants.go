// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"
	"fmt"
)

// Constant returns a constant of the chunk, or nil. It is valid until the chunk is read.
func (r *Recording) Constant(pool int32, id uint64) *Entry {
	return r.constants.Find(Key{id, uint64(pool)})
}

// CursorAt returns a cursor at a position of the chunk.
func (r *Recording) CursorAt(at int32) Cursor { return Cursor{Data: r.Data[:r.Stop], At: int(at)} }

// ReadCheckpoint finds the constants of a checkpoint. Of one that is there several times the last
// one counts.
func (r *Recording) ReadCheckpoint(c *Cursor) error {
	c.SkipVarints(4) // start, duration, where the checkpoint before is, flags
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
	pool, n := r.Meta.Classes[class].Pool, c.count()
	steps, err := r.layout(class, 0)
	if err != nil && n > 0 {
		return err
	}
	for ; n > 0 && c.Failed == ""; n-- {
		id := c.Varint()
		if pool > 0 {
			e, err := r.constants.Put(&r.Memory, Key{id, uint64(pool)})
			if err != nil {
				return err
			}
			e.At = int32(c.At)
		}
		r.skipSteps(c, steps, 0)
	}
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
		constant := r.Constant(strings, id.Varint())
		if constant == nil {
			return nil, nil
		}
		c = r.CursorAt(constant.At)
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
