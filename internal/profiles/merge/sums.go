// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"
	"slices"
)

// column has a sum for each row that was added to, at positions in the order of the first additions. The
// zero value has none.
type column struct {
	sums []int64 // by position
	// rows has the row of each position. It is nil while these are equal, as in the Profile that first
	// numbered the rows; then dense and sparse are, too.
	rows []int32
	// The position plus one by row: dense for rows without large gaps, so that a column
	// of few rows far apart stays small.
	dense  []int32
	sparse map[int32]int32
}

// Grow makes room for n sums in a column that has none.
func (c *column) Grow(n int) { c.sums = slices.Grow(c.sums, n) }

// Len is the number of positions.
func (c *column) Len() int { return len(c.sums) }

// Row returns the row of position i.
func (c *column) Row(i int32) int32 {
	if c.rows == nil {
		return i
	}
	return c.rows[i]
}

// Add adds v to the sum of row, or subtracts it. If the result is beyond int64, the sum becomes the largest or smallest
// int64, and Add returns false.
func (c *column) Add(row int32, v int64, subtract bool) (ok bool) {
	sum := &c.sums[c.position(row)]
	old := *sum
	if subtract {
		*sum = old - v
		ok = (v >= 0) == (*sum <= old)
	} else {
		*sum = old + v
		ok = (v >= 0) == (*sum >= old)
	}
	if !ok && old < 0 {
		*sum = math.MinInt64
	} else if !ok {
		*sum = math.MaxInt64
	}
	return ok
}

// position is where row is, which is added if it is new.
func (c *column) position(row int32) int32 {
	if c.rows == nil {
		switch n := len(c.sums); {
		case int(row) < n:
			return row
		case int(row) == n:
			c.sums = append(c.sums, 0)
			return row
		default:
			c.rows, c.dense = make([]int32, n, cap(c.sums)+1), make([]int32, n, cap(c.sums)+1)
			for i := range c.rows {
				c.rows[i], c.dense[i] = int32(i), int32(i+1)
			}
		}
	}
	if int(row) < len(c.dense) && c.dense[row] != 0 {
		return c.dense[row] - 1
	}
	if i, ok := c.sparse[row]; ok {
		return i
	}
	i := int32(len(c.rows))
	c.rows, c.sums = append(c.rows, row), append(c.sums, 0)
	switch {
	case int(row) < len(c.dense):
		c.dense[row] = i + 1
	case int(row) < 4*len(c.rows)+64:
		c.dense = append(c.dense, make([]int32, int(row)+1-len(c.dense))...)
		c.dense[row] = i + 1
	default:
		if c.sparse == nil {
			c.sparse = map[int32]int32{}
		}
		c.sparse[row] = i
	}
	return i
}

// Sum returns the sum at position i.
func (c *column) Sum(i int32) int64 { return c.sums[i] }

// Retained is the memory that c holds on to, in bytes: an estimate.
func (c *column) Retained() int {
	const mapEntrySize = 32
	return 4*cap(c.rows) + 8*cap(c.sums) + 4*cap(c.dense) + mapEntrySize*len(c.sparse)
}

// HasNegative reports whether a sum is below 0.
func (c *column) HasNegative() bool {
	return slices.ContainsFunc(c.sums, func(sum int64) bool { return sum < 0 })
}
