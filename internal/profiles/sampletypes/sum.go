// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// AddSaturated adds two sums. One beyond int64 becomes the largest or least int64.
func AddSaturated(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// Saturated reports whether a sum may be beyond int64.
func Saturated(sum int64) bool { return sum == math.MaxInt64 || sum == math.MinInt64 }

// ValueOf is the sum of the values of a sample or, without values, the number of its timestamps, of which each stands for 1.
func ValueOf(s pprofile.Sample) (value int64) {
	values := s.Values()
	if values.Len() == 0 {
		return int64(s.TimestampsUnixNano().Len())
	}
	for i := range values.Len() { // without the iterator, which takes twice as long
		value = AddSaturated(value, values.At(i))
	}
	return value
}
