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
		gap, covered := uint64(random.IntN(3)), [64]bool{}
		spans := Spans{Gap: gap}
		for range random.IntN(60) {
			start := int(spans.Since) + random.IntN(len(covered)-int(spans.Since))
			end := min(len(covered), start+random.IntN(6))
			for i := start; i < end; i++ {
				covered[i] = true
			}
			spans.Add(uint64(start), uint64(end))
			if random.IntN(4) == 0 {
				spans.Length() // must not change the result
			}
			if random.IntN(10) == 0 {
				spans.Since += random.Uint64N(uint64(len(covered)) - spans.Since)
			}
		}
		length, since := uint64(0), gap+1
		for _, c := range covered {
			switch {
			case !c:
				since++
			case since <= gap:
				length += since + 1
				since = 0
			default:
				length++
				since = 0
			}
		}
		require.Equal(t, length, spans.Length())
		for i, span := range spans.Union() {
			require.Less(t, span.Start, span.End)
			require.True(t, i == 0 || span.Start > spans.spans[i-1].End+gap)
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
	spans := Spans{Gap: 10}
	spans.Add(math.MaxUint64-5, math.MaxUint64)
	spans.Add(5, 5)
	spans.Add(math.MaxUint64-20, math.MaxUint64-14)
	assert.EqualValues(t, 20, spans.Length())
}
