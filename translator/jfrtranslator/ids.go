// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

// idTable finds positions by id. Ids usually are small and dense, and an array is several
// times as fast as a map. The others go into a map.
type idTable struct {
	dense  []int32 // by id: the position plus one
	sparse map[uint64]int32
	taken  int // how many entries of sparse are accounted for
}

// build makes the table of ids, which are in the order of their positions. Of equal ids
// the last one counts.
func (t *idTable) build(m *memory, ids []uint64) error {
	limit, size := uint64(4*len(ids)+64), 0
	for _, id := range ids {
		if id < limit {
			size = max(size, int(id)+1)
		}
	}
	clear(t.sparse)
	clear(t.dense)
	var err error
	if t.dense, err = room(m, t.dense[:0], size); err != nil {
		return err
	}
	t.dense = t.dense[:size]
	for position, id := range ids {
		if id < limit {
			t.dense[id] = int32(position) + 1
			continue
		}
		if t.sparse == nil {
			t.sparse = map[uint64]int32{}
		}
		if len(t.sparse) == t.taken {
			t.taken = max(64, 2*t.taken)
			if err := m.take(t.taken / 2 * sparseSize); err != nil {
				return err
			}
		}
		t.sparse[id] = int32(position)
	}
	return nil
}

// find returns the position of id, or -1.
func (t *idTable) find(id uint64) int32 {
	if id < uint64(len(t.dense)) {
		return t.dense[id] - 1
	}
	if position, found := t.sparse[id]; found {
		return position
	}
	return -1
}
