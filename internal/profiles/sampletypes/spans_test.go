// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpansAreTheUnionOfTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		covered, spans := [64]bool{}, Spans{}
		for range random.IntN(60) {
			start := random.IntN(len(covered))
			end := min(len(covered), start+random.IntN(6))
			for i := start; i < end; i++ {
				covered[i] = true
			}
			spans.Add(uint64(start), uint64(end))
			if random.IntN(4) == 0 {
				spans.Length() // must not change the result
			}
		}
		length := uint64(0)
		for _, c := range covered {
			if c {
				length++
			}
		}
		require.Equal(t, length, spans.Length())
		for i, span := range spans.Union() {
			require.Less(t, span.Start, span.End)
			require.True(t, i == 0 || span.Start > spans.spans[i-1].End)
		}
	}
}

func TestSpansOfManyProfilesStaySmall(t *testing.T) {
	var spans Spans
	for i := range uint64(1 << 20) {
		spans.Add(1<<20-i, 1<<20-i+2) // backwards
	}
	assert.Less(t, spans.Retained(), 1<<10)
	assert.EqualValues(t, 1<<20+1, spans.Length())
}

func TestSpansAtTheEndOfTime(t *testing.T) {
	var spans Spans
	spans.Add(math.MaxUint64-5, math.MaxUint64)
	spans.Add(5, 5)
	spans.Add(math.MaxUint64-20, math.MaxUint64-14)
	assert.EqualValues(t, 11, spans.Length())
}
