// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"encoding/binary"
	"unicode/utf8"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// ValidString returns string i of a string table as valid UTF-8, or "" if there is none.
func ValidString(table pcommon.StringSlice, i int32) string {
	if i < 0 || int(i) >= table.Len() {
		return ""
	}
	return ValidUTF8(table.At(int(i)))
}

// TextOf returns the text of an attribute as valid UTF-8, or "".
func TextOf(attributes pcommon.Map, key string) string {
	if value, found := attributes.Get(key); found {
		return ValidUTF8(value.AsString())
	}
	return ""
}

// ValidUTF8 returns s, or a copy in which each byte that is not of UTF-8 is written as \xff, so that two names that differ in
// such bytes still differ.
func ValidUTF8(s string) string {
	b := unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // read only
	if isASCII(b) || utf8.Valid(b) {                // ToValidUTF8 takes several times as long to find that out
		return s
	}
	return escapeInvalid(s)
}

// ValidSize is the length of ValidUTF8(s).
func ValidSize(s []byte) int {
	size := len(s)
	if isASCII(s) || utf8.Valid(s) {
		return size
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			size += escapedByte - 1
		}
		s = s[n:]
	}
	return size
}

// escapeInvalid takes escapedByte bytes for each that is not of UTF-8.
func escapeInvalid(s string) string {
	const digits = "0123456789abcdef"
	valid := make([]byte, 0, len(s)+8*escapedByte)
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			valid = append(valid, '\\', 'x', digits[s[0]>>4], digits[s[0]&0xf])
		} else {
			valid = append(valid, s[:size]...)
		}
		s = s[size:]
	}
	return string(valid)
}

// escapedByte is how many bytes ValidUTF8 makes of one that is not of UTF-8.
const escapedByte = len(`\xff`)

// isASCII takes a quarter of the instructions of utf8.Valid, which reads the last up to seven bytes as runes.
func isASCII(s []byte) bool {
	var all uint64
	if len(s) >= 8 {
		all = binary.LittleEndian.Uint64(s[len(s)-8:])
		for ; len(s) > 8; s = s[8:] {
			all |= binary.LittleEndian.Uint64(s)
		}
		return all&0x8080808080808080 == 0
	}
	for _, b := range s {
		all |= uint64(b)
	}
	return all < utf8.RuneSelf
}
