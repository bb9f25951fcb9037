// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"unsafe"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// Memory bounds the memory of a translation before it is taken: that of slices, which Append and Grow enlarge, and
// what the caller of Count counts. Functions that take memory return no error. They set Err, which ends each loop.
type Memory struct {
	Err error // the *wire.LimitError of this limit or another, or an error of more

	limit   int64                                       // bytes; 0 is none
	more    func(needed int64) (limit int64, err error) // is called before more is taken than the limit; may be nil
	held    int                                         // bytes of slices
	kept    int                                         // bytes of these that do not count: they were there before
	counted int                                         // bytes that Count was called with
}

// Begin starts to count towards a limit in bytes. Memory that is held already counts only if that is asked for.
func (m *Memory) Begin(limit int64, more func(needed int64) (limit int64, err error), countHeld bool) {
	*m = Memory{more: more, limit: limit, held: m.held, kept: m.held}
	if countHeld {
		m.kept = 0
	}
}

// Fail sets m.Err to a wire.LimitError, if it is the first error.
func (m *Memory) Fail(what string, limit int64) {
	if m.Err == nil {
		m.Err = &wire.LimitError{What: what, Limit: limit}
	}
}

// Held returns the bytes that slices hold.
func (m *Memory) Held() int { return m.held }

// Take accounts for the bytes of a slice before it is made; for one that is released, bytes is negative. It reports
// whether they are within the limit.
func (m *Memory) Take(bytes int) bool {
	m.held += bytes
	if m.update(); m.Err != nil {
		m.held -= bytes
	}
	return m.Err == nil
}

// Count accounts for the bytes of all that is not in slices.
func (m *Memory) Count(bytes int) {
	m.counted = bytes
	m.update()
}

func (m *Memory) update() {
	total := int64(m.held - m.kept + m.counted)
	switch {
	case m.limit == 0 || total <= m.limit || m.Err != nil:
	case m.more == nil:
		m.Fail("bytes of memory", m.limit)
	default:
		if limit, err := m.more(total); err != nil {
			m.Err = err
		} else {
			m.limit = limit
		}
	}
}

// Grow returns s with room for n more elements, or s if m.Err says why there is none. It at least doubles s.
func Grow[E any](m *Memory, s []E, n int) []E {
	if cap(s)-len(s) >= n || m.Err != nil {
		return s
	}
	n = max(n, len(s), 16)
	size := int(unsafe.Sizeof(*new(E)))
	if !m.Take(size * (len(s) + n)) {
		return s
	}
	m.Take(-size * cap(s))
	return append(make([]E, 0, len(s)+n), s...)
}

// Append appends e to s. If there is no memory for that, m.Err is set, and e replaces the last element: the caller ends
// soon, and what s has no longer matters.
func Append[E any](m *Memory, s []E, e E) []E {
	if s = Grow(m, s, 1); len(s) == cap(s) && len(s) > 0 {
		s = s[:len(s)-1]
	}
	return append(s, e)
}
