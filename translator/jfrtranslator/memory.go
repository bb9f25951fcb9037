// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"reflect"
	"slices"
)

// memory accounts for what a translation takes: the decoder as it grows, and the result.
type memory struct {
	reserve  func(bytes int64) error // may be nil
	used     int                     // bytes that the decoder has taken, beyond kept
	kept     int                     // bytes that it has kept from earlier recordings
	tables   int                     // bytes of the tables of the dictionary
	result   int                     // bytes of the result so far
	reserved int
}

// minStep is the least by which a reservation grows, in bytes.
const minStep = 64 << 10

// take accounts for bytes that the decoder takes next.
func (m *memory) take(bytes int) error {
	m.used += bytes
	return m.update()
}

// update reserves more if that is necessary.
func (m *memory) update() error {
	total := m.used + m.tables + m.result
	if m.reserve == nil || total <= m.reserved {
		return nil
	}
	total += max(minStep, total/8)
	if err := m.reserve(int64(total)); err != nil {
		return err
	}
	m.reserved = total
	return nil
}

// room returns s with capacity for n more elements. If it must grow, it at least doubles.
func room[E any](m *memory, s []E, n int) ([]E, error) {
	if cap(s)-len(s) >= n {
		return s, nil
	}
	size := int(reflect.TypeFor[E]().Size())
	n = max(n, len(s), 16)
	if err := m.take(size * (len(s) + n)); err != nil {
		return s, err
	}
	m.used -= size * cap(s)
	return slices.Grow(s, n), nil
}

// zeroed returns n zero elements, in the memory of s if it is enough.
func zeroed[E any](m *memory, s []E, n int) ([]E, error) {
	s, err := room(m, s[:0], n)
	if err != nil {
		return s, err
	}
	s = s[:n]
	clear(s)
	return s, nil
}
