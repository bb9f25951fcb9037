// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// MaxDepth is how many levels of lists an attribute value may nest. pdata's own
// unmarshaler has no bound.
const MaxDepth = 64

// MaxListEntries bounds the attributes of a resource or scope, and the lists inside
// values: pdata adds keys to one in quadratic time.
const MaxListEntries = 1024

// The binary form of an attribute value is a tag, then its content; values that hold
// others start with their count, and key-value lists are sorted.
const (
	tagEmpty byte = iota
	tagString
	tagFalse
	tagTrue
	tagInt
	tagDouble
	tagBytes
	tagArray
	tagList
)

// Value is an attribute value in the binary form of this package: equal values
// are equal bytes. The zero value is the empty attribute value.
type Value []byte

// AppendString appends a string value. s must be valid UTF-8.
func (v Value) AppendString(s []byte) Value {
	v = binary.AppendUvarint(append(v, tagString), uint64(len(s)))
	return append(v, s...)
}

// AppendInt appends an integer value.
func (v Value) AppendInt(i int64) Value { return binary.AppendVarint(append(v, tagInt), i) }

// AppendBool appends a boolean value.
func (v Value) AppendBool(b bool) Value {
	if b {
		return append(v, tagTrue)
	}
	return append(v, tagFalse)
}

// AppendArray appends the head of an array; its n elements are to be appended
// after it.
func (v Value) AppendArray(n int) Value {
	return binary.AppendUvarint(append(v, tagArray), uint64(n))
}

// AppendList appends the head of a key-value list; its n entries are to be
// appended after it with AppendKey and a value each, in the order of their keys.
func (v Value) AppendList(n int) Value {
	return binary.AppendUvarint(append(v, tagList), uint64(n))
}

// AppendKey appends a key of a key-value list.
func (v Value) AppendKey(key string) Value {
	return append(binary.AppendUvarint(v, uint64(len(key))), key...)
}

// AppendPdata appends v to dst, with valid strings. v must not nest deeper than MaxDepth
// (see CheckValues).
func AppendPdata(dst Value, v pcommon.Value) Value {
	if v.Type() == pcommon.ValueTypeEmpty {
		return dst
	}
	return appendValue(dst, v)
}

func appendValue(dst Value, v pcommon.Value) Value {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return append(dst, tagString).AppendKey(ValidUTF8(v.Str()))
	case pcommon.ValueTypeBool:
		return dst.AppendBool(v.Bool())
	case pcommon.ValueTypeInt:
		return dst.AppendInt(v.Int())
	case pcommon.ValueTypeDouble:
		d := v.Double()
		if d == 0 {
			d = 0 // -0.0
		}
		return binary.BigEndian.AppendUint64(append(dst, tagDouble), math.Float64bits(d))
	case pcommon.ValueTypeBytes:
		b := v.Bytes().AsRaw()
		return append(binary.AppendUvarint(append(dst, tagBytes), uint64(len(b))), b...)
	case pcommon.ValueTypeSlice:
		dst = dst.AppendArray(v.Slice().Len())
		for _, e := range v.Slice().All() {
			dst = appendValue(dst, e)
		}
		return dst
	case pcommon.ValueTypeMap:
		return AppendMap(dst, v.Map())
	default:
		return append(dst, tagEmpty)
	}
}

// AppendMap appends the attributes of m, in any order the same bytes.
func AppendMap(dst Value, m pcommon.Map) Value { return AppendMapWithout(dst, m, nil) }

// AppendMapWithout is AppendMap without the attributes that have one of keys.
func AppendMapWithout(dst Value, m pcommon.Map, keys []string) Value {
	type entry struct {
		key   string
		value pcommon.Value
	}
	var few [16]entry
	entries := few[:0]
	for k, v := range m.All() {
		if !slices.Contains(keys, k) {
			entries = append(entries, entry{ValidUTF8(k), v})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return bytes.Compare(appendValue(nil, a.value), appendValue(nil, b.value))
	})
	dst = dst.AppendList(len(entries))
	for _, e := range entries {
		dst = appendValue(dst.AppendKey(e.key), e.value)
	}
	return dst
}

// CopyMap adds the attributes of src to dst, which must be empty, in the order of
// their keys and with valid strings. Of attributes with one key the one with the greatest value in binary form stays.
func CopyMap(dst, src pcommon.Map) {
	r := reader{key: AppendMap(nil, src)[1:]} // without the tag
	writeMap(&r, dst)
}

// Write fills dst, which is empty.
func (v Value) Write(dst pcommon.Value) {
	r := reader{key: v}
	writeValue(&r, dst)
}

// writeValue takes one value from r into dst.
func writeValue(r *reader, dst pcommon.Value) {
	if !r.more() {
		return
	}
	switch r.byte() {
	case tagString:
		dst.SetStr(string(r.bytes(int(r.uint()))))
	case tagFalse:
		dst.SetBool(false)
	case tagTrue:
		dst.SetBool(true)
	case tagInt:
		dst.SetInt(r.int())
	case tagDouble:
		dst.SetDouble(math.Float64frombits(binary.BigEndian.Uint64(r.bytes(8))))
	case tagBytes:
		dst.SetEmptyBytes().FromRaw(r.bytes(int(r.uint())))
	case tagArray:
		n := int(r.uint())
		s := dst.SetEmptySlice()
		s.EnsureCapacity(n)
		for range n {
			writeValue(r, s.AppendEmpty())
		}
	case tagList:
		writeMap(r, dst.SetEmptyMap())
	}
}

// writeMap takes a key-value list from r, after its tag, into dst.
func writeMap(r *reader, dst pcommon.Map) {
	n := int(r.uint())
	dst.EnsureCapacity(n)
	for range n {
		key := string(r.bytes(int(r.uint())))
		writeValue(r, dst.PutEmpty(key))
	}
}
