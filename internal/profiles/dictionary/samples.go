// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "slices"

// Samples numbers the identities {stack, attribute set, link} of samples from 0 in the
// order in which they come. Stack and link are indices into the tables, set is the number
// of an attribute set.
type Samples struct {
	stacks, sets, links []int32 // by number
	index               index
	next                int32 // the likely number of the next identity: Profiles have them in about the same order
}

// Number returns the number of an identity, which is new if it is the Len before
// the call.
func (s *Samples) Number(stack, set, link int32) int32 {
	n := s.next
	if int(n) >= len(s.stacks) || !s.has(n, stack, set, link) {
		n = s.find(stack, set, link)
	}
	s.next = n + 1
	return n
}

func (s *Samples) has(n, stack, set, link int32) bool {
	return s.stacks[n] == stack && s.sets[n] == set && s.links[n] == link
}

func (s *Samples) find(stack, set, link int32) int32 {
	hash := hashSample(stack, set, link)
	n, slot := s.index.Find(hash, func(n int32) bool { return s.has(n, stack, set, link) })
	if n < 0 {
		n = int32(len(s.stacks))
		s.stacks = append(s.stacks, stack) // one by one, without write barriers
		s.sets = append(s.sets, set)
		s.links = append(s.links, link)
		s.index.Insert(slot, hash, n)
	}
	return n
}

func hashSample(stack, set, link int32) uint32 {
	h := fold(0, uint64(uint32(stack))<<32|uint64(uint32(set)), uint64(uint32(link)))
	return uint32(fold(h, 0, 0))
}

// Identity returns the identity that Number has numbered.
func (s *Samples) Identity(number int32) (stack, set, link int32) {
	return s.stacks[number], s.sets[number], s.links[number]
}

// Len is the number of identities.
func (s *Samples) Len() int { return len(s.stacks) }

// Grow makes room for n more identities at once.
func (s *Samples) Grow(n int) {
	s.stacks, s.sets, s.links = slices.Grow(s.stacks, n), slices.Grow(s.sets, n), slices.Grow(s.links, n)
	s.index.Grow(n)
}

// Reset removes all identities and keeps the memory.
func (s *Samples) Reset() {
	s.stacks, s.sets, s.links = s.stacks[:0], s.sets[:0], s.links[:0]
	s.index.Reset()
	s.next = 0
}

// Retained is the memory that s holds on to, in bytes.
func (s *Samples) Retained() int {
	return 4*(cap(s.stacks)+cap(s.sets)+cap(s.links)) + s.index.Retained()
}
