// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPartsAddUpAndAreProportional(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		weights := make([]uint64, 1+r.IntN(6))
		total := new(big.Int)
		for i := range weights {
			weights[i] = r.Uint64N(1 << r.IntN(58))
			total.Add(total, new(big.Int).SetUint64(weights[i]))
		}
		value := int64(r.Uint64()) >> r.IntN(64)
		parts := Divide(value, weights)
		sum := new(big.Int)
		for i, part := range parts {
			sum.Add(sum, big.NewInt(part))
			if total.Sign() == 0 {
				continue
			}
			exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(value), new(big.Int).SetUint64(weights[i])), total)
			off := new(big.Rat).Sub(exact, new(big.Rat).SetInt64(part))
			require.Negative(t, off.Abs(off).Cmp(big.NewRat(1, 1)), "%d by %v: %v", value, weights, parts)
		}
		require.Equal(t, big.NewInt(value).String(), sum.String(), "%v: %v", weights, parts)
	}
}

func TestDivide(t *testing.T) {
	assert.Equal(t, []int64{4, 3, 3}, Divide(10, []uint64{1, 1, 1}))
	assert.Equal(t, []int64{-4, -3, -3}, Divide(-10, []uint64{1, 1, 1}))
	assert.Equal(t, []int64{0, 10}, Divide(10, []uint64{0, 5}))
	assert.Equal(t, []int64{10, 0}, Divide(10, []uint64{0, 0}))
	assert.Equal(t, []int64{math.MinInt64}, Divide(math.MinInt64, []uint64{3}))
	assert.Equal(t, []int64{math.MaxInt64, 0}, Divide(math.MaxInt64, []uint64{7, 0}))
	assert.Empty(t, Divide(10, nil))
}
