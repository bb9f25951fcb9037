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
	sums  []int64 // by position, with carry: the sum is sums[i] + carry[i] * 2^64
	carry map[int32]int64
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

// Add adds v to the sum of row.
func (c *column) Add(row int32, v int64) {
	i := c.position(row)
	old := c.sums[i]
	sum := old + v
	c.sums[i] = sum
	if v >= 0 && sum < old {
		c.carryOver(i, 1)
	} else if v < 0 && sum > old {
		c.carryOver(i, -1)
	}
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

func (c *column) carryOver(i int32, by int64) {
	if c.carry == nil {
		c.carry = map[int32]int64{}
	}
	if c.carry[i] += by; c.carry[i] == 0 {
		delete(c.carry, i)
	}
}

// IsZero reports whether the sum at position i is 0.
func (c *column) IsZero(i int32) bool {
	return c.sums[i] == 0 && (len(c.carry) == 0 || c.carry[i] == 0)
}

// Retained is the memory that c holds on to, in bytes: an estimate.
func (c *column) Retained() int {
	const mapEntrySize = 32
	return 4*cap(c.rows) + 8*cap(c.sums) + 4*cap(c.dense) + mapEntrySize*(len(c.carry)+len(c.sparse))
}

// AddSum adds the sum at position i of another column to the sum of row.
func (c *column) AddSum(row int32, from *column, i int32) {
	c.Add(row, from.sums[i])
	if carry := from.carry[i]; carry != 0 {
		c.carryOver(c.position(row), carry)
	}
}

// Sum returns the sum at position i, which is carry*2^64 + rest.
func (c *column) Sum(i int32) (carry, rest int64) {
	if len(c.carry) > 0 {
		carry = c.carry[i]
	}
	return carry, c.sums[i]
}

// Parts splits the sum at position i into values that int64 holds, in as few as
// there can be; the first is the largest.
func (c *column) Parts(i int32, dst []int64) []int64 {
	carry, rest := c.Sum(i)
	if carry == 0 {
		return append(dst, rest)
	}
	// The sum is carry*2^64 + rest: take whole MaxInt64 or MinInt64 out of it
	// until the rest fits.
	for carry != 0 {
		whole := int64(math.MaxInt64)
		if carry < 0 {
			whole = math.MinInt64
		}
		dst = append(dst, whole)
		left := rest - whole
		if whole > 0 && left > rest {
			carry-- // it wrapped below MinInt64
		} else if whole < 0 && left < rest {
			carry++
		}
		rest = left
	}
	if rest != 0 {
		dst = append(dst, rest)
	}
	return dst
}

// HasNegative reports whether a sum is below 0.
func (c *column) HasNegative() bool {
	for i, rest := range c.sums {
		if carry, _ := c.Sum(int32(i)); carry < 0 || carry == 0 && rest < 0 {
			return true
		}
	}
	return false
}
