// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRowsWithDifferentFieldsAreToldApart: by their length, if one ends as the other with zeros, and if their
// hashes are equal.
func TestRowsWithDifferentFieldsAreToldApart(t *testing.T) {
	var d decoder
	var fields []byte
	d.Event = 1
	events := []*event{{number: 1}, {number: 2}}
	numbers := map[int32]bool{}
	rows := func(row func(e *event) (int32, error)) {
		for _, e := range events {
			number, err := row(e)
			require.NoError(t, err)
			require.False(t, numbers[number], "%d %x", e.number, fields)
			numbers[number] = true
			again, err := row(e)
			require.NoError(t, err)
			require.Equal(t, number, again)
		}
	}
	for n := range 2 * keySize {
		fields = append(make([]byte, 0, 4*keySize), append([]byte{0x81, 0x81}, make([]byte, n)...)...)
		rows(func(e *event) (int32, error) { return d.row(e, fields) })
	}
	for n := range 3 {
		fields = append(bytes.Repeat([]byte{9}, 2*keySize), make([]byte, n)...)
		rows(func(e *event) (int32, error) { return d.longRow(e, fields, 7) })
	}
}
