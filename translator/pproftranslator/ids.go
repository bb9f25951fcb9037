// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// ids finds the mappings, functions or locations of the payload by their ids. Ids usually
// are small and dense, and have an array. The others are in a hash table.
type ids struct {
	dense  []int32    // by id up to the number of entries: the number of the entry plus one
	sparse []sparseID // open addressing; empty until needed
}

// sparseID is a slot of the hash table. The id 0, which is reserved, marks a free one.
type sparseID struct {
	id     uint64
	number int32 // plus one
}

var errReservedID = errors.New("id 0 is reserved")

// sparseIDs is the number of slots for n ids: a power of two, at most three quarters full.
func sparseIDs(n int) int { return 1 << bits.Len(uint(n+n/3)) }

func (x *ids) isSparse(id uint64) bool { return id >= uint64(len(x.dense)) }

// add gives id to the entry with the given number plus one.
func (x *ids) add(id uint64, number int32) error {
	if id == 0 {
		return errReservedID
	}
	var at *int32
	if x.isSparse(id) {
		slot := x.slot(id)
		slot.id, at = id, &slot.number
	} else {
		at = &x.dense[id]
	}
	if *at != 0 {
		return fmt.Errorf("duplicate id %d", id)
	}
	*at = number
	return nil
}

// find returns the number of the entry with the given id plus one, or 0.
func (x *ids) find(id uint64) int32 {
	if id < uint64(len(x.dense)) {
		return x.dense[id]
	}
	return x.findSparse(id)
}

//go:noinline // so that find is inlined
func (x *ids) findSparse(id uint64) int32 {
	if len(x.sparse) == 0 {
		return 0
	}
	return x.slot(id).number
}

var idSecrets = [2]uint64{rand.Uint64(), rand.Uint64()}

// slot returns the slot of an id, or the free one where it belongs. The hash is keyed, so
// that no input can be made to collide.
func (x *ids) slot(id uint64) *sparseID {
	hi, lo := bits.Mul64(id^idSecrets[0], idSecrets[1])
	mask := uint64(len(x.sparse) - 1)
	for at := (hi ^ lo) & mask; ; at = (at + 1) & mask {
		if s := &x.sparse[at]; s.id == id || s.id == 0 {
			return s
		}
	}
}
