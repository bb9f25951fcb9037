// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// projection is a pprof made of some columns of another one.
type projection struct {
	columns []int // sample types to keep, at least one, in the order they get

	// values returns the values of a sample, in the order of columns, or false
	// when it is left out. What it returns is read before it is called again.
	values func(sample int) ([]int64, bool)

	time, duration int64 // nanoseconds; a time of 0 leaves both as they are
}

// project writes the profile that p says. What it no longer reaches stays in its
// tables, where the translator passes it by.
func (v *pprofView) project(p projection) []byte {
	var types [][]byte
	names := map[uint64]bool{}
	sample := 0
	out := make([]byte, 0, len(v.payload))
	var message, packed []byte
	for f := range knownFields(v.payload) {
		switch {
		case f.number == pprofSampleType:
			types = append(types, f.raw)
		case f.number == pprofSample:
			values, keep := p.values(sample)
			sample++
			if !keep {
				continue
			}
			message, packed = message[:0], packed[:0]
			for part := range knownFields(f.bytes) {
				if part.number != 2 {
					message = append(message, part.raw...)
				}
			}
			for _, value := range values {
				packed = protowire.AppendVarint(packed, uint64(value))
			}
			message = protowire.AppendTag(message, 2, protowire.BytesType)
			message = protowire.AppendBytes(message, packed)
			out = protowire.AppendTag(out, pprofSample, protowire.BytesType)
			out = protowire.AppendBytes(out, message)
		case f.number == pprofDefaultSampleType:
		case p.time != 0 && (f.number == pprofTimeNanos || f.number == pprofDurationNanos):
		default:
			out = append(out, f.raw...)
		}
	}
	for _, column := range p.columns {
		out = append(out, types[column]...)
		for f := range knownFields(types[column]) {
			for part := range knownFields(f.bytes) {
				if part.number == 1 {
					names[part.varint] = true
				}
			}
		}
	}
	if name := v.defaultSampleType(); names[name] {
		out = protowire.AppendTag(out, pprofDefaultSampleType, protowire.VarintType)
		out = protowire.AppendVarint(out, name)
	}
	if p.time != 0 {
		out = protowire.AppendTag(out, pprofTimeNanos, protowire.VarintType)
		out = protowire.AppendVarint(out, uint64(p.time))
		out = protowire.AppendTag(out, pprofDurationNanos, protowire.VarintType)
		out = protowire.AppendVarint(out, uint64(p.duration))
	}
	return out
}

// defaultSampleType is the string index of the default sample type, 0 when none
// is set.
func (v *pprofView) defaultSampleType() (index uint64) {
	for f := range knownFields(v.payload) {
		if f.number == pprofDefaultSampleType {
			index = f.varint
		}
	}
	return index
}

// nonzero returns the values of these columns as they are, of the samples that
// have any.
func (v *pprofView) nonzero(columns []int) func(sample int) ([]int64, bool) {
	values := make([]int64, len(columns))
	return func(sample int) ([]int64, bool) {
		found := false
		for i, column := range columns {
			values[i] = v.values[sample*len(v.sampleTypes)+column]
			found = found || values[i] != 0
		}
		return values, found
	}
}
