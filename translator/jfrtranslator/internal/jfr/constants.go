// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bytes"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// Constant returns a constant of the chunk, or nil. It is valid until the next chunk.
func (r *Recording) Constant(pool int32, id uint64) *Value { return r.pools[pool].Find(Key{Low: id}) }

// StringPool is the number of the pool of java.lang.String. Pool 0 is of no class.
const StringPool = 1

// CursorAt returns a cursor at a position of the chunk.
func (r *Recording) CursorAt(at int32) Cursor { return Cursor{Data: r.Data[:r.stop], At: int(at)} }

// SetPools makes n empty pools, of which classes have the numbers.
func (r *Recording) SetPools(n int) {
	r.pools = append(r.pools, make([]Table, max(n-len(r.pools), 0))...)
	for i := range r.pools {
		r.pools[i].Reset()
	}
}

// ReadCheckpoint finds the constants of a checkpoint. Of one that is there several times the last
// one counts.
func (r *Recording) ReadCheckpoint(c *Cursor) {
	c.SkipVarints(4) // start, duration, where the checkpoint before is, flags
	for n := c.count(); n > 0 && c.Err == nil && r.Err == nil; n-- {
		id, at := c.Varint(), c.At
		class := r.Meta.ClassOf(id)
		switch {
		case c.Err != nil:
		case class < 0:
			c.fail(fmt.Errorf("constants of type %d, which the metadata do not have", id))
		default:
			if r.readConstants(c, class); c.Err != nil {
				c.Err = fmt.Errorf("constants of type %s, byte %d: %w", r.Meta.Classes[class].Name, at, c.Err)
			}
		}
	}
	if c.Err != nil && r.Err == nil {
		r.Err = r.At("checkpoint", c.Err)
	}
}

func (r *Recording) readConstants(c *Cursor, class int32) {
	n := c.count()
	if n == 0 {
		return // also of a type that nests without end
	}
	pool, steps := r.Meta.Classes[class].Pool, r.layout(class, 0)
	for ; n > 0 && c.Err == nil && r.Err == nil; n-- {
		id, at := c.Varint(), c.At
		if r.skipSteps(c, steps, 0); pool > 0 {
			*r.pools[pool].Put(&r.Memory, Key{Low: id}) = Value{At: int32(at), End: int32(c.At)}
		}
	}
}

// Text returns the string at a position of the chunk, in UTF-8 or as bytes that are not, valid until the
// next call. If it is a constant, it returns that one. Of a string that is too long, it
// returns nothing, and r.Err says so.
func (r *Recording) Text(at int32) []byte {
	c := r.CursorAt(at)
	encoding, text := c.text()
	if encoding == textConstant {
		id := Cursor{Data: text}
		constant := r.Constant(StringPool, id.Varint())
		if constant == nil {
			return nil
		}
		c = r.CursorAt(constant.At)
		if encoding, text = c.text(); encoding == textConstant { // which would allow cycles
			return nil
		}
	}
	switch {
	case len(text) > 2*maxString: // also decoded, which would take memory that is not accounted for
	case encoding == textUTF16 || encoding == textLatin1:
		r.scratch = appendText(r.scratch[:0], encoding, text)
		text = r.scratch
	case bytes.IndexByte(text, surrogateLead) >= 0:
		r.scratch = appendJoined(r.scratch[:0], text)
		text = r.scratch
	}
	if len(text) > maxString {
		r.Err = &wire.LimitError{What: "bytes of a string", Limit: maxString}
		return nil
	}
	return text
}

// maxString is the longest string that Text returns, in bytes.
const maxString = 1 << 20
