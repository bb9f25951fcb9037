// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColumnParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var c column
		want := new(big.Int)
		for range r.IntN(20) {
			v := r.Int64()
			if r.IntN(2) == 0 {
				v = -v - 1
			}
			want.Add(want, big.NewInt(v))
			c.Add(3, v) // at position 0
		}
		got := new(big.Int)
		if len(c.sums) > 0 {
			for _, part := range c.Parts(0, nil) {
				got.Add(got, big.NewInt(part))
			}
		}
		require.Equal(t, want.String(), got.String())
	}
}

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
			c.Add(row, v)
		}
		require.Equal(t, len(want), c.Len())
		got := map[int32]int64{}
		negative := false
		for i := range int32(c.Len()) {
			carry, rest := c.Sum(i)
			require.Zero(t, carry)
			require.Equal(t, rest == 0, c.IsZero(i))
			got[c.Row(i)] = rest
			negative = negative || rest < 0
		}
		require.Equal(t, want, got)
		require.Equal(t, negative, c.HasNegative())
		require.Less(t, c.Retained(), 100*2000, "a column of few rows far apart is small")
	}
}
