// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "encoding/binary"

// appendUint appends v as a varint.
func appendUint(key []byte, v uint64) []byte {
	if v < 0x80 { // most are
		return append(key, byte(v))
	}
	return binary.AppendUvarint(key, v)
}

func appendInt(key []byte, v int64) []byte { return appendUint(key, uint64(v)<<1^uint64(v>>63)) }

func appendIndex(key []byte, i int32) []byte { return appendUint(key, uint64(uint32(i))) }

// appendIndices appends indices as they are in the keys of mappings and locations, and in digests.
func appendIndices(key []byte, indices []int32) []byte {
	for _, i := range indices {
		key = appendIndex(key, i)
	}
	return key
}

// reader takes apart a key that this package has made. Its methods panic on any
// other input.
type reader struct {
	key []byte
	at  int // what is before was read
}

func (r *reader) more() bool { return r.at < len(r.key) }

// rest returns what was not read.
func (r *reader) rest() []byte { return r.key[r.at:] }

func (r *reader) byte() byte {
	r.at++
	return r.key[r.at-1]
}

func (r *reader) uint() uint64 { // inlined
	if b := r.key[r.at]; b < 0x80 {
		r.at++
		return uint64(b)
	}
	return r.longUint()
}

func (r *reader) longUint() uint64 {
	v, n := binary.Uvarint(r.rest())
	r.at += n
	return v
}

func (r *reader) int() int64 {
	u := r.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) index() int32 { return int32(uint32(r.uint())) }

func (r *reader) bytes(n int) []byte {
	b := r.rest()[:n]
	r.at += n
	return b
}

// indices appends all that is left of the key to dst.
func (r *reader) indices(dst []int32) []int32 {
	for r.more() {
		dst = append(dst, r.index())
	}
	return dst
}
