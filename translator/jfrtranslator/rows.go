// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"hash/maphash"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// row has the samples of a chunk that have equal fields, except for their time and values.
type row struct {
	at     int32 // where the first one is
	family family
	number int32    // in the family
	key    [2]int32 // of a long one: where it is in decoder.longKeys
	values [2]int64
}

// Where in a key the number of the event and, if it is a hash of its fields, longKey in place of a length are.
const (
	eventShift  = 56
	lengthShift = 48
	longKey     = 15
)

// row returns the number of the row of the sample with these fields.
func (d *decoder) row(e *event, fields []byte) (number int32) {
	key, short := jfr.KeyOf(fields)
	if !short {
		return d.longRow(e, fields, maphash.Bytes(seed, fields))
	}
	key.High |= uint64(e.number) << eventShift
	known := d.rowNumbers.Put(&d.Memory, key)
	number, isKnown := known.Number()
	if !isKnown {
		return d.addRow(known, row{})
	}
	return number
}

// addRow adds a row whose first sample is the current event.
func (d *decoder) addRow(known *jfr.Value, r row) (number int32) {
	r.at = int32(d.Event)
	d.rows = jfr.Append(&d.Memory, d.rows, r)
	number = int32(len(d.rows) - 1)
	known.SetNumber(number)
	return number
}

// seed keys the hashes of long keys.
var seed = maphash.MakeSeed()

// longRow is row for fields that are not in a key. Keys of rows with equal hashes count up.
func (d *decoder) longRow(e *event, fields []byte, hash uint64) (number int32) {
	key := jfr.Key{Low: hash, High: longKey<<lengthShift | uint64(e.number)<<eventShift}
	for ; ; key.High++ {
		known := d.rowNumbers.Put(&d.Memory, key)
		number, isKnown := known.Number()
		if !isKnown {
			start := int32(len(d.longKeys))
			if d.longKeys = jfr.Grow(&d.Memory, d.longKeys, len(fields)); d.Err == nil {
				d.longKeys = append(d.longKeys, fields...)
			}
			return d.addRow(known, row{key: [2]int32{start, int32(len(d.longKeys))}})
		}
		if r := &d.rows[number]; bytes.Equal(d.longKeys[r.key[0]:r.key[1]], fields) {
			return number
		}
	}
}
