// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSumsOfMixedSignAreExactInAnyOrder compares sums with those of math/big.
func TestSumsOfMixedSignAreExactInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		values := make([]int64, 1+random.IntN(40))
		for i := range values {
			values[i] = []int64{random.Int64(), -random.Int64(), math.MaxInt64, math.MinInt64, 0, 1, -1}[random.IntN(7)]
		}
		want, all := new(big.Int), Sum{}
		for _, at := range random.Perm(len(values)) {
			want.Add(want, big.NewInt(values[at]))
		}
		for len(values) > 0 {
			n, part := 1+random.IntN(len(values)), Sum{}
			for _, v := range values[:n] {
				part.AddValue(v)
			}
			all.Add(part)
			values = values[n:]
		}
		text, err := all.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, want.String(), string(text))
		read := indexLine{rest: append(text, ',')}
		require.Equal(t, all, read.sum())
		require.False(t, read.failed)
		require.Equal(t, ",", string(read.rest))

		nearest, saturated := all.Int64()
		require.Equal(t, !want.IsInt64(), saturated)
		switch {
		case !saturated:
			require.Equal(t, want.Int64(), nearest)
		case want.Sign() > 0:
			require.EqualValues(t, math.MaxInt64, nearest)
		default:
			require.EqualValues(t, math.MinInt64, nearest)
		}
		float, _ := new(big.Float).SetInt(want).Float64()
		tolerance := 1 + math.Abs(float)*1e-9
		require.InDelta(t, float, all.Float64(), max(tolerance, wrap*1e-12))
		require.InDelta(t, float/4, all.Times(0.25).Float64(), max(tolerance, wrap*1e-12))
	}
	for _, malformed := range []string{"", "-", "99999999999999999999999999999999999999999", "9999999999999999999999999999999999999999"} {
		l := indexLine{rest: []byte(malformed + "]")}
		_ = l.sum()
		assert.True(t, l.failed, malformed)
	}
}

func TestIndexHasSumsBeyondInt64(t *testing.T) {
	b := NewIndexBuilder(NewIndexMemory(limit))
	t.Cleanup(b.Release)
	large := cpu(100, math.MaxInt64)
	large.Sum.AddValue(math.MaxInt64)
	b.Add(0, 100, []Summary{large})
	b.Add(100, 200, []Summary{cpu(100, math.MinInt64)})
	data, err := b.Encode(fileSize)
	require.NoError(t, err)
	x, err := ParseIndex(data, fileSize, limit)
	require.NoError(t, err)
	assert.Equal(t, SumOf(math.MaxInt64-1), x.Totals[0].Sum)
	records, err := x.Records()
	require.NoError(t, err)
	assert.Equal(t, large.Sum, records[0].Summaries[0].Sum)
}
