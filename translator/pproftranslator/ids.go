// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"
)

// idTable leads from the ids of one kind of entry to their numbers. Ids usually are
// small and dense, and an array is several times as fast as a map. The others go into a
// map.
type idTable struct {
	expected, count int
	dense           []int32          // by id up to the number of entries: the number plus one
	sparse          map[uint64]int32 // nil until needed
}

// reset forgets all ids and expects so many. A map is not kept for the next payload.
func (t *idTable) reset(count int) {
	t.expected, t.count, t.sparse = count, 0, nil
	t.dense = zeroed(t.dense, count+1)
}

var errReservedID = errors.New("id 0 is reserved")

// add gives id the next number.
func (t *idTable) add(id uint64) error {
	if id == 0 {
		return errReservedID
	}
	if t.number(id) >= 0 {
		return fmt.Errorf("duplicate id %d", id)
	}
	t.count++
	if id < uint64(len(t.dense)) {
		t.dense[id] = int32(t.count)
		return nil
	}
	if t.sparse == nil {
		t.sparse = make(map[uint64]int32, t.expected-t.count+1)
	}
	t.sparse[id] = int32(t.count)
	return nil
}

// number returns the number of id, or -1.
func (t *idTable) number(id uint64) int32 {
	if id < uint64(len(t.dense)) {
		return t.dense[id] - 1
	}
	return t.sparse[id] - 1
}
