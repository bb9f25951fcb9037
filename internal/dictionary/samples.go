// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "math"

// Samples numbers the identities {stack, attribute set, link} of samples from 0
// in the order they come. Stack and link are indices into the tables, set is the
// number of an attribute set.
type Samples struct {
	identities table
	scratch    []byte
}

// Number returns the number of an identity, which is new if it is the Len before
// the call.
func (s *Samples) Number(stack, set, link int32) int32 {
	s.scratch = appendIndex(appendIndex(appendIndex(s.scratch[:0], stack), set), link)
	return s.identities.intern(s.scratch, math.MaxInt32)
}

// Find returns the number of an identity, or -1 if it has none.
func (s *Samples) Find(stack, set, link int32) int32 {
	if s.Len() == 0 {
		return -1
	}
	s.scratch = appendIndex(appendIndex(appendIndex(s.scratch[:0], stack), set), link)
	number, _ := s.identities.find(s.scratch, hashOf(s.scratch))
	return number
}

// Identity is the inverse of Number.
func (s *Samples) Identity(number int32) (stack, set, link int32) {
	r := reader{s.identities.key(number)}
	return r.index(), r.index(), r.index()
}

// Len is the number of identities.
func (s *Samples) Len() int { return s.identities.len() }

// Grow makes room for n more identities at once.
func (s *Samples) Grow(n int) { s.identities.grow(n, 5*n) }

// Reset forgets all identities and keeps the memory.
func (s *Samples) Reset() { s.identities.reset() }

// Retained is the memory that s holds on to, in bytes.
func (s *Samples) Retained() int { return s.identities.retained() }
