// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes

import "math"

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
