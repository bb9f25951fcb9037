// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// Write writes p as a protobuf message, not compressed. Unlike p.WriteUncompressed,
// it keeps labels whose value is 0 without a unit or the empty string. In a message these
// look like labels without a value, which google/pprof drops. So their unit or string is
// a second empty string in the string table.
//
// It must not run concurrently for one p.
func Write(w io.Writer, p *profile.Profile) error {
	samples, isMarked := p.Sample, false
	p.Sample = slices.Clone(samples)
	for i, s := range samples {
		p.Sample[i] = marked(s)
		isMarked = isMarked || p.Sample[i] != s
	}
	var buf bytes.Buffer
	err := p.WriteUncompressed(&buf)
	p.Sample = samples
	if err == nil && isMarked {
		err = replaceMark(&buf)
	}
	if err == nil {
		_, err = w.Write(buf.Bytes())
	}
	if err != nil {
		return fmt.Errorf("writing a pprof: %w", err)
	}
	return nil
}

// emptyMark stands for the second empty string while google/pprof encodes the profile.
// No string of a profile is equal, as it is not UTF-8.
const emptyMark = "\xff"

// marked returns a copy of s in which empty texts, and the empty units of numbers that are 0, are emptyMark, or s if it
// has none.
func marked(s *profile.Sample) *profile.Sample {
	to := *s
	isMarked := false
	for key, texts := range s.Label {
		if !slices.Contains(texts, "") {
			continue
		}
		own := slices.Clone(texts)
		for i := range own {
			if own[i] == "" {
				own[i] = emptyMark
			}
		}
		to.Label, isMarked = with(to.Label, key, own), true
	}
	for key, numbers := range s.NumLabel {
		own := make([]string, len(numbers))
		copy(own, s.NumUnit[key])
		for i := range own {
			if own[i] == "" && numbers[i] == 0 {
				own[i] = emptyMark
			}
		}
		if slices.Contains(own, emptyMark) {
			to.NumUnit, isMarked = with(to.NumUnit, key, own), true
		}
	}
	if !isMarked {
		return s
	}
	return &to
}

// with returns a copy of m with another entry.
func with(m map[string][]string, key string, value []string) map[string][]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string][]string{}
	}
	m[key] = value
	return m
}

// replaceMark replaces emptyMark in the string table of a message by the empty string.
func replaceMark(message *bytes.Buffer) error {
	const stringTable = 6 // a field of the Profile message
	data := message.Bytes()
	c, start := wire.New(data), 0
	for ; c.Next(); start = c.At {
		if c.Field != stringTable {
			continue
		}
		if m := c.Message(); string(data[m.At:m.End]) == emptyMark {
			data[start+1] = 0 // its length
			copy(data[start+2:], data[c.At:])
			message.Truncate(len(data) - len(emptyMark))
			return nil
		}
	}
	return errors.Join(errors.New("the string table has no second empty string"), c.Err)
}
