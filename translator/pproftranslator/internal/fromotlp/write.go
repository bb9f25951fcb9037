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
	var buf bytes.Buffer
	marked, restore := markEmpty(p)
	err := p.WriteUncompressed(&buf)
	restore()
	data := buf.Bytes()
	if err == nil && marked {
		data, err = emptyMark(data)
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		return fmt.Errorf("writing a pprof: %w", err)
	}
	return nil
}

// stringTable is a field of the Profile message.
const stringTable = 6

// emptyString stands for the second empty string while google/pprof encodes the profile.
// No string of a profile is equal, as it is not UTF-8.
const emptyString = "\xff"

// markEmpty replaces the texts, and the units of numbers that are 0, by emptyString if
// they are empty. It returns whether there is one. restore takes them back.
func markEmpty(p *profile.Profile) (marked bool, restore func()) {
	type labels struct{ texts, units map[string][]string }
	original := map[*profile.Sample]labels{}
	for _, s := range p.Sample {
		texts, units := markedTexts(s), markedUnits(s)
		if len(texts) == 0 && len(units) == 0 {
			continue
		}
		original[s] = labels{s.Label, s.NumUnit}
		s.Label, s.NumUnit = replaced(s.Label, texts), replaced(s.NumUnit, units)
	}
	return len(original) > 0, func() {
		for s, l := range original {
			s.Label, s.NumUnit = l.texts, l.units
		}
	}
}

// markedTexts returns the texts of each key that has an empty one.
func markedTexts(s *profile.Sample) (marked map[string][]string) {
	for key, texts := range s.Label {
		if !slices.Contains(texts, "") {
			continue
		}
		own := slices.Clone(texts)
		for i := range own {
			if own[i] == "" {
				own[i] = emptyString
			}
		}
		marked = replaced(marked, map[string][]string{key: own})
	}
	return marked
}

// markedUnits returns the units of each key that has a number 0 without one.
func markedUnits(s *profile.Sample) (marked map[string][]string) {
	for key, numbers := range s.NumLabel {
		if !slices.Contains(numbers, 0) {
			continue
		}
		own := make([]string, len(numbers))
		copy(own, s.NumUnit[key])
		for i := range own {
			if own[i] == "" && numbers[i] == 0 {
				own[i] = emptyString
			}
		}
		if slices.Contains(own, emptyString) {
			marked = replaced(marked, map[string][]string{key: own})
		}
	}
	return marked
}

// replaced returns a copy of m with the entries of by.
func replaced(m, by map[string][]string) map[string][]string {
	own := make(map[string][]string, len(m)+len(by))
	maps.Copy(own, m)
	maps.Copy(own, by)
	return own
}

// emptyMark replaces emptyString in the string table of a message.
func emptyMark(data []byte) ([]byte, error) {
	c, start := wire.New(data), 0
	for ; c.Next(); start = c.At {
		if c.Field != stringTable {
			continue
		}
		if m := c.Message(); string(data[m.At:m.End]) == emptyString {
			return slices.Replace(data, start, c.At, stringTable<<3|wire.BytesType, 0), nil
		}
	}
	return nil, errors.Join(errors.New("the string table has no second empty string"), c.Err)
}
