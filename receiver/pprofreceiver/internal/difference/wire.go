// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"fmt"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of pprof's profile.proto.
const (
	pprofSampleType        = 1
	pprofSample            = 2
	pprofMapping           = 3
	pprofLocation          = 4
	pprofFunction          = 5
	pprofString            = 6
	pprofTimeNanos         = 9
	pprofDurationNanos     = 10
	pprofDefaultSampleType = 14
)

// wireField is one field of a protobuf message.
type wireField struct {
	number protowire.Number
	raw    []byte // tag and value
	bytes  []byte // of a length-delimited field, else nil
	varint uint64 // of a varint field
}

// int is the value of a field that is an int64 or an index.
func (f wireField) int() int64 { return int64(f.varint) }

// wireFields are the fields of a message in their order, up to the first error.
func wireFields(message []byte) iter.Seq2[wireField, error] {
	return func(yield func(wireField, error) bool) {
		for len(message) > 0 {
			number, wireType, tag := protowire.ConsumeTag(message)
			if tag < 0 {
				yield(wireField{}, protowire.ParseError(tag))
				return
			}
			f := wireField{number: number}
			var size int
			switch wireType {
			case protowire.VarintType:
				f.varint, size = protowire.ConsumeVarint(message[tag:])
			case protowire.BytesType:
				f.bytes, size = protowire.ConsumeBytes(message[tag:])
			default:
				size = protowire.ConsumeFieldValue(number, wireType, message[tag:])
			}
			if size < 0 {
				yield(f, protowire.ParseError(size))
				return
			}
			f.raw, message = message[:tag+size], message[tag+size:]
			if !yield(f, nil) {
				return
			}
		}
	}
}

// knownFields are the fields of a message that has been read before.
func knownFields(message []byte) iter.Seq[wireField] {
	return func(yield func(wireField) bool) {
		for f, err := range wireFields(message) {
			if err != nil || !yield(f) {
				return
			}
		}
	}
}

// appendRepeated appends the values of a repeated number: one, or a packed run of
// them. It stops with an error past most values in to.
func (f wireField) appendRepeated(to []uint64, most int) ([]uint64, error) {
	if f.bytes == nil {
		to = append(to, f.varint)
	}
	for packed := f.bytes; len(packed) > 0; {
		value, size := protowire.ConsumeVarint(packed)
		if size < 0 {
			return to, protowire.ParseError(size)
		}
		packed = packed[size:]
		if to = append(to, value); len(to) > most {
			break
		}
	}
	if len(to) > most {
		return to, fmt.Errorf("more than %d values", most)
	}
	return to, nil
}
