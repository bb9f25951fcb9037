// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// stackTable is a table whose keys are runs of location indices. Stacks are most
// of a profile, so that they are kept as they are: nothing to encode or decode.
type stackTable struct {
	numbers
	locations []int32  // all stacks, one after the other
	ends      []uint32 // where each stack ends in locations
}

func (t *stackTable) stack(i int32) []int32 {
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.locations[start:t.ends[i]]
}

// Secrets of hashStack, so that no input can be made to collide.
var stackSecret, lengthSecret = rand.Uint64() | 1, rand.Uint64() | 1

// hashStack folds two locations at a time by a 128-bit multiplication.
func hashStack(stack []int32) uint32 {
	h := lengthSecret ^ uint64(len(stack))
	for len(stack) >= 2 {
		hi, lo := bits.Mul64(h^(uint64(uint32(stack[0]))<<32|uint64(uint32(stack[1]))), stackSecret)
		h = hi ^ lo
		stack = stack[2:]
	}
	if len(stack) == 1 {
		hi, lo := bits.Mul64(h^uint64(uint32(stack[0])), stackSecret)
		h = hi ^ lo
	}
	hi, lo := bits.Mul64(h^lengthSecret, stackSecret)
	return uint32(hi ^ lo)
}

func (t *stackTable) intern(stack []int32, limit int) int32 {
	if len(t.locations)+len(stack) > maxArena {
		limit = t.len()
	}
	n, added := t.number(noPart, limit,
		func() uint32 { return hashStack(stack) },
		func(n int32) bool { return slices.Equal(t.stack(n), stack) })
	if added {
		t.locations = append(t.locations, stack...)
		t.ends = append(t.ends, uint32(len(t.locations)))
	}
	return n
}

func (t *stackTable) truncate(n int) {
	for i := t.len() - 1; i >= n; i-- {
		t.removeLast(noPart, func() uint32 { return hashStack(t.stack(int32(i))) })
		t.ends = t.ends[:i]
	}
	size := 0
	if n > 0 {
		size = int(t.ends[n-1])
	}
	t.locations = t.locations[:size]
}

func (t *stackTable) reset() {
	t.numbers.reset()
	t.locations, t.ends = t.locations[:0], t.ends[:0]
}

func (t *stackTable) retained() int {
	return 4*cap(t.locations) + 4*cap(t.ends) + t.numbers.retained()
}
