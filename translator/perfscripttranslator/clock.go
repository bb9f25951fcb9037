// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscripttranslator

import (
	"bytes"
	"errors"
	"io"
	"math"
)

// clock turns times of perf into times since the epoch.
type clock struct {
	behind uint64 // what to add, in nanoseconds
	ahead  uint64 // what to subtract
}

func (c *clock) unix(t uint64) uint64 {
	if t > math.MaxUint64-c.behind {
		return math.MaxUint64
	}
	return max(t+c.behind, c.ahead) - c.ahead
}

func newClock(perf, unix uint64) *clock {
	if unix >= perf {
		return &clock{behind: unix - perf}
	}
	return &clock{ahead: perf - unix}
}

// Bytes at the start of a text that may have the reference time, and at its end that may have the last sample.
const (
	headSize = 64 << 10
	tailSize = 1 << 20
)

// earliestEpoch is a time that no machine has run for, in nanoseconds: perf's clock is that of the day.
const earliestEpoch = 1_000_000_000 * 1e9

// findClock looks for the reference time, then at the last sample.
func (r *Reader) findClock() (*clock, error) {
	head, err := r.read(0, headSize)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(head) {
		if len(line) == 0 || line[0] != '#' {
			break
		}
		if unix, perf, ok := referenceTime(line); ok {
			return newClock(perf, unix), nil
		}
	}
	tail, err := r.read(max(0, r.size-tailSize), tailSize)
	if err != nil {
		return nil, err
	}
	last := uint64(0)
	for line := range bytes.Lines(tail) {
		if h, ok := parseHeader(bytes.TrimRight(line, "\r\n")); ok {
			last = h.time
		}
	}
	if last == 0 || last >= earliestEpoch || r.options.End == 0 {
		return &clock{}, nil
	}
	return newClock(last, r.options.End), nil
}

func (r *Reader) read(at, size int64) ([]byte, error) {
	buf := make([]byte, min(size, r.size-at))
	if _, err := r.from.ReadAt(buf, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return buf, nil
}

// referenceTime reads a line such as
//
//	# reference time: 2026-11-28 22:34:59.462754 = 1795905299.462754 (TOD) = 12617.620488022 (monotonic)
func referenceTime(line []byte) (unix, perf uint64, ok bool) {
	text, ok := bytes.CutPrefix(line, []byte("# reference time: "))
	parts := bytes.Split(text, []byte(" = "))
	if !ok || len(parts) != 3 {
		return 0, 0, false
	}
	unix, ok = parseTime(parts[1])
	perf, isTime := parseTime(parts[2])
	return unix, perf, ok && isTime
}

// parseTime reads the seconds with a fraction at the start of a text.
func parseTime(text []byte) (uint64, bool) {
	var h header
	word, _ := cutWord(text)
	_, _, ok := h.cutTime(append(append([]byte{' '}, word...), ':'))
	return h.time, ok
}
