// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"math/bits"
	"slices"
)

// Divide divides a value in proportion to weights, so that the parts add up to it: each part is rounded towards 0, and what
// is left goes to those with the largest remainders, the earlier of equal ones. Without a weight above 0, the first part is the value.
func Divide(value int64, weights []uint64) []int64 {
	parts := make([]int64, len(weights))
	var total uint64
	for _, w := range weights {
		total += w // of nanoseconds: they do not exceed 64 bits
	}
	if len(parts) == 0 {
		return parts
	}
	if total == 0 {
		parts[0] = value
		return parts
	}
	size := magnitude(value)
	remainders := make([]uint64, len(weights))
	left := size
	for i, w := range weights {
		hi, lo := bits.Mul64(size, w)
		quotient, remainder := bits.Div64(hi, lo, total)     // hi < total, since size is at most half of what 64 bits hold, and w <= total
		parts[i], remainders[i] = int64(quotient), remainder // #nosec G115 -- at most size
		left -= quotient
	}
	order := make([]int, len(weights))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case remainders[a] > remainders[b]:
			return -1
		case remainders[a] < remainders[b]:
			return 1
		}
		return 0
	})
	for _, i := range order[:left] {
		parts[i]++
	}
	if value < 0 {
		for i := range parts {
			parts[i] = -parts[i]
		}
	}
	return parts
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return uint64(-(v + 1)) + 1
	}
	return uint64(v)
}
