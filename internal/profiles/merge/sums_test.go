// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A column agrees with a map, whether rows are dense or far apart.
func TestColumnAgreesWithMap(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		var c column
		want := map[int32]int64{}
		spread := int32(1) << (seed % 16)
		for range 2000 {
			row, v := r.Int32N(300)*spread, r.Int64N(1000)-500
			want[row] += v
			c.Add(row, v, false)
		}
		require.Equal(t, len(want), c.Len())
		got := map[int32]int64{}
		negative := false
		for i := range int32(c.Len()) {
			got[c.Row(i)] = c.Sum(i)
			negative = negative || c.Sum(i) < 0
		}
		require.Equal(t, want, got)
		require.Equal(t, negative, c.HasNegative())
		require.Less(t, c.Retained(), 100*2000, "a column of few rows far apart is small")
	}
}
