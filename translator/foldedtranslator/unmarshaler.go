// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package foldedtranslator

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
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
	pd, _, err := u.UnmarshalWithin(buf, math.MaxInt64, nil)
	return pd, err
}

// UnmarshalWithin is UnmarshalProfiles that also returns about the memory that the result takes. The translation may
// take so many bytes of memory. Before it takes more, it calls more with how many it needs; an error of that ends the translation.
func (u *Unmarshaler) UnmarshalWithin(
	buf []byte, memory int64, more func(needed int64) (allowed int64, err error),
) (pd pprofile.Profiles, size int, err error) {
	pd = pprofile.NewProfiles()
	d := decoder{tables: dictionary.New(), lines: u.Lines, period: cmp.Or(u.Period, 1)}
	if IsUTF16(buf) {
		return pd, 0, ErrUTF16
	}
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(buf, byteOrderMark)) {
		number++
		if line = d.trim(line); len(line) == 0 {
			continue
		}
		if needed := int64(d.size() + mostOf(line)); needed > memory {
			if memory, err = more(needed); err != nil {
				return pprofile.NewProfiles(), 0, err
			}
		}
		if err := d.add(line); err != nil {
			return pprofile.NewProfiles(), 0, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if d.read > 0 && d.twoValues == d.read {
		return pprofile.NewProfiles(), 0, errTwoValues
	}
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(d.tables.String(cmp.Or(u.SampleType, "samples")))
	p.SampleType().SetUnitStrindex(d.tables.String(cmp.Or(u.Unit, "count")))
	p.Samples().EnsureCapacity(len(d.values))
	for i, value := range d.values {
		stack, _, _ := d.samples.Identity(int32(i))
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(stack)
		s.Values().Append(value)
	}
	d.tables.Write(pd.Dictionary())
	return pd, d.resultSize(), nil
}

const (
	lineSize   = 1 << 10 // the most that a line takes besides its frames, in bytes
	frameSize  = 512     // the most that a frame takes besides its text, in bytes
	sampleSize = 160     // of a sample in pdata, with its value, in bytes
)

// mostOf is the most memory that a line takes, in bytes. Its text is also in tables, which grow, and in the result.
func mostOf(line []byte) int {
	return lineSize + frameSize*(1+bytes.Count(line, []byte(";"))) + 8*len(line)
}

// decoder interns frames and sums values by stack.
type decoder struct {
	lineReader
	rounder

	tables    *dictionary.Tables
	locations []int32 // of the current stack, leaf first
	samples   dictionary.Samples
	values    []int64 // by number in samples
	lines     bool
	period    int64
	read      int // lines with a value
	twoValues int // those of them that may have two
}

// size is about the memory that the translation and its result take so far, in bytes.
func (d *decoder) size() int {
	return d.tables.Retained() + d.samples.Retained() + 8*cap(d.values) + 4*cap(d.locations) + d.resultSize()
}

func (d *decoder) resultSize() int {
	return d.tables.OutputSize() + d.tables.StringsOutputSize() + sampleSize*len(d.values)
}

// add adds the value of a line to its stack.
func (d *decoder) add(line []byte) error {
	stack, value := line, d.period
	if !d.lines {
		var err error
		if stack, value, err = d.readValue(line); err != nil {
			return err
		}
	}
	d.locations = d.locations[:0]
	for end := len(stack); end >= 0; { // the leaf is the last frame of the line, and the first of the stack
		start := bytes.LastIndexByte(stack[:end], ';') + 1
		frame, isRoot := stack[start:end], start == 0
		end = start - 1
		if len(frame) == 0 && (!isRoot || len(d.locations) > 0) {
			continue // as in a;;b
		}
		name := d.tables.String(unescape.Replace(string(frame)))
		function := d.tables.Function(dictionary.Function{Name: name})
		d.locations = append(d.locations, d.tables.Location(&dictionary.Location{Lines: []dictionary.Line{{Function: function}}}))
	}
	number := d.samples.Number(d.tables.Stack(d.locations), 0, 0)
	if int(number) == len(d.values) {
		d.values = append(d.values, 0)
	}
	sum, ok := add(d.values[number], value)
	if !ok {
		return errors.New("the sum of the values of this stack overflows int64")
	}
	d.values[number] = sum
	return d.tables.Err()
}

// readValue divides a line into a stack and its value.
func (d *decoder) readValue(line []byte) (stack []byte, value int64, err error) {
	stack, text := cutValue(line)
	if stack == nil {
		return nil, 0, fmt.Errorf("%q: must be a stack, a space and a value", shorten(line))
	}
	parsed, err := parseAmount(text)
	if err != nil {
		return nil, 0, valueError(text)
	}
	if d.read++; endsInNumber(stack) {
		d.twoValues++
	}
	scaled, ok := parsed.times(d.period)
	if ok {
		value, ok = d.round(scaled)
	}
	if !ok {
		return nil, 0, fmt.Errorf("value is %s: %d times as much overflows int64", text, d.period)
	}
	return stack, value, nil
}

// shorten bounds the quotes of errors.
func shorten(text []byte) []byte { return text[:min(len(text), 80)] }
