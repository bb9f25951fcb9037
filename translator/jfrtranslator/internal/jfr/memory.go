// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"reflect"
	"slices"
)

// Memory accounts for the memory of a translation: its own as it grows, and the result.
type Memory struct {
	Reserve  func(bytes int64) error // may be nil
	Used     int                     // bytes taken for this recording, beyond Kept
	Kept     int                     // bytes kept from earlier recordings
	Tables   int                     // bytes of the tables of the dictionary
	Result   int                     // bytes of the result so far
	Refused  error                   // of Reserve
	reserved int
}

// Restart makes all bytes count for another reservation.
func (m *Memory) Restart(reserve func(bytes int64) error) {
	m.Reserve, m.Refused, m.reserved, m.Result = reserve, nil, 0, 0
}

// Take accounts for bytes that are taken next.
func (m *Memory) Take(bytes int) error {
	m.Used += bytes
	err := m.Update()
	if err != nil {
		m.Used -= bytes
	}
	return err
}

// Update reserves more if that is necessary.
func (m *Memory) Update() error {
	total := m.Used + m.Tables + m.Result
	if m.Reserve == nil || total <= m.reserved {
		return nil
	}
	const minStep = 64 << 10
	total += max(minStep, total/8)
	if m.Refused = m.Reserve(int64(total)); m.Refused == nil {
		m.reserved = total
	}
	return m.Refused
}

// Room returns s with capacity for n more elements. If it must grow, it at least doubles.
func Room[E any](m *Memory, s []E, n int) ([]E, error) {
	if cap(s)-len(s) >= n {
		return s, nil
	}
	size := int(reflect.TypeFor[E]().Size())
	n = max(n, len(s), 16)
	if err := m.Take(size * (len(s) + n)); err != nil {
		return s, err
	}
	m.Used -= size * cap(s)
	return slices.Grow(s, n), nil
}

// Append appends e to s.
func Append[E any](m *Memory, s []E, e E) ([]E, error) {
	s, err := Room(m, s, 1)
	if err != nil {
		return s, err
	}
	return append(s, e), nil
}

// Zeroed returns s with n more elements, which are zero.
func Zeroed[E any](m *Memory, s []E, n int) ([]E, error) {
	s, err := Room(m, s, n)
	if err != nil {
		return s, err
	}
	old := len(s)
	s = s[:old+n]
	clear(s[old:])
	return s, nil
}
