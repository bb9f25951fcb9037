// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"
)

// ids finds the mappings, functions or locations of the payload by their ids. Ids usually
// are small and dense, and have an array. The others are in a map.
type ids struct {
	dense  []int32          // by id up to the number of entries: the number of the entry plus one
	sparse map[uint64]int32 // likewise; nil until needed
}

var errReservedID = errors.New("id 0 is reserved")

func (x *ids) isSparse(id uint64) bool { return id >= uint64(len(x.dense)) }

// add gives id to the entry with the given number plus one.
func (x *ids) add(id uint64, number int32) error {
	switch {
	case id == 0:
		return errReservedID
	case x.find(id) != 0:
		return fmt.Errorf("duplicate id %d", id)
	case x.isSparse(id):
		x.sparse[id] = number
	default:
		x.dense[id] = number
	}
	return nil
}

// find returns the number of the entry with the given id plus one, or 0.
func (x *ids) find(id uint64) int32 {
	if id < uint64(len(x.dense)) {
		return x.dense[id]
	}
	return x.sparse[id]
}
