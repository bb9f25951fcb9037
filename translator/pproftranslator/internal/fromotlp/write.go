// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// Write writes p as a protobuf message, not compressed. Unlike p.WriteUncompressed,
// it keeps labels whose value is 0 without a unit or the empty string. In a message these
// look like labels without a value, which google/pprof drops. So their unit or string is
// a second empty string in the string table.
//
// It must not run concurrently for one p.
func Write(w io.Writer, p *profile.Profile) error {
	samples := p.Sample
	p.Sample = make([]*profile.Sample, len(samples))
	for i, s := range samples {
		to := *s
		for key, texts := range s.Label {
			to.Label = mark(to.Label, key, slices.Clone(texts), nil)
		}
		for key, numbers := range s.NumLabel {
			units := make([]string, len(numbers))
			copy(units, s.NumUnit[key])
			to.NumUnit = mark(to.NumUnit, key, units, numbers)
		}
		p.Sample[i] = &to
	}
	var buf bytes.Buffer
	err := p.WriteUncompressed(&buf)
	p.Sample = samples
	if err == nil {
		_, err = w.Write(withoutMark(buf.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("writing a pprof: %w", err)
	}
	return nil
}

// emptyMark stands for the second empty string while google/pprof encodes the profile.
// No string of a profile is equal, as it is not UTF-8.
const emptyMark = "\xff"

// mark returns a copy of labels or their units in which those of a key are emptyMark where they are empty, and their
// number is 0 if they have numbers. If there are none, it returns the labels.
func mark(labels map[string][]string, key string, texts []string, numbers []int64) map[string][]string {
	for i := range texts {
		if texts[i] == "" && (numbers == nil || numbers[i] == 0) {
			texts[i] = emptyMark
		}
	}
	if !slices.Contains(texts, emptyMark) {
		return labels
	}
	marked := map[string][]string{key: texts}
	for other, texts := range labels {
		if other != key {
			marked[other] = texts
		}
	}
	return marked
}

// withoutMark replaces emptyMark in the string table of a message by the empty string.
func withoutMark(message []byte) []byte {
	const stringTable = 6 // a field of the Profile message
	c, start := wire.New(message), 0
	for ; c.Next(); start = c.At {
		if c.Field == stringTable && string(message[c.Start:c.Stop]) == emptyMark {
			message[start+1] = 0 // its length
			return slices.Delete(message, start+2, c.At)
		}
	}
	return message
}
