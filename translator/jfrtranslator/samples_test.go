// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// TestRowsWithDifferentFieldsStayApart: by their length, if one ends as the other with zeros, and if their
// hashes are equal.
func TestRowsWithDifferentFieldsStayApart(t *testing.T) {
	var d decoder
	var fields []byte
	d.Event = 1
	events := []*event{{number: 1}, {number: 2}}
	numbers := map[int32]bool{}
	rows := func() {
		for _, e := range events {
			number := d.row(e, fields)
			require.False(t, numbers[number], "%d %x", e.number, fields)
			numbers[number] = true
			require.Equal(t, number, d.row(e, fields))
		}
	}
	for n := range 2 * jfr.KeySize {
		fields = append(make([]byte, 0, 4*jfr.KeySize), append([]byte{0x81, 0x81}, make([]byte, n)...)...)
		rows()
	}
	hash := hashOf
	defer func() { hashOf = hash }()
	hashOf = func([]byte) uint64 { return 7 }
	for n := range 3 {
		fields = append(bytes.Repeat([]byte{9}, 2*jfr.KeySize), make([]byte, n)...)
		rows()
	}
}
