// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package validutf8 repairs strings that are not UTF-8.
package validutf8

import (
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// At returns string i of a string table as valid UTF-8, or "" if there is none.
func At(table pcommon.StringSlice, i int32) string {
	if i < 0 || int(i) >= table.Len() {
		return ""
	}
	return Repair(table.At(int(i)))
}

// Repair returns s, or a copy in which each run of bytes that are not UTF-8 is one
// U+FFFD.
func Repair(s string) string {
	if utf8.ValidString(s) { // ToValidUTF8 takes several times as long to find that out
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
