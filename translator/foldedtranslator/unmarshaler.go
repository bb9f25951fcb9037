// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package foldedtranslator

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// Unmarshaler turns folded stacks into OTLP profiles: one Profile, which has a sample for
// each stack. Values of equal stacks are summed. The caller sets resource, time and
// profile_id. The zero value is ready for use; it is safe for concurrent use.
type Unmarshaler struct {
	// SampleType and Unit describe the values. Defaults: samples, count.
	SampleType, Unit string

	// Period, unless it is 0, is the sampling interval: it multiplies the values.
	Period int64

	// Lines means that a line is a stack without a value, which is 1.
	Lines bool
}

var _ pprofile.Unmarshaler = (*Unmarshaler)(nil)

// UnmarshalProfiles translates buf. The error names the line that is not a stack and a
// value.
func (u *Unmarshaler) UnmarshalProfiles(buf []byte) (pprofile.Profiles, error) {
	pd, _, err := u.UnmarshalSize(buf, math.MaxInt64)
	return pd, err
}

// ErrMemory means that a translation takes more memory than it may.
var ErrMemory = errors.New("folded stacks take more memory than they may")

// UnmarshalSize is UnmarshalProfiles that also returns about the memory that the result takes. The
// translation takes at most so many bytes of memory, or ends with ErrMemory.
func (u *Unmarshaler) UnmarshalSize(buf []byte, memory int64) (pd pprofile.Profiles, size int, err error) {
	pd = pprofile.NewProfiles()
	w := newWriter(pd)
	w.lines, w.period = u.Lines, cmp.Or(u.Period, 1)
	number := 0
	for line := range bytes.Lines(buf) {
		number++
		line = bytes.TrimRight(line, " \t\r\n")
		if len(line) == 0 {
			continue
		}
		if int64(w.size()+maxPerByte*len(line)) > memory {
			return pprofile.NewProfiles(), 0, ErrMemory
		}
		if err := w.line(line); err != nil {
			return pprofile.NewProfiles(), 0, fmt.Errorf("line %d: %w", number, err)
		}
	}
	w.write(pd, cmp.Or(u.SampleType, "samples"), cmp.Or(u.Unit, "count"))
	return pd, w.resultSize(), nil
}

const (
	maxPerByte = 256 // the most that a byte of a line takes, in bytes
	sampleSize = 160 // of a sample in pdata, with its value, in bytes
)

// size is about the memory that the translation and its result take so far, in bytes.
func (w *writer) size() int {
	return w.tables.Retained() + w.samples.Retained() + 8*cap(w.values) + 4*cap(w.locations) + w.resultSize()
}

func (w *writer) resultSize() int {
	return w.tables.OutputSize() + w.tables.StringsOutputSize() + sampleSize*len(w.values)
}

// writer interns frames and sums values by stack.
type writer struct {
	tables    *dictionary.Tables
	locations []int32 // of the current stack, leaf first
	samples   dictionary.Samples
	values    []int64 // by number in samples
	lines     bool
	period    int64
}

func newWriter(pd pprofile.Profiles) *writer {
	w := &writer{tables: dictionary.New(0)}
	w.tables.WriteTo(pd.Dictionary())
	return w
}

// split returns the stack of a line and its value.
func (w *writer) split(line []byte) (stack []byte, value int64, err error) {
	if w.lines {
		return line, w.period, nil
	}
	space := bytes.LastIndexAny(line, " \t")
	if space <= 0 {
		return nil, 0, fmt.Errorf("%q: must be a stack, a space and a value", shorten(line))
	}
	value, err = strconv.ParseInt(string(line[space+1:]), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("value is %q: must be a whole number", shorten(line[space+1:]))
	}
	if limit := math.MaxInt64 / w.period; value > limit || value < -limit {
		return nil, 0, fmt.Errorf("value is %d: %d times as much overflows int64", value, w.period)
	}
	return line[:space], value * w.period, nil
}

func (w *writer) line(line []byte) error {
	stack, value, err := w.split(line)
	if err != nil {
		return err
	}
	w.locations = w.locations[:0]
	for more := true; more; {
		var frame []byte
		// The leaf is the last frame of the line, and the first of the stack.
		i := bytes.LastIndexByte(stack, ';')
		frame, more = stack[i+1:], i >= 0
		stack = stack[:max(i, 0)]
		if len(frame) == 0 && (more || len(w.locations) > 0) {
			continue // an empty frame, as in a;;b
		}
		name := w.tables.String(unescape.Replace(string(frame)))
		function := w.tables.Function(dictionary.Function{Name: name})
		w.locations = append(w.locations, w.tables.Location(dictionary.Location{Lines: []dictionary.Line{{Function: function}}}))
	}
	row := w.samples.Number(w.tables.Stack(w.locations), 0, 0)
	if int(row) == len(w.values) {
		w.values = append(w.values, 0)
	}
	sum, ok := add(w.values[row], value)
	if !ok {
		return errors.New("the sum of the values of this stack overflows int64")
	}
	w.values[row] = sum
	return w.tables.Err()
}

func (w *writer) write(pd pprofile.Profiles, sampleType, unit string) {
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(w.tables.String(sampleType))
	p.SampleType().SetUnitStrindex(w.tables.String(unit))
	p.Samples().EnsureCapacity(len(w.values))
	for row, value := range w.values {
		stack, _, _ := w.samples.Identity(int32(row))
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(stack)
		s.Values().Append(value)
	}
	w.tables.WriteStrings()
	w.tables.Release()
}

// shorten bounds the quotes of errors.
func shorten(text []byte) []byte { return text[:min(len(text), 80)] }
