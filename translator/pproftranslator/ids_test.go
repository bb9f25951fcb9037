// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Ids are found however large they are, and no other.
func TestIDsFindEveryEntry_R4(t *testing.T) {
	r := profiletest.NewRand(1)
	for n := range 200 {
		x := ids{dense: make([]int32, n+1), sparse: map[uint64]int32{}}
		numbers := map[uint64]int32{}
		for len(numbers) < n {
			id := 1 + r.Uint64()>>r.IntN(64)
			if numbers[id] == 0 {
				numbers[id] = int32(len(numbers) + 1)
				require.NoError(t, x.add(id, numbers[id]))
			}
			require.ErrorContains(t, x.add(id, 7), "duplicate id")
		}
		for id, number := range numbers {
			require.Equal(t, number, x.find(id))
			require.Equal(t, numbers[id+1], x.find(id+1))
		}
		require.ErrorIs(t, x.add(0, 1), errReservedID)
		require.Zero(t, x.find(0))
	}
}
