// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// Sum adds values of int64 in 128 bits. It does not overflow, so that their order does not matter.
type Sum struct{ carry, rest int64 } // carry * 2^64 + rest

// SumOf returns the sum of one value.
func SumOf(v int64) Sum { return Sum{rest: v} }

// AddValue adds a value.
func (s *Sum) AddValue(v int64) {
	sum := s.rest + v
	switch {
	case v > 0 && sum < s.rest:
		s.carry++
	case v < 0 && sum > s.rest:
		s.carry--
	}
	s.rest = sum
}

// Add adds another sum.
func (s *Sum) Add(other Sum) {
	s.AddValue(other.rest)
	s.carry += other.carry
}

// Int64 returns the nearest int64. It is saturated if the sum is above or below all of them.
func (s Sum) Int64() (nearest int64, saturated bool) {
	switch {
	case s.carry > 0:
		return math.MaxInt64, true
	case s.carry < 0:
		return math.MinInt64, true
	}
	return s.rest, false
}

const wrap = 1 << 64

// Float64 returns the sum, rounded.
func (s Sum) Float64() float64 { return float64(s.carry)*wrap + float64(s.rest) }

// Times returns about the sum times a factor from 0 to 1.
func (s Sum) Times(factor float64) Sum {
	product := s.Float64() * factor
	carry := math.Round(product / wrap)
	rest := product - carry*wrap
	if rest >= wrap/2 {
		carry, rest = carry+1, rest-wrap
	}
	return Sum{int64(carry), int64(rest)}
}

// MarshalJSON writes an integer.
func (s Sum) MarshalJSON() ([]byte, error) { return s.append(nil), nil }

func (s Sum) append(line []byte) []byte {
	if s.carry == 0 {
		return strconv.AppendInt(line, s.rest, 10)
	}
	n := new(big.Int).Lsh(big.NewInt(s.carry), 64)
	return n.Add(n, big.NewInt(s.rest)).Append(line, 10)
}

// UnmarshalJSON reads an integer.
func (s *Sum) UnmarshalJSON(text []byte) error {
	const longest = 40 // of 128 bits
	n, ok := new(big.Int).SetString(string(text[:min(len(text), longest)]), 10)
	if !ok || len(text) > longest {
		return fmt.Errorf("sum is %.50s: must be an integer of 128 bits", text)
	}
	s.rest = int64(new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
	carry := n.Rsh(n.Sub(n, big.NewInt(s.rest)), 64)
	if s.carry = carry.Int64(); !carry.IsInt64() {
		return fmt.Errorf("sum is %.50s: must be an integer of 128 bits", text)
	}
	return nil
}
