// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bytes"
	"cmp"
	"fmt"
)

// pool has the constants of a class. Ids usually are dense beyond the first one, except for its last bits, and close
// ones are used together: an array takes 0.9 of the time of a hash.
type pool struct {
	count  int
	base   uint64
	dense  []Value // by id, from base on
	sparse Table   // the others
}

const (
	window  = 1 << 20 // the last bits of the ids in pool.dense
	spacing = 8       // how many ids each constant in it may take
)

func (p *pool) find(id uint64) *Value {
	if i := id - p.base; i < uint64(len(p.dense)) && p.dense[i].At != 0 {
		return &p.dense[i]
	}
	return p.sparse.Find(Key{Low: id})
}

// put is Table.Put.
func (p *pool) put(m *Memory, id uint64) *Value {
	if p.count++; p.count == 1 {
		p.base = id &^ (window - 1)
	}
	i, limit := id-p.base, min(spacing*p.count+minEntries, window)
	if i >= uint64(limit) {
		return p.sparse.Put(m, Key{Low: id})
	}
	if old := len(p.dense); int(i) >= old {
		size := max(int(i)+1, min(2*old, limit))
		if p.dense = Grow(m, p.dense, size-old); cap(p.dense) < size {
			return new(Value)
		}
		p.dense = p.dense[:size]
		clear(p.dense[old:])
	}
	return &p.dense[i]
}

func (p *pool) reset() {
	p.count, p.dense = 0, p.dense[:0]
	p.sparse.Reset()
}

// Constant returns a constant of the chunk, or nil. It is valid until the next chunk.
func (r *Recording) Constant(pool int32, id uint64) *Value { return r.pools[pool].find(id) }

// Constants returns how many constants of a pool the chunk has.
func (r *Recording) Constants(pool int32) int { return r.pools[pool].count }

// SetPools makes room for n pools, of which classes have the numbers.
func (r *Recording) SetPools(n int) {
	r.pools = append(r.pools, make([]pool, max(n-len(r.pools), 0))...)
}

// CursorAt returns a cursor at a position of the chunk.
func (r *Recording) CursorAt(at int32) Cursor { return Cursor{Data: r.Data[:r.Stop], At: int(at)} }

// ReadCheckpoint finds the constants of a checkpoint. Of one that is there several times the last
// one counts.
func (r *Recording) ReadCheckpoint(c *Cursor) error {
	c.SkipVarints(4) // start, duration, where the checkpoint before is, flags
	for n := c.count(); n > 0 && c.Err == nil && r.Err == nil; n-- {
		id := c.Varint()
		if c.Err != nil {
			break
		}
		class := r.Meta.ClassOf(id)
		if class < 0 {
			return fmt.Errorf("constants of type %d, which the metadata do not have", id)
		}
		at := c.At
		if r.readConstants(c, class); c.Err != nil {
			return fmt.Errorf("constants of type %s, byte %d: %w", r.Meta.Classes[class].Name, at, c.Err)
		}
	}
	return cmp.Or(c.Err, r.Err)
}

func (r *Recording) readConstants(c *Cursor, class int32) {
	n := c.count()
	if n == 0 {
		return // also of a type that nests without end
	}
	pool, steps := &r.pools[r.Meta.Classes[class].Pool], r.layout(class, 0)
	for ; n > 0 && c.Err == nil && r.Err == nil; n-- {
		id, at := c.Varint(), c.At
		if r.skipSteps(c, steps, 0); pool != &r.pools[0] {
			*pool.put(&r.Memory, id) = Value{int32(at), int32(at - c.At)}
		}
	}
}

// StringPool is the number of the pool of java.lang.String.
const StringPool = 1

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
		r.Err = &LimitError{What: "bytes of a string", Limit: maxString}
		return nil
	}
	return text
}

// maxString is the longest string that Text returns, in bytes.
const maxString = 1 << 20
